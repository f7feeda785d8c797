/*
 * evaluate: walks an expression's tree.
 *
 * A value is an object, which lies somewhere, or a number, maybe a pointer.
 * Only when an object's contents count is its memory read.  Without memory (a
 * type alone is asked for) all contents are 0: what C's types are depends on
 * none of them.
 */
#include "spec/evaluate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "spec/find_symbol.h"
#include "spec/nearest.h"
#include "type/object.h"
#include "util/visible.h"

enum {
	TEXT_SHOWN = 80,	/* characters of a SPEC in a message */
	PART_SHOWN = 40,	/* and of a part of it, or a type */
	BASES_MAX = 8,		/* base classes of base classes */
	MEMBERS_SHOWN = 5,	/* of a structure that has few */
};

struct value {
	bool is_object;		/* it lies at addr; else it is number */
	bool known;		/* it has a type */
	struct ex_type type;
	uint64_t addr;
	uint64_t size;		/* bytes; 0: not known */
	uint64_t bit;		/* of a bit-field: its lowest bit, */
	unsigned bits;		/* and how many; 0: it is none */
	uint64_t number;	/* cut to the type's size */
};

struct evaluation {
	const struct spec *spec;
	struct ex_process *process;
	struct wp_cause *cause;
	bool early;
	bool types_only;	/* no memory is read */
	struct trace *trace;	/* it is noted what would be; NULL: it is not */
	struct value holder;	/* that the last member is a part of */
	int err;		/* why it failed */
};

/* The pointers that lead to an object: where each lies, if each before it
   contains the same number. */
enum { WAY_MAX = 64 };
struct trace {
	uint64_t contents;
	uint64_t addr[WAY_MAX];	/* n of them; more are counted only */
	unsigned n;
	bool narrow;		/* they have 4 bytes */
	const struct node *other;	/* what is no pointer, and counts too;
					   NULL: nothing */
};

static bool eval(struct evaluation *, const struct node *, struct value *);

/* --- what is wrong --- */

/* A part of the SPEC, quoted. */
static void
put_part(struct buffer *b, const char *begin, const char *end)
{
	char part[4 * PART_SHOWN + 1];
	const size_t len = (size_t)(end - begin);

	(void)snprintf(part, sizeof(part), "%.*s", (int)(len < sizeof(part) ?
	    len : sizeof(part) - 1), begin);
	buffer_puts(b, "'");
	visible_put_max(b, part, PART_SHOWN);
	buffer_puts(b, "'");
}

static void
put_type(struct buffer *b, const struct value *v)
{
	char name[256];

	if (!v->known) {
		buffer_puts(b, "of no known type");
		return;
	}
	ex_type_put(&v->type, name, sizeof(name));
	buffer_puts(b, "of type ");
	visible_put_max(b, name, PART_SHOWN);
}

/* End with what is in the buffer. */
static bool
fail_with(struct evaluation *e, const char *at, struct buffer *why)
{
	e->err = spec_error(e->spec, at, buffer_text(why), e->cause);
	buffer_free(why);
	return false;
}

static bool
fail(struct evaluation *e, const char *at, const char *why)
{
	e->err = spec_error(e->spec, at, why, e->cause);
	return false;
}

/* "'server.clients' is of type int: " and what that means. */
static bool
fail_type(struct evaluation *e, const struct node *node,
    const struct value *v, const char *at, const char *means)
{
	struct buffer why = {0};

	put_part(&why, node->begin, node->end);
	if (!v->known) {
		buffer_puts(&why, " has no debug information, so that its type "
		    "is not known: cast it, or give SYMBOL+OFF:LEN");
		return fail_with(e, at, &why);
	}
	buffer_puts(&why, " is ");
	put_type(&why, v);
	buffer_puts(&why, ": ");
	buffer_puts(&why, means);
	return fail_with(e, at, &why);
}

/* The text of the object that is perhaps meant; nothing if there is none.
   pointer: the value is one. */
