/* concurrent: the value that each of several simultaneous accesses left. */
#include "hit/concurrent.h"

/* Times of several processors agree up to this, in ns. */
#define SKEW UINT64_C(1000)

/* How many accesses are tried as the next one, in all. */
enum { STEPS_MAX = 20000 };

/* The orders that are possible, one after another. */
struct search {
	const struct ex_concurrent *crowd;
	unsigned after[EX_CROWD_MAX];	/* bit j: comes after access j */
	size_t order[EX_CROWD_MAX];
	unsigned steps;
	bool found;		/* an order */
	bool certain[EX_CROWD_MAX];	/* it left this in all of them */
	uint64_t left[EX_CROWD_MAX];
};

/* One thread, or one processor, does one thing after another: nothing else runs
   there before the time is taken. */
static bool
comes_next(const struct ex_concurrent_access *a,
    const struct ex_concurrent_access *b)
{
	return a->time > b->time && (a->tid == b->tid ||
	    (a->cpu == b->cpu && a->cpu != UINT32_MAX));
}

/* Find for each one what it comes after. */
static void
find_order(struct search *s)
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

/* What the n-th of the order left, if that is known by itself or by the next;
   the last one's by what is there now. */
static bool
left_by(const struct search *s, size_t n, uint64_t *left)
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

/* All have a place: keep what is so in this order, too. */
static void
take_order(struct search *s)
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

/* Whether what the n-th found is what was there. */
static bool
is_possible(const struct search *s, size_t n)
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

/* Try each one that may be the n-th, if those of the mask have their places. */
static void
place(struct search *s, size_t n, unsigned mask)
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
	struct search s = {.crowd = crowd};

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
