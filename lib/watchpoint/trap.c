/*
 * trap: the signal handler.
 *
 * Signal safety.  All that a handler runs is in trap.c, account.c, chain.c,
 * step.c, step_*.c, capture.c, capture_*.c, say.c, stray.c and channel_post.c,
 * and what they call of perf.c, and of the deliveries: count, disable, rearm.  It
 * calls nothing of libc that is not async-signal-safe, and nothing that is a
 * point of cancellation, for an access can be in the middle of malloc(3).
 * tests/trap_safe.sh holds the objects to it.
 * It keeps its own use of the stack below 1.5 KiB, takes no lock, and reads the
 * program's memory by wp_peek only, but for the watches.
 *
 * From a signal to what it does:
 *
 *	identify	which watches it names; others' signals: chain.c
 *	account		which other watches the step touched: account.c
 *	judge		permitted? over the limit?  the rest are hits
 *	report		into a cell of the channel; say.c without a helper
 *	call		the watches' handlers
 *
 * Masks.  SIGTRAP comes from the kernel (sigtrap), WP_SIGNAL from the kernel
 * (async) or from the tracer in the helper (ptrace), which also sees the SIGTRAP
 * of a debug register first.  Handlers have all signals blocked but SIGTRAP: one
 * that is raised while it is blocked (by a debug register of a tracer that has
 * died, or on old kernels by any) kills.  So what the handler and the user's
 * handler touch of watched memory interrupts them again; that nested run sees
 * that another one is on (`self.context`) and returns.  Nothing is left pending,
 * and nothing loops.  The first and the last instructions, where the handler does
 * not say so yet or any more, and those it returns to, are known by the pc.
 *
 * WP_SIGNAL is queued and stays blocked.  Of async, several may be pending when
 * the handler begins: other watches that the same step touched, taken as such. Of
 * ptrace, one may be pending at the end: the handler's own, taken as the very
 * last thing that writes the stack.
 *
 * One case is left: a watch on the dead part of the stack where the signal's frame
 * lies, which the kernel reads when the handler returns, or where async's handler
 * returns from arming it again.  Then each run makes the next one: at the same
 * place, nothing having been executed.  Such hits are dropped, and after a few the
 * watch is disabled, with a warning.
 */
#include "trap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "step.h"

/* Of siginfo.h; glibc 2.36 lacks them. */
enum {
	CODE_TRAP_HWBKPT = 4,
	CODE_TRAP_PERF = 6,
	FLAG_LATE = 1,		/* TRAP_PERF_FLAG_ASYNC */
};

enum {
	TOLD_MAX = 1 + WP_ALSO_MAX,
	TAKEN_MAX = 16,		/* signals, at a time */
	PERMITS_MAX = 1000,
	FRAME_MAX = 1 << 16,	/* bytes of a signal's frame, and handler's */
	TAIL_MAX = 1024,	/* of that, below struct run */
	REPEATS_MAX = 8,	/* of the same hit with nothing executed between */
	RETURN_LEN = 16,	/* bytes of the code that a handler returns to */
	NAME_FRESH = 1000000,	/* ns that a thread's name is taken for good */
};

/* What the kernel's siginfo holds of an access. */
struct told_by {
	int32_t signo, error, code, pad;
	uint64_t addr;		/* async: si_band */
	uint64_t data;		/* sig_data; async: si_fd */
	uint32_t type, flags;
};
_Static_assert(sizeof(struct told_by) <= sizeof(siginfo_t), "of 64 bits");

/* A watch that the step touched. */
struct told {
	struct wp_watch *watch;
	uint32_t serial;
	uint32_t slot;		/* WP_SIG_MANY: not known which */
	uint64_t nth;		/* 0: it is no hit */
	bool stray;
};

/* An event of async's that has fired, and so has to be armed again. */
struct spent {
	int fd, code;		/* si_fd, si_code */
	unsigned index;		/* of the watch */
	bool local;		/* opened here, not by the helper */
};

