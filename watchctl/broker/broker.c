/*
 * broker: one explainer at a time, as a process.
 *
 * Overview: start the explainer; answer its questions; when it dies, report
 * that, and start another, which leaves out the module that this one was
 * reading.
 */
#include "broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker/progress_line.h"
#include "broker/shared_memory.h"
#include "os/array.h"
#include "os/cause.h"
#include "proc/proc.h"
#include "util/complain.h"
#include "util/executable.h"
#include "util/visible.h"

#ifndef LIBEXECDIR
#define LIBEXECDIR "/usr/local/libexec"
#endif
#define PROGRAM "watchctl-explain"

enum {
	DEATHS_MAX = 3,			/* in a row, without any result */
	STALLED_MAX = 10,		/* s without progress, */
	ANSWER_MAX = 60,		/* s for an answer, with progress */
	TASK_MAX = 10,			/* multiple of this for a task, */
	BYTES_PER_S = 100000,		/* and how much of a recording extends
					   it by a second */
	LOOK_MS = 500,			/* between checks of the progress */
	MEMORY = 1 << 30,		/* private bytes */
	SAID_MAX = 1 << 14,		/* lines of one explainer for stderr,
					   and of all that are remembered */
};

static bool
texts_add(struct broker_texts *texts, const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL || WP_ARRAY_ROOM(texts, at) < 0) {
		free(copy);
		return false;
	}
	texts->at[texts->n++] = copy;
	return true;
}

static bool
texts_have(const struct broker_texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->n; i++)
		if (strcmp(texts->at[i], text) == 0)
			return true;
	return false;
}

static void
texts_free(struct broker_texts *texts)
{
	while (texts->n > 0)
		free(texts->at[--texts->n]);
	free(texts->at);
}

/* --- starting one --- */

/* The explainer gets only the choice of libraries from the user's environment,
   and not even that if watchctl was started with somebody else's privileges. */
static void
choose_environment(char *environment[3])
{
	static const char *const passed[] = {"LD_PRELOAD=", "LD_LIBRARY_PATH="};
	size_t n = 0;

	for (char **e = environ; getauxval(AT_SECURE) == 0 && *e != NULL; e++)
		for (size_t i = 0; i < 2; i++)
			if (n < 2 && strncmp(*e, passed[i],
			    strlen(passed[i])) == 0)
				environment[n++] = *e;
	environment[n] = NULL;
}

/* The explainer's own arguments, then ours.  NULL: out of memory. */
static char **
make_arguments(char **ours, uint64_t limit, int id)
{
	static char memory[32], shared[16];
	size_t n = 0;
	char **argv;

	while (ours[n] != NULL)
		n++;
	if ((argv = calloc(n + 4, sizeof(*argv))) == NULL)
		return NULL;
	(void)snprintf(memory, sizeof(memory), "%llu",
	    (unsigned long long)(limit != 0 ? limit : MEMORY));
	argv[0] = (char *)(uintptr_t)PROGRAM;
	argv[1] = memory;
	(void)snprintf(shared, sizeof(shared), "%d", id);
	argv[2] = shared;
	memcpy(argv + 3, ours, n * sizeof(*argv));
	return argv;
}

static int
spawn(struct broker *broker, int socket, int shared, int id)
{
	posix_spawn_file_actions_t actions;
	static const char *const places[] = {
		PROGRAM, "../libexec/" PROGRAM,
	};
	char path[PATH_MAX], **argv, *environment[3];
	int err = ENOMEM;

	if (executable_companion(places, sizeof(places) / sizeof(places[0]),
	    LIBEXECDIR "/" PROGRAM, path) < 0)
		return complain(PROGRAM ", which reads executables and debug "
		    "information, is neither beside watchctl nor in "
		    LIBEXECDIR ": install it");
	if (broker->argv == NULL || (argv = make_arguments(broker->argv,
	    broker->memory, id)) == NULL)
		return complain("out of memory");
	choose_environment(environment);
	(void)posix_spawn_file_actions_init(&actions);
	if (posix_spawn_file_actions_adddup2(&actions, socket,
	    BROKER_SOCKET) != 0 ||
	    (shared >= 0 && posix_spawn_file_actions_adddup2(&actions, shared,
	    BROKER_SHARED) != 0) ||
	    (err = posix_spawn(&broker->pid, path, &actions, NULL, argv,
	    environment)) != 0)
		(void)complain_errno(err, "%s cannot be started", path);
	(void)posix_spawn_file_actions_destroy(&actions);
	free(argv);
	return err != 0 ? -EINVAL : 0;
}

