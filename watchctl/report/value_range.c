/* value_range: the values that the hits of a backtrace left. */
#include "report/value_range.h"

#include "report/change.h"
#include "type/declared_object.h"
#include "util/visible.h"

/* The value that a hit left; NULL: it is not proved. */
static const struct ex_value *
proved_value(const struct ex_hit *hit, const char **text)
{
	const struct ex_change *c = &hit->change;

	if (hit->watch->access == WP_EXEC)
		return NULL;
	if (strcmp(hit->access, "read") == 0) {
		*text = c->old_text;
		return c->has_old ? &hit->old : NULL;
	}
	*text = c->new_text;
	return c->has_new && hit->source != EX_VALUE_UNKNOWN &&
	    hit->source != EX_VALUE_LATER ? &hit->new : NULL;
}

/* Read the bytes as a number: of the object's type if they are the whole
   object, otherwise unsigned.  Returns false if they are not a number. */
static bool
number_of(const struct ex_hit *hit, const struct range_value *v,
    struct ex_number *number)
{
	const struct ex_object *object = hit->change.object;
	uint64_t bits = 0;

	if (object != NULL && object->offset == 0 && object->size == v->len)
		return ex_object_number(object, v->byte, number);
	if (v->len != 1 && v->len != 2 && v->len != 4 && v->len != 8)
		return false;
	memcpy(&bits, v->byte, v->len);
	*number = ex_number_integer(bits, v->len, false);
	return true;
}

/* Copy a text; one that is too long ends in dots. */
static void
take_text(struct range_value *v, const char *text)
{
	const size_t len = strlen(text);

	if (len < sizeof(v->text))
		memcpy(v->text, text, len + 1);
	else
		(void)snprintf(v->text, sizeof(v->text), "%.36s...", text);
}

void
value_range_take(struct range_value *v, const struct ex_hit *hit)
{
	const char *text = "";
	const struct ex_value *value = proved_value(hit, &text);

	*v = (struct range_value){.known = false};
	if (value == NULL || !ex_hit_bytes(hit, &v->from, &v->len))
		return;
	v->known = true;
	memcpy(v->byte, value->byte + v->from, v->len);
	take_text(v, text);
	v->comparable = number_of(hit, v, &v->number);
}

/* Whether two values are of the same bytes and kind, so that they can be
   compared. */
static bool
are_alike(const struct range_value *a, const struct range_value *b)
{
	const struct ex_number *x = &a->number, *y = &b->number;

	return a->known && b->known && a->comparable && b->comparable &&
	    a->from == b->from && a->len == b->len &&
	    x->is_float == y->is_float && x->is_signed == y->is_signed &&
	    x->size == y->size;
}

static void
widen(struct value_range *range, const struct range_value *v)
{
	enum ex_order order = EX_ORDER_NONE;

	if (are_alike(&range->least, v) && are_alike(&range->largest, v))
		order = ex_number_order(&v->number, &range->least.number);
	if (order == EX_ORDER_NONE) {
		range->least.known = range->largest.known = false;
		return;
	}
	if (order == EX_ORDER_LESS)
		range->least = *v;
	if (ex_number_order(&v->number, &range->largest.number) ==
	    EX_ORDER_ABOVE)
		range->largest = *v;
}

void
value_range_add(struct value_range *range, const struct ex_hit *hit, bool alone)
{
	struct range_value *v = &range->last;

	value_range_take(v, hit);
	if (!alone) {
		widen(range, v);
		return;
	}
	range->first = range->least = range->largest = *v;
	range->least.known = range->largest.known = v->known && v->comparable &&
	    ex_number_order(&v->number, &v->number) == EX_ORDER_EQUAL;
}

void
value_range_add_late(struct value_range *range, const struct ex_hit *hit)
{
	struct range_value v;

	value_range_take(&v, hit);
	widen(range, &v);
}

/* A value that a counted hit left, as is known from its instruction. */
static struct range_value
counted_value(const struct ex_hit *like, uint64_t value)
{
	struct ex_hit hit = *like;
	struct range_value v;

	hit.source = EX_VALUE_REGISTER;
	memcpy(hit.new.byte, &value, sizeof(value));
	hit.new.known = (UINT32_C(1) << hit.len) - 1;
	ex_hit_change(&hit);
	value_range_take(&v, &hit);
	return v;
}

/* Update the smallest and the largest value of all hits, which are known only
   if each hit had a value. */
static void
widen_by(struct value_range *range, const struct ex_hit *hit,
    const struct wp_target_tally *tally, bool alone)
{
	const struct range_value any = counted_value(hit, tally->least);
	const bool is_signed = any.number.is_signed;
	const struct range_value least = !is_signed ? any :
	    counted_value(hit, (uint64_t)tally->least_signed);
	const struct range_value largest = counted_value(hit, !is_signed ?
	    tally->largest : (uint64_t)tally->largest_signed);

	if (tally->values < tally->count || !any.comparable ||
	    any.number.is_float) {
		range->least.known = range->largest.known = false;
		return;
	}
	if (alone)
		range->least = range->largest = least;
	widen(range, &least);
	widen(range, &largest);
}

void
value_range_tally(struct value_range *range, const struct ex_hit *hit,
    const struct wp_target_tally *tally, bool alone,
    enum value_range_ends ends)
{
	static const struct range_value unknown;

	widen_by(range, hit, tally, alone);
	if ((ends & VALUE_RANGE_FIRST) != 0)
		range->first = tally->has_first ? counted_value(hit,
		    tally->first_value) : unknown;
	if ((ends & VALUE_RANGE_LAST) != 0)
		range->last = tally->has_last ? counted_value(hit,
		    tally->last_value) : unknown;
}

void
value_range_put_hex(struct buffer *b, const struct range_value *v)
{
	change_put_hex_bytes(b, v->byte, v->len);
}

void
value_range_put(struct buffer *b, const struct range_value *v)
{
	if (v->text[0] != '\0')
		visible_put(b, v->text);
	else
		change_put_number_bytes(b, v->byte, v->len);
}