/* A run of the handler. */
struct run {
	ucontext_t *context;
	pid_t tid;
	unsigned n;		/* of told */
	struct told told[TOLD_MAX];
	unsigned nspent;
	struct spent spent[TAKEN_MAX];
	enum wp_steps steps;
	bool late;
	bool by_ptrace;
};

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	const ucontext_t *context;	/* of the run that is on; NULL: none */
	struct run *run;
	struct wp_watch *held;	/* whose handler is called; NULL: none */
	char *text;		/* the report, mapped; NULL: none */
	struct wp_scope *permits;
	siginfo_t deferred;	/* a SIGTRAP of others; si_signo 0: none */
	siginfo_t taken;
	uint64_t where;		/* of the last hit on the signal's frame; 0 */
	unsigned repeats;	/* how often it was there again */
	struct wp_step step;
	unsigned nowed;
	struct spent owed[TAKEN_MAX];	/* to be armed when that ends */
	pid_t tid;		/* the thread's id; 0: not asked for yet */
	char name[16];		/* and its name, as it was */
	uint64_t name_good;	/* until then, ns */
} self;

/* Where handlers return to, in libc. */
static _Atomic uintptr_t handler_return;

/* on_signal is alone in a section, whose bounds the linker knows. */
#define HANDLER __attribute__((section("wp_handler"), noinline))
extern const char __start_wp_handler[] __attribute__((visibility("hidden")));
extern const char __stop_wp_handler[] __attribute__((visibility("hidden")));

bool
wp_trap_inside(void)
{
	return self.context != NULL;
}

const struct wp_watch *
wp_trap_held(void)
{
	return self.held;
}

struct wp_scope **
wp_permits(void)
{
	return &self.permits;
}

/*
 * Which watches.
 */

/* The watch of that index with users raised, if it is open and serial's bits
   under mask are its; else NULL. */
static struct wp_watch *
enter(unsigned index, uint32_t serial, uint32_t mask)
{
	struct wp_watch *w;
	uint32_t now;

	if (index >= WP_WATCHES_MAX)
		return NULL;
	w = &wp_inside.watch[index];
	(void)atomic_fetch_add(&w->users, 1);
	now = atomic_load(&w->serial);
	if (now != 0 && ((now ^ serial) & mask) == 0)
		return w;
	(void)atomic_fetch_sub(&w->users, 1);
	return NULL;
}

static void
leave(struct wp_watch *w)
{
	(void)atomic_fetch_sub(&w->users, 1);
}

static unsigned
index_of(const struct wp_watch *w)
{
	return (unsigned)(w - wp_inside.watch);
}

static bool
is_told(const struct run *run, const struct wp_watch *w)
{
	for (unsigned i = 0; i < run->n; i++)
		if (run->told[i].watch == w)
			return true;
	return false;
}

/* Take an entered watch; NULL: nothing to do. */
static void
tell(struct run *run, struct wp_watch *w, unsigned slot)
{
	if (w == NULL)
		return;
	if (run->n == TOLD_MAX || is_told(run, w)) {
		leave(w);
		return;
	}
	run->told[run->n++] = (struct told){
		.watch = w, .serial = atomic_load(&w->serial),
		.slot = slot < w->nslots ? slot :
		    w->nslots == 1 ? 0 : WP_SIG_MANY,
	};
}

/* sig_data, of the kernel or of the tracer: ours, open or not. */
static void
tell_data(struct run *run, uint64_t data)
{
	unsigned slot = data >> 16 & 0xff, index;

	if (slot != WP_SIG_MANY) {
		tell(run, enter(data & 0xffff, (uint32_t)(data >> 24),
		    0xffffff), slot);
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		if ((index = wp_sig_many_get(data, i)) != 0)
			tell(run, enter(index - 1, 0, 0), WP_SIG_MANY);
}

/* The slot of a local event; -1: it is none of the watch's. */
static int
slot_of_fd(const struct wp_watch *w, int fd)
{
	size_t n = atomic_load(&w->narmed);

	for (size_t i = 0; i < n; i++)
		if (w->armed[i].fd == fd)
			return w->armed[i].slot;
	return -1;
}

static void
spend(struct run *run, int fd, int code, unsigned index, bool local)
{
	run->spent[run->nspent++] = (struct spent){
		.fd = fd, .code = code, .index = index, .local = local,
	};
}

/* The descriptor of an event by the async delivery: of this process, or of the
   helper.  false: of neither. */
static bool
tell_fd(struct run *run, int fd, int code)
{
	struct wp_channel *channel = atomic_load(&wp_inside.channel);
	struct wp_watch *w;
	uint16_t owner;
	int slot;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		if (wp_inside.watch[i].delivery != &wp_deliver_async ||
		    (w = enter(i, 0, 0)) == NULL)
			continue;
		slot = slot_of_fd(w, fd);
		if (slot >= 0) {
			spend(run, fd, code, i, true);
			tell(run, w, (unsigned)slot);
			return true;
		}
		leave(w);
	}
	if (channel == NULL || fd < 0 || fd > UINT16_MAX ||
	    (owner = atomic_load(&channel->owner[fd])) == 0)
		return false;
	spend(run, fd, code, wp_channel_owner_index(owner), false);
	tell(run, enter(wp_channel_owner_index(owner), 0, 0),
	    wp_channel_owner_slot(owner));
	return true;
}

