/* hit_condition: evaluates conditions for hits. */
#include "policy/hit_condition.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "policy/by_stack.h"
#include "policy/policy.h"
#include "type/declared_object.h"
#include "util/complain.h"

/* in("f") or caller("f"). */
struct condition_call {
	struct policy *names;	/* f as a pattern of --allow */
	struct by_stack known;	/* unsigned char: truth + 1; 0: not asked yet */
};

struct hit_condition {
	const struct condition *condition;
	struct condition_call *asked;	/* one for each call in the condition */
	/* of the current hit: */
	const struct ex_hit *hit;
	uint64_t count;
	bool is_signed;		/* signedness of values without a type; */
	bool untyped;		/* the hit had such a value */
};

/* A condition and the object that is watched. */
struct checked {
	const struct condition *condition;
	const struct ex_object *object;	/* NULL if its type is not known */
};

static bool
check_enumerator(void *arg, const struct condition_node *node)
{
	const struct checked *checked = arg;
	const struct ex_object *object = checked->object;
	struct ex_number number;

	if (node->kind != CONDITION_ENUMERATOR || (object != NULL &&
	    (!ex_object_is_number(object) ||
	    ex_object_enumerator(object, node->text, &number))))
		return true;
	return complain("%s: '%s' is neither one of a condition's names nor "
	    "an enumerator of what is watched, %s%s (column %u)",
	    checked->condition->option, node->text,
	    object == NULL ? "whose type is not known without debug "
	    "information" : "which is of type ", object == NULL ? "" :
	    object->type, node->column) == 0;
}

/* Parts of a structure may have any type. */
int
hit_condition_check(const struct condition *condition,
    const struct ex_object *watched)
{
	struct checked checked = {condition, watched};

	return !condition->typed || condition_each(condition, check_enumerator,
	    &checked) ? 0 : -EINVAL;
}

static bool
add_call(void *arg, const struct condition_node *node)
{
	struct hit_condition *j = arg;

	if (node->kind != CONDITION_IN && node->kind != CONDITION_CALLER)
		return true;
	j->asked[node->call].names = policy_new(&node->text, 1);
	return j->asked[node->call].names != NULL;
}

struct hit_condition *
hit_condition_new(const struct condition *condition)
{
	struct hit_condition *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return NULL;
	j->condition = condition;
	j->asked = calloc(condition->calls + 1, sizeof(*j->asked));
	if (j->asked != NULL && condition_each(condition, add_call, j))
		return j;
	hit_condition_free(j);
	return NULL;
}

void
hit_condition_free(struct hit_condition *j)
{
	if (j == NULL)
		return;
	for (unsigned i = 0; j->asked != NULL && i < j->condition->calls; i++) {
		policy_free(j->asked[i].names);
		by_stack_free(&j->asked[i].known, sizeof(unsigned char));
	}
	free(j->asked);
	free(j);
}

/* --- values --- */

/* Bytes of the watch as a number without a type. */
static bool
untyped_value(struct hit_condition *j, const struct ex_value *value,
    unsigned from, unsigned len, struct ex_number *out)
{
	if ((len != 1 && len != 2 && len != 4 && len != 8) ||
	    !ex_value_known(value, from, len))
		return false;
	j->untyped = true;
	*out = ex_number_integer(ex_value_number(value, from, len), len,
	    j->is_signed);
	return true;
}

/* Whether the accessed object lies in the watched bytes, whose values are
   known; *at is set to its offset. */
static bool
is_in_watch(const struct ex_hit *hit, const struct ex_object *object,
    uint64_t *at)
{
	const struct ex_watch *place = ex_hit_place(hit);

	*at = hit->addr - place->addr + (uint64_t)object->offset;
	return *at < place->len && object->size <= place->len - *at;
}

static bool
value_of(struct hit_condition *j, const struct ex_value *value,
    struct ex_number *out)
{
	const struct ex_hit *hit = j->hit;
	const struct ex_object *object = hit->change.object;
	unsigned from, len;
	uint64_t at;