/* Move a descriptor away from the numbers under which the explainer expects its
   own. */
static int
move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 2 * BROKER_SHARED);

	(void)close(fd);
	return moved;
}

/* A message for which the socket has no room yet. */
struct broker_unsent {
	struct broker_unsent *next;
	int fd;
	struct broker_message message;	/* allocated only up to the text's
					   end */
};

static void
forget_first(struct broker *broker)
{
	struct broker_unsent *first = broker->unsent;

	if ((broker->unsent = first->next) == NULL)
		broker->last_unsent = NULL;
	if (first->fd >= 0)
		(void)close(first->fd);
	free(first);
}

static bool
owes_answer(const struct broker *broker)
{
	const struct broker_unsent *u = broker->unsent;

	while (u != NULL && u->message.what != BROKER_ANSWER)
		u = u->next;
	return u != NULL;
}

/* Keep a message until the socket has room.  Whoever asks waits for the answer,
   so at most one answer can be kept. */
static int
keep(struct broker *broker, const struct broker_message *message, int fd)
{
	const size_t size = broker_size(message);
	struct broker_unsent *new;

	if (message->what == BROKER_ANSWER && owes_answer(broker))
		return broker->broken = -EPROTO;
	new = malloc(offsetof(struct broker_unsent, message) + size);
	if (new == NULL || (fd >= 0 && (fd = fcntl(fd, F_DUPFD_CLOEXEC,
	    0)) < 0)) {
		free(new);
		return broker->broken = -ENOMEM;
	}
	new->next = NULL;
	new->fd = fd;
	memcpy(&new->message, message, size);
	if (broker->unsent == NULL)
		broker->unsent = new;
	else
		broker->last_unsent->next = new;
	broker->last_unsent = new;
	return 0;
}

static void
send_unsent(struct broker *broker)
{
	while (broker->unsent != NULL && broker_send(broker->socket,
	    &broker->unsent->message, broker->unsent->fd) != -EAGAIN)
		forget_first(broker);
}

/* A question's answer is sent even if the socket has no room for it now. */
static void
send_later(struct answers *answers, const struct broker_message *message,
    int fd)
{
	(void)keep((struct broker *)((char *)answers - offsetof(struct broker,
	    answers)), message, fd);
}

/* The explainer is gone: release what belongs to it. */
static void
leave(struct broker *broker)
{
	answers_abandon(&broker->answers);
	shared_memory_free(&broker->memory_shared);
	while (broker->unsent != NULL)
		forget_first(broker);
	(void)close(broker->socket);
	(void)close(broker->pidfd);
	broker->shared = NULL;
	broker->pid = 0;
}

static void
say_aside(struct broker *broker)
{
	for (size_t i = 0; i < broker->aside.n; i++) {
		struct broker_message message = {.what = BROKER_ASIDE};

		(void)snprintf(message.text, sizeof(message.text), "%s",
		    broker->aside.at[i]);
		(void)broker_post(broker, &message, -1);
	}
	if (broker->plain)
		(void)broker_post(broker, &(struct broker_message){.what =
		    BROKER_ASIDE}, -1);
}

static int
refuse(const char *what)
{
	struct wp_cause cause = {0};

	(void)wp_cause_errno(&cause, what, errno);
	return complain("%s", cause.text);
}

