/*
 * watchpoint: watch a program's own memory, from inside.
 *
 *	int balance;
 *
 *	WP_WATCH(balance);			each write is reported, with its
 *						backtrace, as it happens
 *	WP_WATCH_HEAP(node);			the same of what it points to,
 *						until that is freed
 *	WP_SCOPE(n) { parse(&n); }		the same of a local, for the
 *						block alone
 *	WP_FREEZE(config) { serve(); }		no thread may write to config
 *	WP_PERMIT(config) { reload(); }		but this thread may, here
 *
 * The functions underneath are wp_open and those around it.  Link with
 * -lwatchpoint.  Source lines and callers in the reports need the watchctl
 * command; nothing else is needed.
 *
 * Overview.  A watch takes one of the processor's few debug registers (four, on
 * x86-64, in each thread) for up to 8 aligned bytes.  The thread that touches
 * them is interrupted by a signal right after the instruction, captures its
 * registers and a piece of its stack into memory that it shares with a helper
 * process, and continues once the helper has printed the report.  The helper is
 * the command watchctl, started by the first watch.  The program does not
 * notice it: it is not a child of the program for wait(2), and takes no low
 * descriptor number.  When the program has ended, the helper prints a summary
 * and ends too.
 *
 * The delivery is found by trying (signal(7), perf_event_open(2)):
 *
 *	sigtrap	 SIGTRAP, by the kernel, to the thread that made the access
 *	async	 SIGURG or the like, where the kernel has no such SIGTRAP, and
 *		 on processors that trap before the access (arm64)
 *	ptrace	 debug registers that the helper sets through ptrace(2), where
 *		 perf_event_open is refused altogether
 *
 * With the last two, the helper covers threads that are created later, and so
 * it traces the program for as long as all of its threads are watched.
 *
 * The library may be in a program more than once, for example linked into it
 * and preloaded.  Each copy has its own watches, and gets their hits.
 *
 * Environment, read at the first use and ignored in set-user-ID programs:
 *
 *	WATCHPOINT_HELPER	path of the helper; empty: no helper
 *	WATCHPOINT_DELIVERY	sigtrap, async or ptrace: try no other
 *	WATCHPOINT_FORM		text (the default) or json: the helper's reports
 *	WATCHPOINT_OUTPUT	a file for them, instead of standard error
 *	WATCHPOINT_STACK	bytes of stack to capture (4096; at most 16384)
 *	WATCHPOINT_WATCH	what a preloaded library watches; set by
 *				watchctl(1), --inside
 *	WATCHPOINT_FAMILY	through whom a helper that is there serves this
 *				program, too; set by watchctl(1), --heap
 *
 * Unless its comment says otherwise, a function may be called by any thread,
 * but not from a signal handler.  It returns 0 or -errno, and wp_cause then
 * returns the reason.
 *
 * With -DWP_DISABLE the macros are defined and do nothing.
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

/* The kind of access to watch. */
enum wp_access {
	WP_WRITE = 'w',
	WP_READ = 'r',		/* x86: writes are trapped as well, and the
				   helper drops them; your handler sees both */
	WP_ACCESS = 'a',	/* reads and writes */
	WP_EXEC = 'x'		/* execution of the instruction at an address;
				   the hit comes before it is executed */
};

/* What happens at a hit, combined by or.  0: WP_CALL if there is a handler,
   else WP_PRINT. */
enum wp_action {
	WP_PRINT = 1,		/* report it */
	WP_CALL = 2,		/* call the handler, after the report */
	WP_ABORT = 4		/* abort(3), after the others */
};

/* The threads whose accesses are watched. */
enum wp_threads {
	WP_ALL_THREADS = 0,	/* the existing and all future ones */
	WP_THIS_THREAD = 1
};

enum wp_flags {
	WP_ASYNC = 1,		/* the thread does not wait for the report
				   (unless many reports are outstanding) */
	WP_STRAY = 2,		/* an access is stray, unless a WP_PERMIT of the
				   thread covers the watch: then it is neither
				   reported nor counted as a hit */
	WP_FORK = 4,		/* also in children made by fork(2), where each
				   has a watch of its own that counts from 0;
				   its hits are in its parent's report; without
				   it children are not watched */
	WP_DISABLED = 8,	/* do not watch before wp_enable */
	WP_USER_ONLY = 16	/* leave out accesses that the kernel makes on
				   the program's behalf (read(2) into the
				   bytes).  They are seen only where the kernel
				   permits it, and only with WP_WRITE: otherwise
				   a read by execve(2) would end the next
				   program with a signal */
};

struct wp_watch;		/* a watch that is open */

