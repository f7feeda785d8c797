/*
 * tallied: what rows of a table come to, which is filled as programs fill it.
 */
#include "test.h"

#include "attach/stack_counts.h"
#include "live.h"
#include "os/clock.h"

enum { PID = 7, SLOT = 1, TEXT = 0x1000, OTHER = 0x9000 };

static struct wp_known known;
static struct wp_stack_counts *tallied;
static struct wp_target_tally taken[8];
static unsigned ntaken;

static void
take_one(void *arg, const struct wp_target_tally *tally)
{
	assert_ptr_equal(arg, taken);
	assert_true(ntaken < COUNT(taken));
	taken[ntaken++] = *tally;
}

/* False: there is no BPF for it. */
static bool
begin_tallies(void)
{
	const int err = wp_known_open(&known, 1);

	ntaken = 0;
	if (err == 0 && (tallied = wp_stack_counts_new()) != NULL)
		return true;
	print_message("a BPF array: %s\n", strerror(err == 0 ? ENOMEM : -err));
	wp_known_close(&known);
	return false;
}
#define NEEDS_ARRAYS if (!begin_tallies()) skip()

static void
end_tallies(void)
{
	wp_stack_counts_free(tallied);
	wp_known_close(&known);
}

/* One that was called from there; it has the next number. */
static void
know(uint64_t from, uint32_t number)
{
	const struct wp_known_stack stack = {
		.pc = TEXT, .sp = 0x7000 + 0x100 * number, .pid = PID, .n = 1,
		.word = {from}, .watch = 1, .stack = number,
	};

	wp_stack_counts_know(tallied, &known, &stack, SLOT);
}

/* A row has so many hits, the last at that time. */
static void
count(unsigned row, uint32_t number, uint64_t hits, uint64_t last)
{
	struct wp_stack_row *t = &tallied->table.row[row];

	t->owner = wp_stack_row_owner(100 + row, number);
	t->first = 1;
	t->last = last;
	t->begun = t->count = hits;
}

static void
take(void)
{
	wp_stack_counts_take(tallied, take_one, taken);
}

/* Each once. */
TEST(what_was_counted_is_taken_once)
{
	NEEDS_ARRAYS;
	know(OTHER, 1);
	know(OTHER, 2);
	count(0, 1, 5, 10);
	count(9, 2, 3, 20);
	count(10, 2, 4, 30);
	take();
	assert_int_equal(ntaken, 3);
	assert_int_equal(taken[0].stack, 1);
	assert_int_equal(taken[0].tid, 100);
	assert_int_equal(taken[0].count, 5);
	assert_int_equal(taken[1].stack, 2);
	assert_int_equal(taken[2].tid, 110);
	assert_int_equal(taken[2].last, 30);
	take();
	assert_int_equal(ntaken, 3);
	end_tallies();
}

/* And what was shown is not taken again: each hit is told once. */
TEST(what_was_shown_is_not_taken)
{
	NEEDS_ARRAYS;
	know(OTHER, 1);
	count(0, 1, 5, 10);
	count(1, 1, 3, 20);
	wp_stack_counts_show(tallied, take_one, taken);
	assert_int_equal(ntaken, 0);	/* nobody has looked */
	for (unsigned look = 0; look < 2; look++)
		(void)wp_stack_counts_look(tallied, UINT64_MAX);
	count(1, 1, 4, 25);
	wp_stack_counts_show(tallied, take_one, taken);
	assert_int_equal(ntaken, 2);
	assert_int_equal(taken[0].count, 5);
	assert_int_equal(taken[1].count, 3);
	wp_stack_counts_show(tallied, take_one, taken);
	assert_int_equal(ntaken, 2);
	take();
	assert_int_equal(ntaken, 3);
	assert_int_equal(taken[2].count, 1);
	assert_int_equal(taken[2].last, 25);
	end_tallies();
}

/* Nothing later than that mapping, or back to the last look. */
TEST(what_may_be_of_other_code_is_left_out)
{
	NEEDS_ARRAYS;
	know(OTHER, 1);
	know(OTHER + 0x1000, 2);
	count(0, 1, 5, 10);
	count(1, 2, 6, 10);
	count(2, 1, 7, 10);
	(void)wp_stack_counts_look(tallied, UINT64_MAX);
	wp_stack_counts_remapped(tallied, PID + 1, 0, UINT64_MAX, 11);
	wp_stack_counts_remapped(tallied, PID, OTHER, OTHER + 0x800, 15);
	count(0, 1, 9, 15);
	count(1, 2, 9, 15);
	count(2, 1, 8, 14);
	take();
	assert_int_equal(ntaken, 3);
	assert_int_equal(taken[0].count, 5);
	assert_int_equal(taken[1].count, 9);
	assert_int_equal(taken[2].count, 8);
	end_tallies();
}

