/* summary: rows, counts, threads and order. */
#include "test.h"

#include "report/summary.h"

static const struct ex_watch watches[] = {{.id = 1}, {.id = 2}};
static const struct ex_stack stacks[] = {{.id = 1}, {.id = 2, .index = 1}};

static struct ex_hit
hit(uint64_t seq, unsigned watch, const struct ex_stack *stack, pid_t tid,
    uint64_t time)
{
	return (struct ex_hit){.seq = seq, .watch = &watches[watch],
	    .stack = stack, .tid = tid, .time = time, .access = "write"};
}

TEST(counts_by_watch_and_backtrace)
{
	const struct ex_hit hits[] = {
		hit(1, 0, &stacks[0], 10, 100),
		hit(2, 0, &stacks[1], 11, 200),
		hit(3, 1, &stacks[1], 12, 300),
		hit(4, 0, &stacks[1], 10, 400),
		hit(5, 0, &stacks[1], 11, 350),
		hit(6, 0, NULL, 11, 500),
	};
	struct summary *s = summary_new(SUMMARY_ROWS);
	const struct summary_row *row;

	assert_non_null(s);
	assert_int_equal(summary_rows(s, &row), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct ex_hit h = hits[i];

		h.stray = h.stack == &stacks[1];
		assert_int_equal(summary_add(s, &h, NULL), 0);
	}
	assert_int_equal(summary_rows(s, &row), 4);

	/* three of one, then those of one hit in order of their hits */
	assert_ptr_equal(row[0].stack, &stacks[1]);
	assert_ptr_equal(row[0].watch, &watches[0]);
	assert_int_equal(row[0].count, 3);
	assert_int_equal(row[0].first_seq, 2);
	assert_int_equal(row[0].first, 200);
	assert_int_equal(row[0].last, 400);
	assert_int_equal(row[0].nthreads, 2);
	assert_int_equal(row[0].threads[0], 11);
	assert_int_equal(row[0].threads[1], 10);
	assert_string_equal(row[0].access, "write");
	assert_true(row[0].stray);
	assert_false(row[1].stray);
	assert_int_equal(row[1].first_seq, 1);
	assert_int_equal(row[2].first_seq, 3);
	assert_ptr_equal(row[2].watch, &watches[1]);
	assert_int_equal(row[3].first_seq, 6);
	assert_null(row[3].stack);
	summary_free(s);
}

TEST(gives_the_row_of_a_hit)
{
	struct summary *s = summary_new(SUMMARY_ROWS);
	struct summary_row *row;

	for (uint64_t i = 1; i <= 3; i++) {
		struct ex_hit h = hit(i + 6, 0, &stacks[0], 10, i);

		assert_int_equal(summary_add(s, &h, &row), 0);
		assert_int_equal(row->count, i);
		assert_int_equal(row->first_seq, 7);
	}
	summary_free(s);
}

/* In several processes the same backtrace has an id, and places of their
   own. */
TEST(processes_share_a_row)
{
	static const struct ex_watch in[] = {
		{.id = 1, .number = 1, .pid = 10}, {.id = 2, .number = 2,
		    .pid = 10},
		{.id = 3, .number = 1, .pid = 11}, {.id = 4, .number = 2,
		    .pid = 11},
	};
	static const struct ex_stack of[] = {
		{.id = 7}, {.id = 7, .index = 1}, {.id = 8, .index = 2},
	};
	static const struct {
		unsigned watch, stack;
	} hits[] = {{0, 0}, {2, 1}, {2, 1}, {2, 2}, {3, 1}};
	struct summary *s = summary_new(SUMMARY_ROWS);
	const struct summary_row *row;

	for (unsigned i = 0; i < 5; i++) {
		struct ex_hit h = hit(i + 1, 0, &of[hits[i].stack], in[
		    hits[i].watch].pid, i);

		h.watch = &in[hits[i].watch];
		assert_int_equal(summary_add(s, &h, NULL), 0);
	}
	assert_int_equal(summary_rows(s, &row), 3);
	assert_int_equal(row[0].count, 3);
	assert_int_equal(row[0].nthreads, 2);
	assert_ptr_equal(row[0].watch, &in[0]);
	assert_ptr_equal(row[0].stack, &of[0]);
	assert_int_equal(row[1].first_seq, 4);
	assert_int_equal(row[2].first_seq, 5);
	summary_free(s);
}

/* Many backtraces, each hit by many threads. */
TEST(holds_many)
{
	enum { STACKS = 500, THREADS = 40 };
	static struct ex_stack many[STACKS];
	struct summary *s = summary_new(SUMMARY_ROWS);
	const struct summary_row *rows;

	for (unsigned i = 0; i < STACKS * THREADS; i++) {
		struct ex_hit h = hit(i + 1, 0, &many[i % STACKS],
		    (pid_t)(i / STACKS), i);

		assert_int_equal(summary_add(s, &h, NULL), 0);
		assert_int_equal(summary_add(s, &h, NULL), 0);
	}
	assert_int_equal(summary_rows(s, &rows), STACKS);
	for (unsigned i = 0; i < STACKS; i++) {
		assert_ptr_equal(rows[i].stack, &many[i]);
		assert_int_equal(rows[i].count, 2 * THREADS);
		assert_int_equal(rows[i].nthreads, THREADS);
		for (unsigned j = 0; j < THREADS; j++)
			assert_int_equal(rows[i].threads[j], j);
	}
	summary_free(s);
}

/* Of too many rows the most frequent stay; what the others counted is in one;
   and a backtrace that comes again may have been one of them. */
TEST(keeps_the_most_frequent)
{
	enum { MAX = 8, MANY = 100 };
	static unsigned holders[MANY];
	static struct ex_stack many[MANY];
	struct summary *s = summary_new(MAX);
	const struct summary_row *rows;
	uint64_t counted = 0;
	size_t n;

	assert_non_null(s);
	for (unsigned i = 0; i < MANY; i++)
		many[i] = (struct ex_stack){.id = i + 1, .index = i,
		    .holders = &holders[i]};
	for (unsigned i = 0; i < MANY; i++) {
		struct ex_hit h = hit(2 * i + 1, 0, &many[i], 1, 100 + i);
		assert_int_equal(summary_add(s, &h, NULL), 0);
		h = hit(2 * i + 2, 0, &many[2], 1, 100 + i);
		assert_int_equal(summary_add(s, &h, NULL), 0);
	}
	n = summary_rows(s, &rows);
	assert_in_range(n, MAX / 2 + 1, MAX + 1);
	assert_ptr_equal(rows[0].stack, &many[2]);
	assert_false(rows[0].partial || rows[0].others);
	assert_int_equal(rows[0].count, MANY + 1);
	for (size_t i = 0; i < n; i++) {
		counted += rows[i].count;
		assert_int_equal(rows[i].others, i == n - 1);
		if (i > 0 && i < n - 1)
			assert_true(rows[i].partial && rows[i].count == 1);
	}
	assert_int_equal(counted, 2 * MANY);
	assert_null(rows[n - 1].stack);
	assert_int_equal(rows[n - 1].first_seq, 1);
	assert_int_equal(rows[n - 1].first, 100);
	n = 0;
	for (unsigned i = 0; i < MANY; i++)
		n += holders[i];
	assert_in_range(n, MAX / 2, MAX);
	summary_free(s);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(holders[i], 0);
}

RUN_TESTS()
