/*
 * made_process: a process with modules and symbols made by hand, which replaces
 * the functions of libexplain that spec.c calls.
 */
#ifndef MADE_PROCESS_H
#define MADE_PROCESS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn/uprobe_place.h"
#include "space/space.h"
#include "symbol/code_place.h"
#include "symbol/demangle.h"
#include "symbol/symbol.h"
#include "type/declared_object.h"
#include "type/descriptor.h"

struct ex_module {
	const char *path;
	const char *problem;	/* NULL: none */
	uint64_t base, size;	/* address and size of its mapping */
	const struct ex_symbol *symbol;
	size_t nsymbols;
};

struct ex_process {
	struct ex_module *module;
	size_t nmodules;
};

int
ex_process_modules(struct ex_process *process,
    int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	int rc = 0;

	for (size_t i = 0; i < process->nmodules && rc == 0; i++)
		rc = fn(arg, &process->module[i], process->module[i].base);
	return rc;
}

struct ex_module *
ex_process_module(struct ex_process *process, uint64_t addr, uint64_t *vaddr)
{
	for (size_t i = 0; i < process->nmodules; i++) {
		struct ex_module *module = &process->module[i];

		if (addr >= module->base &&
		    addr - module->base < module->size) {
			*vaddr = addr - module->base;
			return module;
		}
	}
	return NULL;
}

bool
ex_module_is_constant(struct ex_module *module, uint64_t vaddr)
{
	(void)module;
	(void)vaddr;
	return false;
}

bool
ex_module_is_narrow(struct ex_module *module)
{
	(void)module;
	return false;
}

const char *
ex_module_path(const struct ex_module *module)
{
	return module->path;
}

const char *
ex_module_name(const struct ex_module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash == NULL ? module->path : slash + 1;
}

const char *
ex_module_problem(const struct ex_module *module)
{
	return module->problem;
}

int
ex_symbol_each(struct ex_module *module,
    int (*fn)(void *, const struct ex_symbol *), void *arg)
{
	int rc = 0;

	for (size_t i = 0; i < module->nsymbols && rc == 0; i++)
		rc = fn(arg, &module->symbol[i]);
	return rc;
}

/* The one mangling here: "_Z" before the name. */
char *
ex_demangle_whole(const char *raw)
{
	return strncmp(raw, "_Z", 2) == 0 ? strdup(raw + 2) : NULL;
}

const char *
ex_demangle(const char *raw, char **owned)
{
	if ((*owned = ex_demangle_whole(raw)) == NULL)
		return raw;
	if (strchr(*owned, '(') != NULL)
		*strchr(*owned, '(') = '\0';
	return *owned;
}

int
ex_symbol_find(struct ex_module *module, const char *name,
    int (*fn)(void *, const struct ex_symbol *), void *arg)
{
	int rc = 0;

	for (size_t i = 0; i < module->nsymbols && rc == 0; i++) {
		const char *raw = module->symbol[i].name;
		char *owned = NULL, *whole = ex_demangle_whole(raw);

		if (strcmp(raw, name) == 0 ||
		    strcmp(ex_demangle(raw, &owned), name) == 0 ||
		    (whole != NULL && strcmp(whole, name) == 0))
			rc = fn(arg, &module->symbol[i]);
		free(whole);
		free(owned);
	}
	return rc;
}

bool
ex_symbol_at(struct ex_module *module, uint64_t vaddr, struct ex_symbol *out)
{
	bool found = false;

	for (size_t i = 0; i < module->nsymbols; i++) {
		const struct ex_symbol *symbol = &module->symbol[i];

		if (vaddr < symbol->value || (symbol->size != 0 &&
		    vaddr - symbol->value >= symbol->size) ||
		    (found && symbol->value < out->value))
			continue;
		*out = *symbol;
		found = true;
	}
	return found;
}

/* Arguments are in place at a function's start. */
uint64_t
ex_code_entry(struct ex_module *module, uint64_t start)
{
	(void)module;
	return start;
}

