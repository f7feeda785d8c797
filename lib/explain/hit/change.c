/* change: how a hit changed the bytes that it touched, as text. */
#include <string.h>

#include "hit/hit.h"
#include "type/declared_object.h"

bool
ex_hit_bytes(const struct ex_hit *hit, unsigned *from, unsigned *len)
{
	const uint64_t first = ex_hit_place(hit)->addr;
	const uint64_t at = hit->addr - first;

	if (hit->addr < first || at >= EX_VALUE_MAX ||
	    hit->len == 0 || hit->len > EX_VALUE_MAX - at)
		return false;
	*from = (unsigned)at;
	*len = (unsigned)hit->len;
	return true;
}

/* The text of an object's value, if all of its bytes are known. */
static void
put_text(const struct ex_hit *hit, const struct ex_object *object,
    const struct ex_value *value, char *text, size_t size)
{
	const uint64_t at = hit->addr - ex_hit_place(hit)->addr +
	    (uint64_t)object->offset;
	const uint64_t len = object->size;

	if (at < EX_VALUE_MAX && len <= EX_VALUE_MAX &&
	    ex_value_known(value, (unsigned)at, (unsigned)len) &&
	    !ex_object_text(hit->process, object, value->byte + at, text,
	    size))
		*text = '\0';
}

void
ex_hit_change(struct ex_hit *hit)
{
	struct ex_change *c = &hit->change;
	const struct ex_object *object;
	unsigned from, len;

	c->has_old = c->has_new = false;
	c->object = NULL;
	c->type = c->path = NULL;
	c->old_text[0] = c->new_text[0] = '\0';
	if (hit->watch->access == WP_EXEC || hit->len == 0)
		return;
	if (ex_hit_bytes(hit, &from, &len)) {
		c->has_old = ex_value_known(&hit->old, from, len);
		c->has_new = hit->source != EX_VALUE_UNKNOWN &&
		    strcmp(hit->access, "read") != 0 &&
		    ex_value_known(&hit->new, from, len);
	}
	if (hit->process == NULL || (object = ex_object_at(hit->process,
	    hit->addr, hit->len)) == NULL)
		return;
	c->object = object;
	c->type = object->type;
	c->path = object->path;
	if (c->has_old)
		put_text(hit, object, &hit->old, c->old_text,
		    sizeof(c->old_text));
	if (c->has_new)
		put_text(hit, object, &hit->new, c->new_text,
		    sizeof(c->new_text));
}
