/*
 * symbolize_log: adds names to the addresses in lines of hits.
 *
 *	watchpoint:   #3 frame 0 0x401139 /path/to/prog+0x1139
 *
 * becomes, for each level of inlining, innermost first,
 *
 *	watchpoint:   #3 frame 0 0x401139 bump victim.c:7 (inlined)
 *	watchpoint:   #3 frame 0 0x401139 level+0x10 victim.c:12
 *	    (/path/to/prog+0x1139)		(in the same line)
 *
 * from the module's file as it is now.  The log is not trusted.
 */
#include "broker/symbolize_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "util/complain.h"
#include "session/crash_account.h"
#include "util/visible.h"

enum {
	LINE = 16384,		/* longer lines are passed on in pieces */
};

struct log {
	FILE *in, *out;
	bool terminal;	/* out is a terminal, and must not be controlled */
	struct broker broker;		/* resolves frames */
	struct buffer buffer;	/* output not written yet */
	uint64_t hit;		/* number of the last hit */
	bool execution;		/* the last hit was of execution */
	int err;		/* of out: the first -errno */
};

/* The parts of a frame's line. */
struct frame_line {
	uint64_t hit, pc, offset;
	unsigned index;
	char path[LINE];
};

/* Read a line with its newline, or as much as fits.  Returns its length, or 0
   at the end. */
static size_t
read_line(FILE *in, char line[LINE])
{
	size_t len = 0;
	int c = 0;

	while (len < LINE - 1 && c != '\n' && (c = getc_unlocked(in)) != EOF)
		line[len++] = (char)c;
	line[len] = '\0';
	return len;
}

static bool
begins_with(const char *line, const char *text)
{
	return strncmp(line, text, strlen(text)) == 0;
}

/* Whether a line reports a hit.  A recording may contain one by chance. */
static bool
has_hits(FILE *in)
{
	char line[LINE];
	bool begun = false, found = false;
	size_t len = read_line(in, line);

	if (begins_with(line, "PERFILE2"))
		return false;
	for (; len > 0 && !found; len = read_line(in, line)) {
		found = !begun && begins_with(line, "watchpoint: #");
		begun = line[len - 1] != '\n';
	}
	return found;
}

