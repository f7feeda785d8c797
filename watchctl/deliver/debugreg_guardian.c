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
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "os/libc.h"
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
	struct armed_process *process;	/* NULL: it was never armed */
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
read_value(const struct tracer_state *t, pid_t pid, size_t i,
    uint8_t to[WP_STOP_BYTES])
{
	const struct wp_region *region = &t->plan.region[i];

	return region->access != WP_EXEC && region->len <= WP_STOP_BYTES &&
	    wp_proc_read(pid, region->addr, to, region->len) ==
	    (ssize_t)region->len;
}

/* --- processes --- */

static struct armed_process *
find_process(const struct tracer_state *t, pid_t pid)
{
	size_t i = 0;

	while (i < t->n && t->process[i]->pid != pid)
		i++;
	return i < t->n ? t->process[i] : NULL;
}

/* The entry of a process in the family, which is 0 if it has ended.  NULL:
   there is no room. */
static pid_t *
family_entry(struct debugreg_family *family, pid_t pid)
{
	size_t i = 0;

	while (i < family->n && family->pid[i] != pid)
		i++;
	return i < FAMILY_MAX ? &family->pid[i] : NULL;
}

/* Have the standby process clear the registers of a process too. */
static bool
enter_family(struct debugreg_family *family, pid_t pid)
{
	pid_t *entry = family_entry(family, 0);

	if (entry == NULL)
		return false;
	*entry = pid;
	if (entry == &family->pid[family->n])
		family->n++;
	return true;
}

/* What a process shares with others of the tracer, or with any. */
static void
find_shared(const struct tracer_state *t, struct armed_process *process)
{
	const struct wp_region *region = t->plan.region;

	for (size_t i = 0; i < t->plan.job.n; i++)
		process->shared[i] = wp_proc_shares(process->pid,
		    region[i].addr, region[i].len);
	for (size_t i = 0; i < t->n; i++) {
		struct armed_process *other = t->process[i];

		if (other != process &&
		    wp_sharers_has(other->pid, process->pid))
			process->lent = other->lent = true;
	}
}

/* NULL: there is no memory or room. */
static struct armed_process *
add_process(struct tracer_state *t, pid_t pid, pid_t parent)
{
	struct armed_process *process = calloc(1, sizeof(*process));

	if (process == NULL || WP_ARRAY_ROOM(t, process) < 0 ||
	    !enter_family(t->family, pid)) {
		free(process);
		return NULL;
	}
	*process = (struct armed_process){.pid = pid, .parent = parent};
	t->process[t->n++] = process;
	return process;
}

/* Forget a child when it has no thread but this one.  The first process, which
   watchctl knows by itself, is kept. */
static void
leave_process(struct tracer_state *t, const struct armed_process *process,
    const struct wp_thread *thread)
{
	size_t i;

	if (process == t->process[0])
		return;
	for (i = 0; i < t->loop.all.n; i++)
		if (t->loop.all.thread[i]->pid == process->pid &&
		    t->loop.all.thread[i] != thread)
			return;
	*family_entry(t->family, process->pid) = 0;
	for (i = 0; t->process[i] != process;)
		i++;
	free(t->process[i]);
	t->process[i] = t->process[--t->n];
}

/* Whether no other thread may write to the memory of a process with one thread.
   One that waits for a child, as with vfork(2), does not. */
static bool
is_alone(const struct tracer_state *t, struct armed_process *process)
{
	bool lent = false, alone = true;

	if (process->threads != 1)
		return false;
	for (size_t i = 0; process->lent && i < t->n; i++) {
		const struct armed_process *other = t->process[i];

		if (other == process ||
		    !wp_sharers_has(other->pid, process->pid))
			continue;
		lent = true;
		alone = alone && other->threads == 1 &&
		    other->awaits == process->pid;
	}
	process->lent = lent;
	return alone;
}

static void
send_child(struct tracer_state *t, const struct tracer_child *packet)
{
	if (!t->leave &&
	    send(t->fd, packet, sizeof(*packet), MSG_NOSIGNAL) < 0)
		t->leave = true;
}

