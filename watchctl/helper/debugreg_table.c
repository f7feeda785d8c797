/* debugreg_table: the watches that are armed in a program's threads.  See
   debugreg_table.h. */
#include "helper/debugreg_table.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler/channel_futex.h"
#include "os/clock.h"
#include "os/operand.h"
#include "proc/proc.h"
#include "os/siginfo_perf.h"
#include "os/trap_cpu.h"
#include "watch/ptrace_refused.h"
#include "stop/trace_sample.h"
#include "stop/ptrace_loop.h"
#include "handler/sig_data.h"

enum {
	INDEX_MAX = 255,	/* WP_SIG_MANY has a byte for 1 + index */
	CAUGHT_FRESH = 1,	/* ms for which an answer from /proc is kept */
};

struct debugreg_table {
	struct wp_channel *channel;
	pid_t program;
	struct wp_ptrace_loop loop;
	struct armed *armed;	/* WP_WATCHES_MAX of them */
	struct wp_uptime *uptime;  /* of them, in threads no longer traced */
	bool all;		/* all present and future threads are traced */
	bool unclean;		/* a tracer was killed: threads may have
				   debug registers set that are not known */
	bool putting;		/* a request waits for the result */
	int err;	/* the first failure in a thread since then, < 0 */
	pid_t err_tid;
	uint64_t caught;	/* signals that the program handles, */
	uint64_t looked;	/* as read at this time, ms; 0: never */
};

/* Make the helper report a line, once for each kind. */
static void
warn(struct debugreg_table *table, const char *text)
{
	struct wp_channel *channel = table->channel;

	if (strncmp(channel->warning, text, sizeof(channel->warning) - 1) == 0)
		return;
	(void)snprintf(channel->warning, sizeof(channel->warning), "%s", text);
	(void)atomic_fetch_add(&channel->warned, 1);
	wp_channel_ring(channel);
}

static void
failed(struct debugreg_table *table, pid_t tid, int err)
{
	struct wp_cause cause;
	char what[64];

	if (err == -ESRCH)	/* the thread was killed */
		return;
	if (!table->putting) {
		(void)snprintf(what, sizeof(what), "thread %d cannot be "
		    "watched", tid);
		(void)wp_cause_errno(&cause, what, -err);
		(void)atomic_fetch_add(&table->channel->unwatched, 1);
		warn(table, cause.text);
	} else if (table->err == 0) {
		table->err = err;
		table->err_tid = tid;
	}
}

/* --- what the loop calls --- */

static bool
is_for(const struct armed *watch, pid_t tid)
{
	return atomic_load(&watch->serial) != 0 &&
	    (watch->tid == 0 || watch->tid == tid);
}

/* Determine what a thread should have.  Returns whether that is anything. */
static bool
wish(const struct debugreg_table *table, pid_t tid,
    struct thread_reg want[WP_DEBUG_REGISTERS])
{
	bool any = false;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		want[n] = (struct thread_reg){.fd = -1};
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++) {
		struct armed *watch = &table->armed[i];

		if (!is_for(watch, tid))
			continue;
		any = true;
		for (unsigned k = 0; k < watch->nslots; k++)
			want[watch->place[k]] = (struct thread_reg){
				.watch = watch,
				.serial = atomic_load(&watch->serial),
				.index = i, .piece = k, .slot = watch->slot[k],
				.on = watch->on, .signal = watch->signal,
				.fd = -1,
			};
	}
	return any;
}

static struct thread_regs *
regs_of(struct wp_thread *thread)
{
	return (struct thread_regs *)thread;
}

static bool
arm(void *arg, struct wp_thread *thread)
{
	struct thread_reg want[WP_DEBUG_REGISTERS];
	struct debugreg_table *table = arg;
	struct thread_regs *regs = regs_of(thread);
	bool any = wish(table, thread->tid, want);
	bool fresh = thread->update == 0;
	int err;

	if (fresh && !any && !table->unclean)
		return false;
	if (fresh)
		thread_regs_init(regs, table->uptime);
	else
		thread_regs_look(regs, !any);
	err = thread_regs_set(regs, want, fresh);
	if (err < 0)
		failed(table, thread->tid, err);
	if (regs->time.begun)
		wp_trace_report_exit(thread->tid);
	return any;
}

static void
lost(void *arg, pid_t tid)
{
	failed(arg, tid, -ENOMEM);
}

