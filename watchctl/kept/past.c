/* past: what the hits of a session were, by backtraces. */
#include "kept/past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define SIZE_MAX_ ((size_t)64 << 20)	/* bytes of samples */

static uint64_t
key_of(const struct box_hit *hit)
{
	return (uint64_t)hit->watch << 32 | hit->stack;
}

bool
past_has(const struct past *past, pid_t pid)
{
	return ex_table_get(&past->processes, (uint64_t)pid) != NULL;
}

static struct past_row *
row_new(struct past *past, const struct ex_hit *hit, const void *record,
    size_t len)
{
	const pid_t pid = hit->pid;
	struct past_row *row;

	if (past->size + len > SIZE_MAX_ ||
	    !EX_ARRAY_ROOM(past, at, BOX_SAMPLES_MAX - 1) ||
	    !ex_table_reserve(&past->processes, 1) ||
	    (row = calloc(1, sizeof(*row) + len)) == NULL)
		return NULL;
	if (!past_has(past, pid))
		ex_table_put(&past->processes, (uint64_t)pid, row);
	row->stack.id = past->n + 1;
	row->time = hit->time;
	row->pid = pid;
	row->len = len;
	memcpy(row->record, record, len);
	past->at[past->n++] = row;
	past->size += len;
	return row;
}

int
past_number(struct past *past, struct past_row *row, const struct box_hit *hit)
{
	if (!ex_table_reserve(&past->rows, 1))
		return -ENOMEM;
	if (ex_table_get(&past->rows, key_of(hit)) == NULL)
		ex_table_put(&past->rows, key_of(hit), row);
	return 0;
}

void
past_renumber(struct past *past)
{
	ex_table_free(&past->rows, NULL);
	past->rows = (struct ex_table){0};
}

int
past_add(struct past *past, const struct ex_watch *watch,
    const struct box_hit *which, const struct ex_hit *hit, bool is_channels,
    const void *record, size_t len)
{
	struct past_row *row = ex_table_get(&past->rows, key_of(which));
	struct ex_hit counted = *hit;

	if (past->summary == NULL && (past->summary =
	    summary_new(2 * BOX_SAMPLES_MAX)) == NULL)
		return -ENOMEM;
	if (row == NULL && ((row = row_new(past, hit,
	    record, len)) == NULL ||
	    past_number(past, row, which) < 0))
		return -ENOMEM;
	if (is_channels)
		row->watch = watch->id;
	counted.watch = watch;
	counted.stack = &row->stack;
	return summary_add(past->summary, &counted, NULL);
}

bool
past_has_row(const struct past *past, uint32_t watch, uint32_t stack)
{
	const struct box_hit which = {.watch = watch, .stack = stack};

	return ex_table_get(&past->rows, key_of(&which)) != NULL;
}

bool
past_tally(struct past *past, const struct ex_watch *watch,
    const struct wp_target_tally *tally)
{
	const struct box_hit which = {
		.watch = tally->watch, .stack = tally->stack,
	};
	const struct past_row *row = ex_table_get(&past->rows, key_of(&which));
	const struct summary_row sum = {
		.count = tally->count, .first_seq = UINT64_MAX,
		.first = tally->first, .last = tally->last,
		.threads = &tally->tid, .nthreads = 1,
	};
	struct ex_hit hit = {.watch = watch};

	if (row == NULL)
		return false;
	hit.stack = &row->stack;
	return summary_recall(past->summary, &hit, &sum) == 0;
}

void
past_free(struct past *past)
{
	/* it holds backtraces of the rows */
	summary_free(past->summary);
	ex_table_free(&past->rows, NULL);
	ex_table_free(&past->processes, NULL);
	for (size_t i = 0; i < past->n; i++)
		free(past->at[i]);
	free(past->at);
	*past = (struct past){0};
}
