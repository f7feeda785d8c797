/*
 * crowd: what accesses left that threads made together.  The accesses are
 * written in the order in which they were made, and found in another.
 */
#include "test.h"

#include "hit/concurrent.h"

enum { NOT_KNOWN = -1 };

struct made {
	pid_t tid;
	uint32_t cpu;
	uint64_t since, time;	/* us; time 0 ends a list */
	uint64_t loaded;
	int left;		/* by its registers; NOT_KNOWN */
	int found;		/* what must be found; NOT_KNOWN */
};

static const struct {
	const char *name;
	int before, after;
	struct made made[5];
} cases[] = {
	{"two", 1, 9, {
	    {1, 0, 10, 30, 1, NOT_KNOWN, 5}, {2, 1, 10, 20, 5, NOT_KNOWN, 9}}},
	{"two of which nothing tells the first", NOT_KNOWN, 9, {
	    {1, 0, 10, 30, 1, NOT_KNOWN, NOT_KNOWN},
	    {2, 1, 10, 20, 5, NOT_KNOWN, NOT_KNOWN}}},
	{"two that found the same", 1, 9, {
	    {1, 0, 10, 30, 1, NOT_KNOWN, NOT_KNOWN},
	    {2, 1, 10, 20, 1, NOT_KNOWN, NOT_KNOWN}}},
	{"two of one thread", NOT_KNOWN, NOT_KNOWN, {
	    {1, 0, 10, 20, 1, NOT_KNOWN, 5},
	    {1, 1, 10, 30, 5, NOT_KNOWN, NOT_KNOWN}}},
	{"two on one processor", NOT_KNOWN, 9, {
	    {1, 0, 10, 20, 1, NOT_KNOWN, 5}, {2, 0, 10, 30, 5, NOT_KNOWN, 9}}},
	{"two on processors that are not known", NOT_KNOWN, 9, {
	    {1, UINT32_MAX, 10, 20, 1, NOT_KNOWN, NOT_KNOWN},
	    {2, UINT32_MAX, 10, 30, 5, NOT_KNOWN, NOT_KNOWN}}},
	{"two of which one had not been made", NOT_KNOWN, 9, {
	    {1, 0, 10, 20, 1, NOT_KNOWN, 5}, {2, 1, 22, 30, 5, NOT_KNOWN, 9}}},
	{"two that are too close for that", NOT_KNOWN, 9, {
	    {1, 0, 10, 20, 1, NOT_KNOWN, NOT_KNOWN},
	    {2, 1, 21, 30, 5, NOT_KNOWN, NOT_KNOWN}}},
	{"three", 1, 9, {
	    {1, 0, 10, 30, 1, NOT_KNOWN, NOT_KNOWN},
	    {2, 1, 10, 30, 5, NOT_KNOWN, NOT_KNOWN},
	    {3, 2, 10, 30, 6, NOT_KNOWN, NOT_KNOWN}}},
	{"three, in any order, with the same at their ends", 1, 6, {
	    {1, 0, 10, 30, 1, NOT_KNOWN, 6},
	    {2, 1, 10, 30, 6, NOT_KNOWN, 6},
	    {3, 2, 10, 30, 6, NOT_KNOWN, 6}}},
	{"three, one known", 1, 9, {
	    {1, 0, 10, 30, 1, 5, 5},
	    {2, 1, 10, 30, 5, NOT_KNOWN, 6},
	    {3, 2, 10, 30, 6, NOT_KNOWN, 9}}},
	{"three, the last one known", 1, 9, {
	    {1, 0, 10, 30, 1, NOT_KNOWN, 5},
	    {2, 1, 10, 30, 5, NOT_KNOWN, 6},
	    {3, 2, 10, 30, 6, 9, 9}}},
	{"one after or before the second of another processor", 1, 9, {
	    {1, 0, 10, 20, 1, NOT_KNOWN, NOT_KNOWN},
	    {2, 1, 10, 25, 5, NOT_KNOWN, NOT_KNOWN},
	    {3, 0, 10, 30, 6, NOT_KNOWN, NOT_KNOWN}}},
	{"one before the second of another processor", 1, 9, {
	    {1, 0, 10, 20, 1, NOT_KNOWN, 5},
	    {2, 1, 10, 18, 5, NOT_KNOWN, 6},
	    {3, 0, 10, 30, 6, NOT_KNOWN, 9}}},
	{"what cannot have been", 1, 9, {
	    {1, 0, 10, 20, 1, 4, 4},
	    {2, 1, 10, 25, 5, NOT_KNOWN, NOT_KNOWN}}},
};

