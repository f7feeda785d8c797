/* debugreg_tracer: debug registers of a process, and the process that makes certain
   that they are cleared. */
#include "run/debugreg_tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/proc.h"
#include "os/ptrace.h"
#include "watch/ptrace_refused.h"
#include "stop/stop.h"
#include "stop/trace_sample.h"
#include "stop/ptrace_loop.h"

enum {
	LEAVE = SIGTERM,	/* to the guardian: clear, and end */
	LOOK_MS = 50,		/* between looks whether we live, or gave up */
	SETTLE_MS = 5,		/* between looks while threads are armed */
	ROOM = 65536,		/* of a record */
	OURS = 100,		/* the guardian's descriptors, from here on */
};

/* The signals that a tracer is to show. */
#define TRAPS (1ull << (SIGTRAP - 1))

/* What comes of it, as an exit status; else 0. */
enum { GUARDIAN_NO_MEMORY = 1, GUARDIAN_KILLED };

struct debugreg_tracer {
	pid_t pid;		/* the standby process; 0: was waited
				   for, ... */
	int status;		/* ... with this result, as of waitpid(2) */
	int fd;			/* the guardian's socket */
	int answer;		/* how something went: a pipe; -1: closed */
	pid_t whom;		/* its process */
	unsigned threads;
};

/* What to watch: the first request of all. */
struct hit_order {
	struct debugreg_tracer_job job;	/* watched is not valid there */
	struct wp_region region[WP_DEBUG_REGISTERS];	/* of each watch */
	struct wp_slot slot[WP_DEBUG_REGISTERS];	/* by register */
	size_t of[WP_DEBUG_REGISTERS];		/* which watch, from 0 */
	unsigned piece[WP_DEBUG_REGISTERS];	/* which of its slots */
	unsigned nslots;
};

/* How it went. */
struct answer {
	int err;		/* 0 or -errno */
	unsigned threads;	/* that were armed */
};

/* What we ask for while a thread is stopped. */
struct request {
	enum {
		ASK_HOLD,		/* all its threads; is replied to */
		ASK_CORE,		/* into a descriptor that comes with
					   it; is replied to, ... */
		ASK_GIVE_UP,		/* ... and soon */
		ASK_GO,
		ASK_PAUSE,
	} what;
	struct core_of of;		/* CORE */
};

struct reply {
	int err;			/* 0 or -errno */
	struct core_size size;		/* CORE */
};

int
debugreg_tracer_fd(const struct debugreg_tracer *guardian)
{
	return guardian->fd;
}

unsigned
debugreg_tracer_threads(const struct debugreg_tracer *guardian)
{
	return guardian->threads;
}

/* --- the guardian's process --- */

struct watch {
	pid_t pid;		/* the process to watch */
	struct wp_command *command;	/* NULL: it runs already */
	struct wp_hold hold;	/* the command */
	struct hit_order order;
	struct wp_ptrace_loop *tracer;
	pid_t parent;
	int fd;			/* for records, and requests */
	int answer;		/* for how it began: some may hit before */
	bool began;
	unsigned threads;	/* armed now, ... */
	unsigned all;		/* ... and at any time */
	bool leave;		/* clear them */
	int err;		/* the first failure */
	bool shared[WP_DEBUG_REGISTERS];	/* by watch: others may write
						   it where it is not seen */
	sigset_t signals;
};

/* Read what a watch holds. */
static bool
read_value(const struct watch *w, size_t i, uint8_t to[WP_STOP_BYTES])
{
	const struct wp_region *region = &w->order.region[i];

	return region->access != WP_EXEC && region->len <= WP_STOP_BYTES &&
	    wp_proc_read(w->pid, region->addr, to, region->len) ==
	    (ssize_t)region->len;
}

static bool
arm(void *arg, struct wp_thread *thread)
{
	static const struct wp_slot none[WP_DEBUG_REGISTERS];
	struct watch *w = arg;
	const bool fresh = thread->own == NULL;
	int err;

	if (w->leave) {
		(void)wp_trace_registers(thread->tid, none, 0);
		return false;
	}
	err = wp_trace_registers(thread->tid, w->order.slot,
	    (1u << w->order.nslots) - 1);
	if (err < 0) {
		(void)wp_trace_registers(thread->tid, none, 0);
		if (w->err == 0 && err != -ESRCH)
			w->err = err;
		return false;
	}
	w->threads += fresh;
	w->all += fresh;
	thread->own = w;
	return true;
}

static void
end(void *arg, struct wp_thread *thread)
{
	struct watch *w = arg;

	w->threads -= thread->own != NULL;
	thread->own = NULL;
}