/* One access, as it is passed to a handler; valid during the call. */
struct wp_hit {
	struct wp_watch *watch;
	const char *label;	/* of the watch */
	void *addr;		/* watched bytes around the access: those of the
				   debug register that saw it.  If several did,
				   from the first to the last; in a program with
				   several threads perhaps those of one only */
	size_t len;
	const void *pc;		/* where the thread continues: on x86 after the
				   instruction, or, with WP_EXEC, before it */
	pid_t tid;
	uint64_t nth;		/* the watch's hits so far, this one included */
	int stray;		/* by WP_STRAY */
	int late;		/* the thread had the signal blocked: pc is
				   where it unblocked the signal, and this one
				   hit is for all accesses in between */
	void *context;		/* the thread's registers: a ucontext_t */
	const char *text;	/* the report as text, with WP_PRINT and a
				   helper; else "" */
};

/*
 * Called in the thread that made the access, from a signal handler that has all
 * signals blocked.  It may only call async-signal-safe functions
 * (signal-safety(7)), unless the program knows what its own code was doing at
 * the access.  It may read and write the watched memory, which is not a hit.
 * It may call wp_enable, wp_disable and wp_count.  It may leave by longjmp(3),
 * after wp_leave.
 */
typedef void wp_handler(const struct wp_hit *, void *arg);

/* What wp_open should do.  For each field, 0 is a usual default. */
struct wp_attr {
	size_t size;		/* sizeof(struct wp_attr) */
	const volatile void *addr;	/* first byte; any alignment */
	size_t len;		/* bytes: at least 1, at most as many as the
				   free debug registers cover; ignored for
				   WP_EXEC */
	enum wp_access access;	/* 0: WP_WRITE */
	const char *label;	/* its name in reports: copied, at most 63
				   bytes; NULL: its address */
	uint64_t period;	/* only every period-th access counts as a hit;
				   0 and 1: each access */
	uint64_t limit;		/* the watch is disabled after this many hits,
				   and again this many after each wp_enable; 0:
				   no limit */
	unsigned action;	/* enum wp_action */
	wp_handler *handler;	/* NULL: none */
	void *arg;		/* passed to it */
	enum wp_threads threads;
	unsigned flags;		/* enum wp_flags */
};

/*
 * Open a watch, which is in force when this returns.  A shared object that
 * contains the bytes or the handler is no longer unloaded by dlclose(3).
 * -errno:
 *	EINVAL	the attribute is not valid: wp_cause says why
 *	E2BIG	it has fields that this library does not know, or the region
 *		takes more debug registers than there are
 *	EFAULT	the region is not mapped
 *	ENOSPC	no debug register is free in some thread
 *	EACCES, EPERM	not permitted: wp_cause says what refused it
 *	ENODEV	this machine has no hardware breakpoints
 *	ENOTSUP	the requested delivery is not available, or cannot do this
 *	EMFILE	too many watches (256), or descriptors
 */
int wp_open(const struct wp_attr *, struct wp_watch **);

/*
 * Close it.  When this returns, its handler is no longer running in any other
 * thread, and a signal that is still pending does nothing.  NULL: nothing to
 * do.
 */
void wp_close(struct wp_watch *);

/* Enable or disable the watch in all its threads.  Async-signal-safe. */
int wp_enable(struct wp_watch *);
int wp_disable(struct wp_watch *);

/*
 * Watch another place instead, in all its threads:
 *
 *	wp_move(watch, addr)		of the same length
 *	wp_move(watch, addr, len)	of another, which wp_move_len does
 *
 * -EINVAL: the new place would take a different number of debug registers.  A
 * register covers 1, 2, 4 or 8 bytes that are aligned to their number.
 * -EFAULT: the place is not mapped.  On failure the watch stays where it was.
 */
int wp_move(struct wp_watch *, const volatile void *addr);
int wp_move_len(struct wp_watch *, const volatile void *addr, size_t len);

/*
 * Store in *count the number of accesses by all its threads, including those
 * without a report (period, WP_PERMIT).  With every delivery, it counts how
 * often one of the watch's debug registers was touched while the watch was
 * enabled: once by an instruction; twice by one that touches two of them (a
 * watch has two if its bytes are not within 8 aligned ones); once by each step
 * of a rep string instruction; and, where the kernel's accesses are seen, up to
 * once for each byte by a system call.  Accesses by a handler may be included.
 * -EPIPE: the helper kept the count, and has ended. Async-signal-safe.
 */
int wp_count(const struct wp_watch *, uint64_t *count);

/* Why the calling thread's last call failed, in one line.  Valid until its next
   call. */
