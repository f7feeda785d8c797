/*
 * box: running an explainer, and going on with another when it dies.
 *
 * Overview: start it; tell it how far the report is; then do what it asks for
 * until it ends.  If it dies, a new one leaves aside the module that was being
 * read, and goes on behind the last hit that was written.
 */
#include "box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box/answers.h"
#include "os/array.h"
#include "os/proc.h"
#include "report/output.h"
#include "report/report.h"
#include "util/buffer.h"
#include "util/complain.h"
#include "util/executable.h"

#ifndef LIBEXECDIR
#define LIBEXECDIR "/usr/local/libexec"
#endif
#define PROGRAM "watchctl-explain"

enum {
	DEATHS_MAX = 3,			/* with no hit written in between */
	STALLED_MAX = 10,		/* seconds without progress */
	PENDING_MAX = 64 << 20,		/* bytes of a report in one piece */
	MEMORY = 1 << 30,		/* private bytes */
};

/* How one came to its end. */
enum fate { FATE_ENDED, FATE_DIED, FATE_STALLED };

/* Texts, in the order of their coming. */
struct texts {
	char **at;
	size_t n, cap;
};

struct box {
	const struct options *options;
	char **argv;
	struct output output;
	struct answers answers;
	bool colour;
	bool raw;		/* the report is passed on as it is */
	/* of the report: */
	bool begun;		/* something is written of it, */
	uint64_t hits;		/* and these */
	struct buffer pending;	/* what is not written yet */
	struct texts aside;	/* modules that are not read any more */
	struct texts said;	/* on stderr */
	unsigned deaths;	/* since a hit was written */
	/* of the explainer that runs: */
	pid_t pid;
	int socket;
	struct box_shared *shared;	/* what it writes */
	size_t repeated;	/* of `said', by this one as well */
	bool ended;		/* it is done, */
	int status;		/* with this exit status */
};

static bool
texts_add(struct texts *texts, const char *text)
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
texts_have(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->n; i++)
		if (strcmp(texts->at[i], text) == 0)
			return true;
	return false;
}

static void
texts_free(struct texts *texts)
{
	while (texts->n > 0)
		free(texts->at[--texts->n]);
	free(texts->at);
}

/* --- starting one --- */

/* Memory that it can write, and neither side can take away. */
static int
make_shared(struct box *box)
{
	int fd = memfd_create("watchctl-report", MFD_CLOEXEC |
	    MFD_ALLOW_SEALING);
	void *shared;

	if (fd < 0)
		return -1;
	if (ftruncate(fd, sizeof(*box->shared)) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
	    == 0 && (shared = mmap(NULL, sizeof(*box->shared), PROT_READ,
	    MAP_SHARED, fd, 0)) != MAP_FAILED) {
		box->shared = shared;
		return fd;
	}
	(void)close(fd);
	return -1;
}

/* It is told nothing of the user's, but which libraries to use, and that not
   when it is started with somebody else's privileges. */
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
make_arguments(char **ours, uint64_t limit)
{
	static char memory[32];
	size_t n = 0;
	char **argv;

	while (ours[n] != NULL)
		n++;
	if ((argv = calloc(n + 3, sizeof(*argv))) == NULL)
		return NULL;
	(void)snprintf(memory, sizeof(memory), "%llu",
	    (unsigned long long)(limit != 0 ? limit : MEMORY));
	argv[0] = (char *)(uintptr_t)PROGRAM;
	argv[1] = memory;
	memcpy(argv + 2, ours, n * sizeof(*argv));
	return argv;
}

static int
spawn(struct box *box, int socket, int shared)
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
	if ((argv = make_arguments(box->argv,
	    box->options->explain_memory)) == NULL)
		return complain("out of memory");
	choose_environment(environment);
	(void)posix_spawn_file_actions_init(&actions);
	if (posix_spawn_file_actions_adddup2(&actions, socket,
	    BOX_SOCKET) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, shared,
	    BOX_SHARED) != 0 ||
	    (err = posix_spawn(&box->pid, path, &actions, NULL, argv,
	    environment)) != 0)
		(void)complain("%s cannot be started: %s", path,
		    strerror(err));
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

/* How far the report is, and what is not to be read. */
static void
give_orders(const struct box *box)
{
	struct box_message message = {
		.what = BOX_BEGIN, .err = box->begun,
		.value = {box->hits, box->colour},
	};

	/* if it is dead already, this shows soon */
	(void)box_send(box->socket, &message, -1);
	for (size_t i = 0; i < box->aside.n; i++) {
		message = (struct box_message){.what = BOX_ASIDE};
		(void)snprintf(message.text, sizeof(message.text), "%s",
		    box->aside.at[i]);
		(void)box_send(box->socket, &message, -1);
	}
	message = (struct box_message){.what = BOX_GO};
	(void)box_send(box->socket, &message, -1);
}