	if (object != NULL && is_in_watch(hit, object, &at))
		return at < EX_VALUE_MAX && object->size <= EX_VALUE_MAX &&
		    ex_value_known(value, (unsigned)at,
		    (unsigned)object->size) &&
		    ex_object_number(object, value->byte + at, out);
	if (hit->watch->len <= sizeof(uint64_t))
		return untyped_value(j, value, 0, (unsigned)hit->watch->len,
		    out);
	return ex_hit_bytes(hit, &from, &len) &&
	    untyped_value(j, value, from, len, out);
}

static bool
is_read(const struct ex_hit *hit)
{
	return strcmp(hit->access, "read") == 0;
}

static bool
knows_new(const struct ex_hit *hit)
{
	return hit->source != EX_VALUE_UNKNOWN &&
	    hit->source != EX_VALUE_LATER;
}

/* Whether any byte has changed. */
static bool
find_changed(const struct ex_hit *hit, struct ex_number *out)
{
	unsigned from, len;
	bool all = true;

	*out = ex_number_int(0);
	if (hit->watch->access == WP_EXEC || is_read(hit) || hit->unchanged)
		return true;
	if (!knows_new(hit) || !ex_hit_bytes(hit, &from, &len))
		return false;
	*out = ex_number_int(1);
	for (unsigned i = from; i < from + len; i++) {
		const bool known = ex_value_known(&hit->old, i, 1) &&
		    ex_value_known(&hit->new, i, 1);

		if (known && hit->old.byte[i] != hit->new.byte[i])
			return true;
		all = all && known;
	}
	*out = ex_number_int(0);
	return all;
}

static bool
task_number(pid_t id, struct ex_number *out)
{
	*out = ex_number_int(id);
	return id >= 0;
}

static bool
find_number(void *arg, enum condition_name name, struct ex_number *out)
{
	struct hit_condition *j = arg;
	const struct ex_hit *hit = j->hit;
	const bool data = hit->watch->access != WP_EXEC;

	switch (name) {
	case CONDITION_OLD:
		return data && value_of(j, &hit->old, out);
	case CONDITION_NEW:
		if (is_read(hit))
			return value_of(j, &hit->old, out);
		return data && knows_new(hit) && value_of(j, &hit->new, out);
	case CONDITION_CHANGED:
		return find_changed(hit, out);
	case CONDITION_COUNT:
		*out = ex_number_integer(j->count, sizeof(long), true);
		return j->count != 0;
	case CONDITION_TID:
		return task_number(hit->tid, out);
	case CONDITION_PID:
		return task_number(hit->pid, out);
	default:	/* CONDITION_CPU */
		*out = ex_number_int((int)hit->cpu);
		return hit->cpu <= INT_MAX;
	}
}

static bool
find_enumerator(void *arg, const char *text, struct ex_number *out)
{
	const struct hit_condition *j = arg;
	const struct ex_object *object = j->hit->change.object;

	return object != NULL && ex_object_enumerator(object, text, out);
}

/* --- texts --- */

static enum condition_truth
truth(bool is)
{
	return is ? CONDITION_TRUE : CONDITION_FALSE;
}

/* Something that reads and writes does both. */
static enum condition_truth
is_access(const struct ex_hit *hit, const char *text)
{
	static const char both[] = "read-write";

	if (strcmp(hit->access, "access") == 0)
		return strcmp(text, "execute") == 0 ? CONDITION_FALSE :
		    CONDITION_UNKNOWN;
	if (strcmp(hit->access, both) == 0)
		return truth(strcmp(text, "execute") != 0);
	return truth(strcmp(hit->access, text) == 0);
}

static enum condition_truth
is_text(void *arg, enum condition_name name, const char *text)
{
	const struct ex_hit *hit = ((const struct hit_condition *)arg)->hit;

	switch (name) {
	case CONDITION_ACCESS:
		return is_access(hit, text);
	case CONDITION_ORIGIN:
		return truth(strcmp(hit->kernel ? "kernel" : "user", text) ==
		    0);
	default:	/* CONDITION_COMM */
		return *hit->comm == '\0' ? CONDITION_UNKNOWN :
		    truth(strcmp(hit->comm, text) == 0);
	}
}