const char *wp_cause(void);

/* Call this before leaving a handler by longjmp(3): it restores the signal mask
   that the thread had at the access.  The hit is no longer valid then.
   Async-signal-safe. */
void wp_leave(const struct wp_hit *);

/*
 * Returns 1 if a handler may leave this hit by longjmp(3) without risking a
 * deadlock, else 0.  It may not if the access was made in the C library or the
 * dynamic loader, which may hold locks, or if that is not known: in a
 * statically linked program, or if the hit is late.  Locks of the program
 * itself are not considered.  Async-signal-safe.
 */
int wp_may_leave(const struct wp_hit *);

/* The number of stray accesses so far, of all watches with WP_STRAY.
   Async-signal-safe. */
uint64_t wp_stray_count(void);

/* The report of the last stray access; "" if there is none.  It may change
   while another thread makes one. */
const char *wp_stray_text(void);

/*
 * The number of events that may make that count too low: freezes that could not
 * be armed or may not cover every thread, and accesses that were counted but
 * whose signal never came (it was blocked, ignored, or taken by another
 * handler).  A test may conclude that there were no stray accesses only if this
 * is 0 too.  Async-signal-safe.
 */
uint64_t wp_stray_missed(void);

/* The last of these events, in one line, which begins with the place in the
   source if a macro was used; "" if there is none. */
const char *wp_stray_missed_text(void);

/* Reset both counts, for the next test. */
void wp_stray_reset(void);

/*
 * Install a handler that is called at each stray access to any watch, after the
 * watch's own; NULL removes it.  Like any other handler it may leave by
 * longjmp(3).
 */
void wp_stray_handler(wp_handler *handler, void *arg);

/* Where an access was made, according to its report. */
struct wp_place {
	char function[128];	/* of the innermost frame whose source file can
				   be read here, else of the innermost with a
				   line, else of the innermost; "": not reported
				   */
	char file[256];		/* "": no frame has a line */
	int line;		/* 0: no frame has a line */
};

/* Find the place in the text of a report (of a hit, or wp_stray_text).
   Async-signal-safe. */
void wp_report_place(const char *text, struct wp_place *);

/*
 * The functions that the macros below call.
 */

/* Watch writes to a variable, under a name.  A second call for the same
   variable has no effect.  0 or -errno; a failure is also reported on standard
   error, once for each place in the source. */
int wp_watch_variable(const volatile void *addr, size_t len, const char *name,
    const char *file, int line);
int wp_unwatch_variable(const volatile void *addr, size_t len);

/* The same for bytes in a heap block, until free(3) or realloc(3), or a
   function that calls them, frees the block.  If block is NULL, the block
   begins with these bytes.  They need not be initialized yet. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
__attribute__((access(none, 1), access(none, 2)))
#endif
int wp_watch_heap(const volatile void *block, const volatile void *addr,
    size_t len, const char *name, const char *file, int line);

/* A watch, a freeze or a permit for a block of code.  The members belong to the
   library. */
struct wp_scope {
	void *cleanup[4];	/* how longjmp(3) and the thread's end find it
				   */
	struct wp_scope *outer;	/* the thread's permit around this one */
	const volatile void *addr;
	size_t len;
	void *freeze;		/* what it shares with others of the same kind
				   and bytes; NULL: a permit, or it could not
				   be armed */
	int state;		/* 0: not entered yet; 1: inside; 2: left */
};

/*
 * Enter a scope, whose members are 0 or which wp_scope_guard has prepared.
 * Result: the scope.  Freezes of the same bytes, nested or in several threads,
 * share one watch, and so do watches.  A scope that cannot be armed is reported
 * on standard error, once for each place in the source, and wp_stray_missed
 * counts it if it is a freeze; the block runs in any case.
 */
struct wp_scope *wp_scope_watch(struct wp_scope *, const volatile void *addr,
    size_t len, const char *name, const char *file, int line);
struct wp_scope *wp_scope_freeze(struct wp_scope *, const volatile void *addr,
    size_t len, const char *name, const char *file, int line);
struct wp_scope *wp_scope_permit(struct wp_scope *, const volatile void *addr,
    size_t len);

/* Leave a scope.  Leaving it again has no effect.  Result: NULL. */
struct wp_scope *wp_scope_leave(struct wp_scope *);

/* Prepare a scope that is about to be entered, so that longjmp(3) and the end
   of the thread leave it too.  It must be on the stack, in an array whose size
   came from wp_scope_one. */
struct wp_scope *wp_scope_guard(struct wp_scope *);

