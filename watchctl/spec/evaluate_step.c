/* evaluate_step: members, elements, and targets of pointers. */
#include "spec/evaluate_private.h"

#include <stdlib.h>
#include <string.h>

#include "util/nearest.h"
#include "util/visible.h"

/* --- steps --- */

struct members {
	struct nearest near;
	struct buffer all;
	unsigned n;
};

static void
offer_member(void *arg, const char *name)
{
	struct members *members = arg;

	nearest_offer(&members->near, name);
	if (members->n++ < MEMBERS_SHOWN) {
		buffer_puts(&members->all, members->n > 1 ? ", " : "");
		visible_put_max(&members->all, name, PART_SHOWN);
	}
}

static bool
no_member(struct evaluation *e, const struct node *node,
    const struct value *holder, const char *name)
{
	struct members members = {.n = 0};
	struct buffer why = {0};
	char type[256];

	ex_type_put(&holder->type, type, sizeof(type));
	visible_put_max(&why, type, TEXT_SHOWN);
	buffer_puts(&why, " has no member ");
	evaluate_put_part(&why, node->text, node->text + node->len);
	nearest_begin(&members.near, name);
	ex_type_members(&holder->type, offer_member, &members);
	if (members.near.n > 0) {
		buffer_puts(&why, ", nearest: ");
		nearest_put(&members.near, &why);
	} else if (members.n > 0) {
		buffer_puts(&why, ", but ");
		buffer_puts(&why, buffer_text(&members.all));
		buffer_puts(&why, members.n > MEMBERS_SHOWN ? ", ..." : "");
	} else
		buffer_puts(&why, ", nor is any other known of it");
	if (ex_type_is_partial(&holder->type))
		buffer_puts(&why, "; where those of a virtual base class are "
		    "is not known without running the program");
	nearest_free(&members.near);
	buffer_free(&members.all);
	return evaluate_fail_with(e, node->at, &why);
}

/* A static member is a variable in the scope of its class or of a base
   class. */
static bool
static_member(struct evaluation *e, const struct node *node,
    const struct ex_type *of, const char *name, unsigned depth, struct value *v)
{
	struct wp_cause *cause = e->cause;
	struct ex_type type = *of, base;
	uint64_t offset;
	struct node scoped = *node;
	char text[768];
	size_t len;
	bool good;

	type.tags = false;
	ex_type_put(&type, text, sizeof(text) / 2);
	len = strlen(text);
	(void)snprintf(text + len, sizeof(text) - len, "::%s", name);
	scoped.text = text;
	scoped.len = strlen(text);
	e->cause = NULL;
	good = of->module != NULL && !of->tags && evaluate_name(e, &scoped, v);
	e->cause = cause;
	if (!good)
		e->err = 0;
	for (unsigned i = 0; !good && depth < BASES_MAX &&
	    ex_type_base(of, i, &base, &offset); i++)
		good = static_member(e, node, &base, name, depth + 1, v);
	return good;
}

/* The member of an object that a node names. */
static bool
member_of(struct evaluation *e, const struct node *node,
    const struct value *holder, struct value *v)
{
	char *name = strndup(node->text, node->len);
	struct ex_part part;
	unsigned n;
	bool good = true;

	if (name == NULL) {
		e->err = wp_cause_set(e->cause, WP_CAUSE_NO_MEMORY);
		return false;
	}
	n = ex_type_member(&holder->type, holder->size, name, &part);
	if (n > 1) {
		good = evaluate_fail_type(e, node, holder, node->at,
		    "several of its "
		    "base classes have such a member: write BASE::MEMBER");
	} else if (n == 1) {
		value_set_object(v, &part.type, holder->addr + part.offset,
		    part.size);
		v->bit = part.bit;
		v->bits = part.bits;
		e->holder = *holder;
	} else if (!static_member(e, node, &holder->type, name,
	    0, v)) {
		good = no_member(e, node, holder, name);
	}
	free(name);
	return good;
}

static bool
null_pointer(struct evaluation *e, const struct node *node)
{
	struct buffer why = {0};

	evaluate_put_part(&why, node->begin, node->end);
	buffer_puts(&why, " is a null pointer now: there is nothing to watch; "
	    "--follow waits for another");
	return evaluate_fail_with(e, node->at, &why);
}

/* The object that a pointer points to, or the one `off' elements after it. */
static bool
target_of(struct evaluation *e, const struct node *node,
    const struct value *pointer, uint64_t off, struct value *v)
{
	struct ex_type target;

	if (!value_is_pointer(pointer) ||
	    !ex_type_target(e->process, &pointer->type, &target))
		return evaluate_fail_type(e, node, pointer, node->at,
		    "that is no pointer");
	if (pointer->number == 0 && !e->types_only)
		return null_pointer(e, node);
	value_set_object(v, &target, pointer->number +
	    off * ex_type_size(&target), ex_type_size(&target));
	return true;
}

bool
value_follow_fortran(struct evaluation *e, const struct node *node,
    struct value *v)
{
	struct value pointer = *v;

