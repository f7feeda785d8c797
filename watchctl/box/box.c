/*
 * box: one explainer at a time, as a process.
 *
 * Overview: start it; answer what it asks for; when it dies, say so, and leave
 * aside the module that it was reading when another is started.
 */
#include "box/box.h"

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

#include "box/reading_line.h"
#include "box/shared_memory.h"
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
	DEATHS_MAX = 3,			/* with nothing achieved in between */
	STALLED_MAX = 10,		/* seconds without progress, */
	ANSWER_MAX = 60,		/* and for an answer with it */
	LOOK_MS = 500,			/* from look to look whether there is
					   any */
	MEMORY = 1 << 30,		/* private bytes */
};

static bool
texts_add(struct box_texts *texts, const char *text)
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
texts_have(const struct box_texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->n; i++)
		if (strcmp(texts->at[i], text) == 0)
			return true;
	return false;
}

static void
texts_free(struct box_texts *texts)
{
	while (texts->n > 0)
		free(texts->at[--texts->n]);
	free(texts->at);
}

/* --- starting one --- */

/* Of the user's environment it gets only which libraries to use, and not even
   that when it is started with somebody else's privileges. */
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

/* Ours, behind its own.  NULL: out of memory. */
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
spawn(struct box *box, int socket, int shared, int id)
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
	if (box->argv == NULL || (argv = make_arguments(box->argv,
	    box->memory, id)) == NULL)
		return complain("out of memory");
	choose_environment(environment);
	(void)posix_spawn_file_actions_init(&actions);
	if (posix_spawn_file_actions_adddup2(&actions, socket,
	    BOX_SOCKET) != 0 ||
	    (shared >= 0 && posix_spawn_file_actions_adddup2(&actions, shared,
	    BOX_SHARED) != 0) ||
	    (err = posix_spawn(&box->pid, path, &actions, NULL, argv,
	    environment)) != 0)
		(void)complain_errno(err, "%s cannot be started", path);
	(void)posix_spawn_file_actions_destroy(&actions);
	free(argv);
	return err != 0 ? -EINVAL : 0;
}

/* Out of the way of the numbers that the explainer knows them by. */
static int
move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 2 * BOX_SHARED);

	(void)close(fd);
	return moved;
}

/* A message that it has no room for yet. */
struct box_unsent {
	struct box_unsent *next;
	int fd;
	struct box_message message;	/* of its text what there is */
};

static void
forget_first(struct box *box)
{
	struct box_unsent *first = box->unsent;

	if ((box->unsent = first->next) == NULL)
		box->last_unsent = NULL;
	if (first->fd >= 0)
		(void)close(first->fd);
	free(first);
}

/* It is sent when there is room. */
static int
keep(struct box *box, const struct box_message *message, int fd)
{
	const size_t size = box_size(message);
	struct box_unsent *new = malloc(offsetof(struct box_unsent, message) +
	    size);

	if (new == NULL || (fd >= 0 && (fd = fcntl(fd, F_DUPFD_CLOEXEC,
	    0)) < 0)) {
		free(new);
		box->broken = true;
		return -ENOMEM;
	}
	new->next = NULL;
	new->fd = fd;
	memcpy(&new->message, message, size);
	if (box->unsent == NULL)
		box->unsent = new;
	else
		box->last_unsent->next = new;
	box->last_unsent = new;
	return 0;
}

static void
send_unsent(struct box *box)
{
	while (box->unsent != NULL && box_send(box->socket,
	    &box->unsent->message, box->unsent->fd) != -EAGAIN)
		forget_first(box);
}

/* An answer comes even if it has left no room for it. */
static void
send_later(struct answers *answers, const struct box_message *message, int fd)
{
	(void)keep((struct box *)((char *)answers - offsetof(struct box,
	    answers)), message, fd);
}

/* Nothing of it is left. */
static void
leave(struct box *box)
{
	answers_abandon(&box->answers);
	shared_memory_free(&box->memory_shared);
	while (box->unsent != NULL)
		forget_first(box);
	(void)close(box->socket);
	(void)close(box->pidfd);
	box->shared = NULL;
	box->pid = 0;
}

