/*
 * report_text: for a reader at a terminal.  A backtrace is printed in full at
 * its first hit, and later hits refer to that one.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "by_stack.h"
#include "change.h"
#include "summary.h"
#include "visible.h"

enum {
	WRITE_AT = 64 << 10,	/* bytes held back at most */
	NAME_COLUMNS = 40,	/* names are padded to the longest, at most */
	THREADS_SHOWN = 3,	/* in a row of the summary */
};

#define INDENT	"     "

struct text {
	struct buffer out;	/* what is to be written */
	struct buffer scratch;	/* a cell, to be measured and padded */
	struct by_stack printed;	/* of uint64_t: seq of the hit that has
					   the backtrace; 0: none yet */
};

/* ANSI colours, by what they are for. */
enum paint { PLAIN, WATCH, FUNCTION, DIM, BAD };

static void
paint(struct report *r, struct buffer *b, enum paint what)
{
	static const char *const codes[] = {
		[PLAIN] = "\033[0m", [WATCH] = "\033[36m",
		[FUNCTION] = "\033[1m", [DIM] = "\033[2m",
		[BAD] = "\033[31m",
	};

	if (r->colour)
		buffer_puts(b, codes[what]);
}

static void
painted(struct report *r, struct buffer *b, enum paint what, const char *text)
{
	paint(r, b, what);
	visible_put(b, text);
	paint(r, b, PLAIN);
}

/* Write what is held back when it is much.  0 or -errno. */
static int
text_write(struct report *r, size_t start, bool always)
{
	struct text *text = r->own;
	int rc = buffer_commit(&text->out, start);

	if (rc != 0 || (!always && text->out.len < WRITE_AT))
		return rc;
	return buffer_write(&text->out, r->out);
}

static int
text_flush(struct report *r)
{
	return text_write(r, 0, true);
}

/* Make a column as wide as what the scratch buffer holds. */
static void
widen(const struct text *text, size_t *width)
{
	const struct buffer *s = &text->scratch;
	size_t columns = visible_columns(s->bytes, s->len);

	if (columns > *width)
		*width = columns;
}

/* The scratch buffer's contents, padded to a width. */
static void
put_scratch(struct text *text, size_t width, bool right)
{
	struct buffer *s = &text->scratch;
	size_t columns = visible_columns(s->bytes, s->len);
	size_t pad = columns < width ? width - columns : 0;

	text->out.failed |= s->failed;
	s->failed = false;
	buffer_fill(&text->out, ' ', right ? pad : 0);
	buffer_put(&text->out, s->bytes, s->len);
	buffer_fill(&text->out, ' ', right ? 0 : pad);
}

static void
put_watch(struct buffer *b, const struct ex_watch *watch)
{
	if (watch->symbol != NULL)
		visible_put(b, watch->symbol);
	else if (watch->spec != NULL)
		visible_put(b, watch->spec);
	else
		buffer_hex(b, watch->addr);
}

static void
put_watch_name(struct report *r, struct buffer *b, const struct ex_watch *watch)
{
	paint(r, b, WATCH);
	put_watch(b, watch);
	paint(r, b, PLAIN);
}

/* "(8 bytes at 0x404090)", "(long, 8 bytes at 0x404090)", "(4 of 8 bytes, at
   0x404094)", "(at 0x401320)"; type may be NULL. */
static void
put_bytes(struct report *r, struct buffer *b, const struct ex_watch *watch,
    uint64_t addr, uint64_t len, const char *type)
{
	unsigned long long n = len, all = watch->len;

	paint(r, b, DIM);
	buffer_puts(b, "(");
	if (type != NULL) {
		visible_put(b, type);
		buffer_puts(b, ", ");
	}
	if (watch->access == 'x')
		buffer_printf(b, "at %#llx)", (unsigned long long)addr);
	else if (n == 0 || n >= all)
		buffer_printf(b, "%llu byte%s at %#llx)", all,
		    all == 1 ? "" : "s", (unsigned long long)watch->addr);
	else
		buffer_printf(b, "%llu of %llu bytes, at %#llx)", n, all,
		    (unsigned long long)addr);
	paint(r, b, PLAIN);
}