uint64_t
ex_uprobe_place(struct ex_module *module, uint64_t vaddr)
{
	(void)module;
	return vaddr;
}

/* Instructions begin at even addresses. */
bool
ex_uprobe_fits(struct ex_module *module, uint64_t vaddr)
{
	(void)module;
	return vaddr % 2 == 0;
}

/* Line n of made.c is at each of the first n symbols. */
bool
ex_code_lines(struct ex_module *module, const char *file, int line,
    void (*fn)(void *, uint64_t), void *arg, int *near)
{
	(void)near;
	if (strcmp(file, "made.c") != 0)
		return false;
	for (size_t i = 0; i < module->nsymbols && i < (size_t)line; i++)
		fn(arg, module->symbol[i].value);
	return true;
}

/* --- types --- */

/* The only type: struct made { int number; struct made *next, *row;
   int list[4]; unsigned bit : 3; }.  A symbol with "made" in its name has this
   type, and one with "pointer" points to it. */
static struct ex_layout made_layout = {.kind = EX_STRUCT, .size = 48},
    made_array = {.kind = EX_ARRAY, .size = 16, .count = 4};
enum made_name { MADE_NUMBER, MADE_NEXT, MADE_ROW, MADE_LIST, MADE_BIT };

bool
ex_declaration_at(struct ex_process *process, struct ex_module *m,
    uint64_t vaddr, struct ex_declaration *d)
{
	struct ex_symbol symbol;
	bool pointer;

	(void)process;
	if (!ex_symbol_at(m, vaddr, &symbol) || symbol.value != vaddr)
		return false;
	pointer = strstr(symbol.name, "pointer") != NULL;
	if (!pointer && strstr(symbol.name, "made") == NULL)
		return false;
	*d = (struct ex_declaration){
		.name = symbol.name, .size = pointer ? 8 : made_layout.size,
		.type = {.module = m, .layout = &made_layout,
		.pointers = pointer},
	};
	return true;
}

unsigned
ex_declaration_find(struct ex_module *m, const char *name, const char *file,
    uint64_t *vaddr, struct ex_declaration *d)
{
	(void)file;
	(void)m;
	(void)name;
	(void)vaddr;
	(void)d;
	return 0;
}

bool
ex_type_base(const struct ex_type *type, unsigned i, struct ex_type *base,
    uint64_t *offset)
{
	(void)type;
	(void)i;
	(void)base;
	(void)offset;
	return false;
}

bool
ex_type_virtual_base(const struct ex_type *type, unsigned i,
    struct ex_type *base, uint64_t *before)
{
	return ex_type_base(type, i, base, before);
}

bool
ex_declaration_known(struct ex_module *m)
{
	return m->problem == NULL;
}

bool
ex_variable_optimized_out(struct ex_module *m, const char *name)
{
	(void)m;
	return strcmp(name, "never_read") == 0;
}

bool
ex_function_inlined(struct ex_module *m, const char *name)
{
	(void)m;
	return strcmp(name, "only_inlined") == 0;
}

bool
ex_type_find(struct ex_module *m, const char *name, enum ex_tag tag,
    struct ex_type *type)
{
	if (strcmp(name, "made") != 0 || tag > EX_TAG_STRUCT)
		return false;
	*type = (struct ex_type){.module = m, .layout = &made_layout};
	return true;
}

bool
ex_type_enumerator(struct ex_module *m, const char *name, uint64_t *value,
    struct ex_type *type)
{
	(void)m;
	*value = 2;
	return strcmp(name, "TWO") == 0 && ex_type_own("int", type);
}

enum ex_kind
ex_type_kind(const struct ex_type *type)
{
	return type->pointers > 0 ? EX_POINTER : type->layout == NULL ?
	    EX_OPAQUE : type->layout->kind;
}

uint64_t
ex_type_size(const struct ex_type *type)
{
	return type->pointers > 0 ? 8 : type->layout == NULL ? 0 :
	    type->layout->size;
}