/* Tell watchctl of a child before its first hit.  Until all threads are armed
   nobody reads the socket, and nothing is sent. */
static void
announce(struct tracer_state *t, struct armed_process *process)
{
	const struct tracer_child packet = {
		.header = {.type = TRACER_CHILD, .size = sizeof(packet)},
		.pid = process->pid, .parent = process->parent,
		.time = wp_clock_ns(),
	};

	if (process->announced || process == t->process[0] || !t->began)
		return;
	process->announced = true;
	send_child(t, &packet);
}

/* --- threads --- */

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
	struct armed_thread *armed = (struct armed_thread *)thread;
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
	armed->on = on;
	wp_trace_report_made(thread->tid);
	debugreg_time_begin(&armed->time, thread->tid, t->plan.slot, on);
	armed->process = find_process(t, thread->pid);
	armed->process->threads += fresh;
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
	struct armed_thread *armed = (struct armed_thread *)thread;
	struct armed_process *process = find_process(t, thread->pid);

	/* what has executed a program had its registers until then */
	if (process != NULL && process->threads == 1 &&
	    thread->tid == thread->pid &&
	    wp_proc_has_executed(thread->pid) > 0)
		debugreg_time_executed(&armed->time, thread->tid, &t->uptime);
	debugreg_time_lost(&armed->time, &t->uptime);
	if (process == NULL)
		return;
	if (armed->process != NULL)
		process->threads--;
	leave_process(t, process, thread);
}

/* A thread of the process, or of a child, which is watched as well. */
static struct wp_thread *
adopt(void *arg, pid_t tid)
{
	struct tracer_state *t = arg;
	struct armed_process *process;
	struct wp_proc_status status;
	struct wp_thread *thread = NULL;
	bool made;

	if (t->leave || wp_proc_status(tid, &status) < 0 ||
	    status.tracer != wp_libc_tid())
		return NULL;
	process = find_process(t, status.tgid);
	made = process == NULL;
	if (made && wp_proc_has_executed(status.tgid) != 0)
		return NULL;
	if (made)
		process = add_process(t, status.tgid, status.parent);
	if (process != NULL)
		thread = wp_ptrace_loop_add(&t->loop, process->pid, tid,
		    false);
	if (thread == NULL) {
		report_unarmed(t, tid, -ENOMEM);
		if (process != NULL)
			leave_process(t, process, NULL);
	} else if (made) {
		find_shared(t, process);
		announce(t, process);
	}
	return thread;
}

/* Read a watch's value while a thread is stopped after its access.  In a
   process with one thread, no other thread can have written since.  But the
   kernel may have written unseen before, so it is not known what the access
   found.  With more threads, which may be stopped after accesses of their own,
   nothing is known. */
static bool
look(struct tracer_state *t, const struct armed_thread *thread, size_t i,
    struct wp_stop_value *value)
{
	const struct wp_region *region = &t->plan.region[i];
	struct armed_process *process = thread->process;

	*value = (struct wp_stop_value){
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = region->addr, .len = (uint32_t)region->len, .call = -1,
	};
	if (!read_value(t, process->pid, i, value->new))
		return false;
	if (!process->shared[i] && is_alone(t, process))
		value->flags = WP_STOP_LEFT;
	else if (wp_ptrace_loop_others(&t->loop, thread->traced.tid))
		value->len = 0;
	return true;
}

