/*
 * evaluate: walks an expression's tree.
 *
 * A value is an object, which lies somewhere, or a number, maybe a pointer.
 * Only when an object's contents count is its memory read.  Without memory (a
 * type alone is asked for) all contents are 0: what C's types are depends on
 * none of them.
 */
#include "spec/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "spec/evaluate_private.h"
#include "spec/find_symbol.h"
#include "type/declared_object.h"

/* --- arithmetic --- */

static bool
arithmetic(struct evaluation *e, const struct node *node,
    const struct value *a, const struct value *b, struct value *v)
{
	static const enum ex_operator operators[] = {
		[NODE_MULTIPLY] = EX_MULTIPLY, [NODE_DIVIDE] = EX_DIVIDE,
		[NODE_REMAINDER] = EX_REMAINDER, [NODE_ADD] = EX_ADD,
		[NODE_SUBTRACT] = EX_SUBTRACT,
		[NODE_SHIFT_LEFT] = EX_SHIFT_LEFT,
		[NODE_SHIFT_RIGHT] = EX_SHIFT_RIGHT, [NODE_AND] = EX_BIT_AND,
	};
	const bool divides = node->kind == NODE_DIVIDE ||
	    node->kind == NODE_REMAINDER;
	struct ex_number x = value_number_of(a), y = value_number_of(b), result;

	if (e->types_only && divides)
		y = ex_number_integer(1, y.size, y.is_signed);
	if (!ex_number_apply(operators[node->kind], &x, &y, &result))
		return evaluate_fail(e, node->at, !divides ?
		    "this shifts by more bits "
		    "than there are" : y.bits == 0 ? "this divides by zero" :
		    "this has no result in C");
	value_set_result(v, &result);
	return true;
}

static uint64_t
step_of(struct evaluation *e, const struct value *pointer)
{
	struct ex_type target;
	uint64_t size;

	if (!ex_type_target(e->process, &pointer->type, &target))
		return 1;
	size = ex_type_size(&target);
	/* no object is larger than half of the address space */
	return size == 0 || size > INT64_MAX ? 1 : size;
}

static bool
pointer_arithmetic(struct evaluation *e, const struct node *node,
    const struct value *a, const struct value *b, struct value *v)
{
	if (node->kind == NODE_SUBTRACT && value_is_pointer(a) &&
	    value_is_pointer(b)) {
		value_set_number(v, "long", (uint64_t)((int64_t)(a->number -
		    b->number) / (int64_t)step_of(e, a)));
		return true;
	}
	if (value_is_pointer(a) && value_is_integer(b) &&
	    (node->kind == NODE_ADD || node->kind == NODE_SUBTRACT)) {
		const uint64_t off = b->number * step_of(e, a);

		*v = *a;
		v->number += node->kind == NODE_ADD ? off : 0 - off;
		return true;
	}
	if (value_is_integer(a) && value_is_pointer(b) &&
	    node->kind == NODE_ADD) {
		*v = *b;
		v->number += a->number * step_of(e, b);
		return true;
	}
	return evaluate_fail(e, node->at,
	    "there is no such operator for pointers");
}

static bool
eval_binary(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value a, b, holder;

	if (!evaluate_object(e, node->left, &a))
		return false;
	holder = a;
	if (node->kind == NODE_REMAINDER &&
	    !value_follow_fortran(e, node->left, &holder))
		return false;
	if (node->kind == NODE_REMAINDER && holder.is_object && holder.known &&
	    ex_type_kind(&holder.type) == EX_STRUCT)
		return value_member_chain(e, &holder, node->right, v);
	if (!value_take_number(e, node->left, &a) ||
	    !evaluate_number(e, node->right, &b))
		return false;
	if (value_is_pointer(&a) || value_is_pointer(&b))
		return pointer_arithmetic(e, node, &a, &b, v);
	if (!value_is_integer(&a) || !value_is_integer(&b))
		return evaluate_fail_type(e, value_is_integer(&a) ?
		    node->right : node->left,
		    value_is_integer(&a) ? &b : &a, node->at,
		    "a whole number is expected");
	return arithmetic(e, node, &a, &b, v);
}

static bool
eval_unary(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value of;
	struct ex_number number;

	if (!evaluate_integer(e, node->left, &of))
		return false;
	number = value_number_of(&of);
	if (node->kind == NODE_NEGATIVE)
		number = ex_number_negate(&number);
	else if (node->kind == NODE_COMPLEMENT)
		(void)ex_number_complement(&number, &number);
	else
		number = ex_number_promote(&number);
	value_set_result(v, &number);
	return true;
}

