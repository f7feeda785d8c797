/* ask: asks watchctl for what an explainer cannot do itself. */
#include "explainer/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module/module_private.h"
#include "proc/regular_file.h"

static struct broker_shared *shared;
static long processors;		/* as was seen before the sandbox */

void
ask_begin(struct broker_shared *memory)
{
	processors = sysconf(_SC_NPROCESSORS_ONLN);
	shared = memory;
}

void
ask_progress(void)
{
	atomic_fetch_add(&shared->progress, 1);
}

/* A message that came before the answer that was waited for. */
struct early_message {
	struct early_message *next;
	struct broker_message message;
	int fd;
};

static struct early_message *first, **last = &first;

/* Hits for which threads wait come in bursts, and being woken takes longer than
   all else that is done for one; but the threads have a processor, and so has
   who serves them. */
enum { AWAKE_NS = 50000 };

static uint64_t awake_ns;

void
ask_quickly(void)
{
	awake_ns = processors > 2 ? AWAKE_NS : 0;
}

static void
receive(struct broker_message *message, int *fd)
{
	int err;

	while ((err = broker_receive(BROKER_SOCKET, message, fd,
	    awake_ns)) == -EINTR)
		;
	if (err < 0)
		_exit(EXIT_FAILURE);
	ask_progress();
}

static void
keep(const struct broker_message *message, int fd)
{
	struct early_message *new = malloc(sizeof(*new));

	if (new == NULL)
		_exit(BROKER_NO_MEMORY);
	*new = (struct early_message){.message = *message, .fd = fd};
	*last = new;
	last = &new->next;
}

/* The answer to what was asked. */
static void
receive_answer(struct broker_message *message, int *fd)
{
	for (;;) {
		receive(message, fd);
		if (message->what == BROKER_ANSWER)
			return;
		keep(message, *fd);
	}
}

void
ask_receive(struct broker_message *message, int *fd)
{
	struct early_message *kept = first;

	if (kept == NULL) {
		receive(message, fd);
		return;
	}
	*message = kept->message;
	*fd = kept->fd;
	if ((first = kept->next) == NULL)
		last = &first;
	free(kept);
}

void
ask_send(const struct broker_message *message)
{
	atomic_store(&shared->news, ex_index_noted());
	if (broker_send(BROKER_SOCKET, message, -1) < 0)
		_exit(EXIT_FAILURE);
}

int
ask_put_text(const char *text, size_t len)
{
	if (len > sizeof(shared->report))
		return -E2BIG;
	if (len > 0)
		memcpy(shared->report, text, len);
	return 0;
}

int
ask_question(struct broker_message *message)
{
	int fd;

	ask_send(message);
	receive_answer(message, &fd);
	if (fd >= 0)
		(void)close(fd);
	return message->err < 0 ? message->err : 0;
}

int
ask_file(struct broker_message *message)
{
	int fd;

	ask_send(message);
	receive_answer(message, &fd);
	if (message->err >= 0)
		return fd >= 0 ? fd : -EMFILE;
	if (fd >= 0)
		(void)close(fd);
	return message->err;
}

void
ask_say(const char *line)
{
	struct broker_message message = {.what = BROKER_SAY};

	(void)snprintf(message.text, sizeof(message.text), "%s", line);
	ask_send(&message);
}

/* A report's bytes, a part at a time; at least one, if there are none.  0 or
   -errno, and the last answer. */
static int
put_report(const char *text, size_t len, uint64_t hits, uint64_t what,
    struct broker_message *message)
{
	size_t at = 0, n;
	int err;

	do {
		n = len - at < sizeof(shared->report) ? len - at :
		    sizeof(shared->report);
		*message = (struct broker_message){
			.what = BROKER_REPORT, .err = at + n < len,
			.value = {n, hits, what},
		};
		if (n > 0)
			memcpy(shared->report, text + at, n);
		err = ask_question(message);
		at += n;
	} while (err == 0 && at < len);
	return err;
}