static void
put_meant(struct buffer *b, const struct node *node, bool pointer)
{
	const struct node *of = node->kind == NODE_ADDRESS ||
	    node->kind == NODE_SIZE || node->kind == NODE_CAST ||
	    node->kind == NODE_NEGATIVE || node->kind == NODE_POSITIVE ||
	    node->kind == NODE_COMPLEMENT ? node->left :
	    node->kind == NODE_ADD || node->kind == NODE_SUBTRACT ?
	    node->left : NULL;
	const bool enclosed = node->kind == NODE_CAST || *node->begin == '(';

	if (pointer && node->kind != NODE_ADDRESS) {
		buffer_puts(b, enclosed ? "*" : "*(");
		buffer_put(b, node->begin, (size_t)(node->end - node->begin));
		buffer_puts(b, enclosed ? "" : ")");
	} else if (of != NULL && !expression_is_value(of)) {
		buffer_put(b, of->begin, (size_t)(of->end - of->begin));
	}
}

static bool is_pointer(const struct value *);

/* Say that it is a value, and which object is perhaps meant. */
static int
value_error(struct evaluation *e, const struct node *node)
{
	const struct spec *spec = e->spec;
	struct wp_cause *cause = e->cause;
	struct buffer why = {0}, meant = {0};
	struct value v;
	int err;

	e->types_only = true;
	if (!eval(e, node, &v))
		return e->err;
	put_meant(&meant, node, is_pointer(&v));
	buffer_puts(&why, "this is a value, not an object that could be "
	    "watched");
	if (meant.len > 0) {
		buffer_puts(&why, "; perhaps you mean '");
		visible_put_max(&why, buffer_text(&meant), TEXT_SHOWN);
		buffer_puts(&why, "'");
	}
	err = spec_error(spec, node->at, buffer_text(&why), cause);
	buffer_free(&why);
	buffer_free(&meant);
	return err;
}

/* --- values --- */

static bool
is_pointer(const struct value *v)
{
	return v->known && ex_type_kind(&v->type) == EX_POINTER;
}

static bool
is_signed(const struct value *v)
{
	return v->type.pointers == 0 && v->type.layout != NULL &&
	    v->type.layout->is_signed;
}

static bool
is_integer(const struct value *v)
{
	uint64_t size;

	switch (v->known ? ex_type_kind(&v->type) : EX_OPAQUE) {
	case EX_SIGNED:
	case EX_UNSIGNED:
	case EX_BOOL:
	case EX_CHAR:
	case EX_UTF:
	case EX_ENUM:
		size = ex_type_size(&v->type);
		return size > 0 && size <= 8;
	default:
		return false;
	}
}

/* A number's value at the width of 64 bits. */
static uint64_t
extended(uint64_t number, unsigned bits, bool sign)
{
	if (bits >= 64)
		return number;
	number &= (UINT64_C(1) << bits) - 1;
	return sign && (number >> (bits - 1) & 1) != 0 ?
	    number | ~((UINT64_C(1) << bits) - 1) : number;
}

static void
set_number(struct value *v, const char *type, uint64_t number)
{
	*v = (struct value){.known = true};
	(void)ex_type_own(type, &v->type);
	v->size = ex_type_size(&v->type);
	v->number = extended(number, (unsigned)v->size * 8, is_signed(v));
}

/* What C's arithmetic gives: an int or a long. */
static void
set_result(struct value *v, const struct ex_number *number)
{
	set_number(v, number->size > 4 ?
	    (number->is_signed ? "long" : "unsigned long") :
	    number->is_signed ? "int" : "unsigned int", number->bits);
}

static struct ex_number
number_of(const struct value *v)
{
	return ex_number_integer(v->number,
	    (unsigned)ex_type_size(&v->type), is_signed(v));
}

static void
set_object(struct value *v, const struct ex_type *type, uint64_t addr,
    uint64_t size)
{
	*v = (struct value){
		.is_object = true, .known = true, .type = *type, .addr = addr,
		.size = size,
	};
}

/* What would be read, of a pointer or else. */
static void
note_read(struct trace *t, const struct node *node, uint64_t addr, void *to,
    size_t len, bool pointer)
{
	if (!pointer || (len != sizeof(t->contents) &&
	    len != sizeof(uint32_t))) {
		t->other = t->other == NULL ? node : t->other;
		return;
	}
	memcpy(to, &t->contents, len);
	t->narrow = len == sizeof(uint32_t);
	if (t->n < WAY_MAX)
		t->addr[t->n] = addr;
	t->n++;
}

