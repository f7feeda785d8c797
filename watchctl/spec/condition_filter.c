/* condition_filter: comparisons of a thread, process or processor with a
   number; and what is made of them by !, && and ||. */
#include "spec/condition_filter.h"

#include <limits.h>

/* Append a node.  Returns its index, or that of the last node if there is no
   more room. */
static unsigned
append(struct wp_filter *f, const struct wp_filter_node *node)
{
	if (f->n < WP_FILTER_MAX)
		f->node[f->n++] = *node;
	return f->n - 1;
}

static unsigned
unknown(struct wp_filter *f)
{
	return append(f, &(struct wp_filter_node){.kind = WP_FILTER_UNKNOWN});
}

static bool
is_known(const struct condition_node *node, enum wp_filter_number *number)
{
	if (node->kind != CONDITION_NAME)
		return false;
	switch (node->name) {
	case CONDITION_TID:
		*number = WP_FILTER_TID;
		return true;
	case CONDITION_PID:
		*number = WP_FILTER_PID;
		return true;
	case CONDITION_CPU:
		*number = WP_FILTER_CPU;
		return true;
	default:
		return false;
	}
}

/* The names are ints; constants of other types would convert them. */
static bool
is_int(const struct condition_node *node, int32_t *value)
{
	const struct ex_number *number = &node->number;

	*value = (int32_t)number->bits;
	return node->kind == CONDITION_NUMBER && !number->is_float &&
	    number->is_signed && number->size == sizeof(int32_t);
}

/* Returns false if the operator is not a comparison. */
static bool
relation_of(enum ex_operator operator, bool turned,
    enum wp_filter_relation *relation)
{
	switch (operator) {
	case EX_EQUAL:
		*relation = WP_FILTER_EQUAL;
		return true;
	case EX_UNEQUAL:
		*relation = WP_FILTER_UNEQUAL;
		return true;
	case EX_LESS:
		*relation = turned ? WP_FILTER_ABOVE : WP_FILTER_LESS;
		return true;
	case EX_NOT_ABOVE:
		*relation = turned ? WP_FILTER_NOT_LESS : WP_FILTER_NOT_ABOVE;
		return true;
	case EX_ABOVE:
		*relation = turned ? WP_FILTER_LESS : WP_FILTER_ABOVE;
		return true;
	case EX_NOT_LESS:
		*relation = turned ? WP_FILTER_NOT_ABOVE : WP_FILTER_NOT_LESS;
		return true;
	default:
		return false;
	}
}

static unsigned
compare(struct wp_filter *f, const struct condition_node *node)
{
	struct wp_filter_node made = {.kind = WP_FILTER_COMPARE};
	const bool turned = !is_known(node->a, &made.number);

	if ((turned && !is_known(node->b, &made.number)) ||
	    !is_int(turned ? node->a : node->b, &made.value) ||
	    !relation_of(node->operator, turned, &made.relation))
		return unknown(f);
	return append(f, &made);
}

static unsigned
add(struct wp_filter *f, const struct condition_node *node)
{
	struct wp_filter_node made;

	switch (node->kind) {
	case CONDITION_NOT:
		made = (struct wp_filter_node){.kind = WP_FILTER_NOT};
		made.left = add(f, node->a);
		break;
	case CONDITION_AND:
	case CONDITION_OR:
		made = (struct wp_filter_node){
			.kind = node->kind == CONDITION_AND ? WP_FILTER_AND :
			    WP_FILTER_OR,
		};
		made.left = add(f, node->a);
		made.right = add(f, node->b);
		break;
	case CONDITION_OPERATOR:
		return compare(f, node);
	default:
		return unknown(f);
	}
	return append(f, &made);
}

/* Whether a node can certainly have this truth value. */
static bool
can_be(const struct wp_filter *f, unsigned i, bool truth)
{
	const struct wp_filter_node *node = &f->node[i];

	switch (node->kind) {
	case WP_FILTER_COMPARE:
		return true;
	case WP_FILTER_NOT:
		return can_be(f, node->left, !truth);
	case WP_FILTER_AND:
	case WP_FILTER_OR:
		if ((node->kind == WP_FILTER_OR) == truth)
			return can_be(f, node->left, truth) ||
			    can_be(f, node->right, truth);
		return can_be(f, node->left, truth) &&
		    can_be(f, node->right, truth);
	default:
		return false;
	}
}

bool
condition_filter(const struct condition *condition, struct wp_filter *f)
{
	*f = (struct wp_filter){.n = 0};
	if (condition->root == NULL)
		return false;
	(void)add(f, condition->root);
	/* if it is full, it may have lost nodes */
	if (f->n < WP_FILTER_MAX && can_be(f, f->n - 1, false))
		return true;
	f->n = 0;
	return false;
}
