/*
 * channel_post: the queue of hits, on the program's side.
 *
 * All of it is called by the signal handler: async-signal-safe, and errno is
 * left as it was.
 */
#include "handler/channel.h"
#include "handler/channel_futex.h"

static struct wp_channel *family;	/* the root channel; NULL if there is
					   only one */

void
wp_channel_set_root(struct wp_channel *root)
{
	family = root;
}

static struct wp_channel *
root_of(struct wp_channel *channel)
{
	return family != NULL ? family : channel;
}

/* The word `helper' is 0 until the helper has started (see Life in
   channel.h). */
static bool
helper_lives(struct wp_channel *channel)
{
	uint32_t word = atomic_load(&root_of(channel)->helper);

	return (word & FUTEX_TID_MASK) != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

bool
wp_channel_has_helper(struct wp_channel *channel)
{
	return atomic_load(&channel->ready) != 0 && helper_lives(channel);
}

bool
wp_channel_alive(struct wp_channel *channel)
{
	return wp_channel_has_helper(channel) &&
	    atomic_load(&channel->program) == getpid();
}

/* Wait until *word differs from value.  Returns false if the helper has
   died. */
static bool
outwait(struct wp_channel *channel, const _Atomic uint32_t *word,
    uint32_t value)
{
	while (atomic_load(word) == value) {
		if (!helper_lives(channel))
			return atomic_load(word) != value;
		(void)wp_futex_wait(word, value, WP_FUTEX_PATIENCE);
	}
	return true;
}

/* No hit is dropped: while all cells are full, the thread waits here for the
   helper. */
struct wp_cell *
wp_channel_take(struct wp_channel *channel, uint32_t *ticket)
{
	struct wp_cell *cell;
	uint32_t turn;

	if (!wp_channel_has_helper(channel))
		return NULL;
	*ticket = atomic_fetch_add(&channel->ticket, 1);
	cell = &channel->cell[*ticket % WP_CELLS];
	while ((turn = atomic_load(&cell->turn)) != *ticket)
		if (!outwait(channel, &cell->turn, turn))
			return NULL;
	return cell;
}

void
wp_channel_post(struct wp_channel *channel, struct wp_cell *cell,
    uint32_t ticket)
{
	atomic_store(&cell->turn, ticket + 1);
	wp_channel_ring(channel);
}

bool
wp_channel_wait(struct wp_channel *channel, struct wp_cell *cell,
    uint32_t ticket)
{
	return outwait(channel, &cell->turn, ticket + 1);
}

void
wp_channel_give(struct wp_cell *cell, uint32_t ticket)
{
	atomic_store(&cell->turn, ticket + WP_CELLS);
	wp_futex_wake(&cell->turn);
}

/* The helper sets `asleep' before it reads the bell for the last time, so
   either it sees the new value or this thread sees that it has to wake it. */
void
wp_channel_ring(struct wp_channel *channel)
{
	struct wp_channel *root = root_of(channel);

	atomic_fetch_add(&root->bell, 1);
	if (atomic_load(&root->asleep) != 0)
		wp_futex_wake(&root->bell);
}