static const char *
access_words(char access)
{
	switch (access) {
	case 'w':
		return "writes";
	case 'r':
		return "reads";
	case 'x':
		return "execution";
	default:
		return "any access";
	}
}

static void
put_target(struct buffer *b, const struct report_start *start)
{
	if (start->pid > 0 && start->comm != NULL) {
		buffer_puts(b, "in ");
		visible_put(b, start->comm);
		buffer_printf(b, "[%d]", (int)start->pid);
	} else if (start->pid > 0)
		buffer_printf(b, "in process %d", (int)start->pid);
	else
		buffer_puts(b, "in a recording");
	if (start->threads > 0)
		buffer_printf(b, ", %u thread%s", start->threads,
		    start->threads == 1 ? "" : "s");
	if (start->frozen_ms >= 0)
		buffer_printf(b, ", frozen %.1f ms", start->frozen_ms);
}

static void
text_free(struct report *r)
{
	struct text *text = r->own;

	r->own = NULL;
	summary_free(r->summary);
	r->summary = NULL;
	if (text == NULL)
		return;
	buffer_free(&text->out);
	buffer_free(&text->scratch);
	free(text->printed.items);
	free(text);
}

static int
text_start(struct report *r, const struct report_start *start)
{
	struct text *text = calloc(1, sizeof(*text));

	r->begin = *start;
	r->own = text;
	r->summary = summary_new();
	if (text == NULL || r->summary == NULL) {
		text_free(r);
		return -ENOMEM;
	}
	if (start->nwatches == 0)	/* they come with their hits */
		return 0;
	for (unsigned i = 0; i < start->nwatches; i++) {
		const struct ex_watch *watch = start->watches[i];

		buffer_puts(&text->out, i == 0 ? "watching " : ",\n         ");
		put_watch_name(r, &text->out, watch);
		buffer_puts(&text->out, " ");
		put_bytes(r, &text->out, watch, watch->addr, watch->len, NULL);
		buffer_puts(&text->out, " for ");
		buffer_puts(&text->out, access_words(watch->access));
	}
	buffer_puts(&text->out, start->nwatches > 1 ? "\n         " : " ");
	put_target(&text->out, start);
	buffer_puts(&text->out, "\n");
	return text_write(r, 0, true);
}

static int
text_watch(struct report *r, const struct ex_watch *const *watches,
    unsigned nwatches)
{
	r->begin.watches = watches;
	r->begin.nwatches = nwatches;
	return 0;
}

/* "write", "stray write by read(2)", "write by the kernel (thread exit)". */
static void
put_access(struct buffer *b, bool stray, const char *access, bool kernel,
    const char *syscall, const char *work)
{
	if (stray)
		buffer_puts(b, "stray ");
	buffer_puts(b, access);
	if (kernel && syscall != NULL) {
		buffer_puts(b, " by ");
		visible_put(b, syscall);
		buffer_puts(b, "(2)");
	} else if (kernel)
		buffer_puts(b, " by the kernel");
	if (kernel && work != NULL)
		buffer_printf(b, " (%s)", work);
}

/* ", 8 of 64 bytes, fd 3 (/etc/hosts)". */
static void
put_call(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_call *call = &hit->call;

	if (call->has_bytes)
		buffer_printf(b, ", %llu of %llu byte%s",
		    (unsigned long long)hit->len,
		    (unsigned long long)call->bytes,
		    call->bytes == 1 ? "" : "s");
	if (call->has_fd)
		buffer_printf(b, ", fd %d", call->fd);
	if (call->has_fd && *call->file != '\0') {
		buffer_puts(b, " (");
		visible_put(b, call->file);
		buffer_puts(b, call->file_later ? ") looked up later" : ")");
	}
}

/* As the program's own type, or as a number. */
static void
put_value(struct buffer *b, const struct ex_hit *hit,
    const struct ex_value *value, const char *text)
{
	if (*text != '\0')
		visible_put(b, text);
	else
		change_put_number(b, hit, value);
}

