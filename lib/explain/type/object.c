/* object: objects at addresses, found once and kept in their modules. */
#include "type/object.h"

#include <stdlib.h>
#include <string.h>

#include "module/module_private.h"
#include "type/copy_reloc.h"
#include "type/subobject.h"
#include "type/type_name.h"
#include "base/table.h"

#define OBJECTS_MAX (1 << 14)	/* kept by a module; as they live as long as
				   it, there are no others */

/* What is known of some bytes. */
struct kept_object {
	struct ex_object object;
	uint64_t vaddr, len;	/* what was asked for */
	bool known;		/* there is an object */
	bool copied;		/* there may be: where a library's variable was
				   copied to, as far as libraries were known, */
	uint64_t generation;	/* at this generation of its process */
};

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
object_fill(struct kept_object *kept, struct ex_module *m,
    const struct ex_subobject *sub)
{
	kept->object = (struct ex_object){
		.path = text_copy(m, sub->path),
		.type = ex_type_name(m, &sub->type, sub->dimension,
		    sub->slice, sub->tags),
		.offset = -(int64_t)(kept->vaddr - sub->vaddr),
		.size = sub->size, .layout = sub->layout,
		.field = sub->field, .fields = sub->fields,
		.within = sub->within,
	};
	kept->known = kept->object.path != NULL && kept->object.type != NULL;
}

/* Find out about some bytes.  NULL: out of memory. */
static struct kept_object *
object_new(struct ex_module *m, uint64_t vaddr, uint64_t len)
{
	struct kept_object *kept = calloc(1, sizeof(*kept));
	struct ex_subobject sub;

	if (kept == NULL)
		return NULL;
	kept->vaddr = vaddr;
	kept->len = len;
	if (ex_subobject_find(m, vaddr, len, &sub))
		object_fill(kept, m, &sub);
	else
		kept->copied = ex_copy_reloc(m, vaddr);
	return kept;
}

/* Look in the libraries that the process has by now. */
static void
object_look(struct kept_object *kept, struct ex_process *process,
    struct ex_module *m)
{
	uint64_t generation = ex_process_generation(process);
	struct ex_subobject sub;

	if (generation <= kept->generation)
		return;
	kept->generation = generation;
	if (ex_copy_reloc_find(process, m, kept->vaddr, kept->len, &sub))
		object_fill(kept, m, &sub);
}

/* What is kept of some bytes of a module, or is now.  NULL: out of memory. */
static struct kept_object *
object_of(struct ex_module *m, uint64_t vaddr, uint64_t len)
{
	const uint64_t key = ex_hash(len, vaddr);
	bool is_new;
	struct ex_table *objects = ex_module_cache(m, EX_CACHE_OBJECTS,
	    sizeof(*objects), objects_release, &is_new);
	struct kept_object *kept;
	size_t i = 0;

	if (objects == NULL)
		return NULL;
	while ((kept = ex_table_next(objects, key, &i)) != NULL)
		if (kept->vaddr == vaddr && kept->len == len)
			return kept;
	if (objects->n >= OBJECTS_MAX || !ex_table_reserve(objects, 1) ||
	    (kept = object_new(m, vaddr, len)) == NULL)
		return NULL;
	ex_table_put(objects, key, kept);
	return kept;
}

const struct ex_object *
ex_object_at(struct ex_process *process, uint64_t addr, uint64_t len)
{
	uint64_t vaddr;
	struct ex_module *m = ex_process_module(process, addr, &vaddr);
	struct kept_object *kept = m == NULL ? NULL : object_of(m, vaddr, len);

	if (kept != NULL && !kept->known && kept->copied)
		object_look(kept, process, m);
	return kept != NULL && kept->known ? &kept->object : NULL;
}
