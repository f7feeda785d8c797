/* guardian: debug registers of a process, and who makes certain that they are
   cleared. */
#include "guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
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
	LOOK_MS = 50,		/* between looks whether we live */
	SETTLE_MS = 5,		/* between looks while threads are armed */
	ROOM = 65536,		/* of a record */
	OURS = 100,		/* the guardian's descriptors, from here on */
};

struct guardian {
	pid_t pid;		/* the guardian; 0: it was waited for */
	int fd;			/* its socket */
	unsigned threads;
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
	struct wp_tracer *tracer;
	pid_t pid, parent;
	int fd;			/* for records */
	int answer;		/* for how it began: some may hit before */
	const struct wp_watched *watched;	/* n of them */
	size_t first, n;
	uint32_t stack;
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	size_t of[WP_DEBUG_REGISTERS];		/* which watch, from 0 */
	unsigned piece[WP_DEBUG_REGISTERS];	/* which of its slots */
	unsigned nslots;
	unsigned threads;	/* armed */
	bool leave;		/* clear them */
	int err;		/* the first failure */
	struct wp_stop_value value[WP_DEBUG_REGISTERS];	/* old ones, by watch */
	bool known[WP_DEBUG_REGISTERS];
	sigset_t signals;
};

/* Read what a watch holds. */
static bool
read_value(const struct watch *w, size_t i, uint8_t to[WP_STOP_BYTES])
{
	const struct wp_region *region = &w->watched[i].region;

	return region->access != WP_EXEC && region->len <= WP_STOP_BYTES &&
	    wp_proc_read(w->pid, region->addr, to, region->len) ==
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
	for (size_t i = 0; i < w->n; i++)
		w->known[i] = w->threads == 1 &&
		    read_value(w, i, w->value[i].old);
	return true;
}

static void
end(void *arg, struct wp_traced *thread)
{
	struct watch *w = arg;

	w->threads -= thread->own != NULL;
	thread->own = NULL;
}

/* What a watch holds now, and held before.  With one thread nobody else can
   have written. */
static bool
look(struct watch *w, size_t i, struct wp_stop_value *value)
{
	const struct wp_region *region = &w->watched[i].region;

	*value = (struct wp_stop_value){
		.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
		.addr = region->addr, .len = (uint32_t)region->len, .call = -1,
	};
	if (!read_value(w, i, value->new)) {
		w->known[i] = false;
		return false;
	}
	if (w->known[i] && w->threads == 1) {
		value->flags = WP_STOP_EXACT;
		memcpy(value->old, w->value[i].old, region->len);
	}
	memcpy(w->value[i].old, value->new, region->len);
	w->known[i] = w->threads == 1;
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
		.id = wp_stops_id(w->first + w->of[n], w->piece[n]),
		.addr = w->slot[n].addr, .pid = w->pid, .tid = tid,
		.stack = w->stack,
		.value = last && look(w, w->of[n], &value) ? &value : NULL,
	};

	if (wp_trace_sample(record, sizeof(record), &what) < 0)
		return;
	memcpy(&header, record, sizeof(header));
	/* waits until there is room, or nobody is there to read it */
	if (send(w->fd, record, header.size, MSG_NOSIGNAL) < 0)
		w->leave = true;
}

static int
get_signal(void *arg, struct wp_traced *thread, siginfo_t *info)
{
	struct watch *w = arg;
	unsigned hit;

	if (info->si_signo != SIGTRAP || info->si_code != TRAP_HWBKPT)
		return info->si_signo;
	hit = wp_trace_registers_hit(thread->tid);
	for (unsigned n = 0; n < w->nslots && !w->leave; n++) {
		bool last = true;

		for (unsigned k = n + 1; k < w->nslots; k++)
			last = last && !((hit >> k & 1) != 0 &&
			    w->of[k] == w->of[n]);
		if ((hit >> n & 1) != 0)
			tell(w, thread->tid, n, last);
	}
	return 0;
}

static const struct wp_tracer_calls calls = {arm, get_signal, end};

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
	if (wp_tracer_new(&w->tracer, w->pid, SIGTRAP, &calls, w) < 0)
		_exit(1);
	answer[0] = arm_all(w);
	answer[1] = (int)w->threads;
	if (answer[0] < 0)
		clear_all(w);
	if (write(w->answer, answer, sizeof(answer)) < 0)
		w->leave = true;
	(void)close(w->answer);
	while (answer[0] == 0 && !w->leave && more >= 0 &&
	    wp_tracer_busy(w->tracer))
		if ((more = wp_tracer_step(w->tracer)) == 0)
			doze(w, LOOK_MS);
	if (more >= 0)
		clear_all(w);
	_exit(0);
}

/* --- ours --- */

/* Which register is which slot's. */
static void
number_slots(struct watch *w)
{
	for (size_t i = 0; i < w->n; i++)
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
guardian_start(struct guardian **out, pid_t pid,
    const struct wp_watched *watched, size_t first, size_t n, uint32_t stack,
    struct wp_cause *cause)
{
	struct guardian *guardian = calloc(1, sizeof(*guardian));
	struct watch w = {
		.pid = pid, .parent = getpid(), .watched = watched + first,
		.first = first, .n = n, .stack = stack,
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
	return explain(pid, answer[0], w.nslots, cause);
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