static void
leaving(void *arg, struct wp_thread *thread)
{
	(void)arg;
	if (thread->update != 0)
		thread_regs_look(regs_of(thread), true);
}

static void
end(void *arg, struct wp_thread *thread)
{
	(void)arg;
	if (thread->update != 0)
		thread_regs_close(regs_of(thread));
}

static bool
executed(void *arg, pid_t pid)
{
	const struct debugreg_table *table = arg;

	(void)pid;
	atomic_store(&table->channel->executed, 1);
	wp_channel_ring(table->channel);
	return false;
}

/* Watches hit by one instruction that are to be reported. */
struct hits {
	const struct thread_reg *at[WP_DEBUG_REGISTERS];
	unsigned slots[WP_DEBUG_REGISTERS];  /* of the watch, a bit for each */
	uint64_t times[WP_DEBUG_REGISTERS];	/* of events: number of hits */
	unsigned n;
};

/* Add a slot to its watch's entry.  Returns false if there is no entry yet. */
static bool
add_slot(struct hits *hits, const struct thread_reg *reg)
{
	for (unsigned i = 0; i < hits->n; i++)
		if (hits->at[i]->index == reg->index) {
			hits->slots[i] |= 1u << reg->piece;
			return true;
		}
	return false;
}

/* A slot of a watch was touched.  Count it as an event would, and report it if
   the period makes it a hit, once for an instruction that touches several slots
   of a watch.  A watch that is off or closed by now is not hit. */
static void
add_hit(struct debugreg_table *table, struct hits *hits,
    const struct thread_reg *reg)
{
	struct wp_channel_watch *words = &table->channel->watch[reg->index];
	struct armed *watch = reg->watch;

	if (atomic_load(&watch->serial) != reg->serial ||
	    atomic_load(&words->on) == 0)
		return;
	(void)atomic_fetch_add(&words->counted, 1);
	if (++watch->counted[reg->piece] % watch->period == 0 &&
	    !add_slot(hits, reg)) {
		hits->at[hits->n] = reg;
		hits->slots[hits->n++] = 1u << reg->piece;
	}
}

static uint64_t
data_of(const struct hits *hits)
{
	const struct thread_reg *first = hits->at[0];
	uint8_t many[WP_DEBUG_REGISTERS] = {0};

	if (hits->n == 1)
		return wp_sig_data(first->serial, WP_SIG_SLOTS |
		    hits->slots[0], first->index);
	for (unsigned i = 0; i < hits->n; i++)
		many[i] = (uint8_t)(hits->at[i]->index + 1);
	return wp_sig_many(first->serial, many);
}

/* A 32-bit program gets half of addr and data, and no flags. */
static void
put_data(const struct debugreg_table *table, const struct hits *hits,
    uint64_t addr, bool late, struct wp_siginfo_perf *trap)
{
	const uint64_t data = data_of(hits);
	const bool narrow = table->channel->narrow != 0;

	trap->addr = narrow ? wp_sig_narrow_addr(data, addr) : addr;
	trap->data = narrow ? wp_sig_narrow(data) |
	    (late ? WP_SIG_NARROW_LATE : 0) : data;
	trap->flags = late ? WP_TRAP_PERF_LATE : 0;
}

/* Whether the program handles the signal; otherwise it would die of it. */
static bool
is_caught(struct debugreg_table *table, pid_t tid, int sig)
{
	struct wp_proc_status status;
	char text[128];
	const uint64_t now = (uint64_t)wp_clock_ms();

	if (table->looked == 0 || now - table->looked >= CAUGHT_FRESH) {
		table->caught = wp_proc_status(tid, &status) == 0 ?
		    status.caught : 0;
		table->looked = now;
	}
	if ((table->caught >> (sig - 1) & 1) != 0)
		return true;
	(void)snprintf(text, sizeof(text), "hits are not delivered: the "
	    "program has replaced the handler of signal %s%s, by which they "
	    "come",
	    sig == WP_SIGNAL ? "" : "SIG", sig == WP_SIGNAL ? "SIGRTMAX-1" :
	    sigabbrev_np(sig));
	warn(table, text);
	return false;
}

/* Whether the thread can get one more signal.  While the signal is blocked,
   only that of the first hit stays pending. */
