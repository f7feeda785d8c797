/*
 * debugreg_guardian: the process that holds the debug registers of a target,
 * and its parent, which clears them if it is killed.
 */
#include "deliver/debugreg_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/operand.h"
#include "os/trap_cpu.h"
#include "proc/proc.h"
#include "proc/sharers.h"
#include "ptrace/ptrace.h"
#include "stop/ptrace_loop.h"
#include "stop/trace_sample.h"
#include "watch/debugreg_time.h"

/* --- the tracer's process --- */

struct armed_thread {
	struct wp_thread traced;
	struct debugreg_time time;
	bool left;		/* it is ending */
	/* on a processor that traps before the access, while the access is
	   made: */
	unsigned on;		/* registers that are on, */
	unsigned hit;		/* registers that trapped a data access, */
	struct wp_trace_regs before;	/* the thread's registers before it,
					   and */
	uint8_t old[WP_DEBUG_REGISTERS][WP_STOP_BYTES];	/* the bytes of the
							   watches before it */
	bool held[WP_DEBUG_REGISTERS];	/* whether those could be read */
	uint64_t executes;  /* pc at which execution has been reported, or 0 */
};

/* The thread's registers are about to be cleared, or it is about to end.
   Registers that are off for a step miss nothing, so they count as on. */
static void
end_time(struct tracer_state *t, struct wp_thread *thread)
{
	struct armed_thread *armed = (struct armed_thread *)thread;
	struct debugreg_time *time = &armed->time;

	if (time->begun && armed->on != time->on)
		(void)wp_trace_registers(thread->tid, time->slot, time->on);
	debugreg_time_end(time, thread->tid, (unsigned)t->plan.job.first,
	    &t->uptime);
}

/* Read the bytes of a watch. */
static bool
read_value(const struct tracer_state *t, size_t i, uint8_t to[WP_STOP_BYTES])
{
	const struct wp_region *region = &t->plan.region[i];

	return region->access != WP_EXEC && region->len <= WP_STOP_BYTES &&
	    wp_proc_read(t->pid, region->addr, to, region->len) ==
	    (ssize_t)region->len;
}

/* A command that cannot be watched must not run.  watchctl would end it, but
   learns of this only when the command has been released. */
static void
end_command(const struct tracer_state *t)
{
	if (t->command != NULL && !t->began)
		(void)kill(t->pid, SIGKILL);
}

/* Until all threads are armed, the answer reports this. */
static void
report_unarmed(struct tracer_state *t, pid_t tid, int err)
{
	const struct tracer_unarmed packet = {
		.header = {.type = TRACER_UNARMED, .size = sizeof(packet)},
		.tid = tid, .err = err,
	};

	if (err == -ESRCH)	/* the thread was killed */
		return;
	if (t->err == 0)
		t->err = err;
	if (t->began &&
	    send(t->fd, &packet, sizeof(packet), MSG_NOSIGNAL) < 0)
		t->leave = true;
}

static bool
arm(void *arg, struct wp_thread *thread)
{
	static const struct wp_slot none[WP_DEBUG_REGISTERS];
	struct tracer_state *t = arg;
	const bool fresh = thread->update == 0;
	const unsigned on = (1u << t->plan.nslots) - 1;
	int err;

	end_time(t, thread);
	if (t->leave) {
		(void)wp_trace_registers(thread->tid, none, 0);
		return false;
	}
	err = wp_trace_registers(thread->tid, t->plan.slot, on);
	if (err < 0) {
		end_command(t);
		(void)wp_trace_registers(thread->tid, none, 0);
		report_unarmed(t, thread->tid, err);
		return false;
	}
	((struct armed_thread *)thread)->on = on;
	wp_trace_report_made(thread->tid);
	debugreg_time_begin(&((struct armed_thread *)thread)->time, thread->tid,
	    t->plan.slot, on);
	t->threads += fresh;
	t->all += fresh;
	return true;
}

