/* spec_resolve_private: what the files that resolve SPECs share. */
#ifndef SPEC_RESOLVE_PRIVATE_H
#define SPEC_RESOLVE_PRIVATE_H

#include "spec/find_symbol.h"
#include "util/nearest.h"
#include "spec/spec.h"
#include "symbol/symbol.h"

enum {
	TEXT_SHOWN = 80,	/* characters of a SPEC in a message */
	NAME_SHOWN = 40,	/* and of a candidate's names */
	PROBLEM_SHOWN = 160,	/* and of the problem with a module */
	FOUND_MAX = 64,		/* symbols of one name that are listed
				   separately */
	LISTED_MAX = 4,		/* candidates in a message */
	OFFERED_MAX = 2000000,	/* symbols examined for near names */
	DEMANGLED_MAX = 20000,	/* and demangled for that */
};

struct spec_search {
	const struct spec *spec;
	bool early;		/* libraries are still to be mapped */
	const char *want;	/* only modules with this name are searched;
				   NULL: all */
	const char *file;	/* only static names of this source file; NULL:
				   any */
	enum spec_fit fit;		/* only modules that match this well are
				   searched */
	unsigned asked;		/* number of modules searched */
	struct ex_module *first;	/* the first of these */
	/* while a module is searched: */
	struct ex_module *module;
	uint64_t base;
	bool own_scope;		/* its global names have precedence over all
				   others */
	bool executable;	/* its static names rank like a library's global
				   names */
	/* found: */
	unsigned rank;		/* the rank of all that are kept: the lowest
				   found */
	size_t n;		/* distinct addresses; FOUND_MAX are kept */
	struct found_symbol found[FOUND_MAX];
	/* if nothing is found: */
	struct nearest near;
	unsigned seen;		/* symbols examined for near names */
	unsigned of_first;	/* of these, symbols of the first module */
	unsigned demangled;
	bool local;		/* the first module has a local symbol, so it is
				   not stripped */
};

/* Whether a watch of this access cannot mean such a symbol. */
bool symbol_wrong_kind(enum wp_access access, const struct ex_symbol *);

/*
 * The lower the rank, the likelier the symbol is meant.  Ranked first are: the
 * right kind; the name that the process's modules are bound to, or that of the
 * named module; names that libraries export, or that the program has for
 * itself.  Static names of libraries come last: the dynamic loader has its own
 * copy of much of the C library.
 */
unsigned symbol_rank_of(const struct spec_search *, const struct ex_symbol *);

/* Whether a symbol is of the named source file, if one was named; and not the
   dynamic loader's own, which is ignored until libraries are mapped. */
bool symbol_may_be_meant(const struct spec_search *, const struct ex_symbol *);

/* Search a module; the first of a process is the executable. */
int symbol_ask_module(void *arg, struct ex_module *, uint64_t base);
int symbol_is_of_file(void *arg, const struct ex_symbol *);
int symbol_offer_symbol(void *arg, const struct ex_symbol *);

/* The spec as shown in messages, in a buffer to be freed. */
struct buffer symbol_shown(const char *text);
int symbol_module_unknown(struct spec_search *, struct ex_process *,
    struct wp_cause *);
int symbol_unknown(struct spec_search *, struct ex_process *,
    struct wp_cause *);
int symbol_ambiguous(const struct spec_search *, struct wp_cause *);

#endif
