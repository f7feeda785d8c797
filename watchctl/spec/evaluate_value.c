/* evaluate_value: values of expressions, and their errors. */
#include "spec/evaluate_private.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "space/space.h"
#include "type/descriptor.h"
#include "util/visible.h"

/* --- what is wrong --- */

void
evaluate_put_part(struct buffer *b, const char *begin, const char *end)
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
evaluate_put_type(struct buffer *b, const struct value *v)
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

bool
evaluate_fail_with(struct evaluation *e, const char *at, struct buffer *why)
{
	e->err = spec_error(e->spec, at, buffer_text(why), e->cause);
	buffer_free(why);
	return false;
}

bool
evaluate_fail(struct evaluation *e, const char *at, const char *why)
{
	e->err = spec_error(e->spec, at, why, e->cause);
	return false;
}

bool
evaluate_fail_type(struct evaluation *e, const struct node *node,
    const struct value *v, const char *at, const char *means)
{
	struct buffer why = {0};

	evaluate_put_part(&why, node->begin, node->end);
	if (!v->known) {
		buffer_puts(&why, " has no debug information, so that its type "
		    "is not known: cast it, or give SYMBOL+OFF:LEN");
		return evaluate_fail_with(e, at, &why);
	}
	buffer_puts(&why, " is ");
	evaluate_put_type(&why, v);
	buffer_puts(&why, ": ");
	buffer_puts(&why, means);
	return evaluate_fail_with(e, at, &why);
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

int
value_error(struct evaluation *e, const struct node *node)
{
	const struct spec *spec = e->spec;
	struct wp_cause *cause = e->cause;
	struct buffer why = {0}, meant = {0};
	struct value v;
	int err;

	e->types_only = true;
	if (!evaluate_node(e, node, &v))
		return e->err;
	put_meant(&meant, node, value_is_pointer(&v));
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

bool
value_is_pointer(const struct value *v)
{
	return v->known && ex_type_kind(&v->type) == EX_POINTER;
}

bool
value_is_signed(const struct value *v)
{
	return v->type.pointers == 0 && v->type.layout != NULL &&
	    v->type.layout->is_signed;
}

bool
value_is_integer(const struct value *v)
{
	const uint64_t size = v->known && ex_kind_is_integer(ex_type_kind(
	    &v->type)) ? ex_type_size(&v->type) : 0;

	return size > 0 && size <= 8;
}

uint64_t
value_extended(uint64_t number, unsigned bits, bool sign)
{
	if (bits >= 64)
		return number;
	number &= (UINT64_C(1) << bits) - 1;
	return sign && (number >> (bits - 1) & 1) != 0 ?
	    number | ~((UINT64_C(1) << bits) - 1) : number;
}

void
value_set_number(struct value *v, const char *type, uint64_t number)
{
	*v = (struct value){.known = true};
	(void)ex_type_own(type, &v->type);
	v->size = ex_type_size(&v->type);
	v->number = value_extended(number, (unsigned)v->size * 8,
	    value_is_signed(v));
}

void
value_set_result(struct value *v, const struct ex_number *number)
{
	value_set_number(v, number->size > 4 ?
	    (number->is_signed ? "long" : "unsigned long") :
	    number->is_signed ? "int" : "unsigned int", number->bits);
}

struct ex_number
value_number_of(const struct value *v)
{
	return ex_number_integer(v->number,
	    (unsigned)ex_type_size(&v->type), value_is_signed(v));
}

void
value_set_object(struct value *v, const struct ex_type *type, uint64_t addr,
    uint64_t size)
{
	*v = (struct value){
		.is_object = true, .known = true, .type = *type, .addr = addr,
		.size = size,
	};
}

/* Note what an expression reads: a pointer on the way to the object, or
   something else. */
static void
note_read(struct pointer_path *t, const struct node *node, uint64_t addr,
    void *to, size_t len, bool pointer)
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
		evaluate_put_part(&why, node->begin, node->end);
		buffer_puts(&why, " is not known before the command has run: ");
		buffer_puts(&why, pointer ? "--follow moves with it, or " : "");
		buffer_puts(&why, "attach to it with -p when it has got there");
		return evaluate_fail_with(e, node->at, &why);
	}
	if (ex_process_read(e->process, addr, to, len))
		return true;
	evaluate_put_part(&why, node->begin, node->end);
	buffer_puts(&why, " lies at ");
	buffer_hex(&why, addr);
	buffer_puts(&why, ", where no memory can be read");
	return evaluate_fail_with(e, node->at, &why);
}