/* --- types --- */

struct type_lookup {
	const char *name;
	enum ex_tag tag;
	struct ex_type *type;
	unsigned asked;		/* number of modules with debug information */
};

static int
look_up_type(void *arg, struct ex_module *m, uint64_t base)
{
	struct type_lookup *l = arg;

	(void)base;
	l->asked += ex_declaration_known(m);
	return ex_type_find(m, l->name, l->tag, l->type);
}

static bool
no_type(struct evaluation *e, const struct node *node, unsigned asked)
{
	struct buffer why = {0};

	if (asked == 0)
		buffer_puts(&why, "there is no debug information, and so no "
		    "type ");
	else
		buffer_puts(&why, "the debug information has no type ");
	evaluate_put_part(&why, node->type.name, node->type.name +
	    node->type.len);
	if (asked == 0)
		buffer_puts(&why, ": C's own, such as long, are known");
	return evaluate_fail_with(e, node->type.name, &why);
}

static void
add_pointers(const struct token_type *wanted, struct ex_type *type)
{
	type->pointers += wanted->pointers;
	if (wanted->ndims > 0)
		ex_type_array(type, wanted->count, wanted->ndims,
		    wanted->outer);
}

/* The type named in a cast or sizeof. */
static bool
find_type(struct evaluation *e, const struct node *node, struct ex_type *type)
{
	static const enum ex_tag tags[] = {
		[TAG_ANY] = EX_TAG_ANY, [TAG_STRUCT] = EX_TAG_STRUCT,
		[TAG_UNION] = EX_TAG_UNION, [TAG_ENUM] = EX_TAG_ENUM,
	};
	const struct token_type *wanted = &node->type;
	const char *file;
	struct type_lookup l = {.tag = tags[wanted->tag], .type = type};
	char *name;
	bool found;

	if (wanted->base != NULL) {
		found = ex_type_own(wanted->base, type);
		add_pointers(wanted, type);
		return found;
	}
	if ((name = strndup(wanted->name, wanted->len)) == NULL) {
		e->err = wp_cause_set(e->cause, WP_CAUSE_NO_MEMORY);
		return false;
	}
	l.name = name;
	found = find_symbol_modules(e->spec, e->process, &file, look_up_type,
	    &l) != 0 ||
	    (wanted->tag == TAG_ANY && ex_type_own(name, type));
	free(name);
	if (!found)
		return no_type(e, node, l.asked);
	add_pointers(wanted, type);
	return true;
}

/* In C++ a pointer to a class that becomes one to its base class, or the other
   way round, points to another place. */
static bool
cast_pointer(struct evaluation *e, const struct node *node,
    const struct value *of, struct value *v)
{
	struct ex_type from, to;

	return !value_is_pointer(of) || !value_is_pointer(v) ||
	    (of->number == 0 && !e->types_only) ||
	    !ex_type_target(e->process, &of->type, &from) ||
	    !ex_type_target(e->process, &v->type, &to) ||
	    evaluate_class_cast(e, node, &from, &to, &v->number);
}

/* A cast to a reference, which is an object, or a part of it. */
static bool
cast_object(struct evaluation *e, const struct node *node,
    const struct ex_type *type, struct value *v)
{
	struct value of;

	if (!evaluate_object(e, node->left, &of))
		return false;
	if (!of.is_object || of.bits != 0)
		return evaluate_fail(e, node->at, of.bits != 0 ?
		    "a reference cannot be to a bit-field" :
		    "a reference is to an object, and this is a value");
	value_set_object(v, type, of.addr, ex_type_size(type));
	return !of.known ||
	    evaluate_class_cast(e, node, &of.type, type, &v->addr);
}

static bool
eval_cast(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value of;
	struct ex_type type;

	if (!find_type(e, node, &type))
		return false;
	if (node->type.reference)
		return cast_object(e, node, &type, v);
	if (!evaluate_number(e, node->left, &of))
		return false;
	*v = (struct value){
		.known = true, .type = type, .size = ex_type_size(&type),
	};
	if (!value_is_integer(v) && !value_is_pointer(v))
		return evaluate_fail(e, node->at,
		    "a cast to a type that is neither a whole "
		    "number nor a pointer");
	v->number = value_extended(of.number, (unsigned)v->size * 8,
	    value_is_integer(v) && value_is_signed(v));
	return cast_pointer(e, node, &of, v);
}

