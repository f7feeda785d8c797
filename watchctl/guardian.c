/* guardian: debug registers of a process, and who makes certain that they are
   cleared. */
#include "guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "ptrace.h"
#include "refused.h"
#include "stop.h"
#include "trace_sample.h"
#include "tracer.h"

enum {
	LEAVE = SIGTERM,	/* to the guardian: clear, and end */
	LOOK_MS = 50,		/* between looks whether we live, or gave up */
	SETTLE_MS = 5,		/* between looks while threads are armed */
	ROOM = 65536,		/* of a record */
	OURS = 100,		/* the guardian's descriptors, from here on */
};

struct guardian {
	pid_t pid;		/* the guardian; 0: it was waited for */
	int fd;			/* its socket */
	unsigned threads;
};

/* What we ask for while a thread stands. */
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
guardian_fd(const struct guardian *guardian)
{
	return guardian->fd;
}

unsigned
guardian_threads(const struct guardian *guardian)
{
	return guardian->threads;
}

/* --- the guardian's process --- */

struct watch {
	struct guardian_job job;
	struct wp_tracer *tracer;
	pid_t parent;
	int fd;			/* for records, and requests */
	int answer;		/* for how it began: some may hit before */
	bool began;
	const struct wp_watched *watched;	/* the job's */
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	size_t of[WP_DEBUG_REGISTERS];		/* which watch, from 0 */
	unsigned piece[WP_DEBUG_REGISTERS];	/* which of its slots */
	unsigned nslots;
	unsigned threads;	/* armed */
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
	const struct wp_region *region = &w->watched[i].region;

	return region->access != WP_EXEC && region->len <= WP_STOP_BYTES &&
	    wp_proc_read(w->job.pid, region->addr, to, region->len) ==
	    (ssize_t)region->len;
}

static bool
arm(void *arg, struct wp_traced *thread)
{
	static const struct wp_slot none[WP_DEBUG_REGISTERS];
	struct watch *w = arg;
	const bool fresh = thread->own == NULL;
	int err;

	if (w->leave) {
		(void)wp_trace_registers(thread->tid, none, 0);
		return false;
	}
	err = wp_trace_registers(thread->tid, w->slot,
	    (1u << w->nslots) - 1);
	if (err < 0) {
		(void)wp_trace_registers(thread->tid, none, 0);
		if (w->err == 0 && err != -ESRCH)
			w->err = err;
		return false;
	}
	w->threads += fresh;
	thread->own = w;
	return true;
}

static void
end(void *arg, struct wp_traced *thread)
{
	struct watch *w = arg;

	w->threads -= thread->own != NULL;
	thread->own = NULL;
}

/* What a watch holds while a thread stands behind its access.  With one thread
   nobody else can have written since; but the kernel may have before, unseen, so
   what the access found is not known.  With others who stand as well, behind
   accesses of theirs perhaps, nothing is. */
static bool
look(struct watch *w, pid_t tid, size_t i, struct wp_stop_value *value)
{
	const struct wp_region *region = &w->watched[i].region;

	*value = (struct wp_stop_value){
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = region->addr, .len = (uint32_t)region->len, .call = -1,
	};
	if (!read_value(w, i, value->new))
		return false;
	if (w->threads == 1 && !w->shared[i])
		value->flags = WP_STOP_LEFT;
	else if (wp_tracer_others(w->tracer, tid))
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
	const struct wp_trace_sampled what = {
		.id = wp_stops_id(w->job.first + w->of[n], w->piece[n]),
		.addr = w->slot[n].addr, .pid = w->job.pid, .tid = tid,
		.stack = w->job.stack,
		.value = last && look(w, tid, w->of[n], &value) ? &value : NULL,
	};

	if (wp_trace_sample(record, sizeof(record), &what) < 0)
		return;
	memcpy(&header, record, sizeof(header));
	/* waits until there is room, or nobody is there to read it */
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

/* All are let go from their next stop on, which is before they do anything if
   they stand, and find SIGSTOP there. */
static void
leave_stopped(struct watch *w)
{
	(void)kill(w->job.pid, SIGSTOP);
	w->leave = true;
	wp_tracer_update(w->tracer);
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

/* A thread stands, until we let it go on, or are no more. */
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
			reply(w, &(struct reply){wp_tracer_all(w->tracer)});
		else if (request.what == ASK_CORE)
			write_core(w, &request, fd);
		else if (request.what == ASK_PAUSE)
			leave_stopped(w);
	}
}

static int
get_signal(void *arg, struct wp_traced *thread, siginfo_t *info)
{
	struct watch *w = arg;
	unsigned hit;

	if (info->si_signo != SIGTRAP || info->si_code != TRAP_HWBKPT)
		return info->si_signo;
	if (w->job.stands && !w->began && !w->leave)
		return WP_TRACER_LATER;
	hit = wp_trace_registers_hit(thread->tid);
	for (unsigned n = 0; n < w->nslots && !w->leave; n++) {
		bool last = true;

		for (unsigned k = n + 1; k < w->nslots; k++)
			last = last && !((hit >> k & 1) != 0 &&
			    w->of[k] == w->of[n]);
		if ((hit >> n & 1) != 0)
			tell(w, thread->tid, n, last);
	}
	if (w->job.stands && !w->leave)
		stand(w);
	return 0;
}

static void
executed(void *arg)
{
	const struct watch *w = arg;

	(void)say(w, GUARDIAN_EXECUTED);
}

static const struct wp_tracer_calls calls = {
	arm, get_signal, end, executed,
};

static void
doze(struct watch *w, int ms)
{
	const struct timespec limit = {.tv_nsec = ms * 1000000L};
	int sig = sigtimedwait(&w->signals, NULL, &limit);

	if (sig == LEAVE || getppid() != w->parent)
		w->leave = true;
}

