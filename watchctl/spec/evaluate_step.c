/* evaluate_step: members, base classes, elements, and targets of pointers. */
#include "spec/evaluate_private.h"

#include <stdlib.h>
#include <string.h>

#include "type/qualified.h"
#include "util/nearest.h"
#include "util/visible.h"

/* --- base classes --- */

/* The name of a class, whatever it is qualified with or called by a typedef. */
static void
put_class(const struct ex_type *class, char *name)
{
	struct ex_type plain = *class;

	if (class->layout != NULL)
		plain.die = class->layout->type;
	ex_type_put(&plain, name, TYPE_NAME_MAX);
}

/* A class, and its virtual base classes, which lie at places of their own. */
struct parts {
	struct ex_type type[PARTS_MAX];
	char name[PARTS_MAX][TYPE_NAME_MAX];
	uint64_t addr[PARTS_MAX];
	unsigned n;
};

static bool
is_part(const struct parts *parts, const char *name)
{
	for (unsigned i = 0; i < parts->n; i++)
		if (strcmp(parts->name[i], name) == 0)
			return true;
	return false;
}

/* Go from an object of a class to its virtual base class.  How far that is is
   in front of what the object's first word points to. */
static bool
find_virtual(struct evaluation *e, const struct node *node,
    const struct ex_type *class, uint64_t before, uint64_t *addr)
{
	const bool narrow = ex_module_is_narrow(class->module);
	const size_t size = narrow ? sizeof(uint32_t) : sizeof(uint64_t);
	struct wp_cause *cause = e->cause;
	uint64_t table, offset;
	bool good;

	if (e->trace != NULL)
		return evaluate_fail(e, node->at, "where a virtual base class "
		    "lies is known only from the object: leave out --follow, "
		    "or give its place in a function's result as +OFF:LEN");
	if (e->types_only)
		return true;
	if (!value_read(e, node, *addr, &table, size))
		return false;
	e->cause = NULL;
	good = value_read(e, node, table - before, &offset, size);
	e->cause = cause;
	if (!good)
		return evaluate_fail(e, node->at, "it is not constructed now, "
		    "so that where its virtual base class lies is not known");
	*addr += narrow ? (uint64_t)(int32_t)offset : offset;
	return true;
}

/* Add the virtual base classes of a class, and of its other base classes.
   False: it failed. */
static bool
add_virtual(struct evaluation *e, const struct node *node, struct parts *parts,
    const struct ex_type *class, uint64_t addr, unsigned depth)
{
	struct ex_type base;
	uint64_t offset;

	for (unsigned i = 0; ex_type_virtual_base(class, i, &base, &offset);
	    i++) {
		if (parts->n == PARTS_MAX)
			return evaluate_fail(e, node->at, "it has too many "
			    "virtual base classes");
		put_class(&base, parts->name[parts->n]);
		if (is_part(parts, parts->name[parts->n]))
			continue;
		parts->type[parts->n] = base;
		parts->addr[parts->n] = addr;
		if (!find_virtual(e, node, class, offset,
		    &parts->addr[parts->n]))
			return false;
		parts->n++;
	}
	for (unsigned i = 0; depth < BASES_MAX &&
	    ex_type_base(class, i, &base, &offset); i++)
		if (!add_virtual(e, node, parts, &base, addr + offset,
		    depth + 1))
			return false;
	return true;
}

static bool
find_parts(struct evaluation *e, const struct node *node,
    const struct ex_type *class, uint64_t addr, struct parts *parts)
{
	parts->n = 1;
	parts->type[0] = *class;
	parts->addr[0] = addr;
	put_class(class, parts->name[0]);
	for (unsigned i = 0; i < parts->n; i++)
		if (!add_virtual(e, node, parts, &parts->type[i],
		    parts->addr[i], 0))
			return false;
	return true;
}

/* Where a base class lies within a class, which may be its own base's base. */
struct base_search {
	const char *name;	/* the base class */
	struct ex_type type;
	uint64_t addr;
	unsigned n;		/* how many places it has there */
};

static void
search_base(struct base_search *s, const struct ex_type *in, uint64_t addr,
    unsigned depth)
{
	struct ex_type base;
	uint64_t at;
	char name[TYPE_NAME_MAX];

	put_class(in, name);
	if (strcmp(name, s->name) == 0 && strlen(name) + 1 < sizeof(name)) {
		s->n += s->n == 0 || s->addr != addr;
		s->type = *in;
		s->addr = addr;
		return;
	}
	for (unsigned i = 0; depth < BASES_MAX &&
	    ex_type_base(in, i, &base, &at); i++)
		search_base(s, &base, addr + at, depth + 1);
}

/* Whether a class has this base class, a virtual one or another. */
static bool
has_base(struct evaluation *e, const struct node *node,
    const struct ex_type *class, const char *name)
{
	struct base_search s = {.name = name};
	struct evaluation types = {
		.spec = e->spec, .process = e->process, .types_only = true,
	};
	struct parts parts;

	(void)find_parts(&types, node, class, 0, &parts);
	for (unsigned i = 0; i < parts.n; i++)
		search_base(&s, &parts.type[i], 0, 0);
	return s.n > 0;
}

/* Find a base class that is, or is in, a virtual one. */
static bool
search_virtual(struct evaluation *e, const struct node *node,
    const struct ex_type *in, uint64_t addr, struct base_search *s)
{
	struct parts parts;

	if (!find_parts(e, node, in, addr, &parts))
		return false;
	for (unsigned i = 1; i < parts.n; i++)
		search_base(s, &parts.type[i], parts.addr[i], 0);
	return true;
}