bool
value_read(struct evaluation *e, const struct node *node, uint64_t addr,
    void *to, size_t len)
{
	return read_bytes(e, node, addr, to, len, false);
}

bool
value_follow_reference(struct evaluation *e, const struct node *node,
    struct value *v)
{
	struct ex_type target;
	uint64_t addr;

	if (!v->is_object || !v->known || !ex_type_is_reference(&v->type))
		return true;
	if (!read_bytes(e, node, v->addr, &addr, sizeof(addr), true))
		return false;
	(void)ex_type_target(e->process, &v->type, &target);
	value_set_object(v, &target, addr, ex_type_size(&target));
	return true;
}

/* --- Fortran's arrays that are allocated or pointed to --- */

struct descriptor_read {
	struct evaluation *e;
	const struct node *node;
};

static bool
read_descriptor(void *arg, uint64_t addr, void *to, size_t len)
{
	const struct descriptor_read *r = arg;

	return value_read(r->e, r->node, addr, to, len);
}

bool
value_follow_descriptor(struct evaluation *e, const struct node *node,
    struct value *v)
{
	struct descriptor_read r = {e, node};
	struct ex_type elements;
	uint64_t at = 0;
	int err;

	if (!v->is_object || !v->known || !ex_descriptor_is(&v->type))
		return true;
	err = ex_descriptor_elements(&v->type, v->addr, read_descriptor, &r,
	    &elements, &at);
	if (err == -EFAULT)
		return false;
	if (at == 0 && !e->types_only)
		return evaluate_fail(e, node->at, "this array is not "
		    "allocated, or points to nothing, now: attach when it "
		    "does");
	if (err < 0)
		return evaluate_fail(e, node->at, "the elements of this array "
		    "do not lie side by side, or have more than three "
		    "dimensions: give the address of one");
	if (e->types_only)	/* bounds are not known */
		memset(elements.count, 0, sizeof(elements.count));
	value_set_object(v, &elements, at, ex_type_size(&elements));
	return true;
}

bool
evaluate_object(struct evaluation *e, const struct node *node, struct value *v)
{
	return evaluate_node(e, node, v) &&
	    value_follow_reference(e, node, v) &&
	    value_follow_descriptor(e, node, v);
}

bool
value_decay(struct value *v)
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

bool
value_load(struct evaluation *e, const struct node *node, struct value *v)
{
	const bool sign = value_is_integer(v) && value_is_signed(v);
	unsigned __int128 bytes = 0;
	const uint64_t size = v->bits != 0 ? v->size : ex_type_size(&v->type);

	if (!value_is_integer(v) && !value_is_pointer(v))
		return evaluate_fail_type(e, node, v, node->at,
		    "that is neither a whole number nor a pointer");
	if (size > sizeof(bytes) || !read_bytes(e, node, v->addr, &bytes,
	    (size_t)size, value_is_pointer(v)))
		return e->err != 0 ? false : evaluate_fail(e, node->at,
		    "this is too wide for a number");
	v->number = value_extended((uint64_t)(bytes >> v->bit), v->bits != 0 ?
	    v->bits : (unsigned)size * 8, sign);
	v->is_object = false;
	v->bits = 0;
	return true;
}

bool
value_take_number(struct evaluation *e, const struct node *node,
    struct value *v)
{
	if (!v->is_object || value_decay(v))
		return true;
	if (v->known)
		return value_load(e, node, v);
	return evaluate_fail_type(e, node, v, node->at, "");
}

bool
evaluate_number(struct evaluation *e, const struct node *node, struct value *v)
{
	return evaluate_object(e, node, v) && value_take_number(e, node, v);
}

bool
evaluate_integer(struct evaluation *e, const struct node *node, struct value *v)
{
	if (!evaluate_number(e, node, v))
		return false;
	return value_is_integer(v) || evaluate_fail_type(e, node, v, node->at,
	    "a whole number is expected");
}
