/* learned: learns the writers of each watch, for a policy file (--learn). */
#include "policy/learned.h"

#include <stdlib.h>

#include "policy/by_stack.h"
#include "policy/culprit.h"

/* The writer that was learnt from a backtrace at a watch. */
struct learned_writer {
	const struct ex_watch *watch;	/* NULL if nothing was */
	enum policy_writer writer;
};

struct learned {
	struct policy *policy;
	struct policy_file file;
	struct by_stack taken;
	struct learned_rest rest;
};

struct learned *
learned_new(void)
{
	struct learned *l = calloc(1, sizeof(*l));

	if (l != NULL && (l->policy = policy_new(NULL, 0)) == NULL) {
		free(l);
		return NULL;
	}
	return l;
}

void
learned_free(struct learned *l)
{
	if (l == NULL)
		return;
	policy_free(l->policy);
	policy_file_free(&l->file);
	by_stack_free(&l->taken, sizeof(struct learned_writer));
	free(l);
}

static bool
is_loaders(const struct ex_stack *stack)
{
	const unsigned i = ex_stack_user(stack);

	return i < stack->n && culprit_is_loader(&stack->frame[i]);
}

/* Learn from a backtrace that is new at a watch. */
static int
learn(struct learned *l, const struct ex_hit *hit, struct learned_writer *taken)
{
	struct buffer name = {0};
	int err = 0;

	*taken = (struct learned_writer){hit->watch, POLICY_WRITER_NAMED};
	if (hit->stack != NULL && is_loaders(hit->stack))
		return 0;
	taken->writer = policy_writer_of(l->policy, hit->stack, &name);
	if (taken->writer == POLICY_WRITER_NAMED)
		err = policy_file_add(&l->file, hit->watch->spec,
		    hit->watch->access, buffer_text(&name));
	buffer_free(&name);
	return err < 0 ? err : 0;
}

int
learned_take(struct learned *l, const struct ex_hit *hit, uint64_t times)
{
	struct learned_writer own = {NULL, POLICY_WRITER_MISSING}, *taken =
	    &own;
	int err = 0;

	if (hit->late) {
		l->rest.late += times;
		return 0;
	}
	if (hit->stack != NULL && (taken = by_stack_at(&l->taken,
	    hit->stack->index, sizeof(*taken))) == NULL)
		taken = &own;
	if (taken->watch != hit->watch)
		err = learn(l, hit, taken);
	l->rest.unnamed += taken->writer == POLICY_WRITER_UNNAMED ? times : 0;
	l->rest.missing += taken->writer == POLICY_WRITER_MISSING ? times : 0;
	return err;
}

int
learned_watch(struct learned *l, const struct ex_watch *watch)
{
	const int err = watch->spec == NULL ? 0 : policy_file_add(&l->file,
	    watch->spec, watch->access, NULL);

	return err < 0 ? err : 0;
}

struct learned_rest
learned_put(const struct learned *l, struct buffer *b)
{
	policy_file_put(&l->file, b);
	return l->rest;
}