static bool
read_bytes(struct evaluation *e, const struct node *node, uint64_t addr,
    void *to, size_t len, bool pointer)
{
	struct buffer why = {0};

	memset(to, 0, len);
	if (e->trace != NULL)
		note_read(e->trace, node, addr, to, len, pointer);
	if (e->types_only)
		return true;
	if (e->spec->unborn) {
		put_part(&why, node->begin, node->end);
		buffer_puts(&why, " is not known before the command has run: ");
		buffer_puts(&why, pointer ? "--follow moves with it, or " : "");
		buffer_puts(&why, "attach to it with -p when it has got there");
		return fail_with(e, node->at, &why);
	}
	if (ex_process_read(e->process, addr, to, len))
		return true;
	put_part(&why, node->begin, node->end);
	buffer_puts(&why, " lies at ");
	buffer_hex(&why, addr);
	buffer_puts(&why, ", where no memory can be read");
	return fail_with(e, node->at, &why);
}

/* A reference is what it refers to. */
static bool
follow_reference(struct evaluation *e, const struct node *node, struct value *v)
{
	struct ex_type target;
	uint64_t addr;

	if (!v->is_object || !v->known || !ex_type_is_reference(&v->type))
		return true;
	if (!read_bytes(e, node, v->addr, &addr, sizeof(addr), true))
		return false;
	(void)ex_type_target(e->process, &v->type, &target);
	set_object(v, &target, addr, ex_type_size(&target));
	return true;
}

static bool
eval_object(struct evaluation *e, const struct node *node, struct value *v)
{
	return eval(e, node, v) && follow_reference(e, node, v);
}

/* An array is a pointer to its first element. */
static bool
decay(struct value *v)
{
	struct ex_type element;
	uint64_t first, count;

	if (!v->is_object || !v->known ||
	    !ex_type_element(&v->type, &element, &first, &count))
		return false;
	element.pointers++;
	*v = (struct value){
		.known = true, .type = element, .size = sizeof(void *),
		.number = v->addr,
	};
	return true;
}

/* What an object contains. */
static bool
load(struct evaluation *e, const struct node *node, struct value *v)
{
	const bool sign = is_integer(v) && is_signed(v);
	unsigned __int128 bytes = 0;
	const uint64_t size = v->bits != 0 ? v->size : ex_type_size(&v->type);

	if (!is_integer(v) && !is_pointer(v))
		return fail_type(e, node, v, node->at, "that is no whole "
		    "number and no pointer");
	if (size > sizeof(bytes) || !read_bytes(e, node, v->addr, &bytes,
	    (size_t)size, is_pointer(v)))
		return e->err != 0 ? false : fail(e, node->at, "this is too "
		    "wide for a number");
	v->number = extended((uint64_t)(bytes >> v->bit), v->bits != 0 ?
	    v->bits : (unsigned)size * 8, sign);
	v->is_object = false;
	v->bits = 0;
	return true;
}

/* An operand of an operator is a number or a pointer. */
static bool
take_number(struct evaluation *e, const struct node *node, struct value *v)
{
	if (!v->is_object || decay(v))
		return true;
	if (v->known)
		return load(e, node, v);
	return fail_type(e, node, v, node->at, "");
}

static bool
eval_number(struct evaluation *e, const struct node *node, struct value *v)
{
	return eval_object(e, node, v) && take_number(e, node, v);
}

static bool
eval_integer(struct evaluation *e, const struct node *node, struct value *v)
{
	if (!eval_number(e, node, v))
		return false;
	return is_integer(v) || fail_type(e, node, v, node->at,
	    "a whole number is wanted");
}

/* --- names --- */

/* A name's own source file, and the rest. */
struct named {
	struct spec spec;	/* as of a SPEC that is this name alone */
	char *copy;		/* malloc'd: what is in there */
};

