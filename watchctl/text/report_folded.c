/*
 * report_folded: folded stacks, as flamegraph tools read them: a line for each
 * thread name and backtrace, outermost function first, and its hits.
 *
 *	victim;_start;main;level;bump 100
 *
 * As perf's are folded: [module] for an unknown function, _[k] after a kernel
 * function, _[i] after an inlined one.  [truncated] replaces what is missing at
 * the outer end.  Hits that came late have the backtraces of other places, and
 * are folded as [late] alone.
 */
#include "report/report.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "report/summary.h"
#include "util/visible.h"

/* The hits of one thread name and backtrace. */
struct fold {
	char comm[sizeof(((struct ex_hit *)NULL)->comm)];
	const struct ex_stack *stack;	/* NULL: they came late */
	uint64_t count;
};

/* Folds are ordered by comm, then by when their backtraces were first seen. */
static int
compare_folds(const void *a, const void *b)
{
	const struct fold *x = a, *y = b;
	int order = strcmp(x->comm, y->comm);

	if (order != 0)
		return order;
	if (x->stack == NULL || y->stack == NULL)
		return (x->stack != NULL) - (y->stack != NULL);
	return (x->stack->index > y->stack->index) -
	    (x->stack->index < y->stack->index);
}

static int
folded_start(struct report *r, const struct report_start *start)
{
	r->begin = *start;
	r->summary = NULL;
	r->own = NULL;
	return 0;
}

/* Count n hits like this one, of threads with this name.  0 or -ENOMEM. */
static int
count(struct report *r, const struct ex_hit *hit, const char *comm, uint64_t n)
{
	struct fold key = {.stack = hit->stack}, *fold, **found;

	if (hit->stack == NULL)
		return -ENOMEM;
	if (hit->late)
		key.stack = NULL;
	(void)snprintf(key.comm, sizeof(key.comm), "%s", comm);
	found = tfind(&key, &r->own, compare_folds);
	if (found != NULL) {
		(*found)->count += n;
		return 0;
	}
	fold = malloc(sizeof(*fold));
	if (fold == NULL)
		return -ENOMEM;
	*fold = key;
	fold->count = n;
	if (tsearch(fold, &r->own, compare_folds) == NULL) {
		free(fold);
		return -ENOMEM;
	}
	ex_stack_hold(fold->stack);
	return 0;
}

static int
folded_hit(struct report *r, const struct ex_hit *hit)
{
	return count(r, hit, hit->comm, 1);
}

/* Threads of several names may have had this backtrace. */
static int
folded_recall(struct report *r, const struct ex_hit *hit,
    const struct summary_row *past)
{
	return count(r, hit, "", past->count);
}

/* Put a name, without the characters that have a meaning in the format. */
static void
put_name(struct buffer *b, const char *name)
{
	size_t start = b->len;

	visible_put(b, name);
	for (size_t i = start; i < b->len; i++) {
		if (b->bytes[i] == ' ')
			b->bytes[i] = '_';
		else if (b->bytes[i] == ';')
			b->bytes[i] = ':';
	}
}

static void
put_frame(struct buffer *b, const struct ex_frame *frame)
{
	buffer_puts(b, ";");
	if (frame->function != NULL && *frame->function != '\0')
		put_name(b, frame->function);
	else if (frame->kernel)
		buffer_puts(b, "[kernel]");
	else if (frame->module == NULL)
		buffer_puts(b, "[unknown]");
	else {
		const char *module = ex_module_name(frame->module);

		if (*module == '[')	/* "[vdso]" */
			put_name(b, module);
		else {
			buffer_puts(b, "[");
			put_name(b, module);
			buffer_puts(b, "]");
		}
	}
	if (frame->kernel)
		buffer_puts(b, "_[k]");
	else if (frame->inlined)
		buffer_puts(b, "_[i]");
}

static void
put_fold(struct buffer *b, const struct fold *fold)
{
	const struct ex_stack *stack = fold->stack;

	if (*fold->comm != '\0')
		put_name(b, fold->comm);
	else
		buffer_puts(b, "[unknown]");
	if (stack == NULL)
		buffer_puts(b, ";[late]");
	else if (stack->end != EX_END_OUTERMOST)
		buffer_puts(b, ";[truncated]");
	for (unsigned i = stack == NULL ? 0 : stack->n; i-- > 0;)
		put_frame(b, &stack->frame[i]);
	buffer_puts(b, " ");
	buffer_dec(b, fold->count);
	buffer_puts(b, "\n");
}

/* The state of a walk over the folds. */
struct walk {
	struct report *report;
	struct buffer lines;
	uint64_t hits;		/* in the folds so far */
	int rc;
};

static void
write_fold(const void *node, VISIT visit, void *closure)
{
	const struct fold *const *fold = node;
	struct walk *walk = closure;
	size_t start;

	if ((visit != postorder && visit != leaf) || walk->rc != 0)
		return;
	start = walk->lines.len;
	put_fold(&walk->lines, *fold);
	walk->rc = buffer_commit(&walk->lines, start);
	if (walk->rc == 0)
		walk->rc = report_write_full(walk->report, &walk->lines);
	walk->hits += (*fold)->count;
}

static int
folded_end(struct report *r, const struct report_end *end)
{
	struct walk walk = {.report = r};
	int flushed = 0;

	if (end != NULL) {
		twalk_r(r->own, write_fold, &walk);
		flushed = report_write(r, &walk.lines);
		if (walk.rc == 0 && flushed == 0)
			r->written = walk.hits;
	}
	buffer_free(&walk.lines);
	tdestroy(r->own, free);
	r->own = NULL;
	return walk.rc != 0 ? walk.rc : flushed;
}

const struct report_ops report_folded = {
	.name = "folded", .start = folded_start, .hit = folded_hit,
	.recall = folded_recall, .end = folded_end,
};
