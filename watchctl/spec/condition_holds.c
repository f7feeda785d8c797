/* condition_holds: walks a condition's tree for one hit. */
#include "spec/condition.h"

/* The number of an operand; false if it is not known. */
static bool number_of(const struct condition_node *,
    const struct condition_hit *, struct ex_number *);

static enum condition_truth
truth_of_bool(bool truth)
{
	return truth ? CONDITION_TRUE : CONDITION_FALSE;
}

static enum condition_truth truth_of(const struct condition_node *,
    const struct condition_hit *);

/* An operand that is false (for &&) or true (for ||) decides. */
static enum condition_truth
truth_of_both(const struct condition_node *node,
    const struct condition_hit *hit, enum condition_truth decides)
{
	const enum condition_truth a = truth_of(node->a, hit);
	const enum condition_truth b = a == decides ? a :
	    truth_of(node->b, hit);

	if (a == decides || b == decides)
		return decides;
	return a == CONDITION_UNKNOWN || b == CONDITION_UNKNOWN ?
	    CONDITION_UNKNOWN : a;
}

/* The operand that is not chosen need not be known: it may divide by zero. */
static enum condition_truth
truth_of_choice(const struct condition_node *node,
    const struct condition_hit *hit)
{
	const enum condition_truth a = truth_of(node->a, hit);
	const enum condition_truth b = a == CONDITION_FALSE ? a :
	    truth_of(node->b, hit);
	const enum condition_truth c = a == CONDITION_TRUE ? b :
	    truth_of(node->c, hit);

	return a == CONDITION_FALSE || b == c ? c : CONDITION_UNKNOWN;
}

static enum condition_truth
truth_of(const struct condition_node *node, const struct condition_hit *hit)
{
	enum condition_truth truth;
	struct ex_number number;

	switch (node->kind) {
	case CONDITION_EQUAL_TEXT:
		return hit->is_text(hit->arg, node->name, node->text);
	case CONDITION_IN:
	case CONDITION_CALLER:
		return hit->call(hit->arg, node);
	case CONDITION_NOT:
		truth = truth_of(node->a, hit);
		return truth == CONDITION_UNKNOWN ? truth :
		    truth_of_bool(truth == CONDITION_FALSE);
	case CONDITION_AND:
		return truth_of_both(node, hit, CONDITION_FALSE);
	case CONDITION_OR:
		return truth_of_both(node, hit, CONDITION_TRUE);
	case CONDITION_CHOICE:
		return truth_of_choice(node, hit);
	default:
		return number_of(node, hit, &number) ?
		    truth_of_bool(ex_number_truth(&number)) :
		    CONDITION_UNKNOWN;
	}
}

/* A choice has the common type of both operands, as in C. */
static bool
choose(const struct condition_node *node, const struct condition_hit *hit,
    struct ex_number *out)
{
	const enum condition_truth a = truth_of(node->a, hit);
	struct ex_number b, c, equal;

	if (!number_of(node->b, hit, &b) || !number_of(node->c, hit, &c))
		return false;
	ex_number_balance(&b, &c);
	*out = a == CONDITION_TRUE ? b : c;
	return a != CONDITION_UNKNOWN ||
	    (ex_number_apply(EX_EQUAL, &b, &c, &equal) &&
	    ex_number_truth(&equal));
}

/* The number derived from one operand. */
static bool
derive(const struct condition_node *node, const struct ex_number *a,
    struct ex_number *out)
{
	switch (node->kind) {
	case CONDITION_COMPLEMENT:
		return ex_number_complement(a, out);
	case CONDITION_NEGATIVE:
		*out = ex_number_negate(a);
		return true;
	case CONDITION_POSITIVE:
		*out = ex_number_promote(a);
		return true;
	case CONDITION_CAST_BOOL:
		*out = ex_number_bool(a);
		return true;
	default:	/* CONDITION_CAST */
		return ex_number_cast(a, &node->number, out);
	}
}

static bool
number_of(const struct condition_node *node, const struct condition_hit *hit,
    struct ex_number *out)
{
	enum condition_truth truth;
	struct ex_number a, b;

	switch (node->kind) {
	case CONDITION_NUMBER:
		*out = node->number;
		return true;
	case CONDITION_NAME:
		return hit->number(hit->arg, node->name, out);
	case CONDITION_ENUMERATOR:
		return hit->enumerator(hit->arg, node->text, out);
	case CONDITION_OPERATOR:
		return number_of(node->a, hit, &a) &&
		    number_of(node->b, hit, &b) &&
		    ex_number_apply(node->operator, &a, &b, out);
	case CONDITION_CHOICE:
		return choose(node, hit, out);
	case CONDITION_COMPLEMENT:
	case CONDITION_NEGATIVE:
	case CONDITION_POSITIVE:
	case CONDITION_CAST_BOOL:
	case CONDITION_CAST:
		return number_of(node->a, hit, &a) && derive(node, &a, out);
	default:
		truth = truth_of(node, hit);
		*out = ex_number_int(truth == CONDITION_TRUE);
		return truth != CONDITION_UNKNOWN;
	}
}

enum condition_truth
condition_holds(const struct condition *condition,
    const struct condition_hit *hit)
{
	return truth_of(condition->root, hit);
}

bool
condition_each(const struct condition *condition,
    bool (*fn)(void *arg, const struct condition_node *), void *arg)
{
	for (size_t i = 0; i < condition->n; i++)
		if (!fn(arg, &condition->nodes[i]))
			return false;
	return true;
}
