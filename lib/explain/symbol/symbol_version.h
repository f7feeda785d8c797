/*
 * symbol_version: which symbols of a library only programs reach that were
 * linked with an older one: those whose version is not the default one of their
 * name.
 */
#ifndef EX_SYMBOL_VERSION_H
#define EX_SYMBOL_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ex_module;

struct ex_old_symbols {
	struct ex_old_symbol {
		uint64_t value;	/* vaddr */
		const char *name;	/* without its version; the module's */
	} *at;			/* n of them, by value */
	size_t n, cap;
};

/* Read those of a module; the caller frees `at'.  False: no memory. */
bool ex_old_symbols_read(struct ex_module *, struct ex_old_symbols *);

/* Whether this is one; the name's first len bytes count. */
bool ex_old_symbols_have(const struct ex_old_symbols *, uint64_t value,
    const char *name, size_t len);

#endif