/* Start an explainer with a socket and shared memory. */
static int
start(struct broker *broker, int socket)
{
	struct shared_memory *memory = &broker->memory_shared;
	int shared = -1, err;

	if ((err = shared_memory_make(memory, "watchctl-report",
	    sizeof(*broker->shared))) < 0) {
		errno = -err;
		return refuse("memory to share");
	}
	broker->answers.shared = broker->shared = memory->at;
	if (memory->fd >= 0 && (memory->fd = shared = move_up(memory->fd)) < 0)
		return refuse("the explainer's descriptors");
	return spawn(broker, socket, shared, memory->id);
}

int
broker_start(struct broker *broker)
{
	int pair[2], err;

	if (broker->pid != 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return refuse("socketpair");
	broker->socket = pair[0];
	broker->pidfd = -1;
	broker->answers.later = send_later;
	broker->repeated = 0;
	broker->lines = 0;
	broker->starts++;
	broker->stall = (struct broker_stall){.seconds = -1};
	broker->broken = 0;
	/* never wait for an explainer that does not read */
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	if ((pair[1] = move_up(pair[1])) < 0)
		err = refuse("the explainer's descriptors");
	else
		err = start(broker, pair[1]);
	if (pair[1] >= 0)
		(void)close(pair[1]);
	if (err == 0 && (broker->pidfd = (int)syscall(SYS_pidfd_open,
	    broker->pid, 0)) < 0) {
		err = refuse("the explainer's descriptors");
		(void)kill(broker->pid, SIGKILL);
		(void)waitpid(broker->pid, NULL, 0);
	}
	if (err < 0) {
		leave(broker);
		return err;
	}
	say_aside(broker);
	if (broker->brief != NULL)
		broker->brief(broker);
	return 0;
}

int
broker_post(struct broker *broker, const struct broker_message *message, int fd)
{
	int err = -EAGAIN;

	if (broker->unsent == NULL) {
		err = broker_send(broker->socket, message, fd);
		broker->stall.seconds = -1;
	}
	return err == -EAGAIN ? keep(broker, message, fd) : err;
}

/* --- while it runs --- */

/* False: it has printed far too many lines. */
static bool
take_line(struct broker *broker, const char *line)
{
	size_t i = broker->repeated;

	while (i < broker->said.n && strcmp(broker->said.at[i], line) != 0)
		i++;
	if (i < broker->said.n) {	/* an earlier explainer has printed
					   it */
		broker->repeated = i + 1;
		return true;
	}
	if (broker->lines++ >= SAID_MAX)
		return false;
	(void)complain("%s", line);
	if (broker->said.n < SAID_MAX)
		(void)texts_add(&broker->said, line);
	broker->repeated = broker->said.n;
	return true;
}

static double
seconds_of(clockid_t clock)
{
	struct timespec t = {0};

	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds for which the explainer has waited for a processor; < 0 if
   unknown. */
static double
delay_of(const struct broker *broker)
{
	unsigned long long ran, waited;
	char text[64];

	return wp_proc_text(broker->pid, "schedstat", text,
	    sizeof(text)) >= 0 && sscanf(text, "%llu %llu", &ran,
	    &waited) == 2 ? (double)waited / 1e9 : -1;
}

/* The explainer's processor time since this was last called. */
static double
pass_worked(struct broker *broker)
{
	const double before = broker->stall.spent;
	clockid_t clock;

	if (clock_getcpuclockid(broker->pid, &clock) == 0)
		broker->stall.spent = seconds_of(clock);
	return broker->stall.spent - before;
}

/* How long the explainer could have worked since the last check: its processor
   time, or the time for which we waited for it and owed it no answer, so that
   it had no reason to sleep.  Waiting for a processor or a disk does not
   count. */
static double
pass_time(struct broker *broker)
{
	struct broker_stall *stall = &broker->stall;
	const double worked = pass_worked(broker), waited = stall->waited,
	    delay = stall->delay;
	struct wp_proc_status status;
	double could;

	stall->delay = delay_of(broker);
	stall->waited = 0;
	if (wp_proc_status(broker->pid, &status) != 0 ||
	    (status.state != 'S' && (status.state != 'R' || worked == 0 ||
	    stall->delay < 0)))
		return worked;
	could = waited - (stall->delay - delay);
	return could > worked ? could : worked;
}

static double
patience_of(const struct broker *broker)
{
	return broker->patience > 0 ? broker->patience : ANSWER_MAX;
}

static double
task_limit(const struct broker *broker)
{
	return TASK_MAX * patience_of(broker) +
	    (double)broker->answers.size / BYTES_PER_S;
}

/* Returns 0; -ETIMEDOUT if it makes no progress; -ETIME if it does not answer,
   and -EDQUOT if it does not finish its task, in spite of progress. */
static int
look_at_time(struct broker *broker)
{
	struct broker_stall *stall = &broker->stall;
	const uint64_t progress = atomic_load(&broker->shared->progress);
	const double passed = pass_time(broker);

	if (stall->seconds < 0 || progress != stall->progress)
		stall->seconds = 0;
	else
		stall->seconds += passed;
	stall->progress = progress;
	stall->answer += passed;
	broker->task += passed;
	if (stall->seconds >= STALLED_MAX)
		return -ETIMEDOUT;
	if (broker->asking)
		return stall->answer >= patience_of(broker) ? -ETIME : 0;
	return broker->task >= task_limit(broker) ? -EDQUOT : 0;
}

/* Show what it is reading, if there was no progress since the last check. */
static void
show_reading(const struct broker *broker, uint64_t progress)
{
	char module[PATH_MAX];

	if (atomic_load(&broker->shared->idle) != 0 ||
	    atomic_load(&broker->shared->progress) != progress)
		return;
	memcpy(module, broker->shared->module, sizeof(module));
	module[sizeof(module) - 1] = '\0';
	if (*module != '\0')
		progress_line_show(module);
}

/* Call poll(2) for LOOK_MS at most.  Time for which we are stopped does not
   count. */
static int
wait_for(struct broker *broker, struct pollfd p[2], int ms)
{
	const double before = seconds_of(CLOCK_MONOTONIC);
	const int n = poll(p, 2, ms);
	const double took = seconds_of(CLOCK_MONOTONIC) - before;

	if (p[1].fd < 0)	/* no answer is owed */
		broker->stall.waited += took < LOOK_MS / 1e3 ? took :
		    LOOK_MS / 1e3;
	return n;
}

/* Wait a moment for a message.  Returns 1, 0, or an error of look_at_time. */
static int
listen_for(struct broker *broker, int ms)
{
	struct pollfd p[] = {
		{.fd = broker->socket, .events = POLLIN |
		    (broker->unsent != NULL ? POLLOUT : 0)},
		{.fd = answers_fd(&broker->answers), .events = POLLIN},
	};
	const uint64_t progress = atomic_load(&broker->shared->progress);

	if (broker->broken < 0)
		return broker->broken;
	if (wait_for(broker, p, ms < 0 || ms > LOOK_MS ? LOOK_MS : ms) < 0 ||
	    (p[0].revents & ~POLLOUT) != 0)
		return 1;
	if (p[0].revents != 0) {
		send_unsent(broker);
		return 0;
	}
	answers_go_on(&broker->answers, broker->socket);
	if (ms < 0 || ms > LOOK_MS)
		show_reading(broker, progress);
	return look_at_time(broker);
}

/* ms until this time. */
static int
ms_until(double time)
{
	const double left = (time - seconds_of(CLOCK_MONOTONIC)) * 1e3;

	return left > 0 ? (int)left + 1 : 0;
}

static int
hear(struct broker *broker, struct broker_message *message, int ms)
{
	const double until = seconds_of(CLOCK_MONOTONIC) + ms / 1e3;
	int err, left = ms;

	for (bool first = true;; first = false) {
		if (ms >= 0)
			left = ms_until(until);
		if (left == 0 && !first)
			return -EAGAIN;
		if ((broker->stall.waited > LOOK_MS / 1e3 &&
		    (err = look_at_time(broker)) < 0) ||
		    (err = listen_for(broker, left)) < 0)
			return err;
		if (err == 0)
			continue;
		progress_line_clear();
		err = broker_receive(broker->socket, message, NULL, 0);
		if (err == -EINTR || err == -EAGAIN)
			continue;
		if (err < 0)
			return err;
		if (message->what == BROKER_SAY) {
			if (!take_line(broker, message->text))
				return -EPROTO;
		} else if (!answers_give(&broker->answers, broker->socket,
		    message)) {
			return 0;
		}
	}
}

int
broker_hear_for(struct broker *broker, struct broker_message *message, int ms)
{
	const int err = hear(broker, message, ms);

	progress_line_clear();
	return err;
}

int
broker_hear(struct broker *broker, struct broker_message *message)
{
	return broker_hear_for(broker, message, -1);
}

/* --- its end --- */

/* Describe how it died, as part of a sentence. */
static void
describe_death(const struct broker *broker, int err, int status, char text[64])
{
	if (err == -ETIMEDOUT)
		(void)snprintf(text, 64, "made no progress for %d seconds",
		    STALLED_MAX);
	else if (err == -ETIME)
		(void)snprintf(text, 64, "gave no answer for %g seconds",
		    patience_of(broker));
	else if (err == -EDQUOT)
		(void)snprintf(text, 64, "was not done after %.0f seconds",
		    task_limit(broker));
	else if (status < 0)
		(void)snprintf(text, 64, "%s", "has ended");
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		(void)snprintf(text, 64, "met a file that was cut "
		    "short");
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		(void)snprintf(text, 64, "was ended by SIG%s",
		    sigabbrev_np(WTERMSIG(status)));
	else if (WIFEXITED(status) && WEXITSTATUS(status) == BROKER_NO_MEMORY)
		(void)snprintf(text, 64, "ran out of memory "
		    "(--explain-memory)");
	else if (WIFEXITED(status))
		(void)snprintf(text, 64, "exited with status %d",
		    WEXITSTATUS(status));
	else if (err != -ECONNRESET)
		(void)snprintf(text, 64, "did not do as it should: %s",
		    strerror(-err));
	else
		(void)snprintf(text, 64, "%s", "was killed");
}

/* Whether the explainer may have been killed from outside.  That says nothing
   about what it was reading, unless it happens there twice. */
static bool
is_spared(struct broker *broker, int err, int status, const char *module)
{
	const bool killed = err == -ECONNRESET && (status < 0 ||
	    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));

	return killed && !texts_have(&broker->spared, module) &&
	    texts_add(&broker->spared, module);
}

/* By pidfd: where threads are traced, a waiting tracer may have reaped it, and
   its pid may belong to another process. */
static void
end(const struct broker *broker)
{
	(void)syscall(SYS_pidfd_send_signal, broker->pidfd, SIGKILL, NULL, 0);
}

bool
broker_survive(struct broker *broker, int err, const char *lost)
{
	char module[PATH_MAX], why[64], text[2 * PATH_MAX];
	const char *also = ", as did two before it";
	int status;

	memcpy(module, broker->shared->module, sizeof(module));
	module[atomic_load(&broker->shared->idle) != 0 ? 0 :
	    sizeof(module) - 1] = '\0';
	broker->ran |= atomic_load(&broker->shared->progress) != 0;
	end(broker);
	status = broker_wait(broker);
	describe_death(broker, err, status, why);
	if (lost == NULL)
		return false;
	if (err == -EDQUOT) {	/* it is not known what took so long */
		broker->task = 0;
		broker->deaths = DEATHS_MAX;
		also = "";
	}
	if (++broker->deaths >= DEATHS_MAX &&
	    (broker->plain || !broker->may_be_plain)) {
		(void)complain("the process that explains %s%s: %s", why, also,
		    lost);
		broker->given_up = true;
		return false;
	}
	if (broker->deaths >= DEATHS_MAX) {
		broker->plain = true;
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s%s: all functions and lines are left out from here on",
		    why, also);
	} else if (*module != '\0' && (is_spared(broker, err, status, module) ||
	    (broker->sparing && err != -ETIMEDOUT && err != -ETIME))) {
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s while it read %s; another one tries that once more",
		    why, module);
	} else if (*module == '\0' || texts_have(&broker->aside, module) ||
	    !texts_add(&broker->aside, module)) {
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s; another one goes on", why);
	} else {
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s while it read %s, whose functions and lines are left "
		    "out from here on", why, module);
	}
	if (broker->warn != NULL)
		broker->warn(broker, text);
	else
		(void)complain("warning: %s", text);
	return true;
}