/* "  41 -> 42", "  -> 42 (value read later)", "  42 (unchanged)", and what the
   value is of when that is a part of the watch: "  conn.state: OPEN -> CLOSED".
   Of a read: "  42". */
static void
put_change(struct buffer *b, const struct ex_hit *hit, const struct change *c)
{
	const struct ex_watch *watch = hit->watch;

	if (!c->has_old && !c->has_new)
		return;
	buffer_puts(b, "  ");
	if (c->path != NULL && strcmp(c->path, watch->spec) != 0 &&
	    (watch->symbol == NULL || strcmp(c->path, watch->symbol) != 0)) {
		visible_put(b, c->path);
		buffer_puts(b, ": ");
	}
	if (c->has_old && !hit->unchanged)
		put_value(b, hit, &hit->old, c->old_text);
	if (strcmp(hit->access, "read") == 0)
		return;
	if (!hit->unchanged)
		buffer_puts(b, c->has_old ? " -> " : "-> ");
	if (c->has_new)
		put_value(b, hit, &hit->new, c->new_text);
	else
		buffer_puts(b, "?");
	if (hit->unchanged)
		buffer_puts(b, " (unchanged)");
	else if (c->has_new && hit->source == EX_VALUE_LATER)
		buffer_puts(b, " (value read later)");
}

/* "#12  write  counter (long, 8 bytes at 0x404090)  41 -> 42" */
static void
put_what(struct report *r, struct buffer *b, const struct ex_hit *hit,
    bool full)
{
	const struct ex_watch *watch = hit->watch;
	struct change change;

	change_of(hit, &change);
	buffer_printf(b, "#%-3llu ", (unsigned long long)hit->seq);
	if (hit->stray)
		paint(r, b, BAD);
	put_access(b, hit->stray, hit->access, hit->kernel, hit->call.name,
	    hit->call.work);
	if (hit->kernel)
		put_call(b, hit);
	if (hit->stray)
		paint(r, b, PLAIN);
	buffer_puts(b, "  ");
	put_watch_name(r, b, watch);
	if (full || (hit->len != 0 && hit->len < watch->len)) {
		buffer_puts(b, " ");
		put_bytes(r, b, watch, hit->addr, hit->len, change.type);
	}
	put_change(b, hit, &change);
}

/* "victim[4335/4340] cpu 1  +12.003417s" */
static void
put_who(struct report *r, struct buffer *b, const struct ex_hit *hit)
{
	bool before = hit->time < r->begin.time;
	uint64_t us = (before ? r->begin.time - hit->time :
	    hit->time - r->begin.time) / 1000;

	visible_put(b, hit->comm);
	buffer_printf(b, "[%d/%d]", (int)hit->pid, (int)hit->tid);
	if (hit->cpu != UINT32_MAX)
		buffer_printf(b, " cpu %u", (unsigned)hit->cpu);
	buffer_puts(b, before ? "  -" : "  +");
	buffer_dec(b, us / 1000000);
	buffer_puts(b, ".");
	buffer_digits(b, us % 1000000, 6);
	buffer_puts(b, "s");
}

/* What to call a frame: "bump", "main+0x1c" without a line, or its pc. */
static void
put_name(struct buffer *b, const struct ex_frame *frame)
{
	if (frame->function == NULL) {
		buffer_hex(b, frame->pc);
		return;
	}
	visible_put(b, frame->function);
	if (frame->line <= 0 && !frame->inlined) {
		buffer_puts(b, "+");
		buffer_hex(b, frame->offset);
	}
}

/* Where a frame is: "victim.c:10", or the module in parentheses. */
static void
put_place(struct buffer *b, const struct ex_frame *frame)
{
	if (frame->file != NULL) {
		visible_put(b, frame->file);
		if (frame->line > 0)
			buffer_printf(b, ":%d", frame->line);
	} else if (frame->kernel)
		buffer_puts(b, "(kernel)");
	else if (frame->module == NULL)
		buffer_puts(b, "(no module)");
	else {
		buffer_puts(b, "(");
		visible_put(b, ex_module_name(frame->module));
		if (frame->function == NULL) {
			buffer_puts(b, "+");
			buffer_hex(b, frame->vaddr);
		}
		buffer_puts(b, ")");
	}
}