/* Nothing of ours is kept alive here, and no signal that is meant for us, or
   for the terminal's processes, ends it. */
static void
settle_in(struct watch *w)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&w->signals);
	(void)sigaddset(&w->signals, SIGCHLD);
	(void)sigaddset(&w->signals, LEAVE);
	(void)prctl(PR_SET_PDEATHSIG, LEAVE);
	(void)prctl(PR_SET_NAME, "watchctl-guard");
	(void)setsid();
	/* out of the way, the one above the other */
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

/* Every thread is armed, or is not and never was.  0 or -errno. */
static int
arm_all(struct watch *w)
{
	int more = 0, settled = 0, err = wp_tracer_all(w->tracer);

	while (err == 0 && !w->leave &&
	    (more = wp_tracer_step(w->tracer)) >= 0 &&
	    (settled = wp_tracer_settled(w->tracer)) == 0)
		if (more == 0)
			doze(w, SETTLE_MS);
	if (err == 0)
		err = w->err < 0 ? w->err : more < 0 ? -ESRCH :
		    settled < 0 ? -ETIMEDOUT : 0;
	return err;
}

/* Until everybody is let go: then this process may end. */
static void
clear_all(struct watch *w)
{
	w->leave = true;
	wp_tracer_update(w->tracer);
	while (wp_tracer_busy(w->tracer)) {
		const int more = wp_tracer_step(w->tracer);

		if (more < 0)
			return;
		if (more == 0)
			doze(w, SETTLE_MS);
	}
}

static _Noreturn void
guard(struct watch *w)
{
	int answer[2] = {0, 0}, more = 0;

	settle_in(w);
	w->leave = getppid() != w->parent;
	if (wp_tracer_new(&w->tracer, w->job.pid, SIGTRAP, &calls, w) < 0)
		_exit(1);
	for (size_t i = 0; i < w->job.n; i++)
		w->shared[i] = wp_proc_shares(w->job.pid,
		    w->watched[i].region.addr, w->watched[i].region.len);
	answer[0] = arm_all(w);
	answer[1] = (int)w->threads;
	if (answer[0] < 0)
		clear_all(w);
	if (write(w->answer, answer, sizeof(answer)) < 0)
		w->leave = true;
	(void)close(w->answer);
	w->began = true;
	while (answer[0] == 0 && !w->leave && more >= 0 &&
	    wp_tracer_busy(w->tracer)) {
		more = wp_tracer_step(w->tracer);
		doze(w, more == 0 ? LOOK_MS : 0);
	}
	if (more >= 0)
		clear_all(w);
	_exit(0);
}

/* --- ours --- */

/* Which register is which slot's. */
static void
number_slots(struct watch *w)
{
	for (size_t i = 0; i < w->job.n; i++)
		for (unsigned s = 0; s < w->watched[i].nslots &&
		    w->nslots < WP_DEBUG_REGISTERS; s++) {
			w->slot[w->nslots] = w->watched[i].slot[s];
			w->of[w->nslots] = i;
			w->piece[w->nslots++] = s;
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
	return refused(pid, -err, cause);
}

int
guardian_start(struct guardian **out, const struct guardian_job *job,
    struct wp_cause *cause)
{
	struct guardian *guardian = calloc(1, sizeof(*guardian));
	struct watch w = {
		.job = *job, .parent = getpid(),
		.watched = job->watched + job->first,
	};
	int fd[2], began[2], answer[2] = {-EPIPE, 0};

	if (guardian == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	number_slots(&w);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0 ||
	    pipe2(began, O_CLOEXEC) != 0 || (guardian->pid = fork()) < 0) {
		free(guardian);
		return wp_cause_errno(cause, "a tracing process", errno);
	}
	if (guardian->pid == 0) {
		w.fd = fd[1];
		w.answer = began[1];
		guard(&w);
	}
	(void)close(fd[1]);
	(void)close(began[1]);
	guardian->fd = fd[0];
	*out = guardian;
	(void)!read(began[0], answer, sizeof(answer));
	(void)close(began[0]);
	guardian->threads = (unsigned)answer[1];
	if (answer[0] == 0)
		return 0;
	guardian_free(guardian);
	*out = NULL;
	return explain(job->pid, answer[0], w.nslots, cause);
}

/* fd goes with it, if it is not < 0. */
static void
ask(struct guardian *guardian, const struct request *request, int fd)
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
	/* if nobody is there any more, there is no reply either */
	(void)sendmsg(guardian->fd, &message, MSG_NOSIGNAL);
}

/* The reply to a request; while it takes long, it is asked whether to give
   up. */
static int
hear_reply(struct guardian *guardian, const struct core_of *of,
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
guardian_hold(struct guardian *guardian)
{
	struct reply reply;

	ask(guardian, &(struct request){ASK_HOLD}, -1);
	return hear_reply(guardian, NULL, &reply);
}

int
guardian_core(struct guardian *guardian, int fd, const struct core_of *of,
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
guardian_go(struct guardian *guardian)
{
	ask(guardian, &(struct request){ASK_GO}, -1);
}

void
guardian_pause(struct guardian *guardian)
{
	ask(guardian, &(struct request){ASK_PAUSE}, -1);
}

void
guardian_stop(struct guardian *guardian)
{
	if (guardian->pid != 0)
		(void)kill(guardian->pid, LEAVE);
}

void
guardian_free(struct guardian *guardian)
{
	if (guardian == NULL)
		return;
	guardian_stop(guardian);
	(void)close(guardian->fd);	/* it waits for no room any more */
	while (waitpid(guardian->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(guardian);
}