static bool
fits(pid_t tid, bool *late)
{
	*late = (wp_trace_blocked(tid) >> (WP_SIGNAL - 1) & 1) != 0;
	return !*late || !wp_trace_pending(tid, WP_SIGNAL, WP_TRAP_PERF);
}

/* A thread is stopped before the instruction that trapped.  Returns false if
   the hit was reported when it stopped there first. */
static bool
pass(struct thread_regs *regs, unsigned hit)
{
	struct wp_trace_regs at = {.pc = 0};
	bool again;

	(void)wp_trace_regs(regs->traced.tid, &at);
	again = regs->again && regs->pc == at.pc && regs->sp == at.sp;
	regs->again = false;
	regs->pc = at.pc;
	regs->sp = at.sp;
	(void)thread_regs_pass(regs, hit);
	return !again;
}

/* The handler of the hit's signal has returned; back: to where the hit was,
   before which another signal's handler may run. */
static void
go_over(struct thread_regs *regs, bool back)
{
	if (regs->off_for_step == 0)
		return;
	if (back && wp_trace_pc(regs->traced.tid) == regs->pc) {
		regs->traced.step = true;
		return;
	}
	regs->again = back;
	(void)thread_regs_resume(regs);
}

static void
stepped(void *arg, struct wp_thread *thread, bool done)
{
	struct thread_regs *regs = regs_of(thread);

	(void)arg;
	regs->again = !done;
	(void)thread_regs_resume(regs);
}

/* A watch on the word of an exclusive access would make the instruction fail
   forever, so it is disabled. */
static bool
let_exclusive(struct debugreg_table *table, const struct thread_regs *regs,
    unsigned hit)
{
	bool any = false;

	if (!wp_operand_is_exclusive(wp_trace_code(regs->traced.tid)))
		return false;
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		const struct thread_reg *reg = &regs->at[n];

		if ((hit >> n & 1) == 0 || !thread_reg_fires(reg) ||
		    reg->slot.type == HW_BREAKPOINT_X)
			continue;
		any = true;
		reg->watch->on = false;
		atomic_store(&table->channel->watch[reg->index].on, 0);
	}
	if (!any)
		return false;
	(void)atomic_fetch_add(&table->channel->unwatched, 1);
	warn(table, "a watch is off: the program uses its word by ldxr and "
	    "stxr, and stxr never succeeds on what is watched");
	wp_ptrace_loop_update(&table->loop);
	return true;
}

/* Handle the trap of a debug register.  Returns the signal that the thread
   gets. */
static int
hit(struct debugreg_table *table, struct thread_regs *regs,
    siginfo_t *info)
{
	const pid_t tid = regs->traced.tid;
	unsigned bits = thread_regs_hit(regs);
	struct wp_siginfo_perf trap = {
		.signo = WP_SIGNAL, .code = WP_TRAP_PERF,
		.type = PERF_TYPE_BREAKPOINT,
	};
	struct hits hits = {.n = 0};
	bool late, anew = true;

	if (wp_cpu_traps_before()) {
		if (let_exclusive(table, regs, bits))
			return 0;
		anew = pass(regs, bits);
		regs->traced.step = true;
	}
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && anew; n++)
		if ((bits >> n & 1) != 0 && thread_reg_fires(&regs->at[n]))
			add_hit(table, &hits, &regs->at[n]);
	if (hits.n == 0 || !is_caught(table, tid, WP_SIGNAL) ||
	    !fits(tid, &late))
		return 0;
	regs->traced.step = regs->traced.step && late;
	put_data(table, &hits, hits.at[0]->slot.addr, late, &trap);
	memset(info, 0, sizeof(*info));
	memcpy(info, &trap, sizeof(trap));
	return WP_SIGNAL;
}

/* Take what the events of a thread have counted, and combine the slots of each
   watch. */
static void
take_events(struct thread_regs *regs, struct wp_at at, struct hits *hits,
    bool *late)
{
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		struct thread_reg *reg = &regs->at[n];
		uint64_t times = thread_reg_take(reg, at, late);
		unsigned i = 0;

		if (times == 0 ||
		    atomic_load(&reg->watch->serial) != reg->serial)
			continue;
		while (i < hits->n && hits->at[i]->index != reg->index)
			i++;
		if (i == hits->n) {
			hits->at[hits->n++] = reg;
			hits->slots[i] = 0;
			hits->times[i] = 0;
		}
		hits->slots[i] |= 1u << reg->piece;
		hits->times[i] += times;
	}
}