/* The same, and what kind of frame it is. */
static void
put_frame_place(struct report *r, struct buffer *b,
    const struct ex_frame *frame)
{
	paint(r, b, DIM);
	put_place(b, frame);
	paint(r, b, PLAIN);
	if (frame->inlined)
		buffer_puts(b, " (inlined)");
	if (frame->signal)
		buffer_puts(b, " (signal frame)");
}

/* How a function's start is called: an inlined one has no start of its own. */
static const struct ex_frame *
real_frame(const struct ex_stack *stack)
{
	for (unsigned i = 0; i < stack->n; i++) {
		if (!stack->frame[i].inlined)
			return &stack->frame[i];
	}
	return NULL;
}

/* Bytes that an instruction touched, where they are more than are watched. */
static void
put_reach(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_watch *watch = hit->watch;

	if (insn->confidence != EX_EXACT || insn->size == 0 ||
	    (insn->addr - watch->addr < watch->len &&
	    insn->size <= watch->len - (insn->addr - watch->addr)))
		return;
	buffer_printf(b, "  (%u bytes at ", insn->size);
	buffer_hex(b, insn->addr);
	buffer_puts(b, ")");
}

/* "bump+0x0  mov %rdi,0x2d69(%rip)   victim.c:10" */
static void
put_insn(struct report *r, struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_stack *stack = hit->stack;
	const struct ex_frame *frame = stack == NULL ? NULL : real_frame(stack);

	buffer_puts(b, INDENT);
	if (frame != NULL && frame->function != NULL) {
		painted(r, b, FUNCTION, frame->function);
		buffer_puts(b, "+");
		buffer_hex(b, frame->offset);
	} else
		buffer_hex(b, insn->pc != 0 ? insn->pc : hit->pc);
	buffer_puts(b, "  ");
	if (insn->confidence == EX_UNKNOWN)
		buffer_puts(b, "instruction unknown");
	else
		visible_put(b, insn->text);
	if (stack != NULL && stack->n > 0 && stack->frame[0].file != NULL) {
		buffer_puts(b, "   ");
		put_frame_place(r, b, &stack->frame[0]);
	}
	if (insn->confidence == EX_AMBIGUOUS)
		buffer_puts(b, "  (instruction ambiguous)");
	else if (insn->confidence == EX_ADDRESS_UNVERIFIED)
		buffer_puts(b, "  (address unverified)");
	put_reach(b, hit);
	buffer_puts(b, "\n");
}

static void
put_frame(struct report *r, unsigned i, const struct ex_frame *frame,
    size_t width)
{
	struct text *text = r->own;

	buffer_printf(&text->out, INDENT "%-2u ", i);
	text->scratch.len = 0;
	put_name(&text->scratch, frame);
	paint(r, &text->out, FUNCTION);
	put_scratch(text, width, false);
	paint(r, &text->out, PLAIN);
	buffer_puts(&text->out, "  ");
	put_frame_place(r, &text->out, frame);
	buffer_puts(&text->out, "\n");
}

static void
put_stack(struct report *r, const struct ex_stack *stack)
{
	struct text *text = r->own;
	const char *end = ex_end_text(stack->end);
	size_t width = 0;

	for (unsigned i = 0; i < stack->n; i++) {
		const struct buffer *s = &text->scratch;
		size_t columns;

		text->scratch.len = 0;
		put_name(&text->scratch, &stack->frame[i]);
		columns = visible_columns(s->bytes, s->len);
		if (columns > width && columns <= NAME_COLUMNS)
			width = columns;
	}
	for (unsigned i = 0; i < stack->n; i++)
		put_frame(r, i, &stack->frame[i], width);
	if (end != NULL)
		buffer_printf(&text->out, INDENT "%s\n", end);
}

