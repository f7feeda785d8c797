/*
 * watchpoint: watch a program's own memory, from inside.
 *
 *	int balance;
 *
 *	WP_WATCH(balance);			each write is printed, with its
 *						backtrace, as it happens
 *	WP_FREEZE(config) { serve(); }		nobody may write to config now
 *	WP_PERMIT(config) { reload(); }		but this thread may, here
 *
 * and, underneath, wp_open and friends.  Link with -lwatchpoint; nothing else is
 * needed but, for source lines and callers in the reports, the watchctl command.
 *
 * Overview.  A watch takes one of the processor's few debug registers (four, on
 * x86-64, in each thread) for up to 8 aligned bytes.  The thread that touches
 * them is interrupted by a signal right after the instruction, captures its
 * registers and a piece of its stack into memory that it shares with a helper
 * process, and goes on once the helper has printed who it was and from where.
 * The helper is the command watchctl, started by the first watch; the program
 * cannot notice it: it is no child of the program's and takes no low descriptor.
 * It prints a summary, and ends, when the program has ended.
 *
 * Delivery is found out by trying (signal(7), perf_event_open(2)):
 *
 *	sigtrap	 SIGTRAP, by the kernel, to the thread that made the access
 *	async	 SIGURG or the like, where the kernel has no such SIGTRAP, and
 *		 on processors that trap before the access (arm64)
 *	ptrace	 debug registers that the helper sets through ptrace(2), where
 *		 perf_event_open is refused altogether
 *
 * With the last two, threads made later are covered by the helper, which then
 * traces the program for as long as it watches all threads.
 *
 * Environment, read at the first use and ignored in set-user-ID programs:
 *
 *	WATCHPOINT_HELPER	path of the helper; empty: none
 *	WATCHPOINT_DELIVERY	sigtrap, async or ptrace: no other is tried
 *	WATCHPOINT_FORM		text (the default) or json: the helper's reports
 *	WATCHPOINT_OUTPUT	a file for them, instead of standard error
 *	WATCHPOINT_STACK	bytes of stack to capture (4096; at most 16384)
 *	WATCHPOINT_WATCH	what a preloaded library watches; see watchctl(1),
 *				--inside, which sets it
 *
 * Unless it says otherwise a function may be called by any thread, but not from
 * a signal handler, and returns 0 or -errno; wp_cause then tells the reason.
 *
 * Compiled with -DWP_DISABLE, the macros are there and do nothing.
 */
#ifndef WATCHPOINT_H
#define WATCHPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* What to watch for. */
enum wp_access {
	WP_WRITE = 'w',
	WP_READ = 'r',		/* x86: both are trapped, and the helper drops
				   writes; a handler of yours sees both */
	WP_ACCESS = 'a',	/* reads and writes */
	WP_EXEC = 'x'		/* execution of the instruction at an address;
				   the hit comes before it is executed */
};

/* What a hit does, or'ed together.  0: WP_CALL with a handler, else WP_PRINT. */
enum wp_action {
	WP_PRINT = 1,		/* report it */
	WP_CALL = 2,		/* call the handler, after the report */
	WP_ABORT = 4		/* abort(3), after the others */
};

/* Whose accesses. */
enum wp_threads {
	WP_ALL_THREADS = 0,	/* those that exist and those to come */
	WP_THIS_THREAD = 1
};

enum wp_flags {
	WP_ASYNC = 1,		/* the thread does not wait for the report (it
				   does when many reports are behind) */
	WP_STRAY = 2,		/* an access is stray, unless a WP_PERMIT of the
				   thread covers the watch: then it is neither
				   reported nor counted as a hit */
	WP_FORK = 4,		/* also in children made by fork(2), where each
				   has a watch and a helper of its own; without
				   it children are not watched */
	WP_DISABLED = 8,	/* wp_enable it when wanted */
	WP_USER_ONLY = 16	/* not what the kernel touches on the program's
				   behalf (read(2) into it); such accesses are
				   seen where the kernel permits it only, and
				   of WP_WRITE only: what execve(2) reads would
				   end the next program by a signal */
};

struct wp_watch;		/* a watch that is open */

