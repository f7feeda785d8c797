/*
 * made_process: a process of modules and symbols made by hand, which answers
 * what spec.c asks of libexplain.
 */
#ifndef MADE_PROCESS_H
#define MADE_PROCESS_H

#include <stdlib.h>
#include <string.h>

#include "module/demangle.h"
#include "module/symbol.h"

struct ex_module {
	const char *path;
	const char *problem;	/* NULL: none */
	uint64_t base, size;	/* where it is mapped, and how far */
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

#endif