/* --- functions --- */

/* Whether a frame is of a function with this name.  Unknown for a frame without
   a name, or with one that cannot be checked. */
static enum condition_truth
is_named(const struct policy *names, const struct ex_frame *frame)
{
	if (policy_names(names, frame))
		return CONDITION_TRUE;
	return frame->function == NULL || frame->jit ? CONDITION_UNKNOWN :
	    CONDITION_FALSE;
}

/* Whether any frame is of that function: from this one to the first that is not
   inlined, or to the last. */
static enum condition_truth
find_named(const struct policy *names, const struct ex_stack *stack,
    unsigned from, bool inlined_only)
{
	enum condition_truth found = CONDITION_FALSE;

	for (unsigned i = from; i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];
		const enum condition_truth is = is_named(names, frame);

		if (is == CONDITION_TRUE)
			return is;
		if (is == CONDITION_UNKNOWN || frame->gap)
			found = CONDITION_UNKNOWN;
		if (inlined_only && !frame->inlined)
			break;
	}
	return found;
}

static enum condition_truth
ask(struct condition_call *asked, const struct condition_node *node,
    const struct ex_stack *stack)
{
	const unsigned first = ex_stack_user(stack);
	enum condition_truth is;

	if (first == stack->n)
		return CONDITION_UNKNOWN;
	if (node->kind == CONDITION_IN)
		return find_named(asked->names, stack, first, true);
	is = find_named(asked->names, stack, first + 1, false);
	return is == CONDITION_FALSE &&
	    !policy_is_whole(asked->names, stack) ? CONDITION_UNKNOWN : is;
}

/* Whether the innermost frame is that of the access.  It is not if the hit was
   late, or if the access was made by a call, whose function has been
   entered. */
static bool
shows_access(const struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;

	if (hit->late || hit->stack == NULL)
		return false;
	return hit->kernel || hit->watch->access == WP_EXEC ||
	    (insn->confidence >= EX_ADDRESS_UNVERIFIED &&
	    (insn->pc == hit->pc || insn->pc + insn->len == hit->pc));
}

static enum condition_truth
find_call(void *arg, const struct condition_node *node)
{
	struct hit_condition *j = arg;
	const struct ex_stack *stack = j->hit->stack;
	struct condition_call *asked = &j->asked[node->call];
	unsigned char *known;

	if (!shows_access(j->hit))
		return CONDITION_UNKNOWN;
	known = by_stack_at(&asked->known, stack->index, sizeof(*known));
	if (known == NULL)
		return ask(asked, node, stack);
	if (*known == 0)
		*known = (unsigned char)(ask(asked, node, stack) + 1);
	return (enum condition_truth)(*known - 1);
}

enum condition_truth
hit_condition_truth(struct hit_condition *j, const struct ex_hit *hit,
    uint64_t count)
{
	const struct condition_hit known = {
		.number = find_number, .enumerator = find_enumerator,
		.is_text = is_text, .call = find_call, .arg = j,
	};
	enum condition_truth holds;

	j->hit = hit;
	j->count = count;
	j->is_signed = true;
	j->untyped = false;
	holds = condition_holds(j->condition, &known);
	if (!j->untyped)
		return holds;
	j->is_signed = false;
	return condition_holds(j->condition, &known) == holds ? holds :
	    CONDITION_UNKNOWN;
}

bool
hit_condition_rejects(struct hit_condition *condition, struct ex_hit *hit,
    uint64_t count)
{
	enum condition_truth holds;

	if (condition == NULL)
		return false;
	holds = hit_condition_truth(condition, hit, count);
	hit->unsure = holds == CONDITION_UNKNOWN;
	return holds == CONDITION_FALSE;
}