static struct told_by
told_by(const siginfo_t *info)
{
	struct told_by by;

	memcpy(&by, info, sizeof(by));
	return by;
}

static bool
has_magic(const struct told_by *by)
{
	return by->data >> 48 == WP_SIG_MAGIC;
}

static void
tell_perf(struct run *run, const struct told_by *by)
{
	run->late = (by->flags & FLAG_LATE) != 0;
	tell_data(run, by->data);
}

/* A debug register fired that a tracer had set and could not clear when it was
   killed.  Which one is not told. */
static void
tell_raw(struct run *run)
{
	unsigned n = 0, last = 0;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&wp_inside.watch[i].serial) != 0 &&
		    wp_inside.watch[i].delivery == &wp_deliver_ptrace) {
			last = i;
			n++;
		}
	if (n == 1)
		tell(run, enter(last, 0, 0), WP_SIG_MANY);
	else if (n > 1)
		wp_say("watchpoint: a hit, and the tracer that knows of which "
		    "watch has ended\n");
}

static bool
identify_trap(struct run *run, const siginfo_t *info)
{
	struct told_by by = told_by(info);

	if (by.code == CODE_TRAP_PERF && has_magic(&by))
		tell_perf(run, &by);
	else if (by.code == CODE_TRAP_HWBKPT && atomic_load(&wp_inside.traced))
		tell_raw(run);
	else
		return false;
	return true;
}

/* Of an event that is closed it is ours still; whose else, if the program has no
   handler for such signals? */
static bool
identify_signal(struct run *run, const siginfo_t *info)
{
	struct told_by by = told_by(info);

	if (has_magic(&by)) {
		run->by_ptrace = true;
		if (by.code == CODE_TRAP_PERF)
			tell_perf(run, &by);
		return true;	/* else for the tracer, which has ended */
	}
	if (by.code <= 0 || by.code > POLL_HUP)
		return false;
	return tell_fd(run, (int)by.data, by.code) ||
	    (wp_inside.old_signal.sa_flags & SA_SIGINFO) == 0;
}

/* false: it is not ours. */
static bool
identify(struct run *run, int sig, const siginfo_t *info)
{
	return sig == SIGTRAP ? identify_trap(run, info) :
	    identify_signal(run, info);
}

static struct sigaction *
displaced(int sig)
{
	return sig == SIGTRAP ? &wp_inside.old_trap : &wp_inside.old_signal;
}

static bool
take(int sig, siginfo_t *info)
{
	static const struct timespec zero;
	uint64_t set = wp_signal_bit(sig);

	return syscall(SYS_rt_sigtimedwait, &set, info, &zero, sizeof(set)) ==
	    sig;
}

/* What async has pending for the same step. */
static void
take_further(struct run *run)
{
	siginfo_t info;

	while (run->nspent < TAKEN_MAX && take(WP_SIGNAL, &info))
		if (!identify_signal(run, &info)) {
			wp_signal_again(WP_SIGNAL, &info);
			return;
		}
}

/*
 * The handler's own accesses.
 */

/* A signal during a run (outer), or at its very beginning or end.  false: it is
   not ours. */