	if (!value_is_pointer(v) || !v->is_object || !v->type.columns)
		return true;
	return value_load(e, node, &pointer) &&
	    target_of(e, node, &pointer, 0, v);
}

bool
evaluate_member(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value holder;

	if (!evaluate_object(e, node->left, &holder) ||
	    !value_follow_fortran(e, node->left, &holder))
		return false;
	if (value_is_pointer(&holder))
		return evaluate_fail_type(e, node->left, &holder, node->at,
		    "a pointer's members are behind '->'");
	if (!holder.is_object || !holder.known ||
	    ex_type_kind(&holder.type) != EX_STRUCT)
		return evaluate_fail_type(e, node->left, &holder, node->at,
		    "that has no members");
	return member_of(e, node, &holder, v);
}

bool
evaluate_arrow(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value pointer, holder = {.known = false};

	if (!evaluate_object(e, node->left, &pointer))
		return false;
	if (pointer.known && ex_type_kind(&pointer.type) == EX_STRUCT)
		return evaluate_fail_type(e, node->left, &pointer, node->at,
		    "its members are behind '.'");
	if (pointer.is_object && !value_decay(&pointer) &&
	    !(value_is_pointer(&pointer) ? value_load(e, node->left, &pointer) :
	    evaluate_fail_type(e, node->left, &pointer, node->at,
	    "that is no pointer")))
		return false;
	if (!target_of(e, node->left, &pointer, 0, &holder) ||
	    !value_follow_reference(e, node->left, &holder))
		return false;
	if (ex_type_kind(&holder.type) != EX_STRUCT)
		return evaluate_fail_type(e, node->left, &pointer, node->at,
		    ex_type_size(&holder.type) == 0 ? "what that points to is "
		    "nowhere defined" : "what that points to has no members");
	return member_of(e, node, &holder, v);
}

/* left[index], where left was evaluated. */
static bool
element_of(struct evaluation *e, const struct node *node,
    const struct value *array, struct value *v)
{
	struct value index, pointer = *array;
	struct ex_type element;
	uint64_t first, count;

	if (!evaluate_integer(e, node->right, &index))
		return false;
	if (array->is_object && array->known &&
	    ex_type_element(&array->type, &element, &first, &count)) {
		value_set_object(v, &element, array->addr +
		    (index.number - first) *
		    ex_type_size(&element), ex_type_size(&element));
		return true;
	}
	if (!value_is_pointer(&pointer))
		return evaluate_fail_type(e, node->left, &pointer, node->at,
		    "that is neither an array nor a pointer");
	if (pointer.is_object && !value_load(e, node->left, &pointer))
		return false;
	return target_of(e, node->left, &pointer, index.number, v);
}

bool
evaluate_index(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value array, other;
	struct node turned = *node;

	if (!evaluate_object(e, node->left, &array))
		return false;
	/* C's 1[p] is p[1] */
	if (node->kind == NODE_INDEX && value_is_integer(&array)) {
		if (!evaluate_object(e, node->right, &other))
			return false;
		turned.left = node->right;
		turned.right = node->left;
		if (!value_is_integer(&other))
			return element_of(e, &turned, &other, v);
	}
	if (node->kind == NODE_ELEMENT && (!array.known ||
	    !array.type.columns))
		return evaluate_fail(e, node->at, "no function is called here");
	return element_of(e, node, &array, v);
}

bool
evaluate_dereference(struct evaluation *e, const struct node *node,
    struct value *v)
{
	struct value pointer;
	struct buffer why = {0};

	if (!evaluate_number(e, node->left, &pointer))
		return false;
	if (value_is_pointer(&pointer))
		return target_of(e, node->left, &pointer, 0, v);
	if (!value_is_integer(&pointer))
		return evaluate_fail_type(e, node->left, &pointer, node->at,
		    "that is no pointer");
	evaluate_put_part(&why, node->left->begin, node->left->end);
	buffer_puts(&why, " is a number, and does not say what it points to: "
	    "write *(TYPE *) in front of it");
	return evaluate_fail_with(e, node->at, &why);
}

bool
evaluate_address(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value object;

	if (!evaluate_object(e, node->left, &object))
		return false;
	if (!object.is_object || object.bits != 0)
		return evaluate_fail(e, node->at, object.bits != 0 ?
		    "a bit-field has no address" : "a value has no address");
	*v = (struct value){
		.known = true, .type = object.type, .number = object.addr,
		.size = sizeof(void *),
	};
	if (!object.known)
		(void)ex_type_own("void", &v->type);
	v->type.pointers++;
	return true;
}

bool
value_member_chain(struct evaluation *e, const struct value *holder,
    const struct node *node, struct value *v)
{
	struct value left = {.known = false};

	switch (node->kind) {
	case NODE_NAME:
		return member_of(e, node, holder, v);
	case NODE_MEMBER:
		return value_member_chain(e, holder, node->left, &left) &&
		    member_of(e, node, &left, v);
	case NODE_INDEX:
	case NODE_ELEMENT:
		return value_member_chain(e, holder, node->left, &left) &&
		    element_of(e, node, &left, v);
	default:
		return evaluate_fail(e, node->at, "a member's name is "
		    "expected");
	}
}