/* As wp_sig_times expects it. */
static uint64_t
times_of(const struct hits *hits)
{
	uint64_t all = 0;

	if (hits->n == 1)
		return hits->times[0];
	for (unsigned i = 0; i < hits->n; i++)
		all |= wp_sig_times(hits->slots[i], hits->times[i], i);
	return all;
}

/* Handle the signal of an event.  Only the tracer can determine now which
   watches it is of, how often they were hit, and whether by the step just made.
   Returns the signal that the thread gets. */
static int
fired(struct debugreg_table *table, struct thread_regs *regs,
    siginfo_t *info)
{
	struct wp_siginfo_perf trap = {
		.signo = info->si_signo, .code = WP_TRAP_PERF,
		.type = PERF_TYPE_BREAKPOINT,
	};
	struct hits hits = {.n = 0};
	struct wp_trace_regs at;
	bool late = false;

	if (wp_trace_regs(regs->traced.tid, &at) < 0)
		return 0;	/* the thread was killed */
	take_events(regs, (struct wp_at){at.pc, at.sp}, &hits, &late);
	/* the program may use descriptors with the same numbers */
	if (hits.n == 0)
		return trap.signo;
	if (!is_caught(table, regs->traced.tid, trap.signo))
		return 0;
	put_data(table, &hits, times_of(&hits), late, &trap);
	memset(info, 0, sizeof(*info));
	memcpy(info, &trap, sizeof(trap));
	return trap.signo;
}

static bool
is_own_event(const struct thread_regs *regs, const siginfo_t *info)
{
	return info->si_signo != WP_SIGNAL &&
	    info->si_code > 0 && info->si_code <= POLL_HUP &&
	    thread_regs_have(regs, info->si_fd);
}

static int
get_signal(void *arg, struct wp_thread *thread, siginfo_t *info)
{
	struct thread_regs *regs = regs_of(thread);
	struct debugreg_table *table = arg;
	struct wp_siginfo_perf trap;
	int err;

	memcpy(&trap, info, sizeof(trap));
	if (trap.signo == SIGTRAP)
		return trap.code == TRAP_HWBKPT ?
		    hit(table, regs, info) : SIGTRAP;
	if (is_own_event(regs, info))
		return fired(table, regs, info);
	if (trap.code != SI_QUEUE || !wp_sig_is_rearm(trap.data))
		return trap.signo;
	/* the handler of a hit's signal has returned */
	go_over(regs, wp_sig_is_back(trap.data));
	if ((err = thread_regs_rearm(regs)) < 0)
		failed(table, thread->tid, err);
	return 0;
}

static const struct wp_ptrace_loop_calls calls = {
	.size = sizeof(struct thread_regs), .arm = arm, .signal = get_signal,
	.stepped = stepped, .leaving = leaving, .lost = lost, .end = end,
	.executed = executed,
};

/* --- the table --- */

static bool
any_armed(const struct debugreg_table *table, bool for_all)
{
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&table->armed[i].serial) != 0 &&
		    (!for_all || table->armed[i].tid == 0))
			return true;
	return false;
}

static int
attach(struct debugreg_table *table, pid_t tid)
{
	int err;

	if (tid != 0)
		return wp_ptrace_loop_one(&table->loop, tid);
	if (table->all)
		return 0;
	if ((err = wp_ptrace_loop_all(&table->loop)) == 0)
		table->all = true;
	return err;
}

/* Apply the table to every thread.  Returns 0 or the first failure. */
static int
put(struct debugreg_table *table)
{
	sigset_t reports;
	int err;

	(void)sigemptyset(&reports);
	(void)sigaddset(&reports, SIGCHLD);
	table->all = table->all && any_armed(table, true);
	table->putting = true;
	table->err = 0;
	wp_ptrace_loop_update(&table->loop);
	err = wp_ptrace_loop_settle(&table->loop, &reports);
	table->putting = false;
	return err < 0 ? err : table->err;
}

/* Whether a register is free in this thread, or in all threads if tid is 0. */
static bool
is_free(const struct debugreg_table *table, unsigned place, pid_t tid)
{
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++) {
		const struct armed *watch = &table->armed[i];

		if (atomic_load(&watch->serial) == 0 ||
		    (tid != 0 && watch->tid != 0 && tid != watch->tid))
			continue;
		for (unsigned k = 0; k < watch->nslots; k++)
			if (watch->place[k] == place)
				return false;
	}
	return true;
}