/*
 * The same two where the scope may be part of a coroutine, which leaves the
 * stack at co_await: frame is that of the running call
 * (__builtin_frame_address(0)).  A scope that is not a variable of this very
 * call is not guarded, and its permit is not in force, because the code that
 * resumes the coroutine would have the permit too.  A line on standard error
 * says so, once for each place in the source.
 */
struct wp_scope *wp_scope_guard_in(struct wp_scope *, const void *frame);
struct wp_scope *wp_scope_permit_in(struct wp_scope *,
    const volatile void *addr, size_t len, const void *frame, const char *name,
    const char *file, int line);

/* Returns 1, which the compiler does not know: an array of that many scopes
   gets its place when the block is entered, below the stack pointer that an
   earlier setjmp(3) in the same function saved, and gives it up when the block
   is left. */
size_t wp_scope_one(void);

/* Cleanup handler: leave the scope, unless NULL. */
void wp_scope_cleanup(struct wp_scope **);

/* Print how many stray accesses there were and may have been missed, and
   abort(3). */
void wp_stray_abort(const char *file, int line) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

/*
 * WP_WATCH(lvalue)	report each write to a variable from here on, by any
 *			thread; the program goes on.  0 or -errno.
 * WP_WATCH_HEAP(p)	the same of *p, which ends when p, a block that malloc
 *			or new has returned, is freed.  That is reported, too,
 *			and a line says that the watch has ended.  All such
 *			watches together take two more debug registers, for free
 *			and realloc.  A variable is refused.
 * WP_WATCH_HEAP(p, lvalue)
 *			the same of a part of it: WP_WATCH_HEAP(p, p->next).
 * WP_UNWATCH(lvalue)	end that.
 * WP_SCOPE(lvalue) { ... }
 *			report each write to it during the block, by any thread:
 *			for a local variable, whose memory is another's later.
 * WP_FREEZE(lvalue) { ... }
 *			a write during the block, by any thread, is stray: it is
 *			reported, and counted by wp_stray_count.
 * WP_PERMIT(lvalue) { ... }
 *			during the block this thread may write, and so may the
 *			functions that it calls there.
 * WP_ASSERT_NO_STRAY()
 *			abort(3) if there has been a stray write, or one may
 *			have been missed.
 *
 * The argument is evaluated once; it can be anything that has an address,
 * except a bit-field.  The debug registers must cover it: watch a member if the
 * whole structure is too large.  A block may be left by return, break, goto,
 * longjmp(3), a C++ exception or the end of the thread; break and continue
 * leave the block.  (A C function that an exception passes through must be
 * compiled with -fexceptions, as always. longjmp and the thread's end need the
 * GNU C library; longjmp a block that is on the thread's own stack, too; from
 * C++20 on, the setjmp may be neither in the block's own function nor in one
 * that this is inlined into.)  A semicolon before the block would be the block,
 * and nothing would be frozen; compilers warn about that, whatever their
 * options.  (gcc then warns about all empty bodies in the rest of the file, as
 * with -Wempty-body, even where -Werror would make that an error.  That is also
 * why gcc -Wall suggests braces around a block that is the whole body of an
 * `if' without `else'.)
 *
 * In C++ there are objects that do the same for as long as they live, except
 * for longjmp: wp::freeze, wp::permit, wp::watch.  A wp::permit must be a
 * variable of its own, not part of another object.
 *
 * As long as a heap block is watched, free and realloc take a debug register
 * each, and each call of them, with whatever block, takes some 20 microseconds.
 * A free without calling them, as by an operator delete with its own pool, is
 * not noticed, and neither is a call by a thread that has the signal blocked.
 *
 * The compiler may keep a local variable in a register where no function is
 * called, and a write is then seen when the variable is stored.  To see each
 * write, make it volatile.
 *
 * In a coroutine a freeze, or a watch, also holds across co_await.  But a
 * permit belongs to a thread, and the thread continues with the code that
 * resumed the coroutine.  So WP_PERMIT and wp::permit are not in force there,
 * and print a message.  Pass the permitted code to wp::permitted as a function,
 * which cannot be suspended:
 *
 *	wp::permitted(config, [&] { config.limit = 3; });
 *
 * With WP_DISABLE defined the argument is not evaluated, only type-checked,
 * WP_WATCH and WP_UNWATCH are 0, and the macros leave nothing in the code.
 */

/* Blocks use an array of variable length on purpose, see wp_scope_one: a
   program that is compiled with -Wvla gets no warning for these. */
#ifdef __clang__
#define WP_QUIET_	_Pragma("clang diagnostic push")		\
			_Pragma("clang diagnostic ignored \"-Wvla\"")
