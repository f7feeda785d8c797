/* hit_filter: decides which hits are reported. */
#include "policy/hit_filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/table.h"

#define SECOND UINT64_C(1000000000)	/* ns */
#define ONCE_MAX (1U << 18)	/* most backtraces remembered as reported */

struct hit_filter {
	const struct options *options;
	struct hit_filter_count *count;	/* by watch id - 1 */
	size_t n, cap;
	struct hit_filter_place at;
	struct ex_table once;		/* what was reported, by key_of */
};

struct hit_filter *
hit_filter_new(const struct options *options)
{
	struct hit_filter *s = calloc(1, sizeof(*s));

	if (s != NULL)
		s->options = options;
	return s;
}

void
hit_filter_free(struct hit_filter *s)
{
	if (s == NULL)
		return;
	ex_table_free(&s->once, NULL);
	free(s->count);
	free(s);
}

/* The counts of a watch, initially 0.  NULL if there is no memory. */
static struct hit_filter_count *
count_of(struct hit_filter *s, size_t watch)
{
	while (s->n <= watch) {
		if (!EX_ARRAY_ROOM(s, count, SIZE_MAX))
			return NULL;
		s->count[s->n++] = (struct hit_filter_count){0};
	}
	return &s->count[watch];
}

static void
count_part(struct hit_filter *s, const struct ex_watch *part)
{
	struct hit_filter_count *count = count_of(s, part->id - 1);

	if (count != NULL)
		count->hits++;
}

uint64_t
hit_filter_hits(const struct hit_filter *s, size_t watch)
{
	return watch < s->n ? s->count[watch].hits : 0;
}

uint64_t
hit_filter_count(struct hit_filter *s, const struct ex_hit *hit)
{
	struct hit_filter_count *count;

	if (hit->part != NULL)
		count_part(s, hit->part);
	count = count_of(s, hit->watch->id - 1);
	if (count != NULL)
		count->hits++;
	else
		s->at.lost = true;
	return s->at.lost ? 0 : count->hits;
}

/* --- what is left out --- */

/* Identifies a backtrace at a watch; late hits, and those that the program
   calls stray, count separately. */
static uint64_t
key_of(const struct ex_hit *hit)
{
	return (uint64_t)hit->watch->id << 34 |
	    (uint64_t)hit->stack->index << 2 | (uint64_t)hit->stray << 1 |
	    (uint64_t)hit->late;
}

/* Whether its backtrace was reported before.  Without memory it counts as
   new. */
static bool
is_repeated(struct hit_filter *s, const struct ex_hit *hit)
{
	return s->options->once && hit->stack != NULL &&
	    ex_table_get(&s->once, key_of(hit)) != NULL;
}

void
hit_filter_recall(struct hit_filter *s, const struct ex_hit *hit)
{
	static char reported;

	if (!s->options->once || hit->stack == NULL ||
	    ex_table_get(&s->once, key_of(hit)) != NULL)
		return;
	if (s->once.n >= ONCE_MAX)
		ex_table_free(&s->once, NULL);
	if (ex_table_reserve(&s->once, 1))
		ex_table_put(&s->once, key_of(hit), &reported);
}

/* Whether the current second is full.  The next one starts with the first hit
   after it. */
static bool
is_too_fast(const struct hit_filter *s, uint64_t time)
{
	return s->options->max_rate != 0 &&
	    s->at.in_second >= s->options->max_rate &&
	    time < s->at.second + SECOND;
}

static void
count_in_second(struct hit_filter *s, uint64_t time)
{
	if (s->at.in_second == 0 || time >= s->at.second + SECOND) {
		s->at.second = time;
		s->at.in_second = 0;
	}
	s->at.in_second++;
}

bool
hit_filter_skips(struct hit_filter *s, const struct ex_hit *hit)
{
	struct hit_filter_count *count = count_of(s, hit->watch->id - 1);
	const uint64_t every = s->options->every;

	if (count != NULL)
		count->passed++;
	if ((every > 1 && count != NULL && count->passed % every != 0) ||
	    is_repeated(s, hit) || is_too_fast(s, hit->time))
		return true;
	hit_filter_recall(s, hit);
	count_in_second(s, hit->time);
	if (count != NULL)
		count->reported++;
	return false;
}

bool
hit_filter_is_full(const struct hit_filter *s, size_t watch)
{
	return s->options->each != 0 && watch < s->n &&
	    s->count[watch].reported >= s->options->each;
}

/* --- going on --- */

void
hit_filter_lost(struct hit_filter *s)
{
	s->at.lost = true;
}

void
hit_filter_took(struct hit_filter *s, const struct ex_watch *watch, bool passed,
    bool reported, uint64_t time)
{
	struct hit_filter_count *count;

	if (watch->whole != NULL) {
		count_part(s, watch);
		watch = watch->whole;
	}
	count = count_of(s, watch->id - 1);
	if (count == NULL) {
		s->at.lost = true;
		return;
	}
	count->hits++;
	count->passed += passed;
	count->reported += reported;
	if (reported)
		count_in_second(s, time);
}

void
hit_filter_state(const struct hit_filter *s, struct hit_filter_place *place,
    const struct hit_filter_count **count, size_t *n)
{
	*place = s->at;
	*count = s->count;
	*n = s->n;
}

bool
hit_filter_resume(struct hit_filter *s, const struct hit_filter_place *place,
    const struct hit_filter_count *count, size_t n)
{
	if (n > 0 && count_of(s, n - 1) == NULL)
		return false;
	s->at = *place;
	for (size_t i = 0; i < n; i++)
		s->count[i] = count[i];
	return true;
}