/* A pipe is not opened for this, because what is read from it is gone. */
bool
symbolize_log_is_log(const char *path)
{
	struct stat st;
	bool is_log;
	FILE *in;

	if (stat(path, &st) < 0)
		return false;
	if (!S_ISREG(st.st_mode) || (in = fopen(path, "re")) == NULL)
		return S_ISFIFO(st.st_mode);
	is_log = has_hits(in);
	(void)fclose(in);
	return is_log;
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	    c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undo \xNN escapes. */
static void
unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; to++) {
		if (from[0] == '\\' && from[1] == 'x' &&
		    hex_digit(from[2]) >= 0 && hex_digit(from[3]) >= 0) {
			*to = (char)(hex_digit(from[2]) << 4 |
			    hex_digit(from[3]));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* Read the number at the start of a text; *end is set to what follows.  Returns
   false if there is none. */
static bool
take_number(const char *text, int base, uint64_t *value, const char **end)
{
	char *after;

	errno = 0;
	*value = strtoull(text, &after, base);
	*end = after;
	return after != text && errno == 0 && *text != '-' && *text != ' ' &&
	    *text != '+';
}

/* The rest of a text after this beginning, or NULL. */
static const char *
after(const char *text, const char *beginning)
{
	return text != NULL && begins_with(text, beginning) ?
	    text + strlen(beginning) : NULL;
}

/* Parse "watchpoint: #HIT frame INDEX PC MODULE+OFFSET". */
static bool
parse_frame(const char *line, struct frame_line *f)
{
	const char *at = after(line, "watchpoint:   #"), *plus = NULL, *end;
	uint64_t index;

	if (at == NULL || !take_number(at, 10, &f->hit, &at) ||
	    (at = after(at, " frame ")) == NULL ||
	    !take_number(at, 10, &index, &at) || index > UINT16_MAX ||
	    (at = after(at, " 0x")) == NULL ||
	    !take_number(at, 16, &f->pc, &at) ||
	    (at = after(at, " ")) == NULL || *at != '/')
		return false;
	f->index = (unsigned)index;
	for (const char *p = at; (p = strstr(p, "+0x")) != NULL; p++)
		plus = p;
	if (plus == NULL || (size_t)(plus - at) >= sizeof(f->path) ||
	    !take_number(plus + 3, 16, &f->offset, &end) || *end != '\0')
		return false;
	memcpy(f->path, at, (size_t)(plus - at));
	f->path[plus - at] = '\0';
	unescape(f->path);
	return true;
}

/* Parse "watchpoint: #HIT ACCESS ...". */
static void
note_hit(struct log *log, const char *line)
{
	const char *at = after(line, "watchpoint: #");
	uint64_t number;

	if (at == NULL || !take_number(at, 10, &number, &at))
		return;
	log->hit = number;
	log->execution = after(at, " execute ") != NULL;
}

/* Returns false if nothing is known of the frame. */
static bool
put_frame(struct log *log, const struct frame_line *f)
{
	/* other pcs are return addresses, or behind the instruction */
	const bool exact = f->index == 0 && f->hit == log->hit &&
	    log->execution;
	struct broker_message message = {
		.what = BROKER_FRAME,
		.value = {f->hit, f->index, f->pc, f->offset, exact},
	};

	return (size_t)snprintf(message.text, sizeof(message.text), "%s",
	    f->path) < sizeof(message.text) &&
	    broker_ask(&log->broker, &message,
	    "functions and lines are not added any more") == 0 &&
	    broker_take_text(&log->broker, message.value[0], &log->buffer);
}

/* Pass on a line, without control characters if out is a terminal. */
static void
put_other(struct log *log, char *text, size_t len)
{
	struct buffer *b = &log->buffer;

	if (!log->terminal) {
		buffer_put(b, text, len);
		return;
	}
	for (char *end = text + len; text < end; ) {
		char *stop = text, was;

		while (stop < end && strchr("\t\n", *stop) == NULL)
			stop++;		/* strchr also finds the NUL */
		was = *stop;
		*stop = '\0';
		visible_put(b, text);
		if (stop < end && was == '\0')
			buffer_puts(b, "\\x00");
		else if (stop < end)
			buffer_put(b, &was, 1);
		text = stop + 1;
	}
}

static void
write_out(struct log *log)
{
	int err = buffer_commit(&log->buffer, 0);

	if (err == 0)
		err = buffer_write(&log->buffer, log->out);
	if (log->err == 0)
		log->err = err;
}

/* Handle a whole line without its newline.  Returns whether it was replaced. */
static bool
put_ours(struct log *log, const char *line)
{
	struct frame_line f;

	note_hit(log, line);
	return parse_frame(line, &f) && put_frame(log, &f);
}

static void
read_log(struct log *log, bool live)
{
	char line[LINE];
	bool begun = false;	/* the next piece continues a line */
	bool first = true;
	size_t len;

	while (log->err == 0 && (len = read_line(log->in, line)) > 0) {
		bool ends = line[len - 1] == '\n';
		bool done = false;

		if (first && strncmp(line, "PERFILE2", 8) == 0)
			log->err = -ESPIPE;	/* not seekable */
		first = false;
		if (log->err != 0)
			break;
		if (ends && !begun && strlen(line) == len) {
			line[len - 1] = '\0';
			done = put_ours(log, line);
			line[len - 1] = '\n';
		}
		if (!done)
			put_other(log, line, len);
		begun = !ends;
		if (live || log->buffer.len > 4 * LINE)
			write_out(log);
	}
	write_out(log);
}

/* Open the log and the output.  Returns 0, or -errno after a message. */
static int
open_log(struct log *log, const struct options *o)
{
	struct stat in, out;

	if ((log->in = fopen(o->file, "re")) == NULL)
		return complain("%s: %s", o->file, strerror(errno));
	log->out = stdout;
	if (o->output == NULL)
		return 0;
	if (fstat(fileno(log->in), &in) == 0 && stat(o->output, &out) == 0 &&
	    in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return complain("-O %s: that is the log, which the report "
		    "would overwrite", o->output);
	if ((log->out = fopen(o->output, "we")) == NULL)
		return complain("-O '%s': cannot be written: %s; name "
		    "another file", o->output, strerror(errno));
	return 0;
}

static int
resolve_log(struct log *log, const struct options *o)
{
	struct broker_message rest = {.what = BROKER_FINISH};
	struct stat st;
	bool live;

	if (open_log(log, o) < 0)
		return STATUS_OWN_FAILURE;
	log->terminal = isatty(fileno(log->out)) == 1;
	live = fstat(fileno(log->in), &st) == 0 && !S_ISREG(st.st_mode);
	read_log(log, live);
	if (log->broker.pid != 0)
		(void)broker_ask(&log->broker, &rest,
		    "warnings may be missing");
	if (ferror(log->in))
		return complain("%s: cannot be read to its end", o->file),
		    STATUS_OWN_FAILURE;
	if (log->err == -ESPIPE)
		return complain("%s: a recording is read from a file, not "
		    "from a pipe: save it first", o->file), STATUS_OWN_FAILURE;
	if (log->err != 0 && log->err != -EPIPE)
		return complain("the report is incomplete: %s",
		    strerror(-log->err)), STATUS_OWN_FAILURE;
	return log->broker.given_up ? STATUS_OWN_FAILURE : 0;
}

int
symbolize_log(const struct options *o)
{
	char what[] = "log", *argv[] = {what, NULL};
	struct log log = {
		.broker = {
			.argv = argv, .memory = o->explain_memory,
			.answers.no_cache = o->no_cache,
		},
	};
	int status;

	if (o->form != FORM_TEXT || o->limit != 0 || options_judge(o) ||
	    o->side[SIDE_LEARN] != NULL) {
		(void)complain("%s: not a recording but a log, to whose lines "
		    "only names are added: -n, -o, --allow, "
		    "--error-exitcode and the like are for recordings",
		    o->file);
		return STATUS_OWN_FAILURE;
	}
	/* if the reader has gone, the write fails */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	crash_account_begin(NULL);
	status = resolve_log(&log, o);
	crash_account_end();
	broker_close(&log.broker);
	buffer_free(&log.buffer);
	if (log.in != NULL)
		(void)fclose(log.in);
	if (log.out != NULL && log.out != stdout)
		(void)fclose(log.out);
	return status;
}