bool
evaluate_class_cast(struct evaluation *e, const struct node *node,
    const struct ex_type *from, const struct ex_type *to, uint64_t *addr)
{
	char name_from[TYPE_NAME_MAX], name_to[TYPE_NAME_MAX];
	struct base_search up = {.name = name_to}, down = {.name = name_from};

	if (node->reinterprets || ex_type_kind(from) != EX_STRUCT ||
	    ex_type_kind(to) != EX_STRUCT)
		return true;
	put_class(from, name_from);
	put_class(to, name_to);
	search_base(&up, from, *addr, 0);
	search_base(&down, to, 0, 0);
	if (up.n == 0 && down.n == 0 && has_base(e, node, from, name_to) &&
	    !search_virtual(e, node, from, *addr, &up))
		return false;
	if (up.n > 1 || down.n > 1)
		return evaluate_fail(e, node->at, "one of these classes is "
		    "several times a base class of the other: cast to the one "
		    "between them first");
	if (up.n == 0 && down.n == 0 && has_base(e, node, to, name_from))
		return evaluate_fail(e, node->at, "from a virtual base class "
		    "no cast leads to what it is part of: give its address; or "
		    "cast to void * first, for the same address");
	*addr = up.n > 0 ? up.addr : *addr - down.addr;
	return true;
}

/* Find a member that only virtual base classes have: one that is declared in
   such a class hides those of its base classes.  *n: how many there are. */
static bool
virtual_member(struct evaluation *e, const struct node *node,
    const struct value *holder, const char *name, struct ex_part *part,
    unsigned *n)
{
	struct parts parts;
	struct ex_part one;
	unsigned found = 0;

	if (!find_parts(e, node, &holder->type, holder->addr, &parts))
		return false;
	for (unsigned i = 1; i < parts.n; i++) {
		const unsigned more = ex_type_member(&parts.type[i],
		    ex_type_size(&parts.type[i]), name, &one);

		if (more == 0 || (found > 0 && has_base(e, node,
		    &parts.type[found], parts.name[i])))
			continue;
		*n = found > 0 && has_base(e, node, &parts.type[i],
		    parts.name[found]) ? more : *n + more;
		found = i;
		*part = one;
		part->offset += parts.addr[i] - holder->addr;
	}
	return true;
}

/* The same for BASE::NAME, which a virtual base class of BASE has. */
static bool
virtual_member_of_base(struct evaluation *e, const struct node *node,
    const struct value *holder, const char *name, struct ex_part *part,
    unsigned *n)
{
	const char *last = ex_qualified_last(name);
	char name_of_base[TYPE_NAME_MAX];
	struct base_search s = {.name = name_of_base};
	struct value base;

	if (last == name)
		return true;
	(void)snprintf(name_of_base, sizeof(name_of_base), "%.*s",
	    (int)(last - name) - 2, name);
	search_base(&s, &holder->type, holder->addr, 0);
	if (s.n != 1)
		return true;
	value_set_object(&base, &s.type, s.addr, ex_type_size(&s.type));
	if (!virtual_member(e, node, &base, last, part, n))
		return false;
	part->offset += s.addr - holder->addr;
	return true;
}

/* --- steps --- */

struct member_names {
	struct nearest near;
	struct buffer all;
	unsigned n;
};

static void
offer_member(void *arg, const char *name)
{
	struct member_names *members = arg;

	nearest_offer(&members->near, name);
	if (members->n++ < MEMBERS_SHOWN) {
		buffer_puts(&members->all, members->n > 1 ? ", " : "");
		visible_put_max(&members->all, name, PART_SHOWN);
	}
}

/* Those of virtual base classes, too. */
static void
offer_members(struct evaluation *e, const struct node *node,
    const struct ex_type *holder, struct member_names *members)
{
	struct evaluation types = {
		.spec = e->spec, .process = e->process, .types_only = true,
	};
	struct parts parts;

	(void)find_parts(&types, node, holder, 0, &parts);
	for (unsigned i = 0; i < parts.n; i++)
		ex_type_members(&parts.type[i], offer_member, members);
}

static bool
no_member(struct evaluation *e, const struct node *node,
    const struct value *holder, const char *name)
{
	struct member_names members = {.n = 0};
	struct buffer why = {0};
	char type[256];

	ex_type_put(&holder->type, type, sizeof(type));
	visible_put_max(&why, type, TEXT_SHOWN);
	buffer_puts(&why, " has no member ");
	evaluate_put_part(&why, node->text, node->text + node->len);
	nearest_begin(&members.near, name);
	offer_members(e, node, &holder->type, &members);
	if (members.near.n > 0) {
		buffer_puts(&why, ", nearest: ");
		nearest_put(&members.near, &why);
	} else if (members.n > 0) {
		buffer_puts(&why, ", but ");
		buffer_puts(&why, buffer_text(&members.all));
		buffer_puts(&why, members.n > MEMBERS_SHOWN ? ", ..." : "");
	} else
		buffer_puts(&why, ", nor is any other known of it");
	/* its declared type may be only the beginning of what it is */
	if (e->spec->allocator != NULL)
		buffer_puts(&why, "; give +OFF:LEN for what its type has not");
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
	for (unsigned i = 0; !good && depth < BASES_MAX &&
	    ex_type_virtual_base(of, i, &base, &offset); i++)
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
	if (n == 0 && (!virtual_member(e, node, holder, name, &part, &n) ||
	    (n == 0 && !virtual_member_of_base(e, node, holder, name, &part,
	    &n)))) {
		good = false;
	} else if (n > 1) {
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
		    value_follow_descriptor(e, node->left, &left) &&
		    element_of(e, node, &left, v);
	default:
		return evaluate_fail(e, node->at, "a member's name is "
		    "expected");
	}
}