static bool
nested(int sig, siginfo_t *info, ucontext_t *context, const ucontext_t *outer)
{
	struct run run = {.context = context};

	if (!identify(&run, sig, info)) {
		if (outer == NULL || sig != SIGTRAP || info->si_code > 0)
			return false;
		self.deferred = *info;
	}
	for (unsigned i = 0; i < run.n; i++) {
		struct wp_watch *w = run.told[i].watch;

		wp_account(w, w->kernel ? WP_STEP_MANY : WP_STEP_ONE);
		leave(w);
	}
	return true;
}

/* Whether the watch has a register on the frame of this signal. */
static bool
is_on_frame(const struct run *run, const struct wp_watch *w)
{
	uintptr_t low = (uintptr_t)run - TAIL_MAX;
	uintptr_t high = wp_cpu_sp(run->context);

	if (high < low || high - low > FRAME_MAX)
		high = low + FRAME_MAX;	/* an alternate stack */
	for (unsigned i = 0; i < w->nslots; i++)
		if (w->slot[i].addr + w->slot[i].len > low &&
		    w->slot[i].addr < high)
			return true;
	return false;
}

/* All registers in a word; not 0. */
static uint64_t
where(const ucontext_t *context)
{
	uint64_t regs[WP_CPU_REGS_MAX], hash = 0;
	unsigned n = wp_cpu_regs(context, regs);

	for (unsigned i = 0; i < n; i++)
		hash = (hash ^ regs[i]) * 0x9e3779b97f4a7c15ull;
	return hash | 1;
}

/* Whether the last return from a handler made this hit. */
static bool
is_by_return(struct run *run)
{
	struct wp_watch *w = run->told[0].watch;
	uint64_t last = self.where;

	self.where = (w->region.access != WP_WRITE || run->nspent > 0) &&
	    is_on_frame(run, w) ? where(run->context) : 0;
	if (self.where == 0 || self.where != last) {
		self.repeats = 0;
		return false;
	}
	if (++self.repeats == REPEATS_MAX) {
		run->nspent = 0;	/* nor armed again */
		(void)w->delivery->disable(w);
		wp_say_warning(w, " lies where signal handlers have their "
		    "stack, which they read themselves: it is disabled");
	}
	return true;
}

/*
 * Which are hits.
 */

static void
account(struct run *run)
{
	struct wp_watch *w = run->told[0].watch;

	run->steps = run->late || (w->kernel &&
	    wp_cpu_after_syscall(run->context)) ? WP_STEP_MANY : WP_STEP_ONE;
	for (unsigned i = 0; i < run->n; i++)
		wp_account(run->told[i].watch, run->steps);
}

/* Whether it may have been hit, too, and counts tell of it. */
static bool
is_candidate(const struct run *run, const struct wp_watch *w)
{
	return w->delivery == run->told[0].watch->delivery &&
	    w->attr.period <= 1 && atomic_load(&w->on) &&
	    (w->tid == 0 || w->tid == run->tid) && !is_told(run, w);
}

/* The other watches that the step touched; async and ptrace tell them all. */
static void
tell_also(struct run *run)
{
	const struct told told = run->told[0];
	unsigned left = atomic_load(&wp_inside.nopen);

	if (told.watch->delivery != &wp_deliver_sigtrap || left < 2)
		return;
	for (unsigned i = 0; i < WP_WATCHES_MAX && left > 0; i++) {
		struct wp_watch *w;

		if (atomic_load(&wp_inside.watch[i].serial) == 0)
			continue;
		left--;
		if (run->n == TOLD_MAX || (w = enter(i, 0, 0)) == NULL)
			continue;
		if (is_candidate(run, w) && wp_account_also(w,
		    told.slot < told.watch->nslots ?
		    &told.watch->slot[told.slot] : NULL, run->steps))
			tell(run, w, WP_SIG_MANY);
		else
			leave(w);
	}
}

/* The bytes of the debug register that fired; of the watch, if it is not known
   which. */
static struct wp_region
place_of(const struct told *told)
{
	const struct wp_watch *w = told->watch;

	return told->slot < w->nslots ? (struct wp_region){
		.addr = w->slot[told->slot].addr,
		.len = w->slot[told->slot].len,
	} : w->region;
}

