/* remote_stacks: the backtraces whose hits wait, and those whose hits need
   not. */
#include "remote/remote_stacks.h"

#include <string.h>

/* Whether hits of the stack are to be counted before a new explainer could know
   its name. */
static bool
is_early(const struct remote_stacks *k, const struct wp_known_stack *stack)
{
	return stack->watch > 0 && !past_hits_has_row(k->past, stack->watch - 1,
	    stack->stack);
}

bool
remote_stacks_go_on(struct remote_stacks *k)
{
	size_t n = 0;
	bool good = true;

	for (size_t i = 0; i < k->n; i++) {
		if (is_early(k, &k->early[i]))
			k->early[n++] = k->early[i];
		else
			good = k->know(k->arg, &k->early[i]) && good;
	}
	k->n = n;
	return good;
}

/* The process has other mappings now. */
static void
forget_early(struct remote_stacks *k, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		if (k->early[i].pid != pid)
			k->early[n++] = k->early[i];
	k->n = n;
}

bool
remote_stacks_take(struct remote_stacks *k,
    const struct broker_message *message)
{
	struct wp_known_stack stack;

	if (message->len != sizeof(stack) || k->know == NULL)
		return false;
	memcpy(&stack, message->text, sizeof(stack));
	if (is_early(k, &stack) && k->n < KEPT_STACKS_EARLY_MAX) {
		k->early[k->n++] = stack;
		return true;
	}
	if (is_early(k, &stack))
		stack.watch = 0;
	return k->know(k->arg, &stack);
}

bool
remote_stacks_take_forget(struct remote_stacks *k,
    const struct broker_message *message)
{
	if (k->know == NULL || message->value[0] == 0 ||
	    message->value[0] > INT32_MAX)
		return false;
	forget_early(k, (pid_t)message->value[0]);
	k->forget(k->arg, (pid_t)message->value[0]);
	return true;
}

void
remote_stacks_died(struct remote_stacks *k)
{
	/* it would have known when to forget them */
	k->n = 0;
	if (k->know != NULL)
		k->forget(k->arg, 0);
}
