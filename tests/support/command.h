/* command: programs that a test starts, and their output. */
#ifndef COMMAND_H
#define COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Long enough for a busy machine; only a failure waits so long. */
#define COMMAND_PATIENCE_MS 60000

/* A program that runs: a victim, or watchctl. */
struct running {
	pid_t pid;
	int in;			/* to its stdin; -1: closed */
	int out, err;		/* from its stdout and stderr; -1: not taken */
};

/* What became of one, until the test ends. */
struct outcome {
	int status;		/* exit status, or 128 + signal */
	char *out, *err;	/* what it said */
	char *report;		/* NULL, unless taken by outcome_take */
	json_t *lines;		/* out, parsed as one JSON value a line, in an
				   array; NULL: it is not that */
};

/* Arguments of a program, up to NULL; room for them; and adding the strings of
   a list.  Result: how many there are then. */
#define LIST(...) (const char *const []){__VA_ARGS__, NULL}
enum { ARGS = 64 };
size_t append(const char *argv[ARGS], size_t n, const char *const *more);

/* Start a program; stdin, stdout and stderr are pipes.  The test fails when it
   cannot. */
void start(struct running *, const char *const argv[]);

/* The same, of a process that prepares itself by a function first, which is
   handed what; it ends with this status where that is not possible. */
enum { UNPREPARED = 99 };
void start_prepared(struct running *, const char *const argv[],
    bool (*prepare)(int what), int what);

/* Write a text to its stdin. */
void say(struct running *, const char *text);

/* Read a line of its stdout ("" at the end), at most size - 1 characters; the
   test fails when it says nothing for too long. */
void hear(struct running *, char *line, size_t size);

/* Close its stdin, collect what it says, and wait for its end. */
void finish(struct running *, struct outcome *);

/* Kill it and wait. */
void end(struct running *);

/* Start and finish. */
void run(struct outcome *, const char *const argv[]);

/* The same, of what has to end with a status. */
#define finish_status(r, o, status)					\
	(finish(r, o), assert_true(status_is(o, status)))
#define run_status(o, status, ...)					\
	(run(o, __VA_ARGS__), assert_true(status_is(o, status)))
bool status_is(const struct outcome *, int status);

/* What it wrote to a file: that is the report then, and its lines the lines. */
void outcome_take(struct outcome *, const char *path);

/* What it reported: to a file, or to stdout. */
const char *report_of(const struct outcome *);

/* Texts that are one JSON value a line, as an array, until the test ends; NULL:
   one is not. */
json_t *json_lines(const char *text);

/* The command under test, $WATCHCTL; and the path of a victim. */
const char *watchctl(void);
const char *victim(const char *name);

/* Skip the test where this program of cc -m32 was not made, or where the kernel
   has no 32-bit programs. */
void skip_unless_narrow_runs(const char *path);

/* The victim says "pid PID NAME ADDRESS": its address as text. */
void hear_address(struct running *, char address[32]);

/* Of the lines: the first and the last of a type (NULL: none), how many. */
json_t *first_of(const struct outcome *, const char *type);
size_t count_of(const struct outcome *, const char *type);

/* A member's value, the test failing when it is missing or another type. */
const char *text_of(const json_t *, const char *key);
json_int_t number_of(const json_t *, const char *key);

/* Wait until a line of the running program's stderr or stdout holds a text; the
   test fails when it never does. */
void await(int fd, const char *text);

#endif