bool
ex_type_is_reference(const struct ex_type *type)
{
	(void)type;
	return false;
}

void
ex_type_put(const struct ex_type *type, char *text, size_t size)
{
	(void)snprintf(text, size, "%s%s", type->layout == NULL ? "void" :
	    type->layout == &made_layout ? "struct made" : type->layout ==
	    &made_array ? "int[4]" : type->layout->name,
	    type->pointers > 0 ? " *" : "");
}

static const char *const made_members[] = {
	[MADE_NUMBER] = "number", [MADE_NEXT] = "next", [MADE_ROW] = "row",
	[MADE_LIST] = "list", [MADE_BIT] = "bit",
};

unsigned
ex_type_member(const struct ex_type *type, uint64_t size, const char *name,
    struct ex_part *part)
{
	static const uint64_t offsets[] = {0, 8, 16, 24, 40};
	unsigned i = 0;

	(void)size;
	while (i <= MADE_BIT && strcmp(made_members[i], name) != 0)
		i++;
	if (type->pointers > 0 || type->layout != &made_layout || i > MADE_BIT)
		return 0;
	*part = (struct ex_part){.type = *type, .offset = offsets[i]};
	if (i == MADE_NEXT || i == MADE_ROW)
		part->type.pointers = 1;
	else if (i == MADE_LIST)
		part->type.layout = &made_array;
	else
		(void)ex_type_own("int", &part->type);
	part->size = ex_type_size(&part->type);
	if (i == MADE_BIT) {
		part->bit = 5;
		part->bits = 3;
		part->size = 1;
	}
	return 1;
}

void
ex_type_members(const struct ex_type *type, void (*fn)(void *, const char *),
    void *arg)
{
	for (unsigned i = 0; i <= MADE_BIT && type->layout == &made_layout; i++)
		fn(arg, made_members[i]);
}

bool
ex_type_element(const struct ex_type *type, struct ex_type *element,
    uint64_t *first, uint64_t *count)
{
	*first = 0;
	*count = 4;
	return type->pointers == 0 && type->layout == &made_array &&
	    ex_type_own("int", element);
}

bool
ex_type_target(struct ex_process *process, const struct ex_type *type,
    struct ex_type *target)
{
	(void)process;
	*target = *type;
	if (type->pointers == 0)
		return false;
	target->pointers--;
	return true;
}

bool
ex_descriptor_is(const struct ex_type *type)
{
	(void)type;
	return false;
}

int
ex_descriptor_elements(const struct ex_type *type, uint64_t addr,
    bool (*read)(void *arg, uint64_t addr, void *to, size_t len), void *arg,
    struct ex_type *elements, uint64_t *at)
{
	(void)type;
	(void)addr;
	(void)read;
	(void)arg;
	(void)elements;
	(void)at;
	return -ENOTSUP;
}

/* Memory contains its own address, but 0 in odd blocks of 4 KiB. */
bool
ex_process_read(const struct ex_process *process, uint64_t addr, void *to,
    size_t len)
{
	const uint64_t value = (addr >> 12 & 1) != 0 ? 0 : addr;

	(void)process;
	memset(to, 0, len);
	memcpy(to, &value, len < sizeof(value) ? len : sizeof(value));
	return addr < UINT64_MAX - 4096;
}

bool
ex_layout_is_whole(const struct ex_layout *layout)
{
	return !layout->partial;
}

const struct ex_object *
ex_object_at(struct ex_process *process, uint64_t addr, uint64_t len)
{
	(void)process;
	(void)addr;
	(void)len;
	return NULL;
}

void
ex_object_declare(struct ex_process *process, uint64_t addr, const char *path,
    const struct ex_type *type, uint64_t size)
{
	(void)process;
	(void)addr;
	(void)path;
	(void)type;
	(void)size;
}

bool
ex_type_of_result(struct ex_module *module, uint64_t vaddr,
    struct ex_type *type)
{
	(void)module;
	(void)vaddr;
	(void)type;
	return false;
}

#endif