/* The thread's permits lie on a stack that may be damaged. */
static bool
is_permitted(const struct told *told)
{
	const struct wp_region place = place_of(told);
	const struct wp_scope *at = self.permits;
	struct wp_scope scope;

	for (unsigned i = 0; i < PERMITS_MAX && at != NULL; i++) {
		uint64_t addr;

		if (wp_peek(&scope, (uintptr_t)at, sizeof(scope)) !=
		    sizeof(scope))
			return false;
		addr = (uintptr_t)scope.addr;
		if (place.addr < addr + scope.len &&
		    addr < place.addr + place.len)
			return true;
		at = scope.outer;
	}
	return false;
}

/* The hit's number; 0: it is over the limit. */
static uint64_t
count_hit(struct wp_watch *w)
{
	uint64_t n = atomic_load(&w->hits), until = atomic_load(&w->until);

	do
		if (n >= until)
			return 0;
	while (!atomic_compare_exchange_weak(&w->hits, &n, n + 1));
	if (n + 1 == until)
		(void)w->delivery->disable(w);
	return n + 1;
}

/* Drop those that are no hits. */
static void
judge(struct run *run)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->n; i++) {
		struct told *told = &run->told[i];
		struct wp_watch *w = told->watch;

		told->stray = (w->attr.flags & WP_STRAY) != 0;
		/* where events are switched off one after the other, some fire
		   a moment longer */
		if (atomic_load(&w->on) &&
		    (!told->stray || !is_permitted(told)))
			told->nth = count_hit(w);
		if (told->nth != 0)
			run->told[n++] = *told;
		else
			leave(w);
	}
	run->n = n;
}

/*
 * Reports.
 */

static bool
is_printed(const struct told *told)
{
	return (told->watch->attr.action & WP_PRINT) != 0;
}

static bool
is_reported(const struct told *told)
{
	return told->stray || is_printed(told);
}

static void
fill_watch(struct wp_cell_watch *to, const struct told *told)
{
	const struct wp_watch *w = told->watch;

	memcpy(to->label, w->label, sizeof(to->label));
	to->addr = w->region.addr;
	to->len = w->region.len;
	to->serial = told->serial;
	to->access = (uint8_t)w->region.access;
	to->nslots = (uint8_t)w->nslots;
	to->index = (uint16_t)index_of(w);
}

static uint32_t
cell_flags(const struct run *run)
{
	uint32_t flags = WP_CELL_QUIET | (run->late ? WP_CELL_LATE : 0);

	for (unsigned i = 0; i < run->n; i++) {
		const struct told *told = &run->told[i];
		const struct wp_attr *attr = &told->watch->attr;

		if (!is_reported(told))
			continue;
		if (is_printed(told))
			flags &= ~(uint32_t)WP_CELL_QUIET;
		if (told->stray)
			flags |= WP_CELL_STRAY;
		if ((attr->action & WP_ABORT) != 0)
			flags |= WP_CELL_FATAL | WP_CELL_WAITS;
		if ((attr->flags & WP_ASYNC) != 0)
			continue;
		flags |= WP_CELL_WAITS;
		if (told->stray || (attr->action & WP_CALL) != 0)
			flags |= WP_CELL_REPLY;
	}
	return flags;
}

/* The thread's name.  In a burst of hits that do not wait, asking for it each time
   would take a good part of what they take. */
static void
put_name(struct wp_cell *cell, uint64_t now)
{
	if ((cell->flags & WP_CELL_WAITS) != 0 || now >= self.name_good) {
		(void)prctl(PR_GET_NAME, self.name);
		self.name_good = now + NAME_FRESH;
	}
	memcpy(cell->comm, self.name, sizeof(cell->comm));
}

