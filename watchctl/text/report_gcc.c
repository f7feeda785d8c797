/*
 * report_gcc: a line for each hit, as a compiler's warning, for editors that
 * jump from one place to the next.
 *
 *	victim.c:10:3: warning: counter: 41 -> 42 by bump
 *
 * The place is that of the responsible function (policy/culprit.h), such as the
 * caller of memcpy, not memcpy itself.  Hits that came late have none.
 */
#include <errno.h>

#include "policy/culprit.h"
#include "report/change.h"
#include "text/text.h"
#include "util/visible.h"

static int
gcc_start(struct report *r, const struct report_start *start)
{
	r->begin = *start;
	r->summary = NULL;
	return text_new(r) == NULL ? -ENOMEM : 0;
}

/* "victim.c:10:3"; without a line, as much of it as is known. */
static void
put_place(const struct text *text, struct buffer *b,
    const struct ex_frame *frame)
{
	if (frame == NULL) {
		buffer_puts(b, "watchctl");
		return;
	}
	text_put_place(text, b, frame);
	if (frame->file != NULL && frame->line > 0)
		buffer_printf(b, ":%d", frame->column > 0 ? frame->column : 1);
}

/* "counter: 41 -> 42", "conn: conn.state: 0 -> 7", "counter: write". */
static void
put_message(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;

	if (hit->watch->spec != NULL)
		visible_put(b, hit->watch->spec);
	else
		text_put_watch(b, hit->watch);
	buffer_puts(b, ": ");
	if (c->has_old || c->has_new) {
		change_put_path(b, hit);
		change_put(b, hit);
	} else
		buffer_puts(b, hit->access);
}

static int
gcc_hit(struct report *r, const struct ex_hit *hit)
{
	const struct ex_frame *frame = hit->stack == NULL || hit->late ? NULL :
	    culprit_of(hit->stack);
	struct text *text = r->own;
	struct buffer *b = &text->out;
	const size_t start = b->len;

	put_place(text, b, frame);
	buffer_puts(b, ": warning: ");
	put_message(b, hit);
	if (hit->late)
		buffer_puts(b, ", delivered late");
	else if (frame != NULL) {
		buffer_puts(b, " by ");
		text_put_name(b, frame);
	}
	if (hit->stray || hit->unjudged)
		buffer_printf(b, " (%s)", hit->stray ? "stray" : "unjudged");
	buffer_puts(b, "\n");
	if (!b->failed)
		report_hit_ends(r, b);
	return text_write(r, start, false);
}

static int
gcc_warning(struct report *r, const char *warning)
{
	struct buffer *b = &((struct text *)r->own)->out;
	const size_t start = b->len;

	buffer_puts(b, "watchctl: warning: ");
	visible_put(b, warning);
	buffer_puts(b, "\n");
	return text_write(r, start, false);
}

static int
gcc_flush(struct report *r)
{
	return text_write(r, 0, true);
}

static int
gcc_end(struct report *r, const struct report_end *end)
{
	int err;

	(void)end;
	if (r->own == NULL)
		return 0;
	err = gcc_flush(r);
	text_free(r);
	return err;
}

const struct report_ops report_gcc = {
	.name = "gcc", .start = gcc_start, .hit = gcc_hit, .lost = text_lost,
	.warning = gcc_warning, .flush = gcc_flush, .end = gcc_end,
};