static void
lost(void *arg, pid_t tid)
{
	report_unarmed(arg, tid, -ENOMEM);
}

static void
end(void *arg, struct wp_thread *thread)
{
	struct tracer_state *t = arg;

	debugreg_time_lost(&((struct armed_thread *)thread)->time, &t->uptime);
	t->threads -= thread->update != 0;
}

/* Read a watch's value while a thread is stopped after its access.  In a
   process with one thread, no other thread can have written since.  But the
   kernel may have written unseen before, so it is not known what the access
   found.  With more threads, which may be stopped after accesses of their own,
   nothing is known. */
static bool
look(struct tracer_state *t, pid_t tid, size_t i, struct wp_stop_value *value)
{
	const struct wp_region *region = &t->plan.region[i];

	*value = (struct wp_stop_value){
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = region->addr, .len = (uint32_t)region->len, .call = -1,
	};
	if (!read_value(t, i, value->new))
		return false;
	if (t->threads == 1 && !t->shared[i])
		value->flags = WP_STOP_LEFT;
	else if (wp_ptrace_loop_others(&t->loop, tid))
		value->len = 0;
	return true;
}

/* The same after an access whose old value was read. */
static bool
compare(struct tracer_state *t, const struct armed_thread *thread, size_t i,
    struct wp_stop_value *value)
{
	if (!look(t, thread->traced.tid, i, value))
		return false;
	if ((value->flags & WP_STOP_LEFT) != 0 && thread->held[i]) {
		value->flags |= WP_STOP_EXACT | WP_STOP_BEFORE;
		memcpy(value->old, thread->old[i], sizeof(value->old));
	}
	return true;
}

/* Send a sample for a register that was hit at a stop.  last: it is the last
   sample of its watch. */
static void
send_sample(struct tracer_state *t, const struct armed_thread *thread,
    uint64_t time, unsigned n, bool last)
{
	const pid_t tid = thread->traced.tid;
	static uint8_t record[ROOM];
	struct perf_event_header header;
	struct wp_stop_value value;
	const struct register_plan *o = &t->plan;
	const struct wp_trace_sampled what = {
		.id = wp_target_stop_id(o->job.first + o->of[n], o->piece[n]),
		.addr = o->slot[n].addr, .time = time, .pid = t->pid,
		.tid = tid, .stack = o->job.stack,
		.regs = wp_cpu_traps_before() ? &thread->before : NULL,
		.value = last && compare(t, thread, o->of[n], &value) ?
		    &value : NULL,
	};

	if (wp_trace_sample(record, sizeof(record), &what) < 0)
		return;
	memcpy(&header, record, sizeof(header));
	/* blocks until there is room or the reader has gone */
	if (send(t->fd, record, header.size, MSG_NOSIGNAL) < 0)
		t->leave = true;
	t->sent = true;
}

/* Whether there is a request, or no process left that could send one. */
static bool
has_request(void *arg)
{
	const struct tracer_state *t = arg;
	struct pollfd p = {t->fd, POLLIN, 0};

	return poll(&p, 1, 0) != 0;
}

/* Receive a request and the descriptor sent with it, or -1.  Returns false if
   watchctl has ended. */
static bool
receive_request(const struct tracer_state *t, struct debugreg_request *request,
    int *fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(*fd))];
	struct iovec io = {request, sizeof(*request)};
	struct msghdr message = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = room,
		.msg_controllen = sizeof(room),
	};
	const struct cmsghdr *control;

	*fd = -1;
	if (recvmsg(t->fd, &message, MSG_CMSG_CLOEXEC) !=
	    (ssize_t)sizeof(*request))
		return false;
	if ((control = CMSG_FIRSTHDR(&message)) != NULL)
		memcpy(fd, CMSG_DATA(control), sizeof(*fd));
	return true;
}