/* Assign a register to each slot of a watch, if there are enough. */
static bool
find_places(const struct debugreg_table *table, struct armed *watch)
{
	unsigned found = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS &&
	    found < watch->nslots; n++)
		if (is_free(table, n, watch->tid))
			watch->place[found++] = n;
	return found == watch->nslots;
}

static int
no_place(const struct debugreg_table *table, unsigned nslots,
    struct wp_cause *cause)
{
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&table->armed[i].serial) != 0)
			nslots += table->armed[i].nslots;
	return wp_cause_set(cause, WP_CAUSE_TOO_MANY, nslots,
	    (unsigned)WP_DEBUG_REGISTERS);
}

/* Explain why the table could not be applied. */
static int
explain(const struct debugreg_table *table, int err, unsigned nslots,
    struct wp_cause *cause)
{
	if (err == -ENOSPC)
		return wp_cause_set(cause, WP_CAUSE_NO_SLOT, table->err_tid,
		    nslots, (unsigned)WP_DEBUG_REGISTERS, "perf events or a "
		    "debugger hold the others");
	return wp_cause_errno(cause, err == -ETIMEDOUT ?
	    "interrupting the program's threads" :
	    "arming the program's threads", -err);
}

/* As a set of signals. */
static uint64_t
event_signals(void)
{
	static const int signals[] = WP_EVENT_SIGNALS;
	uint64_t set = 0;

	for (unsigned i = 0; signals[i] != 0; i++)
		set |= 1ull << (signals[i] - 1);
	return set;
}

static bool
is_sound(const struct wp_request *request)
{
	return request->index < WP_WATCHES_MAX && request->nslots > 0 &&
	    request->nslots <= WP_DEBUG_REGISTERS &&
	    (request->by_signal == 0 || (request->by_signal <= 64 &&
	    (event_signals() >> (request->by_signal - 1) & 1) != 0));
}

/* The watch of a request, or NULL if it is not armed as the request says. */
static struct armed *
find_armed(struct debugreg_table *table, const struct wp_request *request)
{
	struct armed *watch;

	if (!is_sound(request))
		return NULL;
	watch = &table->armed[request->index];
	return atomic_load(&watch->serial) != 0 &&
	    watch->nslots == request->nslots ? watch : NULL;
}

int
debugreg_table_arm(struct debugreg_table *table,
    const struct wp_request *request, struct wp_cause *cause)
{
	struct armed *watch, new = {
		.tid = request->tid, .signal = (int)request->by_signal,
		.kernel = request->kernel != 0, .once = request->once != 0,
		.period = request->period > 0 ? request->period : 1,
		.nslots = request->nslots,
	};
	int err;

	if (!is_sound(request) || request->serial == 0)
		return wp_cause_errno(cause, "the request", EINVAL);
	if (request->index >= INDEX_MAX)
		return wp_cause_set(cause, WP_CAUSE_TRACE_INDEX,
		    (unsigned)INDEX_MAX);
	watch = &table->armed[request->index];
	if (atomic_load(&watch->serial) != 0 &&
	    (err = debugreg_table_disarm(table, request->index)) < 0)
		return wp_cause_errno(cause, "the last watch there", -err);
	if (!find_places(table, &new))
		return no_place(table, new.nslots, cause);
	memcpy(new.slot, request->slot, new.nslots * sizeof(new.slot[0]));
	new.on = atomic_load(&table->channel->watch[request->index].on) != 0;
	*watch = new;
	atomic_store(&watch->serial, request->serial);
	if ((err = attach(table, watch->tid)) < 0)
		(void)ptrace_refused(table->program, -err, cause);
	else if ((err = put(table)) < 0)
		(void)explain(table, err, new.nslots, cause);
	if (err < 0)
		(void)debugreg_table_disarm(table, request->index);
	return err;
}

int
debugreg_table_disarm(struct debugreg_table *table, uint32_t index)
{
	if (index >= WP_WATCHES_MAX ||
	    atomic_exchange(&table->armed[index].serial, 0) == 0)
		return 0;
	return put(table);
}