static void
say_aside(struct box *box)
{
	for (size_t i = 0; i < box->aside.n; i++) {
		struct box_message message = {.what = BOX_ASIDE};

		(void)snprintf(message.text, sizeof(message.text), "%s",
		    box->aside.at[i]);
		(void)box_tell(box, &message, -1);
	}
	if (box->plain)
		(void)box_tell(box, &(struct box_message){.what = BOX_ASIDE},
		    -1);
}

static int
refuse(const char *what)
{
	struct wp_cause cause = {0};

	(void)wp_cause_errno(&cause, what, errno);
	return complain("%s", cause.text);
}

/* One that can talk to us, with memory to share. */
static int
start(struct box *box, int socket)
{
	struct shared_memory *memory = &box->memory_shared;
	int shared = -1, err;

	if ((err = shared_memory_make(memory, "watchctl-report",
	    sizeof(*box->shared))) < 0) {
		errno = -err;
		return refuse("memory to share");
	}
	box->answers.shared = box->shared = memory->at;
	if (memory->fd >= 0 && (memory->fd = shared = move_up(memory->fd)) < 0)
		return refuse("the explainer's descriptors");
	return spawn(box, socket, shared, memory->id);
}

int
box_start(struct box *box)
{
	int pair[2], err;

	if (box->pid != 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return refuse("socketpair");
	box->socket = pair[0];
	box->pidfd = -1;
	box->answers.later = send_later;
	box->repeated = 0;
	box->starts++;
	box->stall = (struct box_stall){.seconds = -1};
	box->broken = false;
	/* one that does not listen is not waited for */
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	if ((pair[1] = move_up(pair[1])) < 0)
		err = refuse("the explainer's descriptors");
	else
		err = start(box, pair[1]);
	if (pair[1] >= 0)
		(void)close(pair[1]);
	if (err == 0 && (box->pidfd = (int)syscall(SYS_pidfd_open, box->pid,
	    0)) < 0) {
		err = refuse("the explainer's descriptors");
		(void)kill(box->pid, SIGKILL);
		(void)waitpid(box->pid, NULL, 0);
	}
	if (err < 0) {
		leave(box);
		return err;
	}
	say_aside(box);
	if (box->brief != NULL)
		box->brief(box);
	return 0;
}

int
box_tell(struct box *box, const struct box_message *message, int fd)
{
	int err = -EAGAIN;

	if (box->unsent == NULL) {
		err = box_send(box->socket, message, fd);
		box->stall.seconds = -1;
	}
	return err == -EAGAIN ? keep(box, message, fd) : err;
}

/* --- while it runs --- */

static void
take_line(struct box *box, const char *line)
{
	size_t i = box->repeated;

	while (i < box->said.n && strcmp(box->said.at[i], line) != 0)
		i++;
	if (i < box->said.n) {		/* one before it has said that */
		box->repeated = i + 1;
		return;
	}
	(void)complain("%s", line);
	(void)texts_add(&box->said, line);
	box->repeated = box->said.n;
}

static double
seconds_of(clockid_t clock)
{
	struct timespec t = {0};

	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* How long it could have worked since the last look.  One that waits for a
   processor is not blamed for that; one that sleeps is, since there is nothing
   for it to sleep for, but us (excused): it has sent something, or waits for an
   answer. */
static double
pass_time(struct box *box, bool excused)
{
	struct box_stall *stall = &box->stall;
	const double now = seconds_of(CLOCK_MONOTONIC), slept = now -
	    stall->time, before = stall->spent;
	struct wp_proc_status status;
	clockid_t clock;

	if (clock_getcpuclockid(box->pid, &clock) == 0)
		stall->spent = seconds_of(clock);
	stall->time = now;
	return !excused && wp_proc_status(box->pid, &status) == 0 &&
	    status.state == 'S' ? slept : stall->spent - before;
}

static double
patience_of(const struct box *box)
{
	return box->patience > 0 ? box->patience : ANSWER_MAX;
}

/* 0; -ETIMEDOUT: it makes no progress; -ETIME: it does, but does not answer. */
static int
look_at_time(struct box *box, bool excused)
{
	struct box_stall *stall = &box->stall;
	const uint64_t progress = atomic_load(&box->shared->progress);
	const bool first = stall->seconds < 0;
	const double passed = pass_time(box, excused);

	if (!first)
		stall->answer += passed;
	if (first || progress != stall->progress)
		stall->seconds = 0;
	else
		stall->seconds += passed;
	stall->progress = progress;
	if (stall->seconds >= STALLED_MAX)
		return -ETIMEDOUT;
	return box->asking && stall->answer >= patience_of(box) ? -ETIME : 0;
}

/* Say what it is reading, if there was no progress since the last look. */
static void
show_reading(const struct box *box, uint64_t progress)
{
	char module[PATH_MAX];

	if (atomic_load(&box->shared->idle) != 0 ||
	    atomic_load(&box->shared->progress) != progress)
		return;
	memcpy(module, box->shared->module, sizeof(module));
	module[sizeof(module) - 1] = '\0';
	if (*module != '\0')
		reading_line_show(module);
}

/* Wait a moment for something to come.  1; 0; or as of look_at_time. */
static int
listen_for(struct box *box, int ms)
{
	const int answering = answers_fd(&box->answers);
	struct pollfd p[] = {
		{.fd = box->socket, .events = POLLIN |
		    (box->unsent != NULL ? POLLOUT : 0)},
		{.fd = answering, .events = POLLIN},
	};
	const uint64_t progress = atomic_load(&box->shared->progress);

	if (box->broken)
		return -ENOMEM;
	if (poll(p, 2, ms < 0 || ms > LOOK_MS ? LOOK_MS : ms) < 0 ||
	    (p[0].revents & ~POLLOUT) != 0)
		return 1;
	if (p[0].revents != 0) {
		send_unsent(box);
		return 0;
	}
	answers_go_on(&box->answers, box->socket);
	if (ms < 0 || ms > LOOK_MS)
		show_reading(box, progress);
	return look_at_time(box, answering >= 0);
}

/* What is left of a time, ms. */
static int
ms_until(double time)
{
	const double left = (time - seconds_of(CLOCK_MONOTONIC)) * 1e3;

	return left > 0 ? (int)left + 1 : 0;
}

static int
hear(struct box *box, struct box_message *message, int ms)
{
	const double until = seconds_of(CLOCK_MONOTONIC) + ms / 1e3;
	int err, left = ms;

	for (bool first = true;; first = false) {
		if (ms >= 0)
			left = ms_until(until);
		if (left == 0 && !first)
			return -EAGAIN;
		if ((err = listen_for(box, left)) < 0)
			return err;
		if (err == 0)
			continue;
		reading_line_clear();
		err = box_receive(box->socket, message, NULL, 0);
		if (err == -EINTR || err == -EAGAIN)
			continue;
		if (err < 0)
			return err;
		if (message->what == BOX_SAY)
			take_line(box, message->text);
		else if (!answers_give(&box->answers, box->socket, message))
			return 0;
		if (seconds_of(CLOCK_MONOTONIC) - box->stall.time >
		    LOOK_MS / 1e3 && (err = look_at_time(box, true)) < 0)
			return err;
	}
}

int
box_hear_for(struct box *box, struct box_message *message, int ms)
{
	const int err = hear(box, message, ms);

	reading_line_clear();
	return err;
}

int
box_hear(struct box *box, struct box_message *message)
{
	return box_hear_for(box, message, -1);
}

/* --- its end --- */

/* How it died, as a part of a sentence. */
static void
describe_death(int err, int status, double patience, char text[64])
{
	if (err == -ETIMEDOUT)
		(void)snprintf(text, 64, "made no progress for %d seconds",
		    STALLED_MAX);
	else if (err == -ETIME)
		(void)snprintf(text, 64, "gave no answer for %g seconds",
		    patience);
	else if (status < 0)
		(void)snprintf(text, 64, "%s", "has ended");
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		(void)snprintf(text, 64, "met a file that was cut "
		    "short");
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		(void)snprintf(text, 64, "was ended by SIG%s",
		    sigabbrev_np(WTERMSIG(status)));
	else if (WIFEXITED(status) && WEXITSTATUS(status) == BOX_NO_MEMORY)
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

/* Not by its number: where threads are traced, whoever waits for them may have
   waited for it too, and its number be another's. */
static void
end(const struct box *box)
{
	(void)syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
}

bool
box_survive(struct box *box, int err, const char *lost)
{
	char module[PATH_MAX], why[64], text[2 * PATH_MAX];

	memcpy(module, box->shared->module, sizeof(module));
	module[atomic_load(&box->shared->idle) != 0 ? 0 : sizeof(module) - 1] =
	    '\0';
	box->ran |= atomic_load(&box->shared->progress) != 0;
	end(box);
	describe_death(err, box_wait(box), patience_of(box), why);
	if (lost == NULL)
		return false;
	if (++box->deaths >= DEATHS_MAX && (box->plain || !box->may_be_plain)) {
		(void)complain("the process that explains %s, as did two "
		    "before it: %s", why, lost);
		box->given_up = true;
		return false;
	}
	if (box->deaths >= DEATHS_MAX) {
		box->plain = true;
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s, as did two before it: all functions and lines are "
		    "left out from here on", why);
	} else if (*module != '\0' && box->sparing && err != -ETIMEDOUT &&
	    err != -ETIME) {
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s while it read %s; another one tries that once more",
		    why, module);
	} else if (*module == '\0' || texts_have(&box->aside, module) ||
	    !texts_add(&box->aside, module)) {
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s; another one goes on", why);
	} else {
		(void)snprintf(text, sizeof(text), "the process that explains "
		    "%s while it read %s, whose functions and lines are left "
		    "out from here on", why, module);
	}
	if (box->warn != NULL)
		box->warn(box, text);
	else
		(void)complain("warning: %s", text);
	return true;
}

int
box_wait(struct box *box)
{
	siginfo_t info = {0};

	while (waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED) < 0 &&
	    errno == EINTR)
		;
	leave(box);
	if (info.si_pid == 0)
		return -ECHILD;
	return info.si_code == CLD_EXITED ? info.si_status << 8 :
	    info.si_status;
}