/* What a watch holds while a thread is stopped behind its access.  With one
   thread no other can have written since; but the kernel may have before,
   unseen, so what the access found is not known.  With others that are
   stopped too, perhaps behind accesses of their own, nothing is. */
static bool
look(struct watch *w, pid_t tid, size_t i, struct wp_stop_value *value)
{
	const struct wp_region *region = &w->order.region[i];

	*value = (struct wp_stop_value){
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = region->addr, .len = (uint32_t)region->len, .call = -1,
	};
	if (!read_value(w, i, value->new))
		return false;
	if (w->threads == 1 && !w->shared[i])
		value->flags = WP_STOP_LEFT;
	else if (wp_ptrace_loop_others(w->tracer, tid))
		value->len = 0;
	return true;
}

/* Tell that a register was hit; last: of its watch. */
static void
tell(struct watch *w, pid_t tid, unsigned n, bool last)
{
	static uint8_t record[ROOM];
	struct perf_event_header header;
	struct wp_stop_value value;
	const struct hit_order *o = &w->order;
	const struct wp_trace_sampled what = {
		.id = wp_target_stop_id(o->job.first + o->of[n], o->piece[n]),
		.addr = o->slot[n].addr, .pid = w->pid, .tid = tid,
		.stack = o->job.stack,
		.value = last && look(w, tid, o->of[n], &value) ? &value : NULL,
	};

	if (wp_trace_sample(record, sizeof(record), &what) < 0)
		return;
	memcpy(&header, record, sizeof(header));
	/* waits until there is room, or there is no reader */
	if (send(w->fd, record, header.size, MSG_NOSIGNAL) < 0)
		w->leave = true;
}

/* We have something to say, or are no more. */
static bool
is_spoken_to(void *arg)
{
	const struct watch *w = arg;
	struct pollfd p = {w->fd, POLLIN, 0};

	return poll(&p, 1, 0) != 0;
}

/* A request, and the descriptor that came with it, or -1.  False: we are no
   more. */
static bool
hear(const struct watch *w, struct request *request, int *fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(*fd))];
	struct iovec io = {request, sizeof(*request)};
	struct msghdr message = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = room,
		.msg_controllen = sizeof(room),
	};
	const struct cmsghdr *control;

	*fd = -1;
	if (recvmsg(w->fd, &message, MSG_CMSG_CLOEXEC) !=
	    (ssize_t)sizeof(*request))
		return false;
	if ((control = CMSG_FIRSTHDR(&message)) != NULL)
		memcpy(fd, CMSG_DATA(control), sizeof(*fd));
	return true;
}

static void
reply(struct watch *w, const struct reply *reply)
{
	if (send(w->fd, reply, sizeof(*reply), MSG_NOSIGNAL) < 0)
		w->leave = true;
}

static void
write_core(struct watch *w, const struct request *request, int fd)
{
	struct core_of of = request->of;
	struct reply made;

	of.give_up = is_spoken_to;
	of.arg = w;
	made.err = core_write(fd, &of, &made.size);
	if (fd >= 0)
		(void)close(fd);
	reply(w, &made);
}

/* All are released at their next stop, which is before they do anything if
   they are stopped, and find SIGSTOP there. */
static void
leave_stopped(struct watch *w)
{
	(void)kill(w->pid, SIGSTOP);
	w->leave = true;
	wp_ptrace_loop_update(w->tracer);
}

/* A packet of a type that no record has. */
static bool
say(const struct watch *w, uint32_t type)
{
	const struct perf_event_header packet = {
		.type = type, .size = sizeof(packet),
	};

	return send(w->fd, &packet, sizeof(packet), MSG_NOSIGNAL) >= 0;
}

/* A thread is stopped, until we let it go on, or have ended. */
static void
stand(struct watch *w)
{
	struct request request = {ASK_GIVE_UP};
	int fd;

	if (!say(w, GUARDIAN_STANDS))
		w->leave = true;
	while (!w->leave && request.what != ASK_GO) {
		if (!hear(w, &request, &fd))
			w->leave = true;
		else if (request.what == ASK_HOLD)
			reply(w, &(struct reply){wp_ptrace_loop_all(w->tracer)});
		else if (request.what == ASK_CORE)
			write_core(w, &request, fd);
		else if (request.what == ASK_PAUSE)
			leave_stopped(w);
	}
}

/* The trap of a debug register.  It is taken at once: if we were killed, the
   thread would get it, and die. */