/* The same after an access whose old value was read. */
static bool
compare(struct tracer_state *t, const struct armed_thread *thread, size_t i,
    struct wp_stop_value *value)
{
	if (!look(t, thread, i, value))
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
		.addr = o->slot[n].addr, .time = time,
		.pid = thread->traced.pid, .tid = tid, .stack = o->job.stack,
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

/* Release all threads at their next stop.  Those of the process that are
   stopped stop again before they execute anything, with SIGSTOP pending. */
static void
leave_stopped(struct tracer_state *t, pid_t pid)
{
	(void)kill(pid, SIGSTOP);
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

static int
hold(struct tracer_state *t, pid_t pid)
{
	t->loop.pid = pid;
	return wp_ptrace_loop_all(&t->loop);
}

/* A thread is stopped until watchctl lets it continue or has ended. */
static void
stay_stopped(struct tracer_state *t, pid_t pid)
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
			    &(struct debugreg_reply){hold(t, pid)});
		else if (request.what == ASK_CORE)
			write_core(t, &request, fd);
		else if (request.what == ASK_PAUSE)
			leave_stopped(t, pid);
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
		stay_stopped(t, thread->traced.pid);
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
		thread->held[i] = read_value(t, thread->traced.pid, i,
		    thread->old[i]);
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

/* Whether all threads of a process have left. */
static bool
is_last(const struct tracer_state *t, pid_t pid)
{
	for (size_t i = 0; i < t->loop.all.n; i++) {
		const struct wp_thread *thread = t->loop.all.thread[i];

		if (thread->pid == pid &&
		    !((const struct armed_thread *)thread)->left)
			return false;
	}
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
	if (t->sent && !t->plan.job.stay_stopped && is_last(t, thread->pid))
		await_taken(t);
}

static bool
executed(void *arg, pid_t pid)
{
	const struct tracer_state *t = arg;
	struct tracer_executed packet = {
		.header = {.type = TRACER_EXECUTED, .size = sizeof(packet)},
		.pid = pid, .time = wp_clock_ns(),
	};
	struct wp_proc_status status;

	if (wp_proc_status(pid, &status) == 0)
		packet.parent = status.parent;
	(void)send(t->fd, &packet, sizeof(packet), MSG_NOSIGNAL);
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
	send_child(t, &packet);
	return true;
}

/* The same where children are watched. */
static bool
made_followed(void *arg, struct wp_thread *thread, const struct wp_trace *trace)
{
	struct armed_process *process = find_process(arg, thread->pid);

	if (process == NULL)
		return true;
	if (trace->waits)
		process->awaits = trace->made;
	else if (trace->awaited != 0)
		process->awaits = 0;
	return true;
}

static const struct wp_ptrace_loop_calls calls = {
	.size = sizeof(struct armed_thread), .arm = arm, .signal = get_signal,
	.stepped = stepped, .leaving = leaving, .made = made, .lost = lost,
	.end = end, .executed = executed,
};

static const struct wp_ptrace_loop_calls calls_of_family = {
	.size = sizeof(struct armed_thread), .arm = arm, .signal = get_signal,
	.stepped = stepped, .leaving = leaving, .made = made_followed,
	.lost = lost, .end = end, .executed = executed, .adopt = adopt,
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
	const bool lent = t->command == NULL && wp_sharers_stay(t->pid);
	struct armed_process *process = t->process[0];
	int err, more = 0;

	find_shared(t, process);
	if ((err = arm_all(t)) < 0)
		end_command(t);
	if (!send_answer(t, err))
		return;
	if (lent || (t->command == NULL && wp_sharers_any(t->pid)))
		memset(process->shared, true, sizeof(process->shared));
	(void)close(t->answer);
	t->began = true;
	for (size_t i = 0; i < t->n; i++)
		announce(t, t->process[i]);
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

static void
begin(struct tracer_state *t)
{
	wp_ptrace_loop_begin(&t->loop, t->pid, TRAPS, t->follow ?
	    &calls_of_family : &calls, t);
}

static _Noreturn void
guard(struct tracer_state *t)
{
	settle_in(t, "wp-guardian");
	t->leave = getppid() != t->parent;
	begin(t);
	if (add_process(t, t->pid, 0) != NULL && receive_plan(t))
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
	const struct debugreg_family *family = t->family;
	bool any = false;

	t->leave = true;
	begin(t);
	for (size_t i = 0; i < family->n; i++) {
		t->loop.pid = family->pid[i];
		any = (t->loop.pid != 0 &&
		    wp_ptrace_loop_all(&t->loop) == 0) || any;
	}
	if (any)
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