static bool
take_name(const struct evaluation *e, const struct node *node,
    struct named *named)
{
	const size_t file = token_file(node->text);
	char *name;

	*named = (struct named){.copy = strndup(node->text, node->len)};
	if ((name = named->copy) == NULL)
		return false;
	named->spec = (struct spec){
		.text = e->spec->text, .access = WP_WRITE,
		.symbol = name + file,
	};
	if (file > 0) {
		name[file - 2] = '\0';
		named->spec.module = name;
	} else if (token_file(e->spec->text) == 0) {
		named->spec.module = e->spec->module;
		named->spec.real = e->spec->real;
	}
	return true;
}

struct name_search {
	struct evaluation *e;
	const char *name;
	const char *file;	/* which has it; NULL: any */
	unsigned found;
	struct value *v;
};

/* One that no symbol is called like. */
static int
search_variable(void *arg, struct ex_module *m, uint64_t base)
{
	struct name_search *s = arg;
	struct ex_declaration d;
	uint64_t vaddr;

	s->found = ex_declaration_find(m, s->name, s->file, &vaddr, &d);
	if (s->found > 0)
		set_object(s->v, &d.type, base + vaddr, d.size);
	return s->found > 0;
}

static int
search_enumerator(void *arg, struct ex_module *m, uint64_t base)
{
	struct name_search *s = arg;
	struct ex_type type;
	uint64_t number;

	(void)base;
	if (!ex_type_enumerator(m, s->name, &number, &type))
		return 0;
	*s->v = (struct value){
		.known = true, .type = type, .size = ex_type_size(&type),
	};
	s->v->number = extended(number, (unsigned)s->v->size * 8,
	    is_signed(s->v));
	return 1;
}

/* A symbol, with the type of what is declared there. */
static bool
take_symbol(struct evaluation *e, const struct node *node,
    const struct found_symbol *found, struct value *v)
{
	struct ex_declaration d;
	struct buffer text = {0};

	if (found->symbol.tls) {
		put_part(&text, node->begin, node->end);
		e->err = wp_cause_set(e->cause, WP_CAUSE_SYMBOL_TLS,
		    buffer_text(&text));
		buffer_free(&text);
		return false;
	}
	if (ex_declaration_at(e->process, found->module, found->symbol.value,
	    &d)) {
		set_object(v, &d.type, found->addr, d.size);
		return true;
	}
	*v = (struct value){
		.is_object = true, .addr = found->addr,
		.size = found->symbol.size,
	};
	return true;
}

static bool
ambiguous(struct evaluation *e, const struct node *node, unsigned n)
{
	struct buffer why = {0};

	buffer_printf(&why, "%u variables are called ", n);
	put_part(&why, node->begin, node->end);
	buffer_puts(&why, ": name one by its address");
	return fail_with(e, node->at, &why);
}

/* Where in the SPEC the name is. */
static void
add_column(struct evaluation *e, const char *at)
{
	struct wp_cause *cause = e->cause;
	const size_t len = cause != NULL ? strlen(cause->text) : 0;

	if (cause != NULL && e->err < 0)
		(void)snprintf(cause->text + len, sizeof(cause->text) - len,
		    " (column %zu)", visible_columns(e->spec->text,
		    (size_t)(at - e->spec->text)) + 1);
}

static bool
eval_name(struct evaluation *e, const struct node *node, struct value *v)
{
	struct found_symbol found;
	struct name_search s = {.e = e, .v = v};
	struct named named;
	bool good = false;

	if (!take_name(e, node, &named)) {
		e->err = wp_cause_set(e->cause, WP_CAUSE_NO_MEMORY);
		return false;
	}
	s.name = named.spec.symbol;
	e->err = find_symbol(&named.spec, e->process, e->early, &found, NULL);
	if (e->err == 0) {
		good = take_symbol(e, node, &found, v);
	} else if (e->err == -ENOENT && (find_symbol_modules(&named.spec,
	    e->process, &s.file, search_variable, &s) != 0 ||
	    (s.file == NULL && find_symbol_modules(&named.spec, e->process,
	    &s.file, search_enumerator, &s) != 0))) {
		e->err = 0;
		good = s.found <= 1 || ambiguous(e, node, s.found);
	} else {
		e->err = find_symbol(&named.spec, e->process, e->early,
		    &found, e->cause);
		add_column(e, node->at);
	}
	free(named.copy);
	return good;
}

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
	put_part(&why, node->text, node->text + node->len);
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
	nearest_free(&members.near);
	buffer_free(&members.all);
	return fail_with(e, node->at, &why);
}