static int
start(struct box *box)
{
	int pair[2], shared, err = -EINVAL;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return complain("socketpair: %s", strerror(errno));
	pair[1] = move_up(pair[1]);
	if ((shared = make_shared(box)) < 0)
		(void)complain("memory to share: %s", strerror(errno));
	else if ((shared = move_up(shared)) >= 0 && pair[1] >= 0)
		err = spawn(box, pair[1], shared);
	(void)close(pair[1]);
	(void)close(shared);
	box->socket = pair[0];
	box->ended = false;
	box->repeated = 0;
	if (err == 0)
		give_orders(box);
	return err;
}

/* --- what it asks for --- */

enum { BLOCK = 64 };

/* Whether a terminal obeys it: all controls but line ends and tabs. */
static bool
is_control(unsigned char c)
{
	return ((c < ' ') & (c != '\n') & (c != '\t')) | (c == 0177);
}

/* Whether there is a control in a block: nearly none has one, and this loop,
   without a branch, takes many bytes at a time. */
static bool
has_control(const char block[BLOCK])
{
	unsigned char found = 0;

	for (size_t i = 0; i < BLOCK; i++)
		found |= is_control((unsigned char)block[i]);
	return found != 0;
}

/* Whether a terminal may be given it: of what controls one only line ends, tabs
   and colours, where these were asked for. */
static bool
is_harmless(const char *text, size_t len, bool colour)
{
	size_t looked = 0;	/* blocks have been looked at up to here */

	for (size_t i = 0; i < len; i++) {
		if (i >= looked && len - i >= BLOCK) {
			looked = i + BLOCK;
			if (!has_control(text + i)) {
				i = looked - 1;
				continue;
			}
		}
		if (text[i] == 033 && colour && i + 1 < len &&
		    text[i + 1] == '[') {
			i += 2;
			while (i < len && strchr("0123456789;", text[i]) !=
			    NULL && text[i] != '\0')
				i++;
			if (i == len || text[i] != 'm')
				return false;
		} else if (is_control((unsigned char)text[i])) {
			return false;
		}
	}
	return true;
}

/* Write what is pending: whole lines. */
static int
write_pending(struct box *box, uint64_t hits)
{
	struct buffer *pending = &box->pending;
	int err = 0;

	if (pending->failed)
		return -ENOMEM;
	if (!box->raw && (pending->len == 0 ||
	    pending->bytes[pending->len - 1] != '\n' ||
	    !is_harmless(pending->bytes, pending->len, box->colour)))
		return -EPROTO;
	if (!box->begun)
		err = output_begin(&box->output);
	box->begun = true;
	if (hits > box->hits)
		box->deaths = 0;
	box->hits = hits;
	return err < 0 ? err : buffer_write(pending, box->output.stream);
}

/* False: it lies. */
static bool
take_report(struct box *box, const struct box_message *message)
{
	const bool whole = message->err == 0;
	struct box_message answer = {.what = BOX_ANSWER};

	if (message->value[0] > sizeof(box->shared->report) ||
	    message->value[0] > PENDING_MAX - box->pending.len ||
	    message->value[1] < box->hits)
		return false;
	buffer_put(&box->pending, box->shared->report, message->value[0]);
	if (whole)
		answer.err = write_pending(box, message->value[1]);
	if (answer.err == -EPROTO)
		return false;
	(void)box_send(box->socket, &answer, -1);
	return true;
}

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

/* False: it makes no sense. */
static bool
take_message(struct box *box, const struct box_message *message)
{
	switch (message->what) {
	case BOX_SAY:
		take_line(box, message->text);
		return true;
	case BOX_REPORT:
		return take_report(box, message);
	case BOX_END:
		box->ended = message->value[0] <= 255;
		box->status = (int)message->value[0];
		return box->ended;
	default:
		return answers_give(&box->answers, box->socket, message);
	}
}

/* --- until it ends --- */