/* The operand of sizeof (name) may be a type. */
static bool
eval_size(struct evaluation *e, const struct node *node, struct value *v)
{
	struct wp_cause *cause = e->cause;
	const bool types_only = e->types_only;
	struct pointer_path *trace = e->trace;
	const struct node *of = node->left;
	struct ex_type type;
	struct node named = *node;
	struct value object;
	bool good;

	if (node->kind == NODE_TYPE_SIZE) {
		if (!find_type(e, node, &type))
			return false;
		value_set_number(v, "unsigned long", ex_type_size(&type));
		return true;
	}
	/* the operand is not evaluated */
	e->types_only = true;
	e->trace = NULL;
	e->cause = of->kind == NODE_NAME ? NULL : cause;
	good = evaluate_object(e, of, &object);
	e->cause = cause;
	e->trace = trace;
	e->types_only = types_only;
	if (good && object.size == 0)
		return evaluate_fail_type(e, of, &object, node->at,
		    "its size is not known without evaluating it");
	if (good) {
		value_set_number(v, "unsigned long", object.size);
		return true;
	}
	if (of->kind != NODE_NAME)
		return false;
	named.type = (struct token_type){.name = of->text, .len = of->len};
	if (!find_type(e, &named, &type))
		return false;
	value_set_number(v, "unsigned long", ex_type_size(&type));
	return true;
}

bool
evaluate_node(struct evaluation *e, const struct node *node, struct value *v)
{
	struct ex_number number;

	*v = (struct value){.known = false};
	switch (node->kind) {
	case NODE_NUMBER:
		number = ex_number_integer(node->number.value,
		    node->number.size, node->number.is_signed);
		value_set_result(v, &number);
		return true;
	case NODE_RESULT:
		return evaluate_result(e, node, v);
	case NODE_NAME:
		return evaluate_name(e, node, v);
	case NODE_MEMBER:
		return evaluate_member(e, node, v);
	case NODE_ARROW:
		return evaluate_arrow(e, node, v);
	case NODE_INDEX:
	case NODE_ELEMENT:
		return evaluate_index(e, node, v);
	case NODE_DEREFERENCE:
		return evaluate_dereference(e, node, v);
	case NODE_ADDRESS:
		return evaluate_address(e, node, v);
	case NODE_NEGATIVE:
	case NODE_POSITIVE:
	case NODE_COMPLEMENT:
		return eval_unary(e, node, v);
	case NODE_CAST:
		return eval_cast(e, node, v);
	case NODE_SIZE:
	case NODE_TYPE_SIZE:
		return eval_size(e, node, v);
	default:
		return eval_binary(e, node, v);
	}
}

/* --- the whole --- */

/* The address of the object, and how much of it is wanted. */
static bool
take_place(struct evaluation *e, const struct value *v,
    struct spec_place *place)
{
	const struct spec *spec = e->spec;
	const struct node *root = spec->expression->root;
	const uint64_t left = v->size > spec->off ? v->size - spec->off : 0;
	uint64_t unit;

	if (v->size > 0 && left == 0)
		return evaluate_fail(e, root->at,
		    "the offset lies beyond its end");
	if (v->size == 0 && spec->len == 0)
		return evaluate_fail_type(e, root, v, root->at,
		    "its length is not known: give SPEC:LEN");
	if (spec->off > UINT64_MAX - v->addr)
		return evaluate_fail(e, root->at,
		    "the offset reaches beyond the last address");
	place->addr = v->addr + spec->off;
	unit = spec_alignment(place->addr);
	place->len = spec->len != 0 ? spec->len : spec->has_off && unit < left ?
	    unit : left;
	if (place->len - 1 > UINT64_MAX - place->addr)
		return evaluate_fail(e, root->at,
		    "it reaches beyond the last address");
	return true;
}

/* The name of a variable, if the expression is just that. */
static bool
take_symbol_name(struct evaluation *e, struct spec_place *place)
{
	const struct node *root = e->spec->expression->root;
	size_t file;
	char *name;

	if (root->kind != NODE_NAME)
		return true;
	file = token_file(root->text);
	name = strndup(root->text + file, root->len - file);
	if (name != NULL)
		place->symbol = find_symbol_name(name, e->spec->off);
	free(name);
	if (place->symbol == NULL)
		e->err = wp_cause_set(e->cause, WP_CAUSE_NO_MEMORY);
	return place->symbol != NULL;
}

/* --- the way to it --- */

