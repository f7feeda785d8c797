/* concurrent: the value that each of several simultaneous accesses left. */
#include "hit/concurrent.h"

/* ns by which the clocks of processors may differ */
#define SKEW UINT64_C(1000)

/* limits the search: accesses tried as the next one, in all */
enum { STEPS_MAX = 20000 };

/* The search through all possible orders. */
struct order_search {
	const struct ex_concurrent *crowd;
	unsigned after[EX_CROWD_MAX];	/* bit j: must come after access j */
	size_t order[EX_CROWD_MAX];
	unsigned steps;
	bool found;		/* there is a possible order */
	bool certain[EX_CROWD_MAX];	/* the access left the same value in
					   all of them */
	uint64_t left[EX_CROWD_MAX];
};

/* Accesses of one thread, or on one processor, happen in the order of their
   times, because nothing else runs there before the time is taken. */
static bool
comes_next(const struct ex_concurrent_access *a,
    const struct ex_concurrent_access *b)
{
	return a->time > b->time && (a->tid == b->tid ||
	    (a->cpu == b->cpu && a->cpu != UINT32_MAX));
}

/* Find out after which others each access must come. */
static void
find_order(struct order_search *s)
{
	const struct ex_concurrent *crowd = s->crowd;

	for (size_t i = 0; i < crowd->n; i++) {
		const struct ex_concurrent_access *a = &crowd->access[i];
		uint64_t since = a->since;

		for (size_t j = 0; j < crowd->n; j++)
			if (comes_next(a, &crowd->access[j])) {
				s->after[i] |= 1u << j;
				if (crowd->access[j].time > since)
					since = crowd->access[j].time;
			}
		for (size_t j = 0; j < crowd->n; j++)
			if (since > crowd->access[j].time + SKEW)
				s->after[i] |= 1u << j;
	}
}

/* What the n-th access in the order left: what is known by itself, or what the
   next one found; for the last, what was there afterwards. */
static bool
left_by(const struct order_search *s, size_t n, uint64_t *left)
{
	const struct ex_concurrent *crowd = s->crowd;
	const struct ex_concurrent_access *access = &crowd->access[s->order[n]];

	if (access->has_left)
		*left = access->left;
	else if (n + 1 < crowd->n)
		*left = crowd->access[s->order[n + 1]].loaded;
	else
		*left = crowd->after;
	return access->has_left || n + 1 < crowd->n || crowd->has_after;
}

/* A complete order was found; keep what it has in common with the previous
   ones. */
static void
take_order(struct order_search *s)
{
	for (size_t n = 0; n < s->crowd->n; n++) {
		const size_t i = s->order[n];
		uint64_t left = 0;
		const bool known = left_by(s, n, &left);

		if (!s->found) {
			s->certain[i] = known;
			s->left[i] = left;
		} else {
			s->certain[i] &= known && s->left[i] == left;
		}
	}
	s->found = true;
}

static bool
may_leave(const struct ex_concurrent_access *a, uint64_t left)
{
	return a->has_left ? a->left == left :
	    a->added == NULL || ex_effect_may_add(a->added, a->loaded, left);
}

/* Whether the n-th access found what the one before it left. */
static bool
is_possible(const struct order_search *s, size_t n)
{
	const struct ex_concurrent *crowd = s->crowd;
	const struct ex_concurrent_access *access = &crowd->access[s->order[n]];

	if (n + 1 == crowd->n && crowd->has_after &&
	    !may_leave(access, crowd->after))
		return false;
	if (n == 0)
		return !crowd->has_before || access->loaded == crowd->before;
	return may_leave(&crowd->access[s->order[n - 1]], access->loaded);
}

/* Try each access that can be the n-th; those in the mask have their places. */
static void
place(struct order_search *s, size_t n, unsigned mask)
{
	if (n == s->crowd->n) {
		take_order(s);
		return;
	}
	for (size_t i = 0; i < s->crowd->n && s->steps < STEPS_MAX; i++) {
		if ((mask >> i & 1) != 0 || (s->after[i] & ~mask) != 0)
			continue;
		s->steps++;
		s->order[n] = i;
		if (is_possible(s, n))
			place(s, n + 1, mask | 1u << i);
	}
}

void
ex_concurrent_solve(struct ex_concurrent *crowd)
{
	struct order_search s = {.crowd = crowd};

	find_order(&s);
	place(&s, 0, 0);
	if (s.steps >= STEPS_MAX)
		return;
	for (size_t i = 0; i < crowd->n; i++)
		if (s.certain[i]) {
			crowd->access[i].has_left = true;
			crowd->access[i].left = s.left[i];
		}
}