static void
take_hit(struct watch *w, pid_t tid)
{
	const struct hit_order *o = &w->order;
	unsigned hit;

	wp_trace_take(tid);
	hit = wp_trace_registers_hit(tid);
	for (unsigned n = 0; n < o->nslots && !w->leave; n++) {
		bool last = true;

		for (unsigned k = n + 1; k < o->nslots; k++)
			last = last && !((hit >> k & 1) != 0 &&
			    o->of[k] == o->of[n]);
		if ((hit >> n & 1) != 0)
			tell(w, tid, n, last);
	}
	if (o->job.stands && !w->leave)
		stand(w);
}

/* Until all are armed there is no reader, and waiting for a full socket would
   never end. */
static int
get_signal(void *arg, struct wp_thread *thread, siginfo_t *info)
{
	struct watch *w = arg;

	if (info->si_signo != SIGTRAP || info->si_code != TRAP_HWBKPT)
		return info->si_signo;
	if (!w->began && !w->leave)
		return WP_TRACER_LATER;
	take_hit(w, thread->tid);
	return 0;
}

static void
executed(void *arg)
{
	const struct watch *w = arg;

	(void)say(w, GUARDIAN_EXECUTED);
}

static const struct wp_ptrace_loop_calls calls = {
	arm, get_signal, end, executed,
};

static void
doze(struct watch *w, int ms)
{
	if (wp_ptrace_loop_await(&w->signals, ms) == LEAVE ||
	    getppid() != w->parent)
		w->leave = true;
}

/* No signal that is meant for us, or for the terminal's processes, ends it, and
   killing us by name, or for want of memory, spares it. */
static void
settle_in(struct watch *w, const char *name)
{
	int fd;

	wp_ptrace_loop_process(&w->signals, name, LEAVE);
	(void)setsid();
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "-1000", 5);
		(void)close(fd);
	}
}

/* Nothing of ours is kept alive there. */
static void
close_all(void)
{
	(void)close_range(0, UINT32_MAX, 0);
	for (int i = 0; i < 3; i++)
		(void)open("/dev/null", O_RDWR);
}

/* The same but for what it needs, out of the way, the one above the other. */
static void
close_others(struct watch *w)
{
	w->fd = fcntl(w->fd, F_DUPFD, OURS);
	w->answer = fcntl(w->answer, F_DUPFD, w->fd + 1);
	(void)close_range(3, (unsigned)w->fd - 1, 0);
	if (w->answer > w->fd + 1)
		(void)close_range((unsigned)w->fd + 1,
		    (unsigned)w->answer - 1, 0);
	(void)close_range((unsigned)w->answer + 1, UINT32_MAX, 0);
	for (int i = 0; i < 3; i++) {
		(void)close(i);
		(void)open("/dev/null", O_RDWR);
	}
}

/* Every thread is armed, or is not and never was.  One that was may have ended
   since.  0 or -errno. */
static int
arm_all(struct watch *w)
{
	int more = 0, settled = 0;
	int err = wp_ptrace_loop_command(w->tracer, &w->hold);

	while (err == 0 && !w->leave &&
	    (more = wp_ptrace_loop_step(w->tracer)) >= 0 &&
	    (settled = wp_ptrace_loop_settled(w->tracer)) == 0)
		if (more == 0)
			doze(w, SETTLE_MS);
	if (err == 0)
		err = w->err < 0 ? w->err : more < 0 && w->all == 0 ? -ESRCH :
		    settled < 0 ? -ETIMEDOUT : 0;
	return err;
}

/* Until all are released: then this process may end. */
static void
clear_all(struct watch *w)
{
	w->leave = true;
	wp_ptrace_loop_update(w->tracer);
	while (wp_ptrace_loop_busy(w->tracer)) {
		const int more = wp_ptrace_loop_step(w->tracer);

		if (more < 0)
			return;
		if (more == 0)
			doze(w, SETTLE_MS);
	}
}

/* Say how something went.  Result: whether it is of use to go on. */
static bool
tell_how(struct watch *w, int err)
{
	const struct answer answer = {err, w->all};

	if (write(w->answer, &answer, sizeof(answer)) < 0)
		w->leave = true;
	return err == 0 && !w->leave;
}

/* Hold the command, if there is one, until it is known what to watch.  False:
   there is nothing to watch. */
static bool
take_order(struct watch *w)
{
	if (w->command != NULL &&
	    !tell_how(w, wp_command_hold(w->command, &w->hold)))
		return false;
	close_others(w);
	return recv(w->fd, &w->order, sizeof(w->order), 0) ==
	    (ssize_t)sizeof(w->order);
}