/* Evaluate with these contents of all pointers. */
static bool
trace_object(struct evaluation *e, struct pointer_path *trace,
    uint64_t contents, struct value *v)
{
	*trace = (struct pointer_path){.contents = contents};
	e->trace = trace;
	e->types_only = true;
	if (!evaluate_object(e, e->spec->expression->root, v))
		return false;
	return v->is_object || value_error(e, e->spec->expression->root) == 0;
}

static bool
too_many_pointers(struct evaluation *e, unsigned n)
{
	struct buffer why = {0};

	buffer_printf(&why, "%u pointers lead there, each of which takes a "
	    "slot, as does the object, and there are %u: begin nearer to it, "
	    "or leave out --follow", n, 1u + SPEC_MORE_MAX);
	return evaluate_fail_with(e, e->spec->expression->root->at, &why);
}

static bool
follows_more(struct evaluation *e, const struct node *other)
{
	struct buffer why = {0};

	evaluate_put_part(&why, other->begin, other->end);
	buffer_puts(&why, " is no pointer, and what it is decides which object "
	    "is meant: --follow follows pointers; give a number in its place");
	return evaluate_fail_with(e, other->at, &why);
}

/* Whether each step only adds a constant to what the pointer contains. */
static bool
is_plain(const struct pointer_path *a, const struct value *at_a,
    const struct pointer_path *b, const struct value *at_b)
{
	const uint64_t step = b->contents - a->contents;

	for (unsigned i = 0; i < a->n; i++)
		if (b->addr[i] - a->addr[i] != (i == 0 ? 0 : step))
			return false;
	return at_b->addr - at_a->addr == step;
}

/* Find the pointers on the path, and the offsets added to them; none if no
   pointer leads to the object. */
static bool
take_way(struct evaluation *e, struct spec_place *place)
{
	const struct node *root = e->spec->expression->root;
	struct pointer_path a, b;
	struct value at_a, at_b;

	if (!trace_object(e, &a, 0, &at_a))
		return false;
	if (a.other != NULL)
		return follows_more(e, a.other);
	if (a.n > SPEC_MORE_MAX)
		return too_many_pointers(e, a.n);
	if (!take_place(e, &at_a, place) || a.n == 0)
		return e->err == 0;
	if (!trace_object(e, &b, UINT64_C(1) << 20, &at_b))
		return false;
	if (b.n != a.n || !is_plain(&a, &at_a, &b, &at_b))
		return evaluate_fail(e, root->at,
		    "--follow follows pointers, and there is more to this");
	for (unsigned i = 0; i < a.n; i++)
		place->more[i] = i + 1 < a.n ? a.addr[i + 1] : place->addr;
	place->nmore = a.n;
	place->narrow = a.narrow;
	place->addr = a.addr[0];
	return true;
}

int
evaluate(const struct spec *spec, struct ex_process *process, bool early,
    struct spec_place *place, struct wp_cause *cause)
{
	struct evaluation e = {
		.spec = spec, .process = process, .cause = cause,
		.early = early,
	};
	const struct node *root = spec->expression->root;
	struct value v;

	if (expression_is_value(root))
		return value_error(&e, root);
	if (spec->follow)
		return take_way(&e, place) && (place->nmore > 0 ||
		    take_symbol_name(&e, place)) ? 0 : e.err;
	if (!evaluate_object(&e, root, &v))
		return e.err;
	if (!v.is_object)
		return value_error(&e, root);
	return take_place(&e, &v, place) && take_symbol_name(&e, place) ? 0 :
	    e.err;
}

int
evaluate_part(const struct spec *spec, struct ex_process *process, bool early,
    uint64_t *offset, uint64_t *len, struct wp_cause *cause)
{
	const struct node *root = spec->expression->root;
	struct evaluation e = {
		.spec = spec, .process = process, .cause = cause,
		.early = early,
	};
	struct pointer_path trace;
	struct spec_place place = {.len = 0};
	struct buffer why = {0};
	struct value v;

	if (!trace_object(&e, &trace, 0, &v))
		return e.err;
	if (trace.n == 0 && trace.other == NULL) {
		if (!take_place(&e, &v, &place))
			return e.err;
		*offset = place.addr;
		*len = place.len;
		return 0;
	}
	buffer_puts(&why, "this is not in what the function returns, but where "
	    "a pointer in there leads: give a member of it, or +OFF:LEN");
	(void)evaluate_fail_with(&e, root->at, &why);
	return e.err;
}

uint64_t
evaluate_size(struct ex_process *process, struct ex_module *module,
    uint64_t vaddr)
{
	struct ex_type result, target;

	return ex_type_of_result(module, vaddr, &result) &&
	    ex_type_kind(&result) == EX_POINTER &&
	    ex_type_target(process, &result, &target) ?
	    ex_type_size(&target) : 0;
}

