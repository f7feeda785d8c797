/* type: objects at addresses, found once and kept in their modules. */
#include "type/type.h"

#include <stdlib.h>
#include <string.h>

#include "type/copied.h"
#include "module/module_private.h"
#include "type/object.h"
#include "type/type_name.h"

enum {
	FIRST_SLOTS = 16,
	OBJECTS_MAX = 1 << 14,	/* kept by a module; as they live as long as
				   it, there are no others */
};

/* A module's objects, in open addressing; slots is a power of two, and at least
   a quarter of them are free. */
struct objects {
	struct ex_parts parts;
	struct ex_object **at;	/* NULL: free */
	size_t n, slots;
};

static void
objects_free(void *arg)
{
	struct objects *objects = arg;

	for (size_t i = 0; i < objects->slots; i++)
		free(objects->at[i]);
	free(objects->at);
	ex_variables_free(objects->parts.variables);
	ex_shapes_free(objects->parts.shapes);
	free(objects);
}

static struct objects *
objects_of(struct ex_module *m)
{
	struct objects *objects;

	if (m->types != NULL)
		return m->types;
	if ((objects = calloc(1, sizeof(*objects))) == NULL)
		return NULL;
	objects->parts = (struct ex_parts){
		m, ex_variables_new(m), ex_shapes_new(m),
	};
	if (objects->parts.variables == NULL || objects->parts.shapes == NULL) {
		objects_free(objects);
		return NULL;
	}
	m->types = objects;
	m->types_free = objects_free;
	return objects;
}

struct ex_parts *
ex_object_parts(struct ex_module *m)
{
	struct objects *objects = objects_of(m);

	return objects != NULL ? &objects->parts : NULL;
}

/* The slot of some bytes, or the free one where it belongs. */
static struct ex_object **
objects_slot(const struct objects *objects, uint64_t vaddr, uint64_t len)
{
	uint64_t key = (vaddr ^ len << 48) * UINT64_C(0x9e3779b97f4a7c15);
	size_t mask = objects->slots - 1, i = (size_t)(key >> 32) & mask;

	while (objects->at[i] != NULL && (objects->at[i]->vaddr != vaddr ||
	    objects->at[i]->len != len))
		i = (i + 1) & mask;
	return &objects->at[i];
}

/* Make sure of a free slot for one more. */
static bool
objects_grow(struct objects *objects)
{
	struct objects more = {.slots = objects->slots * 2};

	if (objects->n * 4 < objects->slots * 3)
		return true;
	if (more.slots == 0)
		more.slots = FIRST_SLOTS;
	if (objects->n >= OBJECTS_MAX ||
	    (more.at = calloc(more.slots, sizeof(*more.at))) == NULL)
		return false;
	for (size_t i = 0; i < objects->slots; i++) {
		struct ex_object *object = objects->at[i];

		if (object != NULL)
			*objects_slot(&more, object->vaddr, object->len) =
			    object;
	}
	free(objects->at);
	objects->at = more.at;
	objects->slots = more.slots;
	return true;
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
    const struct ex_part *part)
{
	object->path = text_copy(m, part->path);
	object->type = ex_type_name(m, &part->type, part->dimension,
	    part->slice, part->tags);
	object->offset = -(int64_t)(object->vaddr - part->vaddr);
	object->size = part->size;
	object->shape = part->shape;
	object->field = part->field;
	object->fields = part->fields;
	object->within = part->within;
	object->known = object->path != NULL && object->type != NULL;
}

/* Find out about some bytes.  NULL: out of memory. */
static struct ex_object *
object_new(struct ex_parts *parts, uint64_t vaddr, uint64_t len)
{
	struct ex_object *object = calloc(1, sizeof(*object));
	struct ex_part part;

	if (object == NULL)
		return NULL;
	object->vaddr = vaddr;
	object->len = len;
	if (ex_part_find(parts, vaddr, len, &part))
		object_fill(object, parts->module, &part);
	else
		object->copied = ex_copied(parts->module, vaddr);
	return object;
}

/* Look in the libraries that the process has by now. */
static void
object_look(struct ex_object *object, struct ex_process *process,
    struct ex_module *m)
{
	uint64_t generation = ex_process_generation(process);
	struct ex_part part;

	if (generation <= object->generation)
		return;
	object->generation = generation;
	if (ex_copied_find(process, m, object->vaddr, object->len, &part))
		object_fill(object, m, &part);
}

const struct ex_object *
ex_object_at(struct ex_process *process, uint64_t addr, uint64_t len)
{
	uint64_t vaddr;
	struct ex_module *m = ex_process_module(process, addr, &vaddr);
	struct objects *objects;
	struct ex_object **slot;

	if (m == NULL || (objects = objects_of(m)) == NULL)
		return NULL;
	if (objects->slots == 0 && !objects_grow(objects))
		return NULL;
	slot = objects_slot(objects, vaddr, len);
	if (*slot == NULL) {
		if (!objects_grow(objects))
			return NULL;
		slot = objects_slot(objects, vaddr, len);
		*slot = object_new(&objects->parts, vaddr, len);
		if (*slot == NULL)
			return NULL;
		objects->n++;
	}
	if (!(*slot)->known && (*slot)->copied)
		object_look(*slot, process, m);
	return (*slot)->known ? *slot : NULL;
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
