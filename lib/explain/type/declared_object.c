/* declared_object: objects at addresses, found once and kept by modules. */
#include "type/declared_object.h"

#include <stdlib.h>
#include <string.h>

#include "module/module_private.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "type/copy_reloc.h"
#include "type/subobject.h"
#include "type/type_name.h"
#include "base/table.h"

#define OBJECTS_MAX (1 << 14)	/* kept by a module; no more are found, as
				   they live as long as the module */
#define NAMED_MAX 256		/* declared in a process, with their parts */

/* The answer for some bytes. */
struct kept_object {
	struct ex_object object;
	uint64_t vaddr, len;	/* the question */
	bool known;		/* there is an object */
	bool copied;		/* the bytes may be a copy of a library's
				   variable, of libraries known */
	uint64_t generation;	/* at this generation of the process */
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

/* Whether a function is there, so that no variable is, for which all of the
   debug information would be searched. */
static bool
is_code(struct ex_module *m, uint64_t vaddr)
{
	const struct ex_segment *segment = ex_module_segment(m, vaddr);
	struct ex_symbol symbol;

	return segment != NULL && (segment->flags & PF_X) != 0 &&
	    ex_symbol_at(m, vaddr, &symbol) && symbol.function &&
	    symbol.size > 0;
}

/* Find the object of some bytes.  NULL if there is no memory. */
static struct kept_object *
object_new(struct ex_module *m, uint64_t vaddr, uint64_t len)
{
	struct kept_object *kept = calloc(1, sizeof(*kept));
	struct ex_subobject sub;

	if (kept == NULL)
		return NULL;
	kept->vaddr = vaddr;
	kept->len = len;
	if (is_code(m, vaddr))
		return kept;
	if (ex_subobject_find(m, vaddr, len, &sub))
		object_fill(kept, m, &sub);
	else
		kept->copied = ex_copy_reloc(m, vaddr);
	return kept;
}

/* Search the libraries that the process has now. */
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

/* The answer that a module keeps for some bytes.  NULL if there is no
   memory. */
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

/* --- objects outside of modules --- */

/* A part of a declared object. */
struct part {
	struct part *next;
	uint64_t addr, len;	/* the question */
	struct ex_object object;
	char path[];
};

struct named_object {
	struct named_object *next;
	uint64_t addr;
	struct ex_type type;
	struct ex_declared declared;
	struct part *parts;
	unsigned nparts;
	char *path;		/* malloc'd */
	char name[256];		/* name of its type */
};

static void
named_release(void *objects)
{
	struct named_object *named = objects;

	while (named != NULL) {
		struct named_object *next = named->next;

		while (named->parts != NULL) {
			struct part *part = named->parts;

			named->parts = part->next;
			free(part);
		}
		free(named->path);
		free(named);
		named = next;
	}
}

void
ex_object_declare(struct ex_process *process, uint64_t addr, const char *path,
    const struct ex_type *type, uint64_t size)
{
	static const struct ex_layout pointer = {
		.kind = EX_POINTER, .size = sizeof(void *), .filled = true,
	};
	void **objects = ex_process_objects(process, named_release);
	struct named_object *named = calloc(1, sizeof(*named));
	unsigned n = 0;

	for (const struct named_object *other = *objects; other != NULL;
	    other = other->next)
		n++;
	if (named == NULL || n >= NAMED_MAX || size == 0 ||
	    (type->layout == NULL && type->pointers == 0) ||
	    (named->path = strdup(path)) == NULL) {
		free(named);
		return;
	}
	named->addr = addr;
	named->type = *type;
	named->declared = (struct ex_declared){
		.name = named->path, .size = size, .type = type->die,
		.layout = type->pointers > 0 ? &pointer : type->layout,
		.tags = type->tags, .columns = type->columns,
	};
	ex_type_put(type, named->name, sizeof(named->name));
	named->next = *objects;
	*objects = named;
}

/* The part of a declared object at these bytes.  NULL if there is no memory. */
static struct part *
part_new(struct named_object *named, uint64_t addr, uint64_t len,
    const struct ex_subobject *sub)
{
	const bool whole = strcmp(sub->path, named->path) == 0 &&
	    sub->slice == 0 && !sub->fields;
	struct part *part;

	if (named->nparts >= NAMED_MAX || (part = calloc(1, sizeof(*part) +
	    strlen(sub->path) + 1)) == NULL)
		return NULL;
	(void)stpcpy(part->path, sub->path);
	part->addr = addr;
	part->len = len;
	part->object = (struct ex_object){
		.path = part->path, .type = whole || named->type.module == NULL
		    ? named->name : ex_type_name(named->type.module, &sub->type,
		    sub->dimension, sub->slice, sub->tags),
		.offset = -(int64_t)(addr - sub->vaddr), .size = sub->size,
		.layout = sub->layout, .field = sub->field,
		.fields = sub->fields, .within = sub->within,
	};
	part->next = named->parts;
	named->parts = part;
	named->nparts++;
	return part;
}

static const struct ex_object *
named_at(struct ex_process *process, uint64_t addr, uint64_t len)
{
	struct named_object *named = *ex_process_objects(process, NULL);
	struct ex_subobject sub;
	struct part *part;

	for (; named != NULL; named = named->next) {
		for (part = named->parts; part != NULL; part = part->next)
			if (part->addr == addr && part->len == len)
				return &part->object;
		if (addr >= named->addr && ex_subobject_of(&named->declared,
		    named->addr, addr, len, &sub)) {
			part = part_new(named, addr, len, &sub);
			return part != NULL && part->object.type != NULL ?
			    &part->object : NULL;
		}
	}
	return NULL;
}

/* --- all --- */

const struct ex_object *
ex_object_at(struct ex_process *process, uint64_t addr, uint64_t len)
{
	const struct ex_object *declared = named_at(process, addr, len);
	struct kept_object *kept;
	struct ex_module *m;
	uint64_t vaddr;

	if (declared != NULL)
		return declared;
	m = ex_process_module(process, addr, &vaddr);
	if (m == NULL || (kept = object_of(m, vaddr, len)) == NULL)
		return NULL;
	if (!kept->known && kept->copied)
		object_look(kept, process, m);
	return kept->known ? &kept->object : NULL;
}