static void
watch_on(struct watch *w)
{
	const struct wp_region *region = w->order.region;
	int more = 0;

	for (size_t i = 0; i < w->order.job.n; i++)
		w->shared[i] = wp_proc_shares(w->pid, region[i].addr,
		    region[i].len);
	if (!tell_how(w, arm_all(w)))
		return;
	(void)close(w->answer);
	w->began = true;
	while (!w->leave && more >= 0 && wp_ptrace_loop_busy(w->tracer)) {
		more = wp_ptrace_loop_step(w->tracer);
		doze(w, more == 0 ? LOOK_MS : 0);
	}
}

static _Noreturn void
guard(struct watch *w)
{
	settle_in(w, "wp-guardian");
	w->leave = getppid() != w->parent;
	if (wp_ptrace_loop_new(&w->tracer, w->pid, TRAPS, &calls, w) < 0)
		_exit(GUARDIAN_NO_MEMORY);
	if (take_order(w))
		watch_on(w);
	wp_hold_release(&w->hold);
	clear_all(w);
	_exit(0);
}

/* The guardian was killed: clear what it has left, before a thread hits it. */
static _Noreturn void
rescue(struct watch *w)
{
	w->leave = true;
	if (wp_ptrace_loop_new(&w->tracer, w->pid, TRAPS, &calls, w) == 0 &&
	    wp_ptrace_loop_all(w->tracer) == 0)
		clear_all(w);
	_exit(GUARDIAN_KILLED);
}

/* The guardian's parent, which has nothing to do unless that is killed. */
static _Noreturn void
stand_by(struct watch *w)
{
	const pid_t parent = w->parent;
	pid_t pid;
	int status, sig = 0;

	settle_in(w, "wp-standby");
	w->parent = getpid();
	if ((pid = fork()) == 0)
		guard(w);
	/* where that is permitted: every moment counts then */
	(void)sched_setscheduler(0, SCHED_FIFO,
	    &(struct sched_param){.sched_priority = 1});
	close_all();
	if (pid < 0)
		_exit(GUARDIAN_NO_MEMORY);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (sig == LEAVE || getppid() != parent)
			(void)kill(pid, LEAVE);
		sig = wp_ptrace_loop_await(&w->signals, -1);
	}
	if (WIFSIGNALED(status))
		rescue(w);
	_exit(WEXITSTATUS(status));
}

/* --- ours --- */

/* Which register is which slot's. */
static void
make_order(struct hit_order *order, const struct debugreg_tracer_job *job)
{
	const struct wp_watched *watched = job->watched + job->first;

	*order = (struct hit_order){.job = *job};
	for (size_t i = 0; i < job->n && i < WP_DEBUG_REGISTERS; i++) {
		order->region[i] = watched[i].region;
		for (unsigned s = 0; s < watched[i].nslots &&
		    order->nslots < WP_DEBUG_REGISTERS; s++) {
			order->slot[order->nslots] = watched[i].slot[s];
			order->of[order->nslots] = i;
			order->piece[order->nslots++] = s;
		}
	}
}

static int
explain(pid_t pid, int err, unsigned nslots, struct wp_cause *cause)
{
	if (err == -ENOSPC)
		return wp_cause_set(cause, WP_CAUSE_NO_SLOT, pid, nslots,
		    (unsigned)WP_DEBUG_REGISTERS, "perf events or a debugger "
		    "hold the others");
	if (err == -ESRCH)
		return wp_cause_set(cause, WP_CAUSE_GONE, pid);
	return ptrace_refused(pid, -err, cause);
}