static void
send_reply(struct tracer_state *t, const struct debugreg_reply *reply)
{
	if (send(t->fd, reply, sizeof(*reply), MSG_NOSIGNAL) < 0)
		t->leave = true;
}

static void
write_core(struct tracer_state *t, const struct debugreg_request *request,
    int fd)
{
	struct core_of of = request->of;
	struct debugreg_reply made;

	of.give_up = has_request;
	of.arg = t;
	made.err = core_write(fd, &of, &made.size);
	if (fd >= 0)
		(void)close(fd);
	send_reply(t, &made);
}

/* Release all threads at their next stop.  Those that are stopped stop again
   before they execute anything, with SIGSTOP pending. */
static void
leave_stopped(struct tracer_state *t)
{
	(void)kill(t->pid, SIGSTOP);
	t->leave = true;
	wp_ptrace_loop_update(&t->loop);
}

/* Send a packet whose type no record has. */
static bool
send_packet(const struct tracer_state *t, uint32_t type)
{
	const struct perf_event_header packet = {
		.type = type, .size = sizeof(packet),
	};

	return send(t->fd, &packet, sizeof(packet), MSG_NOSIGNAL) >= 0;
}

/* A thread is stopped until watchctl lets it continue or has ended. */
static void
stay_stopped(struct tracer_state *t)
{
	struct debugreg_request request = {ASK_GIVE_UP};
	int fd;

	if (!send_packet(t, TRACER_STOPPED))
		t->leave = true;
	while (!t->leave && request.what != ASK_GO) {
		if (!receive_request(t, &request, &fd))
			t->leave = true;
		else if (request.what == ASK_HOLD)
			send_reply(t,
			    &(struct debugreg_reply){
			    wp_ptrace_loop_all(&t->loop)});
		else if (request.what == ASK_CORE)
			write_core(t, &request, fd);
		else if (request.what == ASK_PAUSE)
			leave_stopped(t);
	}
}

static void
send_hit(struct tracer_state *t, const struct armed_thread *thread,
    unsigned hit)
{
	const struct register_plan *o = &t->plan;
	const uint64_t time = wp_clock_ns();
	const bool several = (hit & (hit - 1)) != 0;

	if (several && !send_packet(t, TRACER_SEVERAL))
		t->leave = true;
	for (unsigned n = 0; n < o->nslots && !t->leave; n++) {
		bool last = true;

		for (unsigned k = n + 1; k < o->nslots; k++)
			last = last && !((hit >> k & 1) != 0 &&
			    o->of[k] == o->of[n]);
		if ((hit >> n & 1) != 0)
			send_sample(t, thread, time, n, last);
	}
	if (several && !t->leave && !send_packet(t, TRACER_ALL))
		t->leave = true;
	if (o->job.stay_stopped && !t->leave)
		stay_stopped(t);
}

/* The registers that watch execution. */
static unsigned
executing(const struct register_plan *o)
{
	unsigned which = 0;

	for (unsigned n = 0; n < o->nslots; n++)
		which |= (unsigned)(o->slot[n].type == HW_BREAKPOINT_X) << n;
	return which;
}

/* A watch on the word of an exclusive access would make the instruction fail
   forever, so it is disabled. */
static void
let_exclusive(struct tracer_state *t, unsigned hit)
{
	struct register_plan *o = &t->plan;

	for (unsigned n = 0; n < o->nslots; n++) {
		const struct tracer_exclusive packet = {
			.header = {.type = TRACER_EXCLUSIVE,
			    .size = sizeof(packet)},
			.watch = o->job.first + o->of[n],
		};
		bool also = false;

		for (unsigned k = 0; k < o->nslots; k++)
			also = also || ((hit >> k & 1) != 0 &&
			    o->of[k] == o->of[n]);
		if (!also || o->slot[n].len == 0)
			continue;
		o->slot[n].len = 0;
		if (o->piece[n] == 0 &&
		    send(t->fd, &packet, sizeof(packet), MSG_NOSIGNAL) < 0)
			t->leave = true;
	}
	wp_ptrace_loop_update(&t->loop);
}