int
broker_wait(struct broker *broker)
{
	siginfo_t info = {0};

	while (waitid(P_PIDFD, (id_t)broker->pidfd, &info, WEXITED) < 0 &&
	    errno == EINTR)
		;
	leave(broker);
	if (info.si_pid == 0)
		return -ECHILD;
	return info.si_code == CLD_EXITED ? info.si_status << 8 :
	    info.si_status;
}

/* Messages before the answer may be about something else. */
static int
hear_answer(struct broker *broker, struct broker_message *message)
{
	int err;

	broker->task += pass_worked(broker);
	broker->stall.waited = broker->stall.answer = 0;
	broker->asking = true;
	while ((err = broker_hear(broker, message)) == 0 &&
	    message->what != BROKER_ANSWER)
		if (broker->other == NULL || !broker->other(broker, message)) {
			err = -EPROTO;
			break;
		}
	broker->asking = false;
	return err;
}

int
broker_ask(struct broker *broker, struct broker_message *message,
    const char *lost)
{
	const struct broker_message question = *message;
	int err;

	for (broker->sparing = true; !broker->given_up; broker->sparing =
	    false) {
		if (broker_start(broker) < 0) {
			broker->given_up = true;
			break;
		}
		if (broker->release != NULL)
			broker->release(broker);
		(void)broker_post(broker, &question, -1);
		if ((err = hear_answer(broker, message)) == 0) {
			broker->deaths = 0;
			broker->sparing = false;
			return message->err < 0 ? message->err : 0;
		}
		(void)broker_survive(broker, err, lost);
	}
	broker->sparing = false;
	return -ECHILD;
}

bool
broker_take_text(const struct broker *broker, uint64_t len, struct buffer *to)
{
	struct buffer text = {0};
	bool whole;

	if (len > sizeof(broker->shared->report))
		return false;
	/* copied first, as the explainer may change it at any time */
	buffer_put(&text, broker->shared->report, len);
	whole = !text.failed && len > 0 && text.bytes[len - 1] == '\n' &&
	    visible_is_harmless(text.bytes, len, false);
	if (whole)
		buffer_put(to, text.bytes, len);
	buffer_free(&text);
	return whole;
}

/* Let it store what it found out; it has answered all questions. */
static void
let_keep(struct broker *broker)
{
	const struct broker_message message = {.what = BROKER_LEAVE};
	struct broker_message last;

	if (!broker->answers.no_cache &&
	    atomic_load(&broker->shared->news) != 0 &&
	    broker_post(broker, &message, -1) == 0)
		(void)broker_hear(broker, &last);
}

void
broker_close(struct broker *broker)
{
	if (broker->pid != 0) {
		let_keep(broker);
		end(broker);
		(void)broker_wait(broker);
	}
	answers_free(&broker->answers);
	texts_free(&broker->aside);
	texts_free(&broker->spared);
	texts_free(&broker->said);
}