/* A static member is a variable of its class's scope, or of that of one of its
   base classes. */
static bool
static_member(struct evaluation *e, const struct node *node,
    const struct ex_type *of, const char *name, unsigned depth, struct value *v)
{
	struct wp_cause *cause = e->cause;
	struct ex_type type = *of, base;
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
	good = of->module != NULL && !of->tags && eval_name(e, &scoped, v);
	e->cause = cause;
	if (!good)
		e->err = 0;
	for (unsigned i = 0; !good && depth < BASES_MAX &&
	    ex_type_base(of, i, &base); i++)
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
		good = fail_type(e, node, holder, node->at, "several of its "
		    "base classes have such a member: write BASE::MEMBER");
	} else if (n == 1) {
		set_object(v, &part.type, holder->addr + part.offset,
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

	put_part(&why, node->begin, node->end);
	buffer_puts(&why, " is a null pointer now: there is nothing to watch; "
	    "--follow waits for another");
	return fail_with(e, node->at, &why);
}

/* The object that a pointer points to, or off elements behind it. */
static bool
target_of(struct evaluation *e, const struct node *node,
    const struct value *pointer, uint64_t off, struct value *v)
{
	struct ex_type target;

	if (!is_pointer(pointer) ||
	    !ex_type_target(e->process, &pointer->type, &target))
		return fail_type(e, node, pointer, node->at, "that is no "
		    "pointer");
	if (pointer->number == 0 && !e->types_only)
		return null_pointer(e, node);
	set_object(v, &target, pointer->number + off * ex_type_size(&target),
	    ex_type_size(&target));
	return true;
}

/* Fortran's pointers have the members of what they point to. */
static bool
follow_fortran(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value pointer = *v;

	if (!is_pointer(v) || !v->is_object || !v->type.columns)
		return true;
	return load(e, node, &pointer) && target_of(e, node, &pointer, 0, v);
}

static bool
eval_member(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value holder;

	if (!eval_object(e, node->left, &holder) ||
	    !follow_fortran(e, node->left, &holder))
		return false;
	if (is_pointer(&holder))
		return fail_type(e, node->left, &holder, node->at,
		    "a pointer's members are behind '->'");
	if (!holder.is_object || !holder.known ||
	    ex_type_kind(&holder.type) != EX_STRUCT)
		return fail_type(e, node->left, &holder, node->at,
		    "that has no members");
	return member_of(e, node, &holder, v);
}

static bool
eval_arrow(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value pointer, holder = {.known = false};

	if (!eval_object(e, node->left, &pointer))
		return false;
	if (pointer.known && ex_type_kind(&pointer.type) == EX_STRUCT)
		return fail_type(e, node->left, &pointer, node->at,
		    "its members are behind '.'");
	if (pointer.is_object && !decay(&pointer) &&
	    !(is_pointer(&pointer) ? load(e, node->left, &pointer) :
	    fail_type(e, node->left, &pointer, node->at,
	    "that is no pointer")))
		return false;
	if (!target_of(e, node->left, &pointer, 0, &holder) ||
	    !follow_reference(e, node->left, &holder))
		return false;
	if (ex_type_kind(&holder.type) != EX_STRUCT)
		return fail_type(e, node->left, &pointer, node->at,
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

	if (!eval_integer(e, node->right, &index))
		return false;
	if (array->is_object && array->known &&
	    ex_type_element(&array->type, &element, &first, &count)) {
		set_object(v, &element, array->addr + (index.number - first) *
		    ex_type_size(&element), ex_type_size(&element));
		return true;
	}
	if (!is_pointer(&pointer))
		return fail_type(e, node->left, &pointer, node->at,
		    "that is no array and no pointer");
	if (pointer.is_object && !load(e, node->left, &pointer))
		return false;
	return target_of(e, node->left, &pointer, index.number, v);
}

static bool
eval_index(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value array, other;
	struct node turned = *node;

	if (!eval_object(e, node->left, &array))
		return false;
	/* C's 1[p] is p[1] */
	if (node->kind == NODE_INDEX && is_integer(&array)) {
		if (!eval_object(e, node->right, &other))
			return false;
		turned.left = node->right;
		turned.right = node->left;
		if (!is_integer(&other))
			return element_of(e, &turned, &other, v);
	}
	if (node->kind == NODE_ELEMENT && (!array.known ||
	    !array.type.columns))
		return fail(e, node->at, "no function is called here");
	return element_of(e, node, &array, v);
}

static bool
eval_dereference(struct evaluation *e, const struct node *node,
    struct value *v)
{
	struct value pointer;
	struct buffer why = {0};

	if (!eval_number(e, node->left, &pointer))
		return false;
	if (is_pointer(&pointer))
		return target_of(e, node->left, &pointer, 0, v);
	if (!is_integer(&pointer))
		return fail_type(e, node->left, &pointer, node->at,
		    "that is no pointer");
	put_part(&why, node->left->begin, node->left->end);
	buffer_puts(&why, " is a number, and says not what it points to: "
	    "write *(TYPE *) in front of it");
	return fail_with(e, node->at, &why);
}

static bool
eval_address(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value object;

	if (!eval_object(e, node->left, &object))
		return false;
	if (!object.is_object || object.bits != 0)
		return fail(e, node->at, object.bits != 0 ?
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

/* Fortran's a%b, a%b(i)%c: what is behind is of the object in front. */
static bool
member_chain(struct evaluation *e, const struct value *holder,
    const struct node *node, struct value *v)
{
	struct value left;

	switch (node->kind) {
	case NODE_NAME:
		return member_of(e, node, holder, v);
	case NODE_MEMBER:
		return member_chain(e, holder, node->left, &left) &&
		    member_of(e, node, &left, v);
	case NODE_INDEX:
	case NODE_ELEMENT:
		return member_chain(e, holder, node->left, &left) &&
		    element_of(e, node, &left, v);
	default:
		return fail(e, node->at, "a member's name is wanted");
	}
}

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
	struct ex_number x = number_of(a), y = number_of(b), result;

	if (e->types_only && divides)
		y = ex_number_integer(1, y.size, y.is_signed);
	if (!ex_number_apply(operators[node->kind], &x, &y, &result))
		return fail(e, node->at, !divides ? "this shifts by more bits "
		    "than there are" : y.bits == 0 ? "this divides by zero" :
		    "this has no result in C");
	set_result(v, &result);
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
	/* nothing is as large as half of all memory */
	return size == 0 || size > INT64_MAX ? 1 : size;
}

static bool
pointer_arithmetic(struct evaluation *e, const struct node *node,
    const struct value *a, const struct value *b, struct value *v)
{
	if (node->kind == NODE_SUBTRACT && is_pointer(a) && is_pointer(b)) {
		set_number(v, "long", (uint64_t)((int64_t)(a->number -
		    b->number) / (int64_t)step_of(e, a)));
		return true;
	}
	if (is_pointer(a) && is_integer(b) && (node->kind == NODE_ADD ||
	    node->kind == NODE_SUBTRACT)) {
		const uint64_t off = b->number * step_of(e, a);

		*v = *a;
		v->number += node->kind == NODE_ADD ? off : 0 - off;
		return true;
	}
	if (is_integer(a) && is_pointer(b) && node->kind == NODE_ADD) {
		*v = *b;
		v->number += a->number * step_of(e, b);
		return true;
	}
	return fail(e, node->at, "there is no such operator for pointers");
}

static bool
eval_binary(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value a, b, holder;

	if (!eval_object(e, node->left, &a))
		return false;
	holder = a;
	if (node->kind == NODE_REMAINDER &&
	    !follow_fortran(e, node->left, &holder))
		return false;
	if (node->kind == NODE_REMAINDER && holder.is_object && holder.known &&
	    ex_type_kind(&holder.type) == EX_STRUCT)
		return member_chain(e, &holder, node->right, v);
	if (!take_number(e, node->left, &a) || !eval_number(e, node->right, &b))
		return false;
	if (is_pointer(&a) || is_pointer(&b))
		return pointer_arithmetic(e, node, &a, &b, v);
	if (!is_integer(&a) || !is_integer(&b))
		return fail_type(e, is_integer(&a) ? node->right : node->left,
		    is_integer(&a) ? &b : &a, node->at,
		    "a whole number is wanted");
	return arithmetic(e, node, &a, &b, v);
}

static bool
eval_unary(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value of;
	struct ex_number number;

	if (!eval_integer(e, node->left, &of))
		return false;
	number = number_of(&of);
	if (node->kind == NODE_NEGATIVE)
		number = ex_number_negate(&number);
	else if (node->kind == NODE_COMPLEMENT)
		(void)ex_number_complement(&number, &number);
	else
		number = ex_number_promote(&number);
	set_result(v, &number);
	return true;
}

/* --- types --- */

struct type_lookup {
	const char *name;
	enum ex_tag tag;
	struct ex_type *type;
	unsigned asked;		/* modules with debug information */
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
	put_part(&why, node->type.name, node->type.name + node->type.len);
	if (asked == 0)
		buffer_puts(&why, ": C's own, such as long, are known");
	return fail_with(e, node->type.name, &why);
}

/* The type that a cast or sizeof names. */
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
		type->pointers += wanted->pointers;
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
	type->pointers += wanted->pointers;
	return true;
}

static bool
eval_cast(struct evaluation *e, const struct node *node, struct value *v)
{
	struct value of;
	struct ex_type type;

	if (!find_type(e, node, &type) || !eval_number(e, node->left, &of))
		return false;
	*v = (struct value){
		.known = true, .type = type, .size = ex_type_size(&type),
	};
	if (!is_integer(v) && !is_pointer(v))
		return fail(e, node->at, "a cast to what is no whole number "
		    "and no pointer");
	v->number = extended(of.number, (unsigned)v->size * 8, is_integer(v) &&
	    is_signed(v));
	return true;
}

/* sizeof (name) may be of a type. */
static bool
eval_size(struct evaluation *e, const struct node *node, struct value *v)
{
	struct wp_cause *cause = e->cause;
	const bool types_only = e->types_only;
	struct trace *trace = e->trace;
	const struct node *of = node->left;
	struct ex_type type;
	struct node named = *node;
	struct value object;
	bool good;

	if (node->kind == NODE_TYPE_SIZE) {
		if (!find_type(e, node, &type))
			return false;
		set_number(v, "unsigned long", ex_type_size(&type));
		return true;
	}
	/* it evaluates nothing */
	e->types_only = true;
	e->trace = NULL;
	e->cause = of->kind == NODE_NAME ? NULL : cause;
	good = eval_object(e, of, &object);
	e->cause = cause;
	e->trace = trace;
	e->types_only = types_only;
	if (good) {
		set_number(v, "unsigned long", object.size);
		return true;
	}
	if (of->kind != NODE_NAME)
		return false;
	named.type = (struct token_type){.name = of->text, .len = of->len};
	if (!find_type(e, &named, &type))
		return false;
	set_number(v, "unsigned long", ex_type_size(&type));
	return true;
}

static bool
eval(struct evaluation *e, const struct node *node, struct value *v)
{
	struct ex_number number;

	*v = (struct value){.known = false};
	switch (node->kind) {
	case NODE_NUMBER:
		number = ex_number_integer(node->number.value,
		    node->number.size, node->number.is_signed);
		set_result(v, &number);
		return true;
	case NODE_NAME:
		return eval_name(e, node, v);
	case NODE_MEMBER:
		return eval_member(e, node, v);
	case NODE_ARROW:
		return eval_arrow(e, node, v);
	case NODE_INDEX:
	case NODE_ELEMENT:
		return eval_index(e, node, v);
	case NODE_DEREFERENCE:
		return eval_dereference(e, node, v);
	case NODE_ADDRESS:
		return eval_address(e, node, v);
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

/* Where it lies, and how much of that is wanted. */
static bool
take_place(struct evaluation *e, const struct value *v,
    struct spec_place *place)
{
	const struct spec *spec = e->spec;
	const struct node *root = spec->expression->root;
	const uint64_t left = v->size > spec->off ? v->size - spec->off : 0;
	uint64_t unit;

	if (v->size > 0 && left == 0)
		return fail(e, root->at, "the offset lies beyond its end");
	if (v->size == 0 && spec->len == 0)
		return fail_type(e, root, v, root->at, "how long that is is "
		    "not known: give SPEC:LEN");
	if (spec->off > UINT64_MAX - v->addr)
		return fail(e, root->at, "the offset reaches beyond the last "
		    "address");
	place->addr = v->addr + spec->off;
	unit = spec_alignment(place->addr);
	place->len = spec->len != 0 ? spec->len : spec->has_off && unit < left ?
	    unit : left;
	if (place->len - 1 > UINT64_MAX - place->addr)
		return fail(e, root->at, "it reaches beyond the last address");
	return true;
}

/* What a variable that is all of it is called. */
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

/* Where the object would be. */
static bool
trace_object(struct evaluation *e, struct trace *trace, uint64_t contents,
    struct value *v)
{
	*trace = (struct trace){.contents = contents};
	e->trace = trace;
	e->types_only = true;
	if (!eval_object(e, e->spec->expression->root, v))
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
	return fail_with(e, e->spec->expression->root->at, &why);
}

static bool
follows_more(struct evaluation *e, const struct node *other)
{
	struct buffer why = {0};

	put_part(&why, other->begin, other->end);
	buffer_puts(&why, " is no pointer, and what it is decides which object "
	    "is meant: --follow follows pointers; give a number in its place");
	return fail_with(e, other->at, &why);
}

/* Each step of the way adds a number to what a pointer contains. */
static bool
is_plain(const struct trace *a, const struct value *at_a,
    const struct trace *b, const struct value *at_b)
{
	const uint64_t step = b->contents - a->contents;

	for (unsigned i = 0; i < a->n; i++)
		if (b->addr[i] - a->addr[i] != (i == 0 ? 0 : step))
			return false;
	return at_b->addr - at_a->addr == step;
}

/* The pointers, and what is to be added to each; but for an object that none
   leads to. */
static bool
take_way(struct evaluation *e, struct spec_place *place)
{
	const struct node *root = e->spec->expression->root;
	struct trace a, b;
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
		return fail(e, root->at, "--follow follows pointers, and there "
		    "is more to this");
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
	if (!eval_object(&e, root, &v))
		return e.err;
	if (!v.is_object)
		return value_error(&e, root);
	return take_place(&e, &v, place) && take_symbol_name(&e, place) ? 0 :
	    e.err;
}

static int
is_cxx(void *arg, const struct ex_symbol *symbol)
{
	(void)arg;
	return strncmp(symbol->name, "_Z", 2) == 0;
}

/* A C program's debug information is not read before its hits are: its symbols
   do, whatever is wrong with that.  A C++ program that has no mangled name has
   no code that sets a reference either: then it is a constant. */
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
	    may_be_reference(spec, process, early) && eval(&e, root, &v) &&
	    v.known && ex_type_is_reference(&v.type);
}

/* Its text, to which members or elements may be added; of what it points to, if
   that is declared.  NULL: no memory. */
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
	if (!expression_casts(root) && ex_object_at(process, addr, len) != NULL)
		return;
	if (expression_is_value(root) || !eval_object(&e, root, &v) ||
	    !v.is_object || !v.known)
		return;
	if (v.bits != 0) {
		/* its bytes may be those of others, too */
		if (root->kind != NODE_MEMBER && root->kind != NODE_ARROW)
			return;
		addr -= v.addr - e.holder.addr;
		v = e.holder;
		target = root->kind == NODE_ARROW;
		root = root->left;
	}
	if ((path = path_of(root, &v.type, target)) == NULL)
		return;
	ex_object_declare(process, addr, path, &v.type, v.size);
	free(path);
}