/* One access, as a handler is told of it; valid during the call. */
struct wp_hit {
	struct wp_watch *watch;
	const char *label;	/* the watch's */
	void *addr;		/* watched bytes around the access: those of the
				   debug register that saw it; of several that did,
				   from the first to the last, but in a program
				   of several threads perhaps of one of them */
	size_t len;
	const void *pc;		/* where the thread goes on: on x86 behind the
				   instruction, of WP_EXEC before it */
	pid_t tid;
	uint64_t nth;		/* the watch's hits so far, this one included */
	int stray;		/* by WP_STRAY */
	int late;		/* the thread had the signal blocked: pc is where
				   it unblocked it, and accesses in between are
				   this one hit */
	void *context;		/* the thread's registers: a ucontext_t */
	const char *text;	/* the report as text, with WP_PRINT and a
				   helper; else "" */
};

/*
 * Called in the thread that made the access, from a signal handler that has all
 * signals blocked: what it calls must be async-signal-safe (signal-safety(7)),
 * as far as the program does not know better.  It may read and write what is
 * watched: that is no hit.  It may call wp_enable, wp_disable and wp_count.  It
 * may leave by longjmp(3), after wp_leave.
 */
typedef void wp_handler(const struct wp_hit *, void *arg);

/* What wp_open is to do.  Fields that are 0 have the meaning that most want. */
struct wp_attr {
	size_t size;		/* sizeof(struct wp_attr) */
	const volatile void *addr;	/* first byte; any alignment */
	size_t len;		/* bytes, at least 1, but for WP_EXEC: as many as
				   the free debug registers cover */
	enum wp_access access;	/* 0: WP_WRITE */
	const char *label;	/* how reports call it: copied, cut after 63
				   bytes; NULL: by its address */
	uint64_t period;	/* each so many-th access is a hit; 0 and 1: each */
	uint64_t limit;		/* it is disabled after so many hits, and again
				   so many after each wp_enable; 0: never */
	unsigned action;	/* enum wp_action */
	wp_handler *handler;	/* NULL: none */
	void *arg;		/* handed to it */
	enum wp_threads threads;
	unsigned flags;		/* enum wp_flags */
};

/*
 * Open a watch.  It watches when this returns.  A shared object that has the
 * bytes or the handler stays: dlclose(3) does not unload it any more.  -errno:
 *	EINVAL	the attribute makes no sense: cause says what
 *	E2BIG	it has fields that this library does not know, or the region
 *		takes more debug registers than there are
 *	EFAULT	the region is not mapped
 *	ENOSPC	no debug register is free in some thread
 *	EACCES, EPERM	not permitted: cause says by what
 *	ENODEV	no hardware breakpoints here
 *	ENOTSUP	the delivery asked for is not there, or cannot do this
 *	EMFILE	too many watches (256), or descriptors
 */
int wp_open(const struct wp_attr *, struct wp_watch **);

/*
 * Close it.  When this returns its handler runs in no other thread any more, and
 * a signal that is still on its way does nothing.  NULL: nothing to do.
 */
void wp_close(struct wp_watch *);

/* Watch, or stop watching, in all its threads.  Async-signal-safe. */
int wp_enable(struct wp_watch *);
int wp_disable(struct wp_watch *);

/*
 * Watch another place of the same length instead, in all its threads, as the
 * alignment allows: -EINVAL when it would take another number of debug
 * registers.  -EFAULT: not mapped.  On failure it watches where it did.
 */
int wp_move(struct wp_watch *, const volatile void *addr);

/*
 * How many accesses there were, in *count, by all its threads; those without a
 * report (period, WP_PERMIT) too.  By whatever delivery, what is counted is how
 * often one of the watch's debug registers was touched while it was enabled: once
 * by an instruction; twice by one that touches two of them, as a watch of bytes
 * that are not within 8 aligned ones has; by each step of a rep string
 * instruction; and where the kernel's accesses are seen, by a system call up to
 * once for each byte.  What a handler touches itself may be among it.  -EPIPE: the
 * helper counted, and has ended.  Async-signal-safe.
 */
int wp_count(const struct wp_watch *, uint64_t *count);

/* Why the calling thread's last call failed, in a line of words.  Valid until
   its next call. */
const char *wp_cause(void);

/* Before leaving a handler by longjmp(3): the thread gets back the signal mask
   that it had at the access, and the hit is void.  Async-signal-safe. */
void wp_leave(const struct wp_hit *);

/*
 * Whether a handler may leave this hit so without a deadlock to fear: not when
 * the access was made in the C library or the dynamic loader, which may hold
 * locks; nor when that cannot be told, in a statically linked program, or late.
 * What the program's own code holds is for it to know.  Async-signal-safe.
 */
int wp_may_leave(const struct wp_hit *);

/* Stray accesses so far, of all watches with WP_STRAY.  Async-signal-safe. */
uint64_t wp_stray_count(void);