static size_t
make(struct ex_concurrent *crowd, size_t c, size_t turn)
{
	size_t n = 0;

	while (cases[c].made[n].time != 0)
		n++;
	*crowd = (struct ex_concurrent){
		.n = n, .has_before = cases[c].before != NOT_KNOWN,
		.has_after = cases[c].after != NOT_KNOWN,
		.before = (uint64_t)cases[c].before,
		.after = (uint64_t)cases[c].after,
	};
	for (size_t i = 0; i < n; i++) {
		const struct made *m = &cases[c].made[i];

		crowd->access[(i + turn) % n] = (struct ex_concurrent_access){
			.tid = m->tid, .cpu = m->cpu, .loaded = m->loaded,
			.since = m->since * 1000, .time = m->time * 1000,
			.has_left = m->left != NOT_KNOWN,
			.left = (uint64_t)m->left,
		};
	}
	return n;
}

TEST(reports_what_holds_in_all_orders)
{
	struct ex_concurrent crowd;

	for (size_t c = 0; c < COUNT(cases); c++)
		for (size_t turn = 0; turn < make(&crowd, c, 0); turn++) {
			const size_t n = make(&crowd, c, turn);

			ex_concurrent_solve(&crowd);
			for (size_t i = 0; i < n; i++) {
				const struct ex_concurrent_access *a =
				    &crowd.access[(i + turn) % n];
				const int found = a->has_left ? (int)a->left :
				    NOT_KNOWN;

				if (found != cases[c].made[i].found)
					fail_msg("%s, access %zu: %d",
					    cases[c].name, i, found);
			}
		}
}

/* After an addition, the flags are those of what it left: of the carry out of
   the low four bits, if nothing else. */
TEST(reports_what_flags_show)
{
	enum { AF = 1 << 4, PF = 1 << 2 };
	static const struct {
		uint64_t flags[2];	/* of what found 5, and 9 */
		bool found;
	} shown[] = {
		/* 1, 5, 9, 16, but for the flags also 1, 9, 5, 16 */
		{{PF, AF}, true}, {{0, AF | PF}, false},
	};

	for (size_t c = 0; c < COUNT(shown); c++) {
		struct ex_effect effect[2] = {
			{.size = 8, .added = true, .has_flags = true,
			    .flags = shown[c].flags[0]},
			{.size = 8, .added = true, .has_flags = true,
			    .flags = shown[c].flags[1]},
		};
		struct ex_concurrent crowd = {
			.n = 3, .has_before = true, .has_after = true,
			.before = 1, .after = 16, .access = {
			{.tid = 1, .cpu = 0, .time = 30000, .loaded = 1},
			{.tid = 2, .cpu = 1, .time = 30000, .loaded = 5,
			    .added = &effect[0]},
			{.tid = 3, .cpu = 2, .time = 30000, .loaded = 9,
			    .added = &effect[1]}},
		};

		ex_concurrent_solve(&crowd);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(crowd.access[i].has_left,
			    shown[c].found);
		if (shown[c].found)
			assert_int_equal(crowd.access[1].left, 9);
	}
}

/* As many as there may be, in any order: it takes no time, and tells
   nothing. */
TEST(gives_up)
{
	struct ex_concurrent crowd = {.n = EX_CROWD_MAX, .has_before = true};

	for (size_t i = 0; i < crowd.n; i++)
		crowd.access[i] = (struct ex_concurrent_access){
			.tid = (pid_t)i + 1, .cpu = (uint32_t)i, .time = 1000,
			.loaded = i,
		};
	ex_concurrent_solve(&crowd);
	for (size_t i = 0; i < crowd.n; i++)
		assert_false(crowd.access[i].has_left);
}

RUN_TESTS()
