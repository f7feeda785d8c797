/* last_hits: the newest hits, explained. */
#include "report/last_hits.h"

#include <stdlib.h>

struct last_hits {
	size_t most, room;	/* hits, and their samples */
	size_t from, n;		/* those that are there, modulo most */
	size_t samples;		/* of these */
	struct ex_hit hit[];
};

struct last_hits *
last_hits_new(size_t hits, size_t samples)
{
	struct last_hits *held = malloc(sizeof(*held) +
	    hits * sizeof(*held->hit));

	if (held != NULL)
		*held = (struct last_hits){.most = hits, .room = samples};
	return held;
}

void
last_hits_free(struct last_hits *held)
{
	free(held);
}

bool
last_hits_is_full(const struct last_hits *held, const struct ex_hit *hit)
{
	return held->n > 0 && (held->n == held->most ||
	    held->samples + hit->samples > held->room);
}

void
last_hits_put(struct last_hits *held, const struct ex_hit *hit)
{
	held->hit[(held->from + held->n++) % held->most] = *hit;
	held->samples += hit->samples;
}

struct ex_hit *
last_hits_first(struct last_hits *held)
{
	return held->n == 0 ? NULL : &held->hit[held->from];
}

void
last_hits_pop(struct last_hits *held)
{
	held->samples -= held->hit[held->from].samples;
	held->from = (held->from + 1) % held->most;
	held->n--;
}