/* The last stray access as its report has it; "" when there is none.  It may
   change while another thread makes one. */
const char *wp_stray_text(void);

/*
 * Where the count may be too low: freezes that could not be armed or may not
 * cover every thread, and accesses that were counted but whose signal never came
 * (blocked, ignored, or taken by another handler).  A test may trust a count of
 * no stray accesses when this is 0 too.  Async-signal-safe.
 */
uint64_t wp_stray_missed(void);

/* The last of them, in a line that begins with the place in the source if it is
   of a macro; "" when there is none. */
const char *wp_stray_missed_text(void);

/* Forget both: another test begins. */
void wp_stray_reset(void);

/*
 * Have a handler called at each stray access, of any watch, after the watch's
 * own; NULL: none.  It is a handler as above, so it may leave by longjmp(3).
 */
void wp_stray_handler(wp_handler *handler, void *arg);

/* What a report says of where the access was made. */
struct wp_place {
	char function[128];	/* of the innermost frame whose source is here to
				   be read, else of that which has a line, else
				   of the innermost; "": none is told */
	char file[256];		/* "": no frame has a line */
	int line;		/* 0: the same */
};

/* Find it in a report's text (of a hit, or wp_stray_text).  Async-signal-safe. */
void wp_report_place(const char *text, struct wp_place *);

/*
 * What the macros below stand for.
 */

/* Watch writes to a variable, under a name; twice is once.  0 or -errno; a
   failure is told on standard error too, once for each place in the source. */
int wp_watch_variable(const volatile void *addr, size_t len, const char *name,
    const char *file, int line);
int wp_unwatch_variable(const volatile void *addr, size_t len);

/* A block of code in which something holds.  The members are the library's. */
struct wp_scope {
	void *cleanup[4];	/* how longjmp(3) and the thread's end find it */
	struct wp_scope *outer;	/* the thread's permit around this one */
	const volatile void *addr;
	size_t len;
	void *freeze;		/* what it shares with other freezes of the same;
				   NULL: a permit, or it could not be had */
	int state;		/* 0: not entered yet; 1: in it; 2: left */
};

/*
 * Enter a scope, whose members are 0 or which is guarded.  Result: the scope.
 * Freezes of the same bytes, nested or in several threads, share one watch.  One
 * that cannot be had is told on standard error, once for each place in the
 * source, and counted by wp_stray_missed; the block is run in any case.
 */
struct wp_scope *wp_scope_freeze(struct wp_scope *, const volatile void *addr,
    size_t len, const char *name, const char *file, int line);
struct wp_scope *wp_scope_permit(struct wp_scope *, const volatile void *addr,
    size_t len);

/* Leave it; twice is once.  Result: NULL. */
struct wp_scope *wp_scope_leave(struct wp_scope *);

/* Make it, about to be entered, one that longjmp(3) and the end of the thread
   leave too.  It must lie on the stack, in a place made by wp_scope_one. */
struct wp_scope *wp_scope_guard(struct wp_scope *);

/*
 * The same two where the scope may be a part of a coroutine, which leaves the
 * stack at co_await: frame is that of the call which is running
 * (__builtin_frame_address(0)).  A scope that is no variable of this very call is
 * not guarded, and its permit is not in force, as who resumes the coroutine would
 * have it: that is told on standard error, once for each place in the source.
 */
struct wp_scope *wp_scope_guard_in(struct wp_scope *, const void *frame);
struct wp_scope *wp_scope_permit_in(struct wp_scope *,
    const volatile void *addr, size_t len, const void *frame, const char *name,
    const char *file, int line);

/* 1, which the compiler does not know: an array of so many scopes gets its place
   when the block is entered, below the stack pointer that an earlier setjmp(3)
   in the same function saved, and gives it back when the block is left. */
size_t wp_scope_one(void);

/* Cleanup handler: leave the scope, unless NULL. */
void wp_scope_cleanup(struct wp_scope **);

/* Say how many stray accesses there were and may have been missed, and abort(3). */
void wp_stray_abort(const char *file, int line) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