static double
seconds_of(clockid_t clock)
{
	struct timespec t = {0};

	(void)clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* For how long it could have made progress, and made none. */
struct stall {
	uint64_t progress;
	double time;		/* of the last look, s */
	double spent;		/* processor time then */
	double seconds;
};

/* One that waits for a processor is not blamed for that; one that sleeps is,
   since there is nothing for it to sleep for. */
static bool
is_stalled(const struct box *box, struct stall *stall)
{
	const uint64_t progress = atomic_load(&box->shared->progress);
	const double now = seconds_of(CLOCK_MONOTONIC);
	struct wp_proc_status status;
	clockid_t clock;
	double spent = stall->spent;

	if (clock_getcpuclockid(box->pid, &clock) == 0)
		spent = seconds_of(clock);
	if (progress != stall->progress)
		stall->seconds = 0;
	else if (wp_proc_status(box->pid, &status) == 0 && status.state == 'S')
		stall->seconds += now - stall->time;
	else
		stall->seconds += spent - stall->spent;
	stall->progress = progress;
	stall->time = now;
	stall->spent = spent;
	return stall->seconds >= STALLED_MAX;
}

static enum fate
attend(struct box *box)
{
	struct stall stall = {.time = seconds_of(CLOCK_MONOTONIC)};
	struct pollfd poll_set = {.fd = box->socket, .events = POLLIN};
	struct box_message message;
	int err;

	while (!box->ended) {
		if (poll(&poll_set, 1, 1000) == 0) {
			if (is_stalled(box, &stall))
				return FATE_STALLED;
			continue;
		}
		err = box_receive(box->socket, &message, NULL);
		if (err != -EINTR &&
		    (err < 0 || !take_message(box, &message)))
			return FATE_DIED;
	}
	return FATE_ENDED;
}

/* How it died, as a part of a sentence. */
static void
describe_death(enum fate fate, int status, char text[64])
{
	if (fate == FATE_STALLED)
		(void)snprintf(text, 64, "made no progress for %d seconds",
		    STALLED_MAX);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		(void)snprintf(text, 64, "met a file that was cut "
		    "short");
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		(void)snprintf(text, 64, "was ended by SIG%s",
		    sigabbrev_np(WTERMSIG(status)));
	else if (WIFEXITED(status) && WEXITSTATUS(status) == BOX_NO_MEMORY)
		(void)snprintf(text, 64, "ran out of memory "
		    "(--explain-memory)");
	else
		(void)snprintf(text, 64, "%s", "was killed");
}

/* Whether what it was reading is not there any more. */
static bool
is_cut_short(const struct box *box)
{
	struct stat st;

	return stat(box->options->file, &st) == 0 &&
	    st.st_size < box->answers.size;
}

/* Say how it died, and leave aside what it read.  False: no other is to be
   tried. */
static bool
survive(struct box *box, enum fate fate, int status)
{
	char module[PATH_MAX], why[64];

	memcpy(module, box->shared->module, sizeof(module));
	module[sizeof(module) - 1] = '\0';
	describe_death(fate, status, why);
	if (is_cut_short(box)) {
		(void)complain("%s was cut short while it was read: what comes "
		    "after hit #%llu is not reported", box->options->file,
		    (unsigned long long)box->hits);
		return false;
	}
	if (++box->deaths == DEATHS_MAX) {
		(void)complain("the process that explains %s, as did two "
		    "before it: what comes after hit #%llu is not reported",
		    why, (unsigned long long)box->hits);
		return false;
	}
	if (*module == '\0' || texts_have(&box->aside, module) ||
	    !texts_add(&box->aside, module))
		(void)complain("warning: the process that explains %s; "
		    "another one goes on", why);
	else
		(void)complain("warning: the process that explains %s while "
		    "it read %s, whose functions and lines are left out from "
		    "here on", why, module);
	return true;
}

/* One explainer.  Result: whether another is to go on. */
static bool
run(struct box *box)
{
	enum fate fate;
	int status = 0;
	bool more;

	if (start(box) < 0) {
		box->status = STATUS_OWN_FAILURE;
		return false;
	}
	fate = attend(box);
	if (fate != FATE_ENDED)
		(void)kill(box->pid, SIGKILL);
	while (waitpid(box->pid, &status, 0) < 0 && errno == EINTR)
		;
	more = fate != FATE_ENDED && survive(box, fate, status);
	if (fate != FATE_ENDED && !more)
		box->status = STATUS_OWN_FAILURE;
	(void)munmap(box->shared, sizeof(*box->shared));
	(void)close(box->socket);
	box->pending.len = 0;
	return more;
}

int
box_report(const struct options *options, char **argv)
{
	struct box box = {
		.options = options, .argv = argv, .answers.file = options->file,
	};

	/* a report whose reader has gone ends by its error */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (output_open(&box.output, options, stdout) < 0) {
		box.status = STATUS_OWN_FAILURE;
	} else {
		box.colour = options->form == FORM_TEXT &&
		    report_wants_colour(box.output.stream);
		while (run(&box))
			;
	}
	output_close(&box.output);
	answers_free(&box.answers);
	buffer_free(&box.pending);
	texts_free(&box.aside);
	texts_free(&box.said);
	return complain_failed() ? STATUS_OWN_FAILURE : box.status;
}