/* The first told of is reported. */
static void
fill(struct wp_cell *cell, const struct run *run, const struct wp_channel *channel)
{
	const struct told *told = &run->told[0];
	uint32_t stack = channel->stack & ~7u;
	struct wp_captured what = {
		.id = told->serial,
		.addr = place_of(told).addr,
		.pid = atomic_load(&channel->program),
		.tid = run->tid,
		.stack = stack < WP_STACK_MAX ? stack : WP_STACK_MAX,
	};

	cell->flags = cell_flags(run);
	cell->nth = told->nth;
	fill_watch(&cell->watch, told);
	cell->nalso = 0;
	for (unsigned i = 1; i < run->n; i++)
		if (is_reported(&run->told[i]))
			fill_watch(&cell->also[cell->nalso++], &run->told[i]);
	if ((cell->flags & WP_CELL_REPLY) != 0)
		cell->reply[0] = '\0';
	put_name(cell, wp_capture(&cell->record, sizeof(cell->record), &what,
	    run->context));
}

/* The helper's reply, before the cell is another hit's. */
static void
keep_reply(const struct wp_cell *cell)
{
	char *text = mmap(NULL, WP_REPLY_MAX, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (text == MAP_FAILED)
		return;
	memcpy(text, cell->reply, WP_REPLY_MAX - 1);
	self.text = text;
}

enum posted {
	POSTED_NOT,		/* there is no helper (any more) */
	POSTED,
	POSTED_REPLY		/* and its report is in self.text */
};

static enum posted
post(const struct run *run)
{
	struct wp_channel *channel = atomic_load(&wp_inside.channel);
	struct wp_cell *cell;
	uint32_t ticket, flags;

	if (channel == NULL || !wp_channel_has_helper(channel))
		return POSTED_NOT;
	if (atomic_load(&channel->off) != 0)
		return POSTED;
	cell = wp_channel_take(channel, &ticket);
	if (cell == NULL)
		return POSTED_NOT;
	fill(cell, run, channel);
	flags = cell->flags;
	wp_channel_post(channel, cell, ticket);
	if ((flags & WP_CELL_WAITS) == 0)
		return POSTED;
	if (!wp_channel_wait(channel, cell, ticket))
		return POSTED_NOT;
	if ((flags & WP_CELL_REPLY) == 0)
		return POSTED;
	keep_reply(cell);
	wp_channel_give(cell, ticket);
	return POSTED_REPLY;
}

static struct wp_hit
make_hit(const struct run *run, const struct told *told)
{
	struct wp_watch *w = told->watch;
	const struct wp_region place = place_of(told);

	return (struct wp_hit){
		.watch = w, .label = w->label,
		.addr = (void *)(uintptr_t)place.addr, .len = place.len,
		.pc = (const void *)(uintptr_t)wp_cpu_pc(run->context),
		.tid = run->tid, .nth = told->nth, .stray = told->stray,
		.late = run->late, .context = run->context,
		.text = self.text != NULL && is_printed(told) ? self.text : "",
	};
}

static void
report(struct run *run)
{
	enum posted posted;
	unsigned first = 0;

	while (first < run->n && !is_reported(&run->told[first]))
		first++;
	if (first == run->n)
		return;
	if (first > 0) {
		struct told other = run->told[0];

		run->told[0] = run->told[first];
		run->told[first] = other;
	}
	posted = post(run);
	for (unsigned i = 0; i < run->n; i++) {
		const struct told *told = &run->told[i];

		if (posted == POSTED_REPLY && told->stray)
			wp_stray_note(self.text != NULL ? self.text : "");
		else if (is_reported(told) && (told->stray ||
		    posted == POSTED_NOT)) {
			struct wp_hit hit = make_hit(run, told);

			wp_say_hit(told->watch, &hit,
			    posted == POSTED_NOT && is_printed(told));
		}
	}
}

/*
 * What then.
 */

/* Call the handlers of a watch, if it is still open.  Whether to abort(3). */
static bool
call(const struct run *run, const struct told *told)
{
	struct wp_watch *w = enter(index_of(told->watch), told->serial,
	    UINT32_MAX);
	struct wp_hit hit;
	bool fatal;

	if (w == NULL)
		return false;
	hit = make_hit(run, told);
	fatal = (w->attr.action & WP_ABORT) != 0;
	self.held = w;
	if ((w->attr.action & WP_CALL) != 0 && w->attr.handler != NULL)
		w->attr.handler(&hit, w->attr.arg);
	if (told->stray)
		wp_stray_call(&hit);
	self.held = NULL;
	leave(w);
	return fatal;
}

/* What a run keeps besides its frame. */
static void
forget(void)
{
	if (self.held != NULL)
		leave(self.held);
	if (self.text != NULL)
		(void)munmap(self.text, WP_REPLY_MAX);
	self.held = NULL;
	self.text = NULL;
}

/* Async events fire once until they are armed again. */
static void
rearm(const struct spent *spent, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct wp_watch *w;

		if (!spent[i].local) {
			wp_helper_rearm(spent[i].fd);
			continue;
		}
		if ((w = enter(spent[i].index, 0, 0)) == NULL)
			continue;
		if (slot_of_fd(w, spent[i].fd) >= 0 &&
		    wp_async_rearm(w, spent[i].fd, spent[i].code) < 0 &&
		    !atomic_exchange(&w->deaf, true))
			wp_say_warning(w, " is no longer watched in a thread: "
			    "its event cannot be armed again after a hit");
		leave(w);
	}
}