/* Where the seq of the hit that has the backtrace is noted; NULL: no memory. */
static uint64_t *
printed_at(struct text *text, unsigned index)
{
	return by_stack_at(&text->printed, index, sizeof(uint64_t));
}

static void
put_hit_again(struct report *r, struct buffer *b, const struct ex_hit *hit,
    uint64_t seq)
{
	put_what(r, b, hit, false);
	buffer_puts(b, "  ");
	put_who(r, b, hit);
	buffer_printf(b, "  (same backtrace as #%llu)\n",
	    (unsigned long long)seq);
}

static void
put_hit(struct report *r, struct buffer *b, const struct ex_hit *hit)
{
	put_what(r, b, hit, true);
	buffer_puts(b, "\n" INDENT);
	put_who(r, b, hit);
	buffer_puts(b, "\n");
	if (hit->late)
		buffer_puts(b, INDENT "delivered late: the signal was blocked; "
		    "this is where it was unblocked\n");
	else if (!hit->kernel)
		put_insn(r, b, hit);
	if (hit->stack != NULL)
		put_stack(r, hit->stack);
	else
		buffer_puts(b, INDENT "no backtrace: out of memory\n");
}

static int
text_hit(struct report *r, const struct ex_hit *hit)
{
	struct text *text = r->own;
	struct buffer *b = &text->out;
	size_t start = b->len;
	int rc = summary_add(r->summary, hit, NULL);
	uint64_t *seq = NULL;
	int written;

	if (hit->stack != NULL)
		seq = printed_at(text, hit->stack->index);
	if (seq != NULL && *seq != 0)
		put_hit_again(r, b, hit, *seq);
	else
		put_hit(r, b, hit);
	if (seq != NULL && *seq == 0)
		*seq = hit->seq;
	written = text_write(r, start, false);
	return written != 0 ? written : rc;
}

static int
text_lost(struct report *r, uint64_t count)
{
	struct buffer *b = &((struct text *)r->own)->out;
	size_t start = b->len;

	buffer_printf(b, "lost %llu hit%s here\n", (unsigned long long)count,
	    count == 1 ? "" : "s");
	return text_write(r, start, false);
}

static int
text_warning(struct report *r, const char *warning)
{
	struct buffer *b = &((struct text *)r->own)->out;
	size_t start = b->len;

	buffer_puts(b, "warning: ");
	visible_put(b, warning);
	buffer_puts(b, "\n");
	return text_write(r, start, false);
}

/* The columns of the summary. */
enum column { COUNT, SHARE, TIME, THREADS, HIT, WHERE, COLUMNS };

static const char *const headings[] = {
	[COUNT] = "hits", [SHARE] = "share", [TIME] = "first..last",
	[THREADS] = "threads", [HIT] = "backtrace", [WHERE] = "where",
};

/* The innermost frame of the program itself; NULL: none. */
static const struct ex_frame *
user_frame(const struct ex_stack *stack)
{
	for (unsigned i = 0; stack != NULL && i < stack->n; i++) {
		if (!stack->frame[i].kernel)
			return &stack->frame[i];
	}
	return NULL;
}

static void
put_threads(struct buffer *b, const struct summary_row *row)
{
	buffer_printf(b, "%u:", row->nthreads);
	for (unsigned i = 0; i < row->nthreads && i < THREADS_SHOWN; i++)
		buffer_printf(b, " %d", (int)row->threads[i]);
	if (row->nthreads > THREADS_SHOWN)
		buffer_puts(b, " ...");
}

static void
put_where(struct buffer *b, const struct summary_row *row)
{
	const struct ex_frame *frame = user_frame(row->stack);

	put_access(b, row->stray, row->access, row->kernel, row->syscall,
	    row->work);
	if (frame == NULL)
		return;
	buffer_puts(b, row->kernel ? " for " : " in ");
	put_name(b, frame);
	if (frame->file != NULL) {
		buffer_puts(b, " ");
		visible_put(b, frame->file);
		buffer_printf(b, ":%d", frame->line);
	} else if (frame->module != NULL) {
		buffer_puts(b, " (");
		visible_put(b, ex_module_name(frame->module));
		buffer_puts(b, ")");
	}
}

