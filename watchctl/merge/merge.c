/*
 * merge: the files, one after the other.
 *
 * Memory does not grow with them, but for what merged.h bounds.  A recording is
 * explained in a sandbox as ever, and its summary is read.
 */
#include "merge/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/table.h"
#include "broker/broker_report.h"
#include "merge/merge_line.h"
#include "merge/merge_report.h"
#include "report/output.h"
#include "util/complain.h"

/* Longest line in bytes; most lines of a file that are reported
   individually. */
enum { LINE_MAX_BYTES = 4 << 20, SHOWN_MAX = 100 };

struct merge {
	const struct options *options;
	struct merge_place place;
	char *bytes;		/* LINE_MAX_BYTES of the current file */
	struct merge_count count;
	uint64_t left_out;	/* lines of this file */
	uint64_t number;	/* of the current line */
	const char *name;	/* of the current file */
};

static const char magic[] = "PERFILE2";

/* The descriptor that a name refers to, as with a shell's <(COMMAND); -1 for a
   file. */
static int
inherited(const char *name)
{
	int fd = -1, end = 0;

	if (strcmp(name, "/dev/stdin") == 0)
		return STDIN_FILENO;
	return sscanf(name, "/dev/fd/%d%n", &fd, &end) == 1 &&
	    name[end] == '\0' ? fd : -1;
}

/* Read the start of a file.  Nothing is taken from a pipe, and a named pipe is
   not opened, because its writer would lose its reader.  Returns the number of
   bytes. */
static size_t
peek(const char *file, char to[8])
{
	struct stat st;
	int fd = inherited(file), copy[2];
	ssize_t n;

	if (fd < 0 && (stat(file, &st) < 0 || !S_ISREG(st.st_mode)))
		return 0;
	fd = fd < 0 ? open(file, O_RDONLY | O_CLOEXEC) : dup(fd);
	n = pread(fd, to, sizeof(magic) - 1, 0);
	if (n < 0 && errno == ESPIPE && pipe2(copy, O_CLOEXEC) == 0) {
		if (tee(fd, copy[1], 1, 0) == 1)
			n = read(copy[0], to, 1);
		(void)close(copy[0]);
		(void)close(copy[1]);
	}
	if (fd >= 0)
		(void)close(fd);
	return n < 0 ? 0 : (size_t)n;
}

bool
merge_wanted(const struct options *o)
{
	char first[8];

	return o->nfiles != 1 ||
	    (peek(o->file, first) > 0 && *first == '{');
}

static void
leave_out(struct merge *m, const char *why)
{
	m->count.left_out++;
	if (m->left_out++ < SHOWN_MAX)
		(void)complain("%s:%llu: left out: %s", m->name,
		    (unsigned long long)m->number, why);
}

static void
take_line(struct merge *m, const char *line, size_t len)
{
	const char *why;

	m->number++;
	if (len == 0)
		return;
	why = merge_line(&m->place, (struct json_text){line, len});
	if (why != NULL)
		leave_out(m, why);
}

/* Take all complete lines of the first len bytes, and move the rest to the
   start.  Returns its length. */
static size_t
take_lines(struct merge *m, size_t len, bool *skipping)
{
	char *at = m->bytes, *end = at + len, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		if (*skipping)
			*skipping = false;
		else
			take_line(m, at, (size_t)(newline - at));
		at = newline + 1;
	}
	if (at == m->bytes && len == LINE_MAX_BYTES) {
		if (!*skipping) {
			m->number++;
			leave_out(m, "it is longer than 4 MiB");
		}
		*skipping = true;
		return 0;
	}
	memmove(m->bytes, at, (size_t)(end - at));
	return (size_t)(end - at);
}