int
ask_side(unsigned side, const char *text, size_t len)
{
	struct broker_message message;

	return put_report(text, len, 0, 1 + side, &message);
}

ssize_t
ask_report(const char *text, size_t len, uint64_t hits)
{
	struct broker_message message;
	const int err = len == 0 ? 0 : put_report(text, len, hits, 0, &message);

	errno = -err;
	return err == 0 ? (ssize_t)len : message.value[0] < len ?
	    (ssize_t)message.value[0] : 0;
}

void
ask_taken(uint64_t hits, bool enough, uint64_t time, int err)
{
	const struct broker_message message = {
		.what = BROKER_TAKEN, .err = err, .value = {hits, enough, time},
	};

	ask_send(&message);
}

void
ask_details(uint64_t begun, uint64_t addr, const char *environment,
    size_t len)
{
	struct broker_message message = {
		.what = BROKER_DETAILS, .value = {begun, addr, len},
	};

	if (ask_put_text(environment, len) == 0)
		(void)ask_question(&message);
}

static void
know(const struct wp_known_stack *stack)
{
	struct broker_message message = {
		.what = BROKER_KNOWN, .len = sizeof(*stack),
	};

	memcpy(message.text, stack, sizeof(*stack));
	ask_send(&message);
}

static void
forget(pid_t pid)
{
	const struct broker_message message = {
		.what = BROKER_FORGET, .value = {(uint64_t)pid},
	};

	ask_send(&message);
}

const struct ex_listener ask_listener = {know, forget, false};
const struct ex_listener ask_counting_listener = {know, forget, true};

_Noreturn void
ask_end(int status)
{
	const struct broker_message message = {
		.what = BROKER_END, .value = {(uint64_t)status},
	};

	ask_send(&message);
	_exit(EXIT_SUCCESS);
}

/* --- regular_file.h, and open(2) --- */

static int
ask_path(enum broker_what what, const char *path)
{
	struct broker_message question = {.what = what};
	const int n = snprintf(question.text, sizeof(question.text), "%s",
	    path);

	return n < 0 || (size_t)n >= sizeof(question.text) ? -ENAMETOOLONG :
	    ask_file(&question);
}

int
wp_open_regular(const char *path)
{
	return ask_path(BROKER_OPEN, path);
}

int
ask_source(const char *path)
{
	return ask_path(BROKER_SOURCE, path);
}

static int
ask_text(enum broker_what what, const char *text)
{
	struct broker_message question = {.what = what};

	(void)snprintf(question.text, sizeof(question.text), "%s", text);
	return what == BROKER_KEEP ? ask_question(&question) :
	    ask_file(&question);
}

int
ask_fetch(const char *build_id)
{
	return ask_text(BROKER_FETCH, build_id);
}

static int
open_index(const char *key)
{
	return ask_text(BROKER_INDEX, key);
}

static int
begin_index(const char *key)
{
	return ask_text(BROKER_KEEP, key);
}

static int
put_index(const void *bytes, size_t len)
{
	const char *at = bytes;
	int err = 0;

	for (size_t n; err == 0 && len > 0; at += n, len -= n) {
		struct broker_message question = {.what = BROKER_KEEP_BYTES};

		n = len < sizeof(shared->report) ? len :
		    sizeof(shared->report);
		question.value[0] = n;
		memcpy(shared->report, at, n);
		err = ask_question(&question);
	}
	return err;
}

static int
end_index(bool good)
{
	struct broker_message question = {.what = BROKER_KEEP_END, .err =
	    !good};

	return ask_question(&question);
}

const struct ex_index_store ask_index_store = {
	.open = open_index, .begin = begin_index, .put = put_index,
	.end = end_index,
};

/* It is. */
void
ex_libdw_interpose(void)
{
}

int
open(const char *path, int flags, ...)
{
	if ((flags & O_ACCMODE) == O_RDONLY)
		return ex_libdw_open(path);
	errno = EACCES;
	return -1;
}

int open64(const char *, int, ...) __attribute__((alias("open")));