/* Make the two processes.  0 or -errno. */
static int
make(struct debugreg_tracer *guardian, struct watch *w)
{
	int fd[2], answer[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return -errno;
	if (pipe2(answer, O_CLOEXEC) != 0) {
		(void)close(fd[0]);
		(void)close(fd[1]);
		return -errno;
	}
	guardian->fd = fd[0];
	guardian->answer = answer[0];
	w->fd = fd[1];
	w->answer = answer[1];
	w->parent = getpid();
	if ((guardian->pid = fork()) == 0)
		stand_by(w);
	(void)close(fd[1]);
	(void)close(answer[1]);
	return guardian->pid < 0 ? -errno : 0;
}

int
debugreg_tracer_new(struct debugreg_tracer **out, pid_t pid, struct wp_command *command,
    struct wp_cause *cause)
{
	struct debugreg_tracer *guardian = calloc(1, sizeof(*guardian));
	struct watch w = {.pid = pid, .command = command};
	int err;

	if (guardian == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	*guardian = (struct debugreg_tracer){.fd = -1, .answer = -1, .whom = pid};
	if ((err = make(guardian, &w)) < 0) {
		debugreg_tracer_free(guardian);
		return wp_cause_errno(cause, "a tracing process", -err);
	}
	*out = guardian;
	return 0;
}

/* How something went.  One that does not answer was killed, and the threads
   that it held go on: the end of the socket reports that. */
static struct answer
hear_how(const struct debugreg_tracer *guardian)
{
	struct answer answer = {0};

	(void)!read(guardian->answer, &answer, sizeof(answer));
	return answer;
}

int
debugreg_tracer_await_command(struct debugreg_tracer *guardian)
{
	return hear_how(guardian).err;
}

int
debugreg_tracer_begin(struct debugreg_tracer *guardian, const struct debugreg_tracer_job *job,
    struct wp_cause *cause)
{
	struct answer answer;
	struct hit_order order;

	make_order(&order, job);
	(void)send(guardian->fd, &order, sizeof(order), MSG_NOSIGNAL);
	answer = hear_how(guardian);
	(void)close(guardian->answer);
	guardian->answer = -1;
	guardian->threads = answer.threads;
	return answer.err == 0 ? 0 :
	    explain(guardian->whom, answer.err, order.nslots, cause);
}

/* fd goes with it, if it is not < 0. */
static void
ask(struct debugreg_tracer *guardian, const struct request *request, int fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(fd))] = {0};
	struct iovec io = {(void *)(uintptr_t)request, sizeof(*request)};
	struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};
	struct cmsghdr *control;

	if (fd >= 0) {
		message.msg_control = room;
		message.msg_controllen = sizeof(room);
		control = CMSG_FIRSTHDR(&message);
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS;
		control->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(control), &fd, sizeof(fd));
	}
	/* if there is no reader any more, there is no reply either */
	(void)sendmsg(guardian->fd, &message, MSG_NOSIGNAL);
}

/* The reply to a request; while it takes long, it is asked whether to give
   up. */
static int
hear_reply(struct debugreg_tracer *guardian, const struct core_of *of,
    struct reply *reply)
{
	struct pollfd p = {guardian->fd, POLLIN, 0};
	bool given_up = false;

	while (poll(&p, 1, LOOK_MS) == 0)
		if (!given_up && of != NULL && of->give_up != NULL &&
		    of->give_up(of->arg)) {
			ask(guardian, &(struct request){ASK_GIVE_UP}, -1);
			given_up = true;
		}
	return recv(guardian->fd, reply, sizeof(*reply), 0) ==
	    (ssize_t)sizeof(*reply) ? reply->err : -ESRCH;
}

int
debugreg_tracer_hold(struct debugreg_tracer *guardian)
{
	struct reply reply;

	ask(guardian, &(struct request){ASK_HOLD}, -1);
	return hear_reply(guardian, NULL, &reply);
}

int
debugreg_tracer_core(struct debugreg_tracer *guardian, int fd, const struct core_of *of,
    struct core_size *size)
{
	const struct request request = {ASK_CORE, *of};
	struct reply reply = {0};
	int err;

	ask(guardian, &request, fd);
	err = hear_reply(guardian, of, &reply);
	*size = reply.size;
	return err;
}

void
debugreg_tracer_go(struct debugreg_tracer *guardian)
{
	ask(guardian, &(struct request){ASK_GO}, -1);
}

void
debugreg_tracer_pause(struct debugreg_tracer *guardian)
{
	ask(guardian, &(struct request){ASK_PAUSE}, -1);
}

void
debugreg_tracer_stop(struct debugreg_tracer *guardian)
{
	if (guardian->pid > 0)
		(void)kill(guardian->pid, LEAVE);
}

bool
debugreg_tracer_was_killed(struct debugreg_tracer *guardian)
{
	if (guardian->pid > 0) {
		(void)close(guardian->fd);	/* it waits for no room any
						   more */
		guardian->fd = -1;
		while (waitpid(guardian->pid, &guardian->status, 0) < 0 &&
		    errno == EINTR)
			;
		guardian->pid = 0;
	}
	return guardian->status != 0;
}

void
debugreg_tracer_free(struct debugreg_tracer *guardian)
{
	if (guardian == NULL)
		return;
	debugreg_tracer_stop(guardian);
	(void)debugreg_tracer_was_killed(guardian);
	if (guardian->answer >= 0)
		(void)close(guardian->answer);
	free(guardian);
}