/* What comes before it may be about something else. */
static int
hear_answer(struct box *box, struct box_message *message)
{
	int err;

	box->stall.answer = 0;
	box->asking = true;
	while ((err = box_hear(box, message)) == 0 &&
	    message->what != BOX_ANSWER)
		if (box->other == NULL || !box->other(box, message)) {
			err = -EPROTO;
			break;
		}
	box->asking = false;
	return err;
}

int
box_ask(struct box *box, struct box_message *message, const char *lost)
{
	const struct box_message question = *message;
	int err;

	for (box->sparing = true; !box->given_up; box->sparing = false) {
		if (box_start(box) < 0) {
			box->given_up = true;
			break;
		}
		if (box->release != NULL)
			box->release(box);
		(void)box_tell(box, &question, -1);
		if ((err = hear_answer(box, message)) == 0) {
			box->deaths = 0;
			box->sparing = false;
			return message->err < 0 ? message->err : 0;
		}
		(void)box_survive(box, err, lost);
	}
	box->sparing = false;
	return -ECHILD;
}

bool
box_take_text(const struct box *box, uint64_t len, struct buffer *to)
{
	struct buffer text = {0};
	bool whole;

	if (len > sizeof(box->shared->report))
		return false;
	/* it may change meanwhile */
	buffer_put(&text, box->shared->report, len);
	whole = !text.failed && len > 0 && text.bytes[len - 1] == '\n' &&
	    visible_is_harmless(text.bytes, len, false);
	if (whole)
		buffer_put(to, text.bytes, len);
	buffer_free(&text);
	return whole;
}

/* Let it keep what it found out.  It has answered all questions. */
static void
let_keep(struct box *box)
{
	const struct box_message message = {.what = BOX_LEAVE};
	struct box_message last;

	if (!box->answers.no_cache && atomic_load(&box->shared->news) != 0 &&
	    box_tell(box, &message, -1) == 0)
		(void)box_hear(box, &last);
}

void
box_close(struct box *box)
{
	if (box->pid != 0) {
		let_keep(box);
		end(box);
		(void)box_wait(box);
	}
	answers_free(&box->answers);
	texts_free(&box->aside);
	texts_free(&box->said);
}
