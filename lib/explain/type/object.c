/* object: objects at addresses, found once and kept in their modules. */
#include "type/object.h"

#include <stdlib.h>
#include <string.h>

#include "module/module_private.h"
#include "type/copy_reloc.h"
#include "type/object_private.h"
#include "type/type_name.h"
#include "base/table.h"

#define OBJECTS_MAX (1 << 14)	/* kept by a module; as they live as long as
				   it, there are no others */

static void
objects_release(void *objects)
{
	ex_table_free(objects, free);
}

static const char *
text_copy(struct ex_module *m, const char *s)
{
	size_t len = strlen(s);
	char *text = ex_module_text(m, len);

	return text != NULL ? memcpy(text, s, len) : NULL;
}

static void
object_fill(struct ex_object *object, struct ex_module *m,
    const struct ex_subobject *sub)
{
	object->path = text_copy(m, sub->path);
	object->type = ex_type_name(m, &sub->type, sub->dimension,
	    sub->slice, sub->tags);
	object->offset = -(int64_t)(object->vaddr - sub->vaddr);
	object->size = sub->size;
	object->layout = sub->layout;
	object->field = sub->field;
	object->fields = sub->fields;
	object->within = sub->within;
	object->known = object->path != NULL && object->type != NULL;
}

/* Find out about some bytes.  NULL: out of memory. */
static struct ex_object *
object_new(struct ex_module *m, uint64_t vaddr, uint64_t len)
{
	struct ex_object *object = calloc(1, sizeof(*object));
	struct ex_subobject sub;

	if (object == NULL)
		return NULL;
	object->vaddr = vaddr;
	object->len = len;
	if (ex_subobject_find(m, vaddr, len, &sub))
		object_fill(object, m, &sub);
	else
		object->copied = ex_copy_reloc(m, vaddr);
	return object;
}

/* Look in the libraries that the process has by now. */
static void
object_look(struct ex_object *object, struct ex_process *process,
    struct ex_module *m)
{
	uint64_t generation = ex_process_generation(process);
	struct ex_subobject sub;

	if (generation <= object->generation)
		return;
	object->generation = generation;
	if (ex_copy_reloc_find(process, m, object->vaddr, object->len, &sub))
		object_fill(object, m, &sub);
}

/* What is kept of some bytes of a module, or is now.  NULL: out of memory. */
static struct ex_object *
object_of(struct ex_module *m, uint64_t vaddr, uint64_t len)
{
	const uint64_t key = ex_hash(len, vaddr);
	bool is_new;
	struct ex_table *objects = ex_module_cache(m, EX_CACHE_OBJECTS,
	    sizeof(*objects), objects_release, &is_new);
	struct ex_object *object;
	size_t i = 0;

	if (objects == NULL)
		return NULL;
	while ((object = ex_table_next(objects, key, &i)) != NULL)
		if (object->vaddr == vaddr && object->len == len)
			return object;
	if (objects->n >= OBJECTS_MAX || !ex_table_reserve(objects, 1) ||
	    (object = object_new(m, vaddr, len)) == NULL)
		return NULL;
	ex_table_put(objects, key, object);
	return object;
}

const struct ex_object *
ex_object_at(struct ex_process *process, uint64_t addr, uint64_t len)
{
	uint64_t vaddr;
	struct ex_module *m = ex_process_module(process, addr, &vaddr);
	struct ex_object *object = m == NULL ? NULL : object_of(m, vaddr, len);

	if (object != NULL && !object->known && object->copied)
		object_look(object, process, m);
	return object != NULL && object->known ? object : NULL;
}

const char *
ex_object_path(const struct ex_object *object)
{
	return object->path;
}

const char *
ex_object_type(const struct ex_object *object)
{
	return object->type;
}

int64_t
ex_object_offset(const struct ex_object *object)
{
	return object->offset;
}

uint64_t
ex_object_size(const struct ex_object *object)
{
	return object->size;
}
