/* page_writer: the section of one writer, which can be unfolded: its access,
   its source and its backtraces. */
#include "html/page.h"

#include <stdlib.h>
#include <unistd.h>

#include "policy/culprit.h"
#include "html/html_escape.h"
#include "html/source_lines.h"
#include "text/text.h"

enum { BACKTRACES_SHOWN = 6, FRAMES_SHOWN = 40, THREADS_SHOWN = 12 };

/* "write by read(2)" */
static void
put_access(struct buffer *b, const struct summary_row *row)
{
	const size_t start = b->len;

	text_put_access(b, "", row->access, row->kernel, row->syscall,
	    row->work);
	html_escape(b, start);
}

/* Put the function on whose behalf a library function made the access. */
static void
put_culprit(struct report *r, struct buffer *b, const struct summary_row *row)
{
	const struct ex_frame *culprit = row->stack == NULL ||
	    row->late ? NULL : culprit_of(row->stack);

	if (culprit == NULL || culprit == writer_frame(row))
		return;
	buffer_puts(b, " <span class=\"dim\">for</span> <code>");
	page_put_name(b, culprit);
	buffer_puts(b, "</code> <span class=\"dim mono\">");
	page_put_place(r, b, culprit);
	buffer_puts(b, "</span>");
}

static void
put_summary(struct report *r, struct buffer *b, const struct writer *w,
    unsigned colour, uint64_t total)
{
	const struct summary_row *row = &w->row;
	const struct ex_frame *frame = writer_frame(row);

	buffer_printf(b, "<summary><span class=\"swatch c%u\"></span>"
	    "<span class=\"n\">%llu%s</span><span class=\"dim\">%.1f&#8239;%%"
	    "</span> <code class=\"who\">", colour,
	    (unsigned long long)row->count, row->partial ? "+" : "",
	    100.0 * (double)row->count / (double)total);
	if (row->others)
		buffer_puts(b, "other backtraces");
	else if (frame != NULL)
		page_put_name(b, frame);
	else
		buffer_puts(b, "unknown");
	buffer_puts(b, "</code> <span class=\"dim mono\">");
	if (!row->others && frame != NULL)
		page_put_place(r, b, frame);
	buffer_puts(b, "</span>");
	if (w->n == 1 && !row->others)
		put_culprit(r, b, row);
	if (row->stray || row->unjudged)
		buffer_printf(b, " <span class=\"tag\">%s</span>",
		    row->stray ? "stray" : "not judged");
	buffer_puts(b, "</summary>\n");
}

static void
put_threads(struct buffer *b, const struct summary_row *row)
{
	buffer_puts(b, row->nthreads == 1 ? "<dt>Thread</dt><dd>" :
	    "<dt>Threads</dt><dd>");
	if (row->nthreads > 1)
		buffer_printf(b, "%u: ", row->nthreads);
	for (unsigned i = 0; i < row->nthreads && i < THREADS_SHOWN; i++)
		buffer_printf(b, i > 0 ? ", %d" : "%d", (int)row->threads[i]);
	buffer_puts(b, row->nthreads > THREADS_SHOWN ? ", ...</dd>\n" :
	    "</dd>\n");
}

/* Put the values of the writer's first backtrace. */
static void
put_values(struct buffer *b, const struct writer *w)
{
	const size_t start = b->len;
	size_t text;

	if (w->n != 1)
		return;
	buffer_puts(b, "<dt>Values</dt><dd>");
	text = b->len;
	text_put_values(b, w->of[0]);
	if (b->len == text) {
		b->len = start;
		return;
	}
	html_escape(b, text);
	buffer_puts(b, "</dd>\n");
}

static void
put_facts(const struct report *r, struct buffer *b, const struct writer *w,
    const char *insn)
{
	const struct summary_row *row = &w->row;

	buffer_puts(b, "<dl>\n");
	if (!row->others) {
		buffer_puts(b, "<dt>Access</dt><dd>");
		put_access(b, row);
		if (row->late)
			buffer_puts(b, ", delivered late: the backtrace is "
			    "where the signal was unblocked");
		buffer_puts(b, "</dd>\n");
	}
	if (*insn != '\0' && !row->late) {
		buffer_puts(b, "<dt>Instruction</dt><dd><code>");
		html_put(b, insn);
		buffer_puts(b, "</code></dd>\n");
	}
	put_values(b, w);
	if (row->nthreads > 0)
		put_threads(b, row);
	buffer_puts(b, "<dt>Time</dt><dd>");
	text_put_time(r, b, row->first, " s");
	if (row->last > row->first) {
		buffer_puts(b, " to ");
		text_put_time(r, b, row->last, " s");
	}
	buffer_puts(b, "</dd>\n</dl>\n");
}

