/*
 * program_action: the action that the program has set for a signal that watches
 * use, too.
 *
 * It may change at any time, while handlers in other threads read it.  So the
 * new action is written beside the present one, and then becomes that.  A
 * reader that was overtaken by two changes may have read a mixture, and reads
 * again; it waits for nobody.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "handler/trap.h"

static struct sigaction
look(const struct wp_program_action *w, uint32_t *turn)
{
	struct sigaction action;

	do {
		*turn = atomic_load(&w->turn);
		action = w->action[*turn % 2];
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load(&w->turn) != *turn);
	return action;
}

struct sigaction
wp_program_action(const struct wp_program_action *w)
{
	uint32_t turn;
	struct sigaction action = look(w, &turn);

	if (atomic_load(&w->spent) == turn)
		action = (struct sigaction){.sa_handler = SIG_DFL};
	return action;
}

/* If two signals find the same action that is good for one of them only
   (SA_RESETHAND), the first one takes it. */
struct sigaction
wp_program_action_take(struct wp_program_action *w)
{
	uint32_t turn, spent = atomic_load(&w->spent);
	struct sigaction action = look(w, &turn);

	if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
	    (action.sa_flags & (int)SA_RESETHAND) == 0)
		return action;
	while ((int32_t)(turn - spent) > 0)
		if (atomic_compare_exchange_strong(&w->spent, &spent, turn))
			return action;
	return (struct sigaction){.sa_handler = SIG_DFL};
}

void
wp_program_action_set(struct wp_program_action *w,
    const struct sigaction *action)
{
	const uint32_t turn = atomic_load(&w->turn) + 1;

	w->action[turn % 2] = *action;
	atomic_store(&w->turn, turn);
}
