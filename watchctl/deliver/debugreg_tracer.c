/*
 * debugreg_tracer: sets the debug registers of a process, and makes certain
 * that they are cleared.  See debugreg_tracer.h.
 */
#include "deliver/debugreg_tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deliver/debugreg_private.h"
#include "os/clock.h"
#include "ptrace/ptrace.h"
#include "watch/debugreg_time.h"
#include "watch/ptrace_refused.h"

int
debugreg_tracer_fd(const struct debugreg_tracer *tracer)
{
	return tracer->fd;
}

unsigned
debugreg_tracer_threads(const struct debugreg_tracer *tracer)
{
	return tracer->threads;
}

/* --- ours --- */

/* Assign slots to registers. */
static void
make_plan(struct register_plan *plan, const struct debugreg_tracer_job *job)
{
	const struct wp_watched *watched = job->watched + job->first;

	*plan = (struct register_plan){.job = *job};
	for (size_t i = 0; i < job->n && i < WP_DEBUG_REGISTERS; i++) {
		plan->region[i] = watched[i].region;
		for (unsigned s = 0; s < watched[i].nslots &&
		    plan->nslots < WP_DEBUG_REGISTERS; s++) {
			plan->slot[plan->nslots] = watched[i].slot[s];
			plan->of[plan->nslots] = i;
			plan->piece[plan->nslots++] = s;
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

/* Memory that the two processes share: pages that are not used cost nothing.
   Returns 0 or -errno. */
static int
make_family(struct tracer_state *t)
{
	void *family = mmap(NULL, sizeof(*t->family), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (family == MAP_FAILED)
		return -errno;
	t->family = family;
	return 0;
}

/* Create the two processes.  Returns 0 or -errno. */
static int
make(struct debugreg_tracer *tracer, struct tracer_state *t)
{
	int fd[2], answer[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return -errno;
	if (pipe2(answer, O_CLOEXEC) != 0) {
		(void)close(fd[0]);
		(void)close(fd[1]);
		return -errno;
	}
	tracer->fd = fd[0];
	tracer->answer = answer[0];
	t->fd = fd[1];
	t->answer = answer[1];
	t->parent = getpid();
	if ((tracer->pid = fork()) == 0)
		debugreg_standby(t);
	(void)close(fd[1]);
	(void)close(answer[1]);
	return tracer->pid < 0 ? -errno : 0;
}

int
debugreg_tracer_new(struct debugreg_tracer **out, pid_t pid,
    struct wp_command *command, bool follow, struct wp_cause *cause)
{
	struct debugreg_tracer *tracer = calloc(1, sizeof(*tracer));
	struct tracer_state t = {
		.pid = pid, .command = command, .follow = follow,
	};
	int err;

	if (tracer == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	*tracer = (struct debugreg_tracer){.fd = -1, .answer = -1,
	    .target = pid};
	if ((err = make_family(&t)) == 0)
		err = make(tracer, &t);
	if (t.family != NULL)
		(void)munmap(t.family, sizeof(*t.family));
	if (err < 0) {
		debugreg_tracer_free(tracer);
		return wp_cause_errno(cause, "a tracing process", -err);
	}
	*out = tracer;
	return 0;
}

/* Receive a result.  If the tracer was killed, the threads that it held
   continue, and the end of the socket shows it. */
static struct debugreg_answer
receive_answer(const struct debugreg_tracer *tracer)
{
	struct debugreg_answer answer = {0};

	(void)!read(tracer->answer, &answer, sizeof(answer));
	return answer;
}

int
debugreg_tracer_await_command(struct debugreg_tracer *tracer)
{
	return receive_answer(tracer).err;
}

int
debugreg_tracer_begin(struct debugreg_tracer *tracer,
    const struct debugreg_tracer_job *job, struct wp_cause *cause)
{
	struct debugreg_answer answer;
	struct register_plan plan;

	make_plan(&plan, job);
	(void)send(tracer->fd, &plan, sizeof(plan), MSG_NOSIGNAL);
	answer = receive_answer(tracer);
	(void)close(tracer->answer);
	tracer->answer = -1;
	tracer->threads = answer.threads;
	return answer.err == 0 ? 0 :
	    explain(tracer->target, answer.err, plan.nslots, cause);
}

/* Send a request, with fd unless it is negative. */
static void
ask(struct debugreg_tracer *tracer, const struct debugreg_request *request,
    int fd)
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
	/* if the reader has gone, there is no reply either */
	(void)sendmsg(tracer->fd, &message, MSG_NOSIGNAL);
}

/* Wait for the reply to a request.  of->give_up is called repeatedly, and says
   whether to give up. */
static int
receive_reply(struct debugreg_tracer *tracer, const struct core_of *of,
    struct debugreg_reply *reply)
{
	struct pollfd p = {tracer->fd, POLLIN, 0};
	bool given_up = false;

	while (poll(&p, 1, LOOK_MS) == 0)
		if (!given_up && of != NULL && of->give_up != NULL &&
		    of->give_up(of->arg)) {
			ask(tracer, &(struct debugreg_request){ASK_GIVE_UP},
			    -1);
			given_up = true;
		}
	return recv(tracer->fd, reply, sizeof(*reply), 0) ==
	    (ssize_t)sizeof(*reply) ? reply->err : -ESRCH;
}

int
debugreg_tracer_hold(struct debugreg_tracer *tracer)
{
	struct debugreg_reply reply;

	ask(tracer, &(struct debugreg_request){ASK_HOLD}, -1);
	return receive_reply(tracer, NULL, &reply);
}

int
debugreg_tracer_core(struct debugreg_tracer *tracer, int fd,
    const struct core_of *of, struct core_size *size)
{
	const struct debugreg_request request = {ASK_CORE, *of};
	struct debugreg_reply reply = {0};
	int err;

	ask(tracer, &request, fd);
	err = receive_reply(tracer, of, &reply);
	*size = reply.size;
	return err;
}

void
debugreg_tracer_go(struct debugreg_tracer *tracer)
{
	ask(tracer, &(struct debugreg_request){ASK_GO}, -1);
}

void
debugreg_tracer_pause(struct debugreg_tracer *tracer)
{
	ask(tracer, &(struct debugreg_request){ASK_PAUSE}, -1);
}

void
debugreg_tracer_stop(struct debugreg_tracer *tracer)
{
	if (tracer->pid > 0)
		(void)kill(tracer->pid, LEAVE);
}

bool
debugreg_tracer_was_killed(struct debugreg_tracer *tracer)
{
	if (tracer->pid > 0) {
		(void)close(tracer->fd);	/* so that it does not wait
						   for room */
		tracer->fd = -1;
		while (waitpid(tracer->pid, &tracer->status, 0) < 0 &&
		    errno == EINTR)
			;
		tracer->pid = 0;
	}
	return tracer->status != 0;
}

void
debugreg_tracer_free(struct debugreg_tracer *tracer)
{
	if (tracer == NULL)
		return;
	debugreg_tracer_stop(tracer);
	(void)debugreg_tracer_was_killed(tracer);
	if (tracer->answer >= 0)
		(void)close(tracer->answer);
	free(tracer);
}