int
debugreg_table_move(struct debugreg_table *table,
    const struct wp_request *request, struct wp_cause *cause)
{
	struct armed *watch = find_armed(table, request);
	struct wp_slot was[WP_DEBUG_REGISTERS];
	int err;

	if (watch == NULL)
		return wp_cause_errno(cause, "the request", EINVAL);
	memcpy(was, watch->slot, sizeof(was));
	memcpy(watch->slot, request->slot, watch->nslots * sizeof(was[0]));
	if ((err = put(table)) == 0)
		return 0;
	memcpy(watch->slot, was, sizeof(was));
	(void)explain(table, err, watch->nslots, cause);
	(void)put(table);
	return err;
}

/* Update the count that the program reads. */
static void
count(struct debugreg_table *table, uint32_t index)
{
	const struct armed *watch = &table->armed[index];
	uint32_t serial = atomic_load(&watch->serial);
	const struct wp_thread_table *all = &table->loop.all;
	uint64_t total = watch->closed_total;

	if (serial == 0 || watch->signal == 0)
		return;		/* each hit is counted when it comes */
	for (size_t i = 0; i < all->n; i++)
		total += thread_regs_count(regs_of(all->thread[i]), serial);
	atomic_store(&table->channel->watch[index].counted, total);
}

void
debugreg_table_look(struct debugreg_table *table)
{
	struct wp_channel_watch *words = table->channel->watch;
	uint32_t asked[WP_WATCHES_MAX];
	bool differs = false;

	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++) {
		struct armed *watch = &table->armed[i];
		bool on;

		asked[i] = atomic_load(&words[i].asked);
		on = atomic_load(&words[i].on) != 0;
		if (asked[i] == atomic_load(&words[i].done) ||
		    atomic_load(&watch->serial) == 0 || watch->on == on)
			continue;
		watch->on = on;
		differs = true;
	}
	if (differs)
		(void)put(table);
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++) {
		if (asked[i] == atomic_load(&words[i].done))
			continue;
		count(table, i);
		atomic_store(&words[i].done, asked[i]);
		wp_futex_wake(&words[i].done);
	}
}

bool
debugreg_table_busy(const struct debugreg_table *table)
{
	return wp_ptrace_loop_busy(&table->loop);
}

int
debugreg_table_step(struct debugreg_table *table)
{
	return wp_ptrace_loop_step(&table->loop);
}

/* Arm what is in the table, and nothing else, in a program whose tracing
   process was killed. */
static int
take_over(struct debugreg_table *table)
{
	int err = wp_ptrace_loop_all(&table->loop);

	if (err < 0)
		return err;
	table->unclean = true;
	table->all = true;
	err = put(table);
	table->unclean = false;
	return err;
}

int
debugreg_table_open(struct debugreg_table **out, struct wp_channel *channel,
    pid_t program, struct armed *armed, struct wp_uptime *uptime, bool again)
{
	struct debugreg_table *table = calloc(1, sizeof(*table));
	int err;

	if (table == NULL)
		return -ENOMEM;
	table->channel = channel;
	table->program = program;
	table->armed = armed;
	table->uptime = uptime;
	wp_ptrace_loop_begin(&table->loop, program, event_signals() |
	    1ull << (SIGTRAP - 1) | 1ull << (WP_SIGNAL - 1), &calls, table);
	*out = table;
	if (again && (err = take_over(table)) < 0 && err != -ESRCH)
		warn(table, "the tracing process was killed, and its "
		    "successor could not arm all watches again");
	return 0;
}

/* Registers are read in stopped threads only. */
void
debugreg_table_uptime(struct debugreg_table *table, struct wp_uptime *uptime)
{
	const int err = debugreg_table_busy(table) ? put(table) : 0;

	*uptime = *table->uptime;
	if (err < 0)
		uptime->unknown = 1;
	for (size_t i = 0; i < table->loop.all.n; i++)
		if (table->loop.all.thread[i]->update != 0)
			thread_regs_uptime(regs_of(table->loop.all.thread[i]),
			    uptime);
}

void
debugreg_table_close(struct debugreg_table *table)
{
	if (table == NULL)
		return;
	for (uint32_t i = 0; i < WP_WATCHES_MAX; i++) {
		count(table, i);	/* its final count, if it has ended */
		atomic_store(&table->armed[i].serial, 0);
	}
	if (debugreg_table_busy(table))
		(void)put(table);
	wp_ptrace_loop_end(&table->loop);
	free(table);
}