/* The thread has made the step, or (at the next hit) never will. */
static void
end_step(ucontext_t *context)
{
	wp_step_end(&self.step, context);
	rearm(self.owed, self.nowed);
	self.nowed = 0;
}

static bool
is_step_end(int sig, const siginfo_t *info)
{
	struct told_by by = told_by(info);

	return self.step.on && sig == WP_SIGNAL && !has_magic(&by) &&
	    by.code > 0 && (int)by.data == self.step.fd;
}

/* Without it the same hit would come for ever. */
static void
cannot_step(const struct run *run)
{
	for (unsigned i = 0; i < run->nspent; i++) {
		struct wp_watch *w = enter(run->spent[i].index, 0, 0);

		if (w == NULL)
			continue;
		(void)w->delivery->disable(w);
		wp_say_warning(w, " is disabled: to go on behind a hit takes "
		    "a free execution breakpoint and a descriptor");
		leave(w);
	}
}

static void
begin_step(struct run *run)
{
	if (wp_step_begin(&self.step, run->context, run->tid, WP_SIGNAL) < 0) {
		cannot_step(run);
		rearm(run->spent, run->nspent);	/* for when it is enabled */
		return;
	}
	memcpy(self.owed, run->spent, run->nspent * sizeof(*self.owed));
	self.nowed = run->nspent;
}

/* What the run has touched of async's watches: it is no hit. */
static void
drop_own(struct run *run)
{
	siginfo_t info;

	run->n = 0;
	while (run->nspent < TAKEN_MAX && take(WP_SIGNAL, &info)) {
		if (!identify_signal(run, &info)) {
			wp_signal_again(WP_SIGNAL, &info);
			break;
		}
		for (; run->n > 0; run->n--) {
			struct wp_watch *w = run->told[run->n - 1].watch;

			wp_account(w, WP_STEP_ONE);
			leave(w);
		}
	}
}

/* The end of a run, which may go back to the instruction.  Its last access to the
   stack is the taking of what ptrace has pending. */
static void
end(struct run *run, bool back)
{
	if (self.deferred.si_signo != 0) {
		wp_signal_mask_set(UINT64_MAX);
		wp_signal_again(SIGTRAP, &self.deferred);
		self.deferred.si_signo = 0;
	}
	if (run->nspent > 0) {
		drop_own(run);
		if (back && wp_cpu_traps_before())
			begin_step(run);
		else
			rearm(run->spent, run->nspent);
	}
	if (!run->by_ptrace)
		return;
	wp_trap_keep();
	if (take(WP_SIGNAL, &self.taken)) {
		struct told_by by = told_by(&self.taken);

		if (!has_magic(&by))
			wp_signal_again(WP_SIGNAL, &self.taken);
	}
}

static void
hits(struct run *run)
{
	bool fatal = false;

	if (is_by_return(run)) {
		for (unsigned i = 0; i < run->n; i++) {
			wp_account(run->told[i].watch, WP_STEP_MANY);
			leave(run->told[i].watch);
		}
		return;
	}
	account(run);
	tell_also(run);
	judge(run);
	report(run);
	for (unsigned i = 0; i < run->n; i++)
		leave(run->told[i].watch);
	for (unsigned i = 0; i < run->n; i++)
		fatal |= call(run, &run->told[i]);
	forget();
	if (fatal) {
		self.context = NULL;
		wp_signal_mask_set(wp_signal_mask(run->context));
		abort();
	}
}