/* Nor what was seen while nothing was known of the mapping; and nothing is
   certain before all is known up to then. */
TEST(a_reading_is_certain_once_mappings_are_known)
{
	NEEDS_ARRAYS;
	know(OTHER, 1);
	know(OTHER + 0x1000, 2);
	count(0, 1, 5, 10);
	count(1, 2, 6, 10);
	(void)wp_stack_counts_look(tallied, UINT64_MAX);
	(void)wp_stack_counts_look(tallied, 9);
	assert_int_equal(tallied->row[0].sure.owner, 0);
	wp_stack_counts_remapped(tallied, PID, OTHER, OTHER + 0x800, 9);
	(void)wp_stack_counts_look(tallied, UINT64_MAX);
	assert_int_equal(tallied->row[1].sure.count, 6);
	take();
	assert_int_equal(ntaken, 1);
	assert_int_equal(taken[0].stack, 2);
	end_tallies();
}

/* A row that is being written is not as it was at one moment. */
TEST(a_row_that_is_written_is_not_read)
{
	struct wp_stack_row row;

	NEEDS_ARRAYS;
	know(OTHER, 1);
	count(0, 1, 5, 10);
	assert_true(wp_stack_table_read(&tallied->table, 0, &row));
	tallied->table.row[0].begun++;
	assert_false(wp_stack_table_read(&tallied->table, 0, &row));
	end_tallies();
}

/* The stack of a hit from before that mapping; or as old as one of which
   nothing is known any more. */
TEST(what_becomes_known_too_late_is_not_counted)
{
	NEEDS_ARRAYS;
	wp_stack_counts_remapped(tallied, PID, OTHER, OTHER + 0x800, 15);
	know(OTHER, 1);
	assert_int_equal(tallied->n, 0);
	know(OTHER + 0x1000, 1);
	assert_int_equal(tallied->n, 1);
	for (unsigned i = 0; i < WP_TALLIED_MAPPINGS; i++)
		wp_stack_counts_remapped(tallied, PID + 1, 0, 1, 16);
	know(OTHER + 0x2000, 2);
	assert_int_equal(tallied->n, 1);
	end_tallies();
}

/* A call may be the last that was mapped. */
TEST(a_call_ends_where_its_mapping_does)
{
	NEEDS_ARRAYS;
	know(OTHER, 1);
	know(OTHER, 2);
	count(0, 1, 5, 20);
	wp_stack_counts_remapped(tallied, PID, OTHER - 0x1000, OTHER, 15);
	take();
	assert_int_equal(ntaken, 0);
	end_tallies();
}

/* With other numbers: what is counted by old ones is nobody's. */
TEST(counting_restarts_with_the_known_stacks)
{
	NEEDS_ARRAYS;
	know(OTHER, 1);
	know(OTHER, 2);
	count(0, 1, 5, 10);
	take();
	wp_known_forget(&known, 0);
	wp_stack_counts_renew(tallied, &known, true);
	assert_int_equal(tallied->n, 2);
	count(3, 1, 5, 10);
	count(4, 4, 6, 10);
	ntaken = 0;
	take();
	assert_int_equal(ntaken, 1);
	assert_int_equal(taken[0].stack, 2);
	assert_int_equal(taken[0].count, 6);
	wp_stack_counts_remapped(tallied, PID, OTHER - 1, OTHER + 1, 30);
	wp_known_forget(&known, 0);
	wp_stack_counts_renew(tallied, &known, true);
	assert_int_equal(tallied->n, 0);
	know(OTHER + 0x1000, 1);
	assert_int_equal(tallied->n, 1);
	wp_stack_counts_forget(tallied, 0);
	wp_stack_counts_renew(tallied, &known, true);
	assert_int_equal(tallied->n, 0);
	end_tallies();
}

/* Where programs may still be at the table, what they add to is done with. */
TEST(a_table_still_in_use_is_not_cleared)
{
	NEEDS_ARRAYS;
	know(OTHER, 1);
	count(0, 1, 5, 10);
	take();
	wp_stack_counts_renew(tallied, &known, false);
	count(0, 1, 9, 20);
	count(1, 1, 9, 20);
	take();
	assert_int_equal(ntaken, 1);
	know(OTHER + 0x1000, 2);
	assert_int_equal(tallied->n, 0);
	end_tallies();
}

int
main(void)
{
	return run_live_tests();
}
