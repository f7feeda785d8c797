/* find_symbol: finds the symbol of a name in a process. */
#ifndef FIND_SYMBOL_H
#define FIND_SYMBOL_H

#include "symbol/symbol.h"
#include "spec/spec.h"

struct found_symbol {
	struct ex_module *module;
	uint64_t addr;		/* in the process; thread-local: not an
				   address */
	struct ex_symbol symbol;	/* of the module's table */
};

/* Find the symbol of a spec's module and symbol; offset and length are
   ignored.  0 or -errno with a cause, as spec_resolve; early: as
   spec_resolve_early. */
int find_symbol(const struct spec *, struct ex_process *, bool early,
    struct found_symbol *, struct wp_cause *);

/* Call fn for each module that a spec may mean, with what to add to its vaddrs.
   fn's non-zero result ends it and is returned. *file: the source file that the
   spec means in them; NULL: none. */
int find_symbol_modules(const struct spec *, struct ex_process *,
    const char **file,
    int (*fn)(void *arg, struct ex_module *, uint64_t base), void *arg);

/* The demangled name, "counter", "table+8"; malloc'd.  NULL: no memory. */
char *find_symbol_name(const char *symbol, uint64_t off);

#endif
