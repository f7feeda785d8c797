/* stack_counts: hits that are only counted.  See stack_counts.h. */
#include "attach/stack_counts.h"

#include <stdlib.h>
#include <string.h>

#include "os/array.h"
#include "os/clock.h"

/* The number of stacks that can be counted, and the ns after which a table that
   is too full is cleared. */
#define STACKS ((size_t)WP_STACK_TABLE_ROWS / 2)
#define CLEAR_EACH (UINT64_C(5) * 1000000000)

struct wp_stack_counts *
wp_stack_counts_new(void)
{
	struct wp_stack_counts *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->table.map = -1;
	t->row = calloc(WP_STACK_TABLE_ROWS, sizeof(*t->row));
	if (t->row == NULL || wp_stack_table_open(&t->table) < 0) {
		wp_stack_counts_free(t);
		return NULL;
	}
	return t;
}

void
wp_stack_counts_free(struct wp_stack_counts *t)
{
	if (t == NULL)
		return;
	wp_stack_table_close(&t->table);
	free(t->stack);
	free(t->row);
	free(t);
}

/* Give the stack the next number.  Returns 0 if there is none left. */
static uint64_t
add_stack(struct wp_stack_counts *t, const struct wp_known_stack *stack,
    uint64_t slot)
{
	if (t->done || t->n == STACKS || WP_ARRAY_ROOM(t, stack) < 0)
		return 0;
	t->stack[t->n] = (struct wp_stack_counts_stack){
		.stack = *stack, .slot = slot, .until = UINT64_MAX,
		.known = true,
	};
	return t->base + ++t->n;
}

static void
know(struct wp_stack_counts *t, const struct wp_known *known,
    const struct wp_known_stack *stack, uint64_t slot)
{
	const uint64_t number = add_stack(t, stack, slot);

	if (!wp_known_add(known, stack, number, slot) && number != 0)
		t->n--;
}

void
wp_stack_counts_forget(struct wp_stack_counts *t, pid_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (pid == 0 || t->stack[i].stack.pid == pid)
			t->stack[i].known = false;
}

/* Whether a return address of the stack may lie in this range. */
static bool
is_in(const struct wp_known_stack *stack, uint64_t from, uint64_t to)
{
	/* a return address may be at the end of the mapping of its call */
	bool in = stack->pc >= from && stack->pc - 1 < to;

	for (unsigned i = 0; !in && i < stack->n; i++)
		in = (stack->place[i] & WP_KNOWN_RELATIVE) == 0 &&
		    stack->word[i] >= from && stack->word[i] - 1 < to;
	return in;
}

/* Whether the stack may be of code that is no longer mapped there: the
   explainer may learn of changes late. */
static bool
is_stale(const struct wp_stack_counts *t, const struct wp_known_stack *stack)
{
	const size_t n = t->nmappings < WP_TALLIED_MAPPINGS ? t->nmappings :
	    WP_TALLIED_MAPPINGS;
	bool stale = stack->time < t->forgotten;

	for (size_t i = 0; !stale && i < n; i++) {
		const struct wp_stack_counts_mapping *m = &t->mapping[i];

		stale = m->pid == stack->pid && m->time >= stack->time &&
		    is_in(stack, m->from, m->to);
	}
	return stale;
}

void
wp_stack_counts_know(struct wp_stack_counts *t, const struct wp_known *known,
    const struct wp_known_stack *stack, uint64_t slot)
{
	if (is_stale(t, stack))
		(void)wp_known_add(known, stack, 0, 0);
	else
		know(t, known, stack, slot);
}

static void
add_mapping(struct wp_stack_counts *t,
    const struct wp_stack_counts_mapping *mapping)
{
	struct wp_stack_counts_mapping *m =
	    &t->mapping[t->nmappings++ % WP_TALLIED_MAPPINGS];

	if (m->time > t->forgotten)
		t->forgotten = m->time;
	*m = *mapping;
}

void
wp_stack_counts_remapped(struct wp_stack_counts *t, pid_t pid, uint64_t from,
    uint64_t to, uint64_t time)
{
	add_mapping(t, &(struct wp_stack_counts_mapping){pid, from, to, time});
	for (size_t i = 0; i < t->n; i++) {
		struct wp_stack_counts_stack *stack = &t->stack[i];

		if (stack->stack.pid == pid && stack->until > time &&
		    is_in(&stack->stack, from, to))
			stack->until = time;
	}
}

