/*
 * heap_bugs: what the victim `heap` does to its heap, and that --heap finds it.
 */
#ifndef HEAP_BUGS_H
#define HEAP_BUGS_H

#include <signal.h>
#include <string.h>

#include "command.h"
#include "watching.h"

/* Run the victim, or another command, with the guard. */
static inline void
guard(struct outcome *o, const char *const more[], const char *const command[])
{
	const char *argv[ARGS] = {
		watchctl(), "--heap", "-o", "json", "-O", "-",
	};
	size_t n = append(argv, 6, more);

	argv[n++] = "--";
	n = append(argv, n, command);
	argv[n] = NULL;
	run(o, argv);
}

/* What the victim prints is between the lines of the report. */
static inline void
expect_report(struct outcome *o)
{
	char *line = strstr(o->out, "done\n");

	if (line != NULL)
		memmove(line, line + 5, strlen(line + 5) + 1);
	o->lines = json_lines(o->out);
	if (o->lines == NULL)
		fail_msg("no report: %s%s", o->out, o->err);
}

static inline bool
has_frame(const json_t *stack, const char *function)
{
	size_t i;
	json_t *frame;

	json_array_foreach(json_object_get(stack, "frames"), i, frame)
		if (strstr(maybe_text(frame, "function"), function) != NULL)
			return true;
	return false;
}

struct bug {
	const char *name, *kind;
	int status;
	int size;
	int offset;		/* -100: none */
	const char *bytes;	/* NULL: none */
	const char *noticed;
	const char *alloc;	/* a function of each backtrace; NULL: none */
	const char *freed, *by;
	const char *writer;	/* the line that did it; NULL: it is no write */
};

static const struct bug bugs[] = {
	{"one-past", "overflow", 3, 40, 43, "61", "free", "make_block", NULL,
	    "drop_block",
	    "[43] = 'a'"},
	{"strcpy", "overflow", 3, 40, 40, "00", "exit", "make_block", NULL,
	    NULL,
	    "strcpy(make_block()"},
	{"memcpy", "overflow", 3, 40, 40, "72207768", "exit", "make_block",
	    NULL, NULL,
	    "memcpy(make_block() + 1"},
	{"underflow", "underflow", 3, 40, -3, "75", "free", "make_block", NULL,
	    "drop_block",
	    "[-3] = 'u'"},
	{"after-free", "use-after-free", 3, 40, 7, "66", "exit", "make_block",
	    "drop_block", NULL,
	    "p[7] = 'f'"},
	{"after-realloc", "use-after-free", 3, 40, 9, "72", "exit",
	    "make_block", "after_realloc", NULL,
	    "p[9] = 'r'"},
	{"double-free", "double-free", 3, 40, -100, NULL, "free", "make_block",
	    "drop_block", "drop_block",
	    NULL},
	{"invalid-free", "invalid-free", 3, 40, 16, NULL, "free",
	    "make_block", NULL, "drop_block",
	    NULL},
	{"mismatch", "mismatch", 3, 40, -100, NULL, "free", "mismatch", NULL,
	    "mismatch",
	    NULL},
	{"child", "overflow", 3, 40, 40, "63", "exit", "make_block", NULL,
	    NULL,
	    "[40] = 'c'"},
	{"thread", "overflow", 3, 40, 41, "74", "exit", "make_block", NULL,
	    NULL,
	    "[41] = 't'"},
	{"abort", "overflow", 128 + SIGABRT, 40, 42, "61", "crash",
	    "make_block", NULL, NULL,
	    "[42] = 'a'"},
	{"crash", "overflow", 128 + SIGSEGV, 40, 42, "61", "crash",
	    "make_block", NULL, NULL,
	    "[42] = 'a'"},
	{"exec", "overflow", 3, 40, 42, "65", "exec", "make_block", NULL,
	    NULL,
	    "[42] = 'e'"},
	{"quick-exit", "overflow", 3, 40, 42, "71", "exit", "make_block", NULL,
	    NULL,
	    "[42] = 'q'"},
	{"two-exits", "overflow", 3, 40, 42, "32", "exit", "make_block", NULL,
	    NULL,
	    "[42] = '2'"},
	{"read", "overflow", 3, 40, 40, "72", "exit", "make_block", NULL,
	    NULL, "read(ends[0]"},
	{"queue", "overflow", 3, 40, 41, "6a", "free", "make_block", NULL,
	    "drop_block", "p[41] = 'j'"},
	{"new-array", "overflow", 3, 40, 40, "6e", "free", "new_array", NULL,
	    "new_array", "p[forty] = 'n'"},
};

static inline void
expect_stack(const struct bug *bug, const char *what, const json_t *stack,
    const char *function)
{
	if (function == NULL ? stack != NULL : !has_frame(stack, function))
		fail_msg("%s: %s is not by %s", bug->name, what, function);
}

static inline void
expect_finding(const struct bug *bug, const json_t *f)
{
	const json_t *offset = json_object_get(f, "offset");

	assert_string_equal(text_of(f, "kind"), bug->kind);
	assert_int_equal(number_of(f, "size"), bug->size);
	if (bug->offset == -100)
		assert_null(offset);
	else
		assert_int_equal(json_integer_value(offset), bug->offset);
	assert_string_equal(maybe_text(f, "bytes"), bug->bytes == NULL ? "" :
	    bug->bytes);
	assert_string_equal(text_of(f, "noticed"), bug->noticed);
	assert_holds(text_of(f, "program"), "victim/heap");
	expect_stack(bug, "alloc", json_object_get(f, "alloc"), bug->alloc);
	expect_stack(bug, "free", json_object_get(f, "free"), bug->freed);
	expect_stack(bug, "frames", json_object_get(f, "frames") == NULL ?
	    NULL : f, bug->by);
}

/* All that a run with this bug says of it, and its status.  Result: the
   finding. */
static inline const json_t *
expect_bug(const struct bug *bug, struct outcome *o)
{
	const json_t *finding;

	expect_report(o);
	if (o->status != bug->status || count_of(o, "finding") != 1)
		fail_msg("%s: status %d, %s%s", bug->name, o->status, o->out,
		    o->err);
	finding = first_of(o, "finding");
	expect_finding(bug, finding);
	assert_holds(o->err, " 1 finding in heaps");
	return finding;
}

/* Programs without damage. */
static const struct {
	const char *argv[8];
} clean[] = {
	{{"python3", "-c", "import json; print(json.dumps([1] * 1000))"}},
	{{"perl", "-e", "my %h; $h{$_} = [$_] for 1..5000; print keys %h"}},
	{{"bash", "-c", "for i in 1 2 3; do echo $i | sed s/1/2/ | cat; done"}},
	{{"git", "--version"}},
	{{"curl", "--version"}},
	{{"gio", "list", "/usr/share"}},
	{{"redis-server", "--version"}},
	{{"cc", "-x", "c", "-c", "-o", "/dev/null", "/dev/null"}},
};

/* They are found to be so, as far as they are installed. */
static inline void
expect_clean(const char *way)
{
	static const char if_there[] =
	    "command -v \"$0\" >/dev/null || exit 0; \"$0\" \"$@\"";

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++) {
		const char *const *of = clean[i].argv;
		struct outcome o;

		run(&o, LIST(watchctl(), way, "--error-exitcode", "66",
		    "--", "sh", "-c", if_there, of[0], of[1], of[2], of[3],
		    of[4], of[5], of[6]));
		if (o.status != 0)
			fail_msg("%s %s: %d %s", way, of[0], o.status, o.err);
	}
}

#endif
