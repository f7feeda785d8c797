/* held: the newest hits, explained. */
#include "report/held.h"

#include <stdlib.h>

struct held {
	size_t most, room;	/* hits, and their samples */
	size_t from, n;		/* those that are there, modulo most */
	size_t samples;		/* of these */
	struct ex_hit hit[];
};

struct held *
held_new(size_t hits, size_t samples)
{
	struct held *held = malloc(sizeof(*held) + hits * sizeof(*held->hit));

	if (held != NULL)
		*held = (struct held){.most = hits, .room = samples};
	return held;
}

void
held_free(struct held *held)
{
	free(held);
}

bool
held_is_full(const struct held *held, const struct ex_hit *hit)
{
	return held->n > 0 && (held->n == held->most ||
	    held->samples + hit->samples > held->room);
}

void
held_put(struct held *held, const struct ex_hit *hit)
{
	held->hit[(held->from + held->n++) % held->most] = *hit;
	held->samples += hit->samples;
}

struct ex_hit *
held_first(struct held *held)
{
	return held->n == 0 ? NULL : &held->hit[held->from];
}

void
held_pop(struct held *held)
{
	held->samples -= held->hit[held->from].samples;
	held->from = (held->from + 1) % held->most;
	held->n--;
}