/*
 * WP_WATCH(lvalue)	watch writes to a variable from here on, by all threads:
 *			each is printed; the program goes on.  0 or -errno.
 * WP_UNWATCH(lvalue)	and no more.
 * WP_FREEZE(lvalue) { ... }
 *			a write in the block, by any thread, is stray: printed,
 *			and counted by wp_stray_count.
 * WP_PERMIT(lvalue) { ... }
 *			in the block this thread may write; functions that it
 *			calls there too.
 * WP_ASSERT_NO_STRAY()	abort(3) if there was a stray write so far, or one may
 *			have been missed.
 *
 * The argument is evaluated once; it can be anything that has an address, but a
 * bit-field.  It is as long as the debug registers cover: a member, if not the
 * whole structure.  A block may be left by return, break, goto, longjmp(3), a C++
 * exception or the end of the thread; break and continue leave the block.  (A C
 * function that an exception passes through must be compiled with -fexceptions,
 * as always.  longjmp needs the GNU C library, and that the block has its place
 * on the thread's own stack; from C++20 on, that its setjmp is neither in the
 * block's own function nor in one that this is inlined into.)  A semicolon before
 * the block would take its place: then nothing is frozen.  Compilers warn of that: clang always, gcc with -Wextra or
 * -Wempty-body.  (That is why gcc -Wall suggests braces around a block that is all
 * that an `if' without `else' has.)
 *
 * In C++ there are objects that do the same for as long as they live, but for
 * longjmp: wp::freeze, wp::permit, wp::watch.  A wp::permit has to be a variable
 * of its own, no part of another object.
 *
 * In a coroutine a freeze holds across co_await, too.  But a permit is a thread's,
 * and the thread goes on with whoever resumed the coroutine.  So WP_PERMIT and
 * wp::permit are not in force there, which is told; what is permitted is given to
 * wp::permitted, where nothing can suspend it:
 *
 *	wp::permitted(config, [&] { config.limit = 3; });
 *
 * With WP_DISABLE defined the argument is not evaluated, only type-checked,
 * WP_WATCH and WP_UNWATCH are 0, and nothing is left of the macros in the code.
 */

/* Blocks use an array of variable length on purpose, see wp_scope_one: a program
   that wants to hear of its own is not told of these. */
#ifdef __clang__
#define WP_QUIET_	_Pragma("clang diagnostic push")		\
			_Pragma("clang diagnostic ignored \"-Wvla\"")
#define WP_LOUD_	_Pragma("clang diagnostic pop")
#define WP_BODY_
#else
#pragma GCC system_header
#define WP_QUIET_
#define WP_LOUD_
/* Of the empty body of a loop gcc never warns, of an else it does. */
#define WP_BODY_	if (0) {} else
#endif

#ifdef __cplusplus
#define WP_ADDRESS_(lvalue)	__builtin_addressof(lvalue)
#else
#define WP_ADDRESS_(lvalue)	(&(lvalue))
#endif

/* To be compiled, and nothing more: no warning says that what is named is not
   used. */
#define WP_UNEVALUATED_(lvalue)	(0 ? (void)WP_ADDRESS_(lvalue) : (void)0)

/* Names that are new at each use. */
#define WP_PASTE_(a, b)		a##b
#define WP_NAME_(name, n)	WP_PASTE_(wp_##name##_, n)

#ifdef WP_DISABLE

#define WP_WATCH(lvalue)	(WP_UNEVALUATED_(lvalue), 0)
#define WP_UNWATCH(lvalue)	(WP_UNEVALUATED_(lvalue), 0)
#define WP_FREEZE(lvalue)	WP_BLOCK_(lvalue)
#define WP_PERMIT(lvalue)	WP_BLOCK_(lvalue)
#define WP_ASSERT_NO_STRAY()	((void)0)

/* The block, once; break and continue leave it, as they do otherwise.  A jump
   into the loop leaves less in the code than one that counts to 1. */
#define WP_BLOCK_(lvalue)						\
	switch (WP_UNEVALUATED_(lvalue), 0)				\
		while (0)						\
			case 0: WP_BODY_

#else

#define WP_WATCH(lvalue)						\
	wp_watch_variable(WP_ADDRESS_(lvalue), sizeof(lvalue), #lvalue,	\
	    __FILE__, __LINE__)
#define WP_UNWATCH(lvalue)						\
	wp_unwatch_variable(WP_ADDRESS_(lvalue), sizeof(lvalue))