/* The stack of a row, or NULL if the row is free or its counts are not
   wanted. */
static const struct wp_stack_counts_stack *
stack_of(const struct wp_stack_counts *t, uint64_t owner)
{
	const uint32_t number = (uint32_t)owner - t->base;

	return owner == 0 || number == 0 || number > t->n ? NULL :
	    &t->stack[number - 1];
}

static void
look_at(struct wp_stack_counts *t, unsigned i)
{
	struct wp_stack_counts_row *row = &t->row[i];
	const struct wp_stack_counts_stack *stack =
	    stack_of(t, row->seen.owner);

	if (stack != NULL && row->seen.last >= stack->until)
		row->left = true;
	if (row->left)
		return;
	if (stack != NULL)
		row->sure = row->seen;
	if (!wp_stack_table_read(&t->table, i, &row->seen))
		row->seen.owner = 0;
}

bool
wp_stack_counts_look(struct wp_stack_counts *t, uint64_t horizon)
{
	if (horizon < t->seen)
		return false;
	for (unsigned i = 0; i < WP_STACK_TABLE_ROWS; i++)
		look_at(t, i);
	t->seen = wp_clock_ns();
	return (wp_stack_table_refused(&t->table) > 0 || t->n == STACKS) &&
	    wp_clock_ns() - t->cleared > CLEAR_EACH;
}

/* Report what a row has counted since the last time. */
static void
show(struct wp_stack_counts_row *row, const struct wp_stack_counts_stack *stack,
    void (*fn)(void *, const struct wp_target_tally *), void *arg)
{
	const struct wp_stack_row *sure = &row->sure;

	fn(arg, &(struct wp_target_tally){
		.watch = stack->stack.watch,
		.stack = stack->stack.stack,
		.source = stack->stack.value.source,
		.pid = stack->stack.pid,
		.tid = (pid_t)(sure->owner >> 32),
		.count = sure->count - row->shown,
		.first = sure->first, .last = sure->last,
		.values = sure->values - row->shown_values,
		.has_first = sure->values > 0 && sure->at_first == 0,
		.has_last = sure->values > 0 &&
		    sure->at_last == sure->count - 1,
		.first_value = sure->first_value,
		.last_value = sure->last_value,
		.least = sure->least, .largest = sure->largest,
		.least_signed = sure->least_signed,
		.largest_signed = sure->largest_signed,
	});
	row->shown = sure->count;
	row->shown_values = sure->values;
}

void
wp_stack_counts_show(struct wp_stack_counts *t,
    void (*fn)(void *, const struct wp_target_tally *), void *arg)
{
	for (unsigned i = 0; i < WP_STACK_TABLE_ROWS; i++) {
		const struct wp_stack_counts_stack *stack =
		    stack_of(t, t->row[i].sure.owner);

		if (stack != NULL && t->row[i].sure.count > t->row[i].shown)
			show(&t->row[i], stack, fn, arg);
	}
}

void
wp_stack_counts_take(struct wp_stack_counts *t,
    void (*fn)(void *, const struct wp_target_tally *), void *arg)
{
	for (unsigned look = 0; look < 2; look++)
		(void)wp_stack_counts_look(t, UINT64_MAX);
	wp_stack_counts_show(t, fn, arg);
	for (unsigned i = 0; i < WP_STACK_TABLE_ROWS; i++) {
		t->row[i].seen.owner = t->row[i].sure.owner = 0;
		t->row[i].left = true;
	}
}

void
wp_stack_counts_renew(struct wp_stack_counts *t, const struct wp_known *known,
    bool settled)
{
	const size_t n = t->n;

	t->base += (uint32_t)n;
	t->n = 0;
	t->done = !settled;
	if (t->done)
		return;
	wp_stack_table_clear(&t->table);
	memset(t->row, 0, WP_STACK_TABLE_ROWS * sizeof(*t->row));
	t->cleared = wp_clock_ns();
	for (size_t i = 0; i < n; i++) {
		const struct wp_stack_counts_stack stack = t->stack[i];

		if (stack.known && stack.until == UINT64_MAX)
			know(t, known, &stack.stack, stack.slot);
	}
}