static int
take_stream(struct merge *m, int fd)
{
	bool skipping = false;
	size_t len = 0;
	ssize_t n;

	m->number = m->left_out = 0;
	while ((n = read(fd, m->bytes + len, LINE_MAX_BYTES - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return complain("%s: cannot be read: %s", m->name,
			    strerror(errno));
		len = take_lines(m, len + (size_t)n, &skipping);
	}
	if (!skipping)
		take_line(m, m->bytes, len);
	if (m->left_out > SHOWN_MAX)
		(void)complain("%s: %llu more lines are left out", m->name,
		    (unsigned long long)(m->left_out - SHOWN_MAX));
	return 0;
}

/* Explain a recording; its summary is written to fd. */
static int
explain(struct merge *m, int fd)
{
	static char report[] = "report", form[] = "-o",
	    summary[] = "summary,json", end[] = "--";
	char path[64];
	char *argv[] = {
		report, form, summary, end, (char *)(uintptr_t)m->name, NULL,
	};
	struct options o = *m->options;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	o.form = FORM_SUMMARY_JSON;
	o.file = m->name;
	o.output = path;
	o.to_stdout = false;
	return broker_report(&o, argv) == 0 && lseek(fd, 0, SEEK_SET) == 0 ? 0 :
	    -EINVAL;
}

static int
take_recording(struct merge *m)
{
	const int fd = memfd_create("summary", MFD_CLOEXEC);
	int err = fd < 0 ? complain("out of memory") : explain(m, fd);

	if (err == 0)
		err = take_stream(m, fd);
	if (fd >= 0)
		(void)close(fd);
	return err;
}

static int
take_file(struct merge *m, const char *name)
{
	char first[8];
	struct stat st;
	int fd, err;

	m->name = name;
	m->place.run = NULL;
	if (peek(name, first) == sizeof(first) &&
	    memcmp(first, magic, sizeof(first)) == 0)
		return take_recording(m);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return complain("%s: %s", name, strerror(errno));
	m->place.file = ex_hash(ex_hash(0, st.st_dev), st.st_ino);
	err = take_stream(m, fd);
	(void)close(fd);
	return err;
}

/* Options that apply only to hits explained here. */
static int
check_options(const struct options *o)
{
	const char *other = options_thin(o) || o->each != 0 || o->limit != 0 ?
	    "an option that chooses hits" : o->changed ? "--changed" :
	    o->condition.root != NULL ? "--if" : o->until.root != NULL ?
	    "--until" : options_judge(o) ? options_judging(o) :
	    o->side[SIDE_LEARN] != NULL ? "--learn" :
	    o->verbose ? "-v" : NULL;

	if (other != NULL)
		return complain("several files, or JSON Lines, are merged as "
		    "they are, without %s: give it to the runs, or to report "
		    "for one recording", other);
	return options_text(o) || options_json(o) ? 0 : complain("several "
	    "files, or JSON Lines, are merged into text, summary, json or "
	    "summary,json: choose one of these");
}

/* Nothing is written if one of the files is missing. */
static int
check_files(const struct options *o)
{
	for (size_t i = 0; i < o->nfiles; i++) {
		struct stat st;

		if (stat(o->files[i], &st) < 0 || access(o->files[i], R_OK) < 0)
			return complain("%s: %s", o->files[i],
			    strerror(errno));
		if (S_ISDIR(st.st_mode))
			return complain("%s: is a directory: name the files in "
			    "it", o->files[i]);
	}
	return 0;
}

static void
put_count(struct buffer *b, uint64_t n, const char *noun, const char *after)
{
	buffer_printf(b, "%llu %s%s%s", (unsigned long long)n, noun,
	    n == 1 ? "" : "s", after);
}

static void
put_more(struct buffer *b, uint64_t n, const char *noun, const char *after)
{
	if (n == 0)
		return;
	buffer_puts(b, "; ");
	put_count(b, n, noun, after);
}

static void
say_account(const struct merge *m, const struct merged_account *all)
{
	const uint64_t repeated = m->place.repeated;
	const uint64_t hits = all->hits + all->lost;
	struct buffer b = {0};

	put_count(&b, m->options->nfiles, "file", ", ");
	put_count(&b, all->runs, "run", ": ");
	put_count(&b, hits, "hit", "");
	buffer_printf(&b, ", %llu reported, %llu lost",
	    (unsigned long long)all->hits, (unsigned long long)all->lost);
	put_more(&b, repeated, "line", " arrived twice");
	put_more(&b, m->count.left_out, "line", " left out");
	put_more(&b, all->missing, "hit", " reported and missing");
	put_more(&b, all->unended, "run", " without an end");
	(void)complain("%s", buffer_text(&b));
	buffer_free(&b);
}

/* Write the report after everything has been read. */
static int
report(struct merge *m, struct output *output)
{
	struct merged_account all;
	int err = output_begin(output);

	merged_account(m->place.merged, &all);
	m->count.repeated = m->place.repeated;
	if (err == 0)
		err = options_json(m->options) ?
		    merge_report_json(m->place.merged, &m->count,
		    output->stream) :
		    merge_report_text(m->place.merged, output->stream);
	say_account(m, &all);
	return err == 0 || err == -EPIPE ? 0 : complain("the report is "
	    "incomplete: %s: %s", output->path == NULL ? "output" :
	    output->path, strerror(-err));
}

static int
take_all(struct merge *m)
{
	int err = 0;

	m->bytes = malloc(LINE_MAX_BYTES);
	m->place.merged = merged_new();
	if (m->bytes == NULL || m->place.merged == NULL)
		return complain("out of memory");
	for (size_t i = 0; i < m->options->nfiles && err == 0; i++)
		err = take_file(m, m->options->files[i]);
	return err;
}

int
merge(const struct options *o)
{
	struct merge m = {.options = o};
	struct output output;
	int err;

	/* if the reader has gone, the write fails */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (check_options(o) < 0 || check_files(o) < 0)
		return STATUS_OWN_FAILURE;
	if ((err = output_open(&output, o, stdout)) == 0 &&
	    (err = take_all(&m)) == 0)
		err = report(&m, &output);
	output_close(&output);
	merged_free(m.place.merged);
	free(m.bytes);
	return err < 0 || complain_failed() ? STATUS_OWN_FAILURE : 0;
}