/* --- source --- */

/* False: it cannot be read. */
static bool
read_source(const struct report *r, const struct ex_frame *frame,
    struct source_lines *lines)
{
	bool found;
	int fd;

	if (frame == NULL || frame->file == NULL || frame->line <= 0 ||
	    r->open_source == NULL || (fd = r->open_source(frame->file)) < 0)
		return false;
	found = source_lines_read(lines, fd, frame->line);
	(void)close(fd);
	return found;
}

/* Put the source of the instruction's function, or of the function that is
   responsible for it. */
static void
put_source(struct report *r, struct buffer *b, const struct summary_row *row)
{
	const struct ex_frame *frame = writer_frame(row);
	struct source_lines lines;

	if (row->late || row->stack == NULL)
		return;
	if (!read_source(r, frame, &lines)) {
		frame = culprit_of(row->stack);
		if (!read_source(r, frame, &lines))
			return;
	}
	buffer_puts(b, "<h3>Source</h3>\n<p class=\"dim small mono\">");
	page_put_place(r, b, frame);
	buffer_puts(b, "</p>\n<pre class=\"src\">");
	for (unsigned i = 0; i < lines.n; i++) {
		const int number = lines.first + (int)i;
		const char *tag = number == frame->line ? "b" : "span";

		buffer_printf(b, "<%s><i>%d</i>", tag, number);
		html_put(b, lines.text[i]);
		buffer_printf(b, "</%s>", tag);
	}
	buffer_puts(b, "</pre>\n");
}

/* --- backtraces --- */

static void
put_frame(struct report *r, struct buffer *b, const struct ex_frame *frame)
{
	buffer_puts(b, "<li><code>");
	page_put_name(b, frame);
	buffer_puts(b, "</code><span class=\"dim mono\">");
	page_put_place(r, b, frame);
	text_put_kind(b, frame);
	buffer_puts(b, "</span></li>\n");
}

static void
put_backtrace(struct report *r, struct buffer *b,
    const struct summary_row *row, bool alone)
{
	const struct ex_stack *stack = row->stack;
	const char *end = stack == NULL ? NULL : ex_end_text(stack->end);

	buffer_puts(b, "<h3>Backtrace");
	if (!alone) {
		buffer_puts(b, ", ");
		page_put_count(b, row->count, "hit");
	}
	buffer_puts(b, "</h3>\n");
	if (stack == NULL) {
		buffer_puts(b, "<p>None: out of memory.</p>\n");
		return;
	}
	buffer_puts(b, "<ol start=\"0\" class=\"frames\">\n");
	for (unsigned i = 0; i < stack->n && i < FRAMES_SHOWN; i++)
		put_frame(r, b, &stack->frame[i]);
	buffer_puts(b, "</ol>\n");
	if (stack->n > FRAMES_SHOWN)
		buffer_printf(b, "<p class=\"dim small\">and %u more</p>\n",
		    stack->n - FRAMES_SHOWN);
	if (stack->gap)
		buffer_puts(b, "<p class=\"dim small\">stack incomplete: "
		    "functions may be missing where it says so</p>\n");
	if (end != NULL)
		buffer_printf(b, "<p class=\"dim small\">%s</p>\n", end);
}

static void
put_backtraces(struct report *r, struct buffer *b, const struct writer *w)
{
	const size_t n = w->n < BACKTRACES_SHOWN ? w->n : BACKTRACES_SHOWN;
	uint64_t left = 0;

	for (size_t i = 0; i < n; i++)
		put_backtrace(r, b, w->of[i], w->n == 1);
	for (size_t i = n; i < w->n; i++)
		left += w->of[i]->count;
	if (left > 0)
		buffer_printf(b, "<p class=\"dim small\">and %zu more "
		    "backtraces, of %llu hits</p>\n", w->n - n,
		    (unsigned long long)left);
}

void
page_put_writer(struct report *r, const struct timeline *t,
    const struct writer *w, unsigned colour, uint64_t total, bool open)
{
	struct buffer *b = &((struct page *)r->own)->text.out;
	const unsigned place = timeline_place_of(t, &w->row);

	buffer_puts(b, open ? "<details open>" : "<details>");
	put_summary(r, b, w, colour, total);
	buffer_puts(b, "<div class=\"body\">\n");
	put_facts(r, b, w, place == 0 ? "" : t->writer[place].insn);
	if (!w->row.others) {
		put_source(r, b, &w->row);
		put_backtraces(r, b, w);
	}
	buffer_puts(b, "</div>\n</details>\n");
}