/* Seconds since the run began, to the millisecond. */
static double
seconds(const struct report *r, uint64_t time)
{
	return (double)(int64_t)(time - r->begin.time) / 1e9;
}

/* One cell of the summary, into the scratch buffer. */
static void
make_cell(struct report *r, const struct summary_row *row, uint64_t total,
    enum column column)
{
	struct text *text = r->own;
	struct buffer *b = &text->scratch;
	uint64_t *seq;

	b->len = 0;
	switch (column) {
	case COUNT:
		buffer_dec(b, row->count);
		break;
	case SHARE:
		buffer_printf(b, "%.1f%%",
		    100.0 * (double)row->count / (double)total);
		break;
	case TIME:
		buffer_printf(b, "%.3f..%.3fs", seconds(r, row->first),
		    seconds(r, row->last));
		break;
	case THREADS:
		put_threads(b, row);
		break;
	case HIT:
		seq = row->stack == NULL ? NULL :
		    printed_at(text, row->stack->index);
		buffer_printf(b, "#%llu", (unsigned long long)
		    (seq != NULL && *seq != 0 ? *seq : row->first_seq));
		break;
	default:
		put_where(b, row);
	}
}

/* Rows of one watch, in a table of its own. */
struct table {
	const struct ex_watch *watch;
	const struct summary_row *rows;	/* of all watches */
	size_t n;
	uint64_t hits;		/* of this watch */
	size_t backtraces;	/* rows of this watch */
	size_t width[COLUMNS];
};

/* Count the watch's rows and measure their columns. */
static void
table_measure(struct report *r, struct table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->rows[i].watch->id == t->watch->id) {
			t->hits += t->rows[i].count;
			t->backtraces++;
		}
	}
	for (unsigned c = 0; c < COLUMNS; c++)
		t->width[c] = strlen(headings[c]);
	for (size_t i = 0; i < t->n; i++) {
		if (t->rows[i].watch->id != t->watch->id)
			continue;
		for (unsigned c = 0; c < COLUMNS; c++) {
			make_cell(r, &t->rows[i], t->hits, c);
			widen(r->own, &t->width[c]);
		}
	}
}

/* One line of a table; row NULL: its headings. */
static void
table_line(struct report *r, const struct table *t,
    const struct summary_row *row)
{
	struct text *text = r->own;

	for (unsigned c = 0; c < COLUMNS; c++) {
		if (row == NULL) {
			text->scratch.len = 0;
			buffer_puts(&text->scratch, headings[c]);
		} else
			make_cell(r, row, t->hits, c);
		buffer_puts(&text->out, "  ");
		put_scratch(text, c == WHERE ? 0 : t->width[c],
		    c == COUNT || c == SHARE);
	}
	buffer_puts(&text->out, "\n");
}

/* 0 or -errno. */
static int
put_table(struct report *r, struct table *t)
{
	struct buffer *b = &((struct text *)r->own)->out;
	int rc = 0;

	table_measure(r, t);
	if (t->backtraces == 0)
		return 0;
	buffer_puts(b, "\n");
	put_watch_name(r, b, t->watch);
	buffer_printf(b, ": %llu hit%s, %zu backtrace%s\n",
	    (unsigned long long)t->hits, t->hits == 1 ? "" : "s",
	    t->backtraces, t->backtraces == 1 ? "" : "s");
	table_line(r, t, NULL);
	for (size_t i = 0; i < t->n && rc == 0; i++) {
		size_t start = b->len;

		if (t->rows[i].watch->id != t->watch->id)
			continue;
		table_line(r, t, &t->rows[i]);
		rc = text_write(r, start, false);
	}
	return rc;
}

/* The columns of the list of stray writers. */
enum { TIMES, WRITER, PLACE, TOUCHED, FIRST, FINDING_COLUMNS };