#define WP_FREEZE(lvalue)						\
	WP_BLOCK_(__COUNTER__, wp_scope_freeze, WP_ADDRESS_(lvalue),	\
	    sizeof(lvalue), #lvalue, __FILE__, __LINE__)
#ifdef __cpp_impl_coroutine	/* these have no arrays of variable length */
#define WP_ONE_			1
#define WP_GUARD_(scope)						\
	wp_scope_guard_in(scope, __builtin_frame_address(0))
#define WP_PERMIT(lvalue)						\
	WP_BLOCK_(__COUNTER__, wp_scope_permit_in, WP_ADDRESS_(lvalue),	\
	    sizeof(lvalue), __builtin_frame_address(0), #lvalue,	\
	    __FILE__, __LINE__)
#else
#define WP_ONE_			wp_scope_one()
#define WP_GUARD_(scope)	wp_scope_guard(scope)
#define WP_PERMIT(lvalue)						\
	WP_BLOCK_(__COUNTER__, wp_scope_permit, WP_ADDRESS_(lvalue),	\
	    sizeof(lvalue))
#endif
#define WP_ASSERT_NO_STRAY()						\
	(wp_stray_count() == 0 && wp_stray_missed() == 0 ? (void)0 :	\
	    wp_stray_abort(__FILE__, __LINE__))

#define WP_BLOCK_(n, enter, ...)					\
	WP_QUIET_							\
	for (struct wp_scope WP_NAME_(scope, n)[WP_ONE_],		\
	    *WP_NAME_(in, n) __attribute__((cleanup(wp_scope_cleanup))) = \
	    enter(WP_GUARD_(WP_NAME_(scope, n)), __VA_ARGS__);		\
	    WP_NAME_(in, n);						\
	    WP_NAME_(in, n) = wp_scope_leave(WP_NAME_(in, n)))		\
	WP_LOUD_ WP_BODY_

#endif /* WP_DISABLE */

#ifdef __cplusplus

namespace wp {

#ifdef WP_DISABLE

inline namespace disabled {

class freeze {
public:
	template <class T>
	explicit freeze(const T &, const char * = "", const char * = "",
	    int = 0) {}
	template <class T>
	explicit freeze(const T &&, const char * = "") = delete;
	freeze(const freeze &) = delete;
	freeze &operator=(const freeze &) = delete;
	~freeze() {}
	explicit operator bool() const { return true; }
};

typedef freeze permit;
typedef freeze watch;

template <class T, class F>
auto permitted(const T &, F &&function) -> decltype(function())
{
	return function();
}

} /* namespace disabled */

#else

class scope {
public:
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;

protected:
	scope() : scope_() {}
	~scope() { (void)wp_scope_leave(&scope_); }
	struct wp_scope scope_;
};

/* No thread may write to the object for as long as this lives. */
class freeze : public scope {
public:
	template <class T>
	explicit freeze(const T &object, const char *name = "object",
	    const char *file = __builtin_FILE(), int line = __builtin_LINE())
	{
		(void)wp_scope_freeze(&scope_, __builtin_addressof(object),
		    sizeof(object), name, file, line);
	}
	template <class T>
	explicit freeze(const T &&, const char * = "") = delete;
	/* whether it is in force */
	explicit operator bool() const { return scope_.freeze != nullptr; }
};

/* But this thread may.  Leave out all but the object. */
class permit : public scope {
public:
	template <class T>
	explicit permit(const T &object, const char *name = "object",
	    const char *file = __builtin_FILE(), int line = __builtin_LINE(),
	    const void *frame = __builtin_frame_address(0))
	{
		(void)wp_scope_permit_in(&scope_, __builtin_addressof(object),
		    sizeof(object), frame, name, file, line);
	}
	template <class T>
	explicit permit(const T &&, const char * = "") = delete;
	void *operator new(size_t) = delete;
};

/* And while a function is called, in a coroutine, too.  Its result is passed on. */
template <class T, class F>
auto permitted(const T &object, F &&function) -> decltype(function())
{
	permit in_force(object);

	return function();
}

/* Writes to the object are printed for as long as this lives; it does not tell
   if it could not be had, but wp_cause does. */
class watch {
public:
	template <class T>
	explicit watch(const T &object, const char *name = nullptr)
	    : watch_(nullptr)
	{
		struct wp_attr attr = wp_attr();

		attr.size = sizeof(attr);
		attr.addr = __builtin_addressof(object);
		attr.len = sizeof(object);
		attr.label = name;
		(void)wp_open(&attr, &watch_);
	}
	template <class T>
	explicit watch(const T &&, const char * = nullptr) = delete;
	watch(const watch &) = delete;
	watch &operator=(const watch &) = delete;
	~watch() { wp_close(watch_); }
	explicit operator bool() const { return watch_ != nullptr; }

private:
	struct wp_watch *watch_;
};

#endif /* WP_DISABLE */

} /* namespace wp */

#endif /* __cplusplus */

#endif
