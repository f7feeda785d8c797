/* past_hits: a summary of a session's hits by backtrace. */
#include "remote/past_hits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define SIZE_MAX_ ((size_t)64 << 20)	/* bytes of samples */

static uint64_t
key_of(const struct broker_hit *hit)
{
	return (uint64_t)hit->watch << 32 | hit->stack;
}

bool
past_hits_has(const struct past_hits *past, pid_t pid)
{
	return ex_table_get(&past->processes, (uint64_t)pid) != NULL;
}

static struct past_hits_row *
row_new(struct past_hits *past, const struct ex_hit *hit, const void *record,
    size_t len)
{
	const pid_t pid = hit->pid;
	struct past_hits_row *row;

	if (past->size + len > SIZE_MAX_ ||
	    !EX_ARRAY_ROOM(past, at, BROKER_SAMPLES_MAX - 1) ||
	    !ex_table_reserve(&past->processes, 1) ||
	    (row = calloc(1, sizeof(*row) + len)) == NULL)
		return NULL;
	if (!past_hits_has(past, pid))
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
past_hits_number(struct past_hits *past, struct past_hits_row *row,
    const struct broker_hit *hit)
{
	if (!ex_table_reserve(&past->rows, 1))
		return -ENOMEM;
	if (ex_table_get(&past->rows, key_of(hit)) == NULL)
		ex_table_put(&past->rows, key_of(hit), row);
	return 0;
}

void
past_hits_renumber(struct past_hits *past)
{
	ex_table_free(&past->rows, NULL);
	past->rows = (struct ex_table){0};
}

int
past_hits_add(struct past_hits *past, const struct ex_watch *watch,
    const struct broker_hit *which, const struct ex_hit *hit, bool is_channels,
    const void *record, size_t len)
{
	struct past_hits_row *row = ex_table_get(&past->rows, key_of(which));
	struct ex_hit counted = *hit;

	if (past->summary == NULL && (past->summary =
	    summary_new(2 * BROKER_SAMPLES_MAX)) == NULL)
		return -ENOMEM;
	if (row == NULL && ((row = row_new(past, hit,
	    record, len)) == NULL ||
	    past_hits_number(past, row, which) < 0))
		return -ENOMEM;
	if (is_channels)
		row->watch = watch->id;
	counted.watch = watch;
	counted.stack = &row->stack;
	return summary_add(past->summary, &counted, NULL);
}

bool
past_hits_has_row(const struct past_hits *past, uint32_t watch, uint32_t stack)
{
	const struct broker_hit which = {.watch = watch, .stack = stack};

	return ex_table_get(&past->rows, key_of(&which)) != NULL;
}

bool
past_hits_tally(struct past_hits *past, const struct ex_watch *watch,
    const struct wp_target_tally *tally)
{
	const struct broker_hit which = {
		.watch = tally->watch, .stack = tally->stack,
	};
	const struct past_hits_row *row = ex_table_get(&past->rows,
	    key_of(&which));
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
past_hits_free(struct past_hits *past)
{
	/* it refers to backtraces of the rows */
	summary_free(past->summary);
	ex_table_free(&past->rows, NULL);
	ex_table_free(&past->processes, NULL);
	for (size_t i = 0; i < past->n; i++)
		free(past->at[i]);
	free(past->at);
	*past = (struct past_hits){0};
}