static void
look_before(const struct tracer_state *t, struct armed_thread *thread)
{
	for (size_t i = 0; i < t->plan.job.n; i++)
		thread->held[i] = read_value(t, i, thread->old[i]);
}

/* The thread is stopped before the instruction that trapped.  It executes that
   one with the registers of the same kind off.  An access is reported after it
   has been made, execution before. */
static void
begin_step(struct tracer_state *t, struct armed_thread *thread)
{
	const struct register_plan *o = &t->plan;
	const pid_t tid = thread->traced.tid;
	const unsigned execution = executing(o);
	const unsigned hit = wp_trace_registers_hit(tid, o->slot, thread->on);

	if (wp_trace_regs(tid, &thread->before) < 0)
		return;		/* the thread was killed */
	if ((hit & execution) == 0 &&
	    wp_operand_is_exclusive(wp_trace_code(tid))) {
		let_exclusive(t, hit);
		return;
	}
	if ((hit & execution) == 0) {
		thread->hit |= hit;
		look_before(t, thread);
	} else if (thread->executes != thread->before.pc) {
		thread->executes = thread->before.pc;
		send_hit(t, thread, hit);
	}
	thread->on &= (hit & execution) != 0 ? ~execution : execution;
	if (wp_trace_registers(tid, o->slot, thread->on) == 0)
		thread->traced.step = true;
}

/* If something else has stopped the thread before the access was made, it comes
   again, for example after a signal handler. */
static void
stepped(void *arg, struct wp_thread *traced, bool done)
{
	struct armed_thread *thread = (struct armed_thread *)traced;
	struct tracer_state *t = arg;
	const unsigned hit = thread->hit;

	thread->hit = 0;
	thread->on = (1u << t->plan.nslots) - 1;
	(void)wp_trace_registers(traced->tid, t->plan.slot, thread->on);
	if (!done)
		return;
	thread->executes = 0;
	if (hit != 0)
		send_hit(t, thread, hit);
}

/* The trap's signal is suppressed at once: if this process were killed before
   that, the thread would get it and die. */
static void
take_hit(struct tracer_state *t, struct armed_thread *thread)
{
	const pid_t tid = thread->traced.tid;

	wp_trace_take(tid);
	if (wp_cpu_traps_before())
		begin_step(t, thread);
	else
		send_hit(t, thread, wp_trace_registers_hit(tid, t->plan.slot,
		    thread->on));
}

/* Until all threads are armed nobody reads the socket, and waiting for room in
   it would never end. */
static int
get_signal(void *arg, struct wp_thread *thread, siginfo_t *info)
{
	struct tracer_state *t = arg;

	if (info->si_signo != SIGTRAP || info->si_code != TRAP_HWBKPT)
		return info->si_signo;
	if (!t->began && !t->leave)
		return WP_TRACER_LATER;
	take_hit(t, (struct armed_thread *)thread);
	return 0;
}

static bool
is_last(const struct tracer_state *t)
{
	for (size_t i = 0; i < t->loop.all.n; i++)
		if (!((struct armed_thread *)t->loop.all.thread[i])->left)
			return false;
	return true;
}

/* Wait until watchctl has explained the hits, for which it needs the process's
   memory. */
static void
await_taken(struct tracer_state *t)
{
	const long limit = wp_clock_ms() + TAKE_MS;
	struct pollfd p = {t->fd, POLLIN, 0};
	struct debugreg_request request = {ASK_GIVE_UP};
	long left;
	int fd;

	t->sent = false;
	if (!send_packet(t, TRACER_LEAVING))
		t->leave = true;
	while (!t->leave && request.what != ASK_GO &&
	    (left = limit - wp_clock_ms()) > 0 && poll(&p, 1, (int)left) > 0)
		if (!receive_request(t, &request, &fd))
			t->leave = true;
}

