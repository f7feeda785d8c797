/* stack_listener: frequent stacks, and the properties that all their hits
   share. */
#include "hit/stack_listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "space/space.h"

enum { NOTICED_MAX = 1024 };

/* A stack whose hits may be counted rather than sampled. */
struct counted {
	const struct ex_stack *stack;
	uint64_t generation;	/* of its process at that time */
};

/* Returns NULL if the listener has not been told about stacks of this
   process. */
static struct ex_noticed *
find(const struct ex_stack_listener *n, pid_t pid)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->at[i].pid == pid)
			return &n->at[i];
	return NULL;
}

/* Returns false if there are too many. */
static bool
add(struct ex_stack_listener *n, const struct ex_noticed *noticed)
{
	if (!EX_ARRAY_ROOM(n, at, NOTICED_MAX))
		return false;
	n->at[n->n++] = *noticed;
	return true;
}

void
ex_stack_listener_forget(struct ex_stack_listener *n, pid_t pid)
{
	struct ex_noticed *noticed = n->listener == NULL ? NULL :
	    find(n, pid);
	const struct ex_process *process;

	if (noticed == NULL)
		return;
	process = ex_space_process(n->space, pid);
	if (process != NULL &&
	    ex_process_generation(process) == noticed->generation)
		return;
	*noticed = n->at[--n->n];
	n->listener->forget(pid);
}

static uint64_t
counted_key(pid_t pid, uint32_t stack)
{
	return (uint64_t)pid << 32 | stack;
}

/* Whether every later hit with this stack is the same as this one, whatever its
   other registers hold.  It is if the instruction before the pc is known, is
   not a string instruction, and cannot be a call that pushed onto the watch. */
static bool
is_countable(const struct ex_hit *hit, const struct wp_known_stack *known)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_watch *watch = hit->watch;
	const uint64_t word = sizeof(known->word[0]);

	return watch->access == WP_WRITE && !hit->kernel && !hit->late &&
	    hit->stack != NULL && insn->confidence == EX_EXACT &&
	    insn->pc + insn->len == hit->pc && insn->effect.size > 0 &&
	    !insn->effect.repeated && (known->sp + word <= watch->addr ||
	    watch->addr + watch->len <= known->sp);
}

/* Describe the value of the whole watch after the hit, if the registers or the
   instruction give it. */
static void
set_value(const struct ex_hit *hit, const struct ex_sample *sample,
    struct wp_known_value *value)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_effect *effect = &insn->effect;
	uint64_t holds;

	if (!effect->plain || insn->addr != hit->watch->addr ||
	    effect->size != hit->watch->len ||
	    effect->size > sizeof(value->constant))
		return;
	for (unsigned i = 0; i < effect->nbases; i++) {
		if (!ex_regs_get(&sample->user, effect->base[i], &holds))
			return;
		value->base[i] = effect->base[i];
		value->holds[i] = holds;
	}
	value->nbases = effect->nbases;
	value->reg = effect->reg;
	memcpy(&value->constant, effect->stored, sizeof(value->constant));
	value->source = effect->immediate ? WP_KNOWN_CONSTANT :
	    WP_KNOWN_REGISTER;
}

/* Whether the value after the hit depends on the one before, as that of an
   addition does, rather than on the instruction alone. */
static bool
follows(const struct ex_hit *hit, const struct wp_known_value *value)
{
	const struct ex_effect *effect = &hit->insn.effect;

	return value->source == WP_KNOWN_NOWHERE && !hit->kernel &&
	    hit->insn.confidence == EX_EXACT && effect->size > 0 &&
	    !effect->repeated;
}

/* From now on all hits of this watch have to be delivered. */
static void
chain(struct ex_stack_listener *n, const struct ex_watch *watch)
{
	if (ex_table_get(&n->chained, watch->id) != NULL ||
	    !ex_table_reserve(&n->chained, 1))
		return;
	ex_table_put(&n->chained, watch->id, (void *)(uintptr_t)watch);
	while (n->counted.n > 0 && n->n > 0)
		n->listener->forget(n->at[--n->n].pid);
}

/* From now on hits with this stack are counted.  Some of them are not seen
   here, so the watch's values are in doubt. */
static void
count_such(struct ex_stack_listener *n, const struct ex_process *process,
    const struct ex_record *record, const struct ex_hit *hit,
    struct wp_known_stack *known)
{
	const uint64_t key = counted_key(record->pid, hit->stack->index);
	struct counted *counted = ex_table_get(&n->counted, key);

	if (counted == NULL) {
		if (!ex_table_reserve(&n->counted, 1) ||
		    (counted = calloc(1, sizeof(*counted))) == NULL)
			return;
		counted->stack = hit->stack;
		ex_stack_hold(hit->stack);
		ex_table_put(&n->counted, key, counted);
	}
	counted->generation = ex_process_generation(process);
	known->watch = hit->watch->id;
	known->stack = hit->stack->index;
	ex_tracker_doubt(n->tracker, hit->watch, EX_UNSEEN);
}

void
ex_stack_listener_hit(struct ex_stack_listener *n,
    const struct ex_process *process,
    const struct ex_record *record, const struct ex_hit *hit)
{
	const struct ex_noticed noticed = {
		record->pid, ex_process_generation(process),
	};
	struct wp_known_value value = {0};
	struct wp_known_stack known;

	if (n->listener == NULL || noticed.pid <= 0)
		return;
	if (n->listener->counts) {
		set_value(hit, &record->sample, &value);
		if (follows(hit, &value))
			chain(n, hit->watch);
	}
	if (!ex_stack_often(n->stacks, &record->sample, &known) ||
	    (find(n, noticed.pid) == NULL && !add(n, &noticed)))
		return;
	known.pid = record->pid;
	known.time = record->time;
	known.value = value;
	if (n->listener->counts && is_countable(hit, &known) &&
	    ex_table_get(&n->chained, hit->watch->id) == NULL)
		count_such(n, process, record, hit, &known);
	n->listener->know(&known);
}

bool
ex_stack_listener_counted(const struct ex_stack_listener *n,
    const struct ex_watch *watch, pid_t pid, uint32_t stack, struct ex_hit *hit)
{
	const struct counted *counted = ex_table_get(&n->counted,
	    counted_key(pid, stack));
	struct ex_process *process = ex_space_process(n->space, pid);

	if (counted == NULL)
		return false;
	*hit = (struct ex_hit){
		.watch = watch, .pid = pid, .stack = counted->stack,
		.access = "write", .addr = watch->addr, .len = watch->len,
	};
	/* what is mapped now may have other types */
	if (process != NULL &&
	    ex_process_generation(process) == counted->generation)
		hit->process = process;
	return true;
}

void
ex_stack_listener_free(struct ex_stack_listener *n)
{
	free(n->at);
	ex_table_free(&n->counted, free);
	ex_table_free(&n->chained, NULL);
}