#define WP_LOUD_	_Pragma("clang diagnostic pop")
#define WP_BODY_
#define WP_WARNING_(value)	(value)
#else
#pragma GCC system_header
#define WP_QUIET_
#define WP_LOUD_
/* gcc never warns about the empty body of a loop, but does about that of an
   else, if told so. */
#define WP_BODY_	if (0) {} else
#define WP_WARNING_(value)						\
	__extension__ ({						\
		_Pragma("GCC diagnostic warning \"-Wempty-body\"")	\
		(value);						\
	})
#endif

#ifdef __cplusplus
#define WP_ADDRESS_(lvalue)	__builtin_addressof(lvalue)
#else
#define WP_ADDRESS_(lvalue)	(&(lvalue))
#endif

/* Compile the argument without evaluating it, so that nothing in it counts as
   unused. */
#define WP_UNEVALUATED_(lvalue)	(0 ? (void)WP_ADDRESS_(lvalue) : (void)0)

/* Names that are new at each use. */
#define WP_PASTE_(a, b)		a##b
#define WP_NAME_(name, n)	WP_PASTE_(wp_##name##_, n)

/* Choose one of two functions or macros, by whether there is a second
   argument. */
#define WP_WHICH_(a, b, which, ...)	which

#ifdef __cplusplus
inline int
wp_move(struct wp_watch *watch, const volatile void *addr, size_t len)
{
	return wp_move_len(watch, addr, len);
}
#else
#define wp_move(watch, ...)						\
	WP_WHICH_(__VA_ARGS__, wp_move_len, wp_move, 0)(watch, __VA_ARGS__)
#endif

#ifdef WP_DISABLE

#define WP_WATCH(lvalue)	(WP_UNEVALUATED_(lvalue), 0)
#define WP_WATCH_BLOCK_(p)	(WP_UNEVALUATED_(*(p)), 0)
#define WP_WATCH_PART_(p, lvalue)					\
	(WP_UNEVALUATED_(*(p)), WP_UNEVALUATED_(lvalue), 0)
#define WP_UNWATCH(lvalue)	(WP_UNEVALUATED_(lvalue), 0)
#define WP_SCOPE(lvalue)	WP_BLOCK_(lvalue)
#define WP_FREEZE(lvalue)	WP_BLOCK_(lvalue)
#define WP_PERMIT(lvalue)	WP_BLOCK_(lvalue)
#define WP_ASSERT_NO_STRAY()	((void)0)

/* Run the block once; break and continue leave it, as without WP_DISABLE.  A
   jump into the loop leaves less code than a loop that counts to 1. */
#define WP_BLOCK_(lvalue)						\
	switch (WP_UNEVALUATED_(lvalue), WP_WARNING_(0))		\
		while (0)						\
			case 0: WP_BODY_

#else

#define WP_WATCH(lvalue)						\
	wp_watch_variable(WP_ADDRESS_(lvalue), sizeof(lvalue), #lvalue,	\
	    __FILE__, __LINE__)
#define WP_WATCH_BLOCK_(p)						\
	wp_watch_heap(NULL, WP_ADDRESS_(*(p)), sizeof(*(p)), "*" #p,	\
	    __FILE__, __LINE__)
#define WP_WATCH_PART_(p, lvalue)					\
	wp_watch_heap(p, WP_ADDRESS_(lvalue), sizeof(lvalue), #lvalue,	\
	    __FILE__, __LINE__)
#define WP_UNWATCH(lvalue)						\
	wp_unwatch_variable(WP_ADDRESS_(lvalue), sizeof(lvalue))
#define WP_SCOPE(lvalue)						\
	WP_BLOCK_(__COUNTER__, wp_scope_watch, WP_ADDRESS_(lvalue),	\
	    sizeof(lvalue), #lvalue, __FILE__, __LINE__)
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
	    WP_NAME_(in, n) =						\
	    WP_WARNING_(wp_scope_leave(WP_NAME_(in, n))))		\
	WP_LOUD_ WP_BODY_

#endif /* WP_DISABLE */

#define WP_WATCH_HEAP(...)						\
	WP_WHICH_(__VA_ARGS__, WP_WATCH_PART_, WP_WATCH_BLOCK_,		\
	    0)(__VA_ARGS__)

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

/* The same while a function is called, in a coroutine too.  Its result is
   returned. */
template <class T, class F>
auto permitted(const T &object, F &&function) -> decltype(function())
{
	permit in_force(object);

	return function();
}

/* Writes to the object are reported for as long as this lives.  If it could not
   be armed, it converts to false, and wp_cause returns the reason. */
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
