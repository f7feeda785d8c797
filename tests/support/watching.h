/*
 * watching: runs watchctl -o json on a victim that waits for a line, and checks
 * its report.
 */
#ifndef WATCHING_H
#define WATCHING_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "state.h"

/* A victim; its pid and the address that it printed, as texts. */
struct target {
	struct running run;
	char pid[16], addr[32];
};

static inline void
target_start(struct target *t, const char *const argv[])
{
	start(&t->run, argv);
	(void)snprintf(t->pid, sizeof(t->pid), "%d", t->run.pid);
	hear_address(&t->run, t->addr);
}

/* Read "done N".  Result: N. */
static inline json_int_t
target_done(struct running *r)
{
	long long n;
	char line[256];

	hear(r, line, sizeof(line));
	if (sscanf(line, "done %lld", &n) != 1)
		fail_msg("\"done N\" expected, not \"%s\"", line);
	return n;
}

/* Let the victim act.  Result: the number of its actions. */
static inline json_int_t
target_act(struct target *t)
{
	say(&t->run, "go\n");
	return target_done(&t->run);
}

static inline void
target_end(struct target *t, int status)
{
	struct outcome o;

	say(&t->run, "end\n");
	finish_status(&t->run, &o, status);
	assert_string_equal(o.err, "");
}

static inline uint64_t
now_us(void)
{
	return wp_clock_ns() / 1000;
}

/* Wait until a thread's state is one of these. */
static inline void
await_state(pid_t tid, const char *states)
{
	char state = 0;

	for (unsigned ms = 0; ms < COMMAND_PATIENCE_MS; ms++) {
		assert_int_not_equal(state = state_of(tid), 0);
		if (strchr(states, state) != NULL)
			return;
		(void)usleep(1000);
	}
	fail_msg("thread %d is %c, not one of %s", tid, state, states);
}

/* Start watchctl, with -o json to its stdout, and wait until it has printed
   this line, and so watches. */
static inline void
watch_hear(struct running *w, const char *const argv[], char line[4096])
{
	start(w, argv);
	hear(w, line, 4096);
	if (strstr(line, "\"type\":\"start\"") == NULL) {
		struct outcome o;

		finish(w, &o);
		fail_msg("watchctl did not begin: %s%s", line, o.err);
	}
}

static inline void
watch_start(struct running *w, const char *const argv[])
{
	char line[4096];

	watch_hear(w, argv, line);
}

/* Watch a victim; access is "-w", ...; more may be NULL. */
static inline void
watch_target(struct running *w, const struct target *t, const char *access,
    const char *spec, const char *more)
{
	watch_start(w, LIST(watchctl(), access, spec, "-o", "json", "-p",
	    t->pid, more));
}

/* The last line of the report; checks that hits are reported or lost. */
static inline const json_t *
account_of(const struct outcome *o)
{
	const json_t *end = first_of(o, "end");

	if (end == NULL)
		fail_msg("no account: %s", o->err);
	assert_int_equal(number_of(end, "hits"), number_of(end, "reported") +
	    number_of(end, "lost") +
	    json_integer_value(json_object_get(end, "handled")));
	assert_int_equal(number_of(end, "reported"), count_of(o, "hit"));
	return end;
}

static inline void
expect_hits(const struct outcome *o, json_int_t hits)
{
	assert_int_equal(number_of(account_of(o), "hits"), hits);
}

/* It is over: so many hits were reported, and none was lost. */
static inline void
end_all(struct running *w, struct target *t, struct outcome *o,
    json_int_t hits)
{
	target_end(t, 7);
	finish_status(w, o, 0);
	expect_hits(o, hits);
	assert_int_equal(number_of(account_of(o), "lost"), 0);
}

/* A frame of a hit, outermost first when i < 0. */
static inline const json_t *
frame_of(const json_t *hit, int i)
{
	const json_t *frames = json_object_get(hit, "frames");
	size_t n = json_array_size(frames);
	const json_t *frame = json_array_get(frames, i < 0 ?
	    n - (size_t)-i : (size_t)i);

	if (frame == NULL)
		fail_msg("no frame %d of %zu", i, n);
	return frame;
}

/* A member of an object, "" when it has none. */
static inline const char *
maybe_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text == NULL ? "" : text;
}

/* A member that is a hexadecimal number. */
static inline uint64_t
hex_of(const json_t *object, const char *key)
{
	return strtoull(text_of(object, key), NULL, 16);
}

static inline void
expect_function(const json_t *hit, int frame, const char *function)
{
	assert_string_equal(maybe_text(frame_of(hit, frame), "function"),
	    function);
}

/* Check that the backtrace is complete: from the watched access to the entry
   point of the program. */
static inline void
expect_complete(const json_t *hit)
{
	assert_null(json_object_get(hit, "truncated"));
	expect_function(hit, -1, "_start");
}

/* Check the counter's backtrace: bump, level1 ... level15, work, by file and
   line. */
static inline void
expect_chain(const json_t *hit)
{
	char name[16] = "bump";

	for (int i = 0; i < 16; i++) {
		const json_t *frame = frame_of(hit, i);

		assert_string_equal(text_of(frame, "function"), name);
		assert_holds(text_of(frame, "file"), "counter.c");
		assert_true(number_of(frame, "line") > 0);
		(void)snprintf(name, sizeof(name), "level%d", i + 1);
	}
	expect_function(hit, 16, "work");
	assert_null(json_object_get(hit, "truncated"));
}

/* Have gdb trace a victim, and let it continue. */
static inline void
trace_by_gdb(struct running *g, const struct target *t)
{
	start(g, LIST("/usr/bin/gdb", "-q", "-nx", "-batch", "-iex",
	    "set debuginfod enabled off", "-p", t->pid, "-ex",
	    "echo attached\\n", "-ex", "continue"));
	await(g->out, "attached\n");
	await_state(t->run.pid, "SR");
}

static inline bool
is_hit(const json_t *line)
{
	return strcmp(text_of(line, "type"), "hit") == 0;
}

/* For each hit of an outcome. */
#define each_hit(o, i, hit)						\
	json_array_foreach((o)->lines, i, hit)				\
		if (!is_hit(hit))					\
			continue;					\
		else

/* The i-th hit, from 0. */
static inline const json_t *
hit_at(const struct outcome *o, size_t i)
{
	size_t k, n = 0;
	json_t *line;

	json_array_foreach(o->lines, k, line)
		if (is_hit(line) && n++ == i)
			return line;
	fail_msg("no hit %zu: %s%s", i, report_of(o), o->err);
	return NULL;
}

#endif