static int
is_cxx(void *arg, const struct ex_symbol *symbol)
{
	(void)arg;
	return strncmp(symbol->name, "_Z", 2) == 0;
}

/* The debug information of a C program is not needed before its hits, since its
   symbols are enough.  In a C++ program without any mangled name no code sets
   a reference, so it can only be a constant. */
static bool
may_be_reference(const struct spec *spec, struct ex_process *process,
    bool early)
{
	struct found_symbol found;

	return find_symbol(spec, process, early, &found, NULL) == 0 &&
	    found.symbol.size == (ex_module_is_narrow(found.module) ? 4 : 8) &&
	    (ex_module_is_constant(found.module, found.symbol.value) ||
	    ex_symbol_each(found.module, is_cxx, NULL) != 0);
}

bool
evaluate_is_reference(const struct spec *spec, struct ex_process *process,
    bool early)
{
	struct evaluation e = {
		.spec = spec, .process = process, .early = early,
		.types_only = true,
	};
	const struct node *root = spec->expression->root;
	struct value v;

	return root->kind == NODE_NAME &&
	    may_be_reference(spec, process, early) &&
	    evaluate_node(&e, root, &v) &&
	    v.known && ex_type_is_reference(&v.type);
}

/* The text of the expression, to which members and elements can be appended; of
   its target if that is declared.  NULL if there is no memory. */
static char *
path_of(const struct node *root, const struct ex_type *type, bool target)
{
	const enum ex_kind kind = ex_type_kind(type);
	const bool enclose = target || (root->kind == NODE_DEREFERENCE &&
	    *root->begin != '(' && (kind == EX_STRUCT || kind == EX_ARRAY));
	struct buffer path = {0};
	char *copy;

	buffer_puts(&path, target ? "(*" : enclose ? "(" : "");
	buffer_put(&path, root->begin, (size_t)(root->end - root->begin));
	buffer_puts(&path, enclose ? ")" : "");
	copy = path.failed ? NULL : strdup(buffer_text(&path));
	buffer_free(&path);
	return copy;
}

/* Declare the elements of an array made by a cast, because no debug information
   has such a type. */
static void
declare_elements(struct ex_process *process, uint64_t addr, const char *path,
    const struct ex_type *type)
{
	struct ex_type element;
	uint64_t first, count;
	char text[256];

	if (!ex_type_element(type, &element, &first, &count))
		return;
	for (uint64_t i = 0; i < count && i < ELEMENTS_DECLARED; i++) {
		const uint64_t size = ex_type_size(&element);

		(void)snprintf(text, sizeof(text), "%s[%llu]", path,
		    (unsigned long long)i);
		if (element.ndims > 0)
			declare_elements(process, addr + i * size, text,
			    &element);
		else
			ex_object_declare(process, addr + i * size, text,
			    &element, size);
	}
}

/* Whether the debug information has the object; of a class with virtual base
   classes, or whose base classes have some, it has not all parts. */
static bool
is_declared(struct ex_process *process, uint64_t addr, uint64_t len)
{
	const struct ex_object *object = ex_object_at(process, addr, len);

	return object != NULL && (object->layout == NULL ||
	    ex_layout_is_whole(object->layout));
}

void
evaluate_declare(const struct spec *spec, struct ex_process *process,
    uint64_t addr, uint64_t len)
{
	struct evaluation e = {
		.spec = spec, .process = process, .types_only = true,
	};
	const struct node *root;
	bool target = false;
	struct value v;
	char *path;

	if (spec->expression == NULL || spec->off != 0)
		return;
	root = spec->expression->root;
	if (!expression_casts(root) && is_declared(process, addr, len))
		return;
	if (expression_is_value(root) || !evaluate_object(&e, root, &v) ||
	    !v.is_object || !v.known)
		return;
	if (v.bits != 0) {
		/* others may share the bytes of a bit-field */
		if (root->kind != NODE_MEMBER && root->kind != NODE_ARROW)
			return;
		addr -= v.addr - e.holder.addr;
		v = e.holder;
		target = root->kind == NODE_ARROW;
		root = root->left;
	}
	if ((path = path_of(root, &v.type, target)) == NULL)
		return;
	if (v.type.pointers == 0 && v.type.ndims > 0)
		declare_elements(process, addr, path, &v.type);
	else
		ex_object_declare(process, addr, path, &v.type, v.size);
	free(path);
}