void
wp_leave(const struct wp_hit *hit)
{
	if (self.context == NULL)
		return;
	forget();
	if (self.run != NULL)
		end(self.run, false);
	self.run = NULL;
	self.context = NULL;
	wp_signal_mask_set(wp_signal_mask(hit->context));
}

static pid_t
thread_id(void)
{
	if (self.tid == 0)
		self.tid = gettid();
	return self.tid;
}

void
wp_trap_forked(void)
{
	self.tid = 0;
	if (self.step.on)
		(void)syscall(SYS_close, self.step.fd);
	self.step.on = false;
}

/* false: it is not ours. */
static bool
run_handler(int sig, siginfo_t *info, ucontext_t *context)
{
	struct run run = {.context = context, .tid = thread_id()};

	if (!identify(&run, sig, info))
		return false;
	if (self.step.on)
		end_step(context);
	self.run = &run;
	if (run.nspent > 0)
		take_further(&run);
	if (run.n > 0)
		hits(&run);
	if (self.run != NULL)
		end(&run, true);
	self.run = NULL;
	return true;
}

/* Whether the step that was interrupted is the handler's: of the run outer, or
   where none is on yet, or any more. */
static bool
is_own_step(const ucontext_t *context, const ucontext_t *outer)
{
	uintptr_t pc = wp_cpu_pc(context);

	if (outer != NULL) {
		if (wp_cpu_sp(context) <= (uintptr_t)outer)
			return true;
		forget();	/* left by longjmp(3), without wp_leave */
	}
	return (pc >= (uintptr_t)__start_wp_handler &&
	    pc < (uintptr_t)__stop_wp_handler) ||
	    pc - atomic_load(&handler_return) < RETURN_LEN;
}

/* Result: the run that is on after it. */
static __attribute__((noinline)) const ucontext_t *
handle(int sig, siginfo_t *info, ucontext_t *context, const ucontext_t *outer)
{
	const int saved = errno;
	const bool own = is_own_step(context, outer);
	bool ours;

	if (is_step_end(sig, info)) {
		end_step(context);
		errno = saved;
		return outer;
	}
	ours = own ? nested(sig, info, context, outer) :
	    run_handler(sig, info, context);
	errno = saved;
	if (!own)
		outer = NULL;
	if (!ours) {
		self.context = outer;
		wp_chain(sig, info, context, displaced(sig));
	}
	return outer;
}

/* It calls nothing before it has said that it is on. */
HANDLER static void
on_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *outer = self.context;

	self.context = context;
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&handler_return,
	    (uintptr_t)__builtin_return_address(0), memory_order_relaxed);
	outer = handle(sig, info, context, outer);
	atomic_signal_fence(memory_order_seq_cst);
	self.context = outer;
}

/*
 * Installing.
 */

bool
wp_trap_is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 &&
	    action->sa_sigaction == on_signal;
}

static int
install(int sig)
{
	struct sigaction action = {
		.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
	};

	/* also the signals that libc keeps to itself */
	memset(&action.sa_mask, 0xff, sizeof(action.sa_mask));
	(void)sigdelset(&action.sa_mask, SIGTRAP);
	if (sig == SIGTRAP)
		action.sa_flags |= SA_NODEFER;
	return sigaction(sig, &action, NULL) == 0 ? 0 : -errno;
}

/* The displaced action is known before a signal can need it. */
static int
displace(int sig)
{
	struct sigaction old;

	if (sigaction(sig, NULL, &old) != 0)
		return -errno;
	if (!wp_trap_is_ours(&old))
		*displaced(sig) = old;
	return install(sig);
}

int
wp_trap_install(void)
{
	int err = displace(SIGTRAP);

	if (err == 0)
		err = displace(WP_SIGNAL);
	wp_inside.handling = err == 0;
	return err;
}

/* The kernel leaves the flags as they were. */
void
wp_trap_keep(void)
{
	struct sigaction action;

	if (sigaction(SIGTRAP, NULL, &action) == 0 &&
	    action.sa_handler == SIG_DFL)
		(void)install(SIGTRAP);
}