/* With --on-hit each hit was explained while its thread was stopped. */
static void
leaving(void *arg, struct wp_thread *thread)
{
	struct tracer_state *t = arg;

	end_time(t, thread);
	((struct armed_thread *)thread)->left = true;
	if (t->sent && !t->plan.job.stay_stopped && is_last(t))
		await_taken(t);
}

static bool
executed(void *arg, pid_t pid)
{
	const struct tracer_state *t = arg;

	(void)pid;
	(void)send_packet(t, TRACER_EXECUTED);
	return false;
}

/* The creating thread is stopped.  A child that it waited for (vfork) has
   executed a program or ended.  Until all threads are armed nobody reads the
   socket. */
static bool
made(void *arg, struct wp_thread *thread, const struct wp_trace *trace)
{
	struct tracer_state *t = arg;
	const bool ended = trace->awaited != 0;
	const int executed = ended ? wp_proc_has_executed(trace->awaited) : 0;
	const struct tracer_child packet = {
		.header = {.type = TRACER_CHILD, .size = sizeof(packet)},
		.pid = ended ? trace->awaited : trace->made,
		.parent = thread->pid, .time = wp_clock_ns(),
		.awaited = trace->waits, .is_known = ended && executed >= 0,
		.executed = executed > 0,
	};

	if (!t->began && !t->leave)
		return false;
	if (!t->leave &&
	    send(t->fd, &packet, sizeof(packet), MSG_NOSIGNAL) < 0)
		t->leave = true;
	return true;
}

static const struct wp_ptrace_loop_calls calls = {
	.size = sizeof(struct armed_thread), .arm = arm, .signal = get_signal,
	.stepped = stepped, .leaving = leaving, .made = made, .lost = lost,
	.end = end, .executed = executed,
};

static void
doze(struct tracer_state *t, int ms)
{
	if (wp_ptrace_loop_await(&t->signals, ms) == LEAVE ||
	    getppid() != t->parent)
		t->leave = true;
}

/* Protect this process from signals meant for watchctl or for the processes of
   the terminal, from being killed by watchctl's name, and from the OOM
   killer. */
static void
settle_in(struct tracer_state *t, const char *name)
{
	int fd;

	wp_ptrace_loop_process(&t->signals, name, LEAVE);
	(void)setsid();
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "-1000", 5);
		(void)close(fd);
	}
}

/* Close everything, so that nothing of watchctl's is kept open. */
static void
close_all(void)
{
	(void)close_range(0, UINT32_MAX, 0);
	wp_ptrace_loop_null();
}

/* The same except for the two descriptors that it needs.  These are not among
   the standard ones, which watchctl keeps open. */
static void
close_others(const struct tracer_state *t)
{
	const unsigned fd = (unsigned)t->fd, answer = (unsigned)t->answer;
	const unsigned low = fd < answer ? fd : answer;
	const unsigned high = fd < answer ? answer : fd;

	(void)close_range(0, low - 1, 0);
	if (high > low + 1)
		(void)close_range(low + 1, high - 1, 0);
	(void)close_range(high + 1, UINT32_MAX, 0);
	wp_ptrace_loop_null();
}

/* Arm every thread, or none.  A thread may have ended since.  Returns 0 or
   -errno. */
static int
arm_all(struct tracer_state *t)
{
	int err = wp_ptrace_loop_command(&t->loop, &t->hold);

	if (err < 0 || t->leave)
		return err;
	err = wp_ptrace_loop_settle(&t->loop, &t->signals);
	t->leave = t->leave || err == -EINTR;
	if (t->err < 0)
		return t->err;
	return err == -ETIMEDOUT || (err == -ESRCH && t->all == 0) ? err : 0;
}

/* Clear the registers of all threads and release them: only then may this
   process end. */
