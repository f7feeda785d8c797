/*
 * channel_post: the queue of hits, on the program's side.
 *
 * All of it is called by the signal handler: async-signal-safe, and errno is
 * left as it was.
 */
#include "handler/channel.h"
#include "handler/channel_futex.h"

static struct wp_channel *family;	/* the root; NULL: none but one */

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

/* By the word `helper' (see Life in channel.h), which is 0 before the helper
   has come. */
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

/* Wait while *word is value: true once it is not, false when the helper is
   dead. */
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

/* No hit is ever dropped: when all cells are full, hits wait here for the
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

/* The helper says that it will sleep before it looks at the bell for the last
   time, so one of the two is seen. */
void
wp_channel_ring(struct wp_channel *channel)
{
	struct wp_channel *root = root_of(channel);

	atomic_fetch_add(&root->bell, 1);
	if (atomic_load(&root->asleep) != 0)
		wp_futex_wake(&root->bell);
}
