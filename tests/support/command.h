/* command: runs programs for a test, and collects their output. */
#ifndef COMMAND_H
#define COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Long enough for a busy machine; only a failure waits so long. */
#define COMMAND_PATIENCE_MS 60000

/* A running program: a victim, or watchctl. */
struct running {
	pid_t pid;
	int in;			/* to its stdin; -1: closed */
	int out, err;		/* from its stdout and stderr; -1: not
				   collected */
};

/* The outcome of a program, valid until the test ends. */
struct outcome {
	int status;		/* exit status, or 128 + signal */
	char *out, *err;	/* what it printed */
	char *report;		/* NULL, unless set by outcome_take */
	json_t *lines;		/* out, parsed as one JSON value a line, in an
				   array; NULL: it is not that */
};

/* A NULL-terminated list of arguments; room for one; and a function that
   appends the strings of a list.  Result: the new length. */
#define LIST(...) (const char *const []){__VA_ARGS__, NULL}
enum { ARGS = 64 };
size_t append(const char *argv[ARGS], size_t n, const char *const *more);

/* Start a program; stdin, stdout and stderr are pipes.  The test fails if it
   cannot. */
void start(struct running *, const char *const argv[]);

/* The same for a process that first calls a function, with `what', to prepare
   itself; it ends with this status if that fails. */
enum { UNPREPARED = 99 };
void start_prepared(struct running *, const char *const argv[],
    bool (*prepare)(int what), int what);

/* Write a text to its stdin. */
void say(struct running *, const char *text);

/* Read a line of its stdout ("" at the end), at most size - 1 characters; the
   test fails if nothing comes for too long. */
void hear(struct running *, char *line, size_t size);

/* Close its stdin, collect its output, and wait for its end. */
void finish(struct running *, struct outcome *);

/* Kill it and wait. */
void end(struct running *);

/* Start and finish. */
void run(struct outcome *, const char *const argv[]);

/* The same for a program that has to end with this status. */
#define finish_status(r, o, status)					\
	(finish(r, o), assert_true(status_is(o, status)))
#define run_status(o, status, ...)					\
	(run(o, __VA_ARGS__), assert_true(status_is(o, status)))
bool status_is(const struct outcome *, int status);

/* Take the file that it wrote as its report, and parse its lines. */
void outcome_take(struct outcome *, const char *path);

/* Its report, from a file or stdout. */
const char *report_of(const struct outcome *);

/* Parse lines that are one JSON value each into an array, until the test ends;
   NULL: one is not. */
json_t *json_lines(const char *text);

/* The command under test, $WATCHCTL; and the path of a victim. */
const char *watchctl(void);
const char *victim(const char *name);

/* Skip the test where this program of cc -m32 was not built, or if the kernel
   does not run 32-bit programs. */
void skip_unless_narrow_runs(const char *path);

/* Read the victim's line "pid PID NAME ADDRESS": its address as text. */
void hear_address(struct running *, char address[32]);

/* The first and the last line of a type (NULL: none), and their number. */
json_t *first_of(const struct outcome *, const char *type);
size_t count_of(const struct outcome *, const char *type);

/* A member's value; the test fails if it is missing or has another type. */
const char *text_of(const json_t *, const char *key);
json_int_t number_of(const json_t *, const char *key);

/* Wait until a line of the running program's stderr or stdout contains a text;
   the test fails if none ever does. */
void await(int fd, const char *text);

#endif