/* One cell of it, into the scratch buffer. */
static void
make_finding_cell(struct report *r, const struct finding *f, unsigned column)
{
	struct buffer *b = &((struct text *)r->own)->scratch;

	b->len = 0;
	switch (column) {
	case TIMES:
		buffer_printf(b, "%llux", (unsigned long long)f->count);
		break;
	case WRITER:
		if (f->culprit != NULL)
			put_name(b, f->culprit);
		else
			buffer_puts(b, "unknown");
		break;
	case PLACE:
		if (f->culprit != NULL)
			put_place(b, f->culprit);
		break;
	case TOUCHED:
		put_watch(b, f->watch);
		break;
	default:
		buffer_printf(b, "first #%llu%s",
		    (unsigned long long)f->first_seq, f->incomplete ?
		    "  (incomplete backtrace)" : "");
	}
}

/* One line for each stray writer. */
static int
put_findings(struct report *r, const struct report_end *end)
{
	struct text *text = r->own;
	size_t width[FINDING_COLUMNS] = {0}, start = text->out.len;
	bool incomplete = false;

	for (size_t i = 0; i < end->nfindings; i++) {
		incomplete |= end->findings[i]->incomplete;
		for (unsigned c = 0; c < FIRST; c++) {
			make_finding_cell(r, end->findings[i], c);
			widen(text, &width[c]);
		}
	}
	buffer_puts(&text->out, "\n");
	painted(r, &text->out, BAD, "stray");
	buffer_printf(&text->out, ": %zu %s\n", end->nfindings,
	    policy_word(end->findings, end->nfindings));
	for (size_t i = 0; i < end->nfindings; i++) {
		for (unsigned c = 0; c < FINDING_COLUMNS; c++) {
			make_finding_cell(r, end->findings[i], c);
			buffer_puts(&text->out, "  ");
			put_scratch(text, width[c], c == TIMES);
		}
		buffer_puts(&text->out, "\n");
	}
	if (incomplete)
		buffer_puts(&text->out, "  an incomplete backtrace may lack a "
		    "caller that is allowed: --stack copies more\n");
	return text_write(r, start, false);
}

/* With --count: the hits of each watch. */
static int
put_counts(struct report *r, const uint64_t *counts)
{
	struct buffer *b = &((struct text *)r->own)->out;
	size_t start = b->len;

	buffer_puts(b, "\n      hits  watch\n");
	for (unsigned i = 0; i < r->begin.nwatches; i++) {
		const struct ex_watch *watch = r->begin.watches[i];

		buffer_printf(b, "%10llu  ", (unsigned long long)counts[i]);
		put_watch_name(r, b, watch);
		buffer_puts(b, " ");
		put_bytes(r, b, watch, watch->addr, watch->len, NULL);
		buffer_puts(b, ", ");
		buffer_puts(b, access_words(watch->access));
		buffer_puts(b, "\n");
	}
	return text_write(r, start, false);
}

static int
text_end(struct report *r, const struct report_end *end)
{
	const struct summary_row *rows;
	size_t n;
	int rc = 0, flushed;

	if (r->own == NULL)
		return 0;
	if (end != NULL) {
		n = summary_rows(r->summary, &rows);
		for (unsigned i = 0; i < r->begin.nwatches && rc == 0; i++) {
			struct table t = {
				.watch = r->begin.watches[i],
				.rows = rows, .n = n,
			};

			rc = put_table(r, &t);
		}
		if (rc == 0 && end->counts != NULL)
			rc = put_counts(r, end->counts);
		if (rc == 0 && end->nfindings > 0)
			rc = put_findings(r, end);
	}
	flushed = text_flush(r);
	text_free(r);
	return rc != 0 ? rc : flushed;
}

const struct report_ops report_text = {
	.name = "text", .start = text_start, .watch = text_watch,
	.hit = text_hit,
	.lost = text_lost, .warning = text_warning,
	.flush = text_flush, .end = text_end,
};

bool
report_wants_colour(FILE *out)
{
	const char *term = getenv("TERM");
	const char *none = getenv("NO_COLOR");

	return isatty(fileno(out)) == 1 && (none == NULL || *none == '\0') &&
	    term != NULL && *term != '\0' && strcmp(term, "dumb") != 0;
}