static void
clear_all(struct tracer_state *t)
{
	t->leave = true;
	wp_ptrace_loop_update(&t->loop);
	while (wp_ptrace_loop_busy(&t->loop)) {
		const int more = wp_ptrace_loop_step(&t->loop);

		if (more < 0)
			return;
		if (more == 0)
			doze(t, CLEAR_MS);
	}
}

/* Report a result.  Returns whether to continue. */
static bool
send_answer(struct tracer_state *t, int err)
{
	const struct debugreg_answer answer = {err, t->all};

	if (write(t->answer, &answer, sizeof(answer)) < 0)
		t->leave = true;
	return err == 0 && !t->leave;
}

/* Hold the command, if there is one, until the plan has come.  Returns false if
   there is nothing to watch. */
static bool
receive_plan(struct tracer_state *t)
{
	if (t->command != NULL &&
	    !send_answer(t, wp_command_hold(t->command, &t->hold)))
		return false;
	close_others(t);
	return recv(t->fd, &t->plan, sizeof(t->plan), 0) ==
	    (ssize_t)sizeof(t->plan);
}

static void
watch_on(struct tracer_state *t)
{
	const struct wp_region *region = t->plan.region;
	const bool lent = t->command == NULL && wp_sharers_stay(t->pid);
	int err, more = 0;

	for (size_t i = 0; i < t->plan.job.n; i++)
		t->shared[i] = wp_proc_shares(t->pid, region[i].addr,
		    region[i].len);
	if ((err = arm_all(t)) < 0)
		end_command(t);
	if (!send_answer(t, err))
		return;
	if (lent || (t->command == NULL && wp_sharers_any(t->pid)))
		memset(t->shared, true, sizeof(t->shared));
	(void)close(t->answer);
	t->began = true;
	while (!t->leave && more >= 0 && wp_ptrace_loop_busy(&t->loop)) {
		more = wp_ptrace_loop_step(&t->loop);
		doze(t, more == 0 ? LOOK_MS : 0);
	}
}

static void
send_uptime(const struct tracer_state *t)
{
	const struct tracer_uptime packet = {
		.header = {.type = TRACER_UPTIME, .size = sizeof(packet)},
		.uptime = t->uptime,
	};

	(void)send(t->fd, &packet, sizeof(packet), MSG_NOSIGNAL);
}

static _Noreturn void
guard(struct tracer_state *t)
{
	settle_in(t, "wp-guardian");
	t->leave = getppid() != t->parent;
	wp_ptrace_loop_begin(&t->loop, t->pid, TRAPS, &calls, t);
	if (receive_plan(t))
		watch_on(t);
	wp_hold_release(&t->hold);
	clear_all(t);
	if (t->began)
		send_uptime(t);
	_exit(0);
}

/* The tracer was killed: clear the registers that it left, before a thread hits
   one. */
static _Noreturn void
rescue(struct tracer_state *t)
{
	t->leave = true;
	wp_ptrace_loop_begin(&t->loop, t->pid, TRAPS, &calls, t);
	if (wp_ptrace_loop_all(&t->loop) == 0)
		clear_all(t);
	_exit(TRACER_KILLED);
}

_Noreturn void
debugreg_standby(struct tracer_state *t)
{
	const pid_t parent = t->parent;
	pid_t pid;
	int status, sig = 0;

	settle_in(t, "wp-standby");
	t->parent = getpid();
	if ((pid = fork()) == 0)
		guard(t);
	/* get real-time priority if that is permitted, as every moment
	   counts */
	(void)sched_setscheduler(0, SCHED_FIFO,
	    &(struct sched_param){.sched_priority = 1});
	close_all();
	if (pid < 0)
		_exit(TRACER_NO_MEMORY);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (sig == LEAVE || getppid() != parent)
			(void)kill(pid, LEAVE);
		sig = wp_ptrace_loop_await(&t->signals, -1);
	}
	if (WIFSIGNALED(status))
		rescue(t);
	_exit(WEXITSTATUS(status));
}
