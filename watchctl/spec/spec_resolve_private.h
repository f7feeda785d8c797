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
	PROBLEM_SHOWN = 160,	/* and of why a module is of no use */
	FOUND_MAX = 64,		/* symbols of one name that are listed
				   separately */
	LISTED_MAX = 4,		/* candidates in a message */
	OFFERED_MAX = 2000000,	/* symbols looked at for near names */
	DEMANGLED_MAX = 20000,	/* and demangled for it */
};

/* How well a module fits the name that a SPEC gives. */
enum fit {
	FIT_NONE,
	FIT_SONAME,		/* "libc" for libc.so.6 */
	FIT_NAME,		/* its last part, or more of its path */
	FIT_PATH,		/* its whole path */
	FIT_ANY,		/* no module was named */
};

struct search {
	const struct spec *spec;
	bool early;		/* libraries have still to be mapped */
	const char *want;	/* modules of this name are asked; NULL: all */
	const char *file;	/* for its static names; NULL: for any */
	enum fit fit;		/* modules that fit so well are asked */
	unsigned asked;		/* how many modules were */
	struct ex_module *first;	/* of them */
	/* while a module is asked: */
	struct ex_module *module;
	uint64_t base;
	bool own_scope;		/* its global names come before all others */
	bool executable;	/* its static ones are as good as a library's
				   global ones */
	/* found: */
	unsigned rank;		/* of all that are kept: the lowest seen */
	size_t n;		/* distinct addresses; FOUND_MAX are kept */
	struct found_symbol found[FOUND_MAX];
	/* when nothing is: */
	struct nearest near;
	unsigned seen;		/* symbols looked at for near names */
	unsigned of_first;	/* of them those of the first module */
	unsigned demangled;
	bool local;		/* one of the first module's is not for others:
				   it has not been stripped */
};

enum fit symbol_module_fit(const struct ex_module *, const char *want);

/* Whether a watch of this access cannot mean such a symbol. */
bool symbol_wrong_kind(enum wp_access access, const struct ex_symbol *);

/*
 * The lower, the likelier it is meant: of the right kind; the name that the
 * process's modules are bound to, or the module's that was named; what
 * libraries offer others or the program has for itself.  A library's static
 * names come last: the dynamic loader has its own of much of the C library.
 */
unsigned symbol_rank_of(const struct search *, const struct ex_symbol *);

/* Whether it is of the source file that was named, if one was; and not the
   dynamic loader's own, which is not meant before the libraries are there. */
bool symbol_may_be_meant(const struct search *, const struct ex_symbol *);

/* Ask a module for the symbol; the first of a process is the executable. */
int symbol_ask_module(void *arg, struct ex_module *, uint64_t base);
int symbol_is_of_file(void *arg, const struct ex_symbol *);
int symbol_offer_symbol(void *arg, const struct ex_symbol *);

/* The spec as a message shows it, in a buffer to be freed. */
struct buffer symbol_shown(const char *text);
int symbol_module_unknown(struct search *, struct ex_process *,
    struct wp_cause *);
int symbol_unknown(struct search *, struct ex_process *, struct wp_cause *);
int symbol_ambiguous(const struct search *, struct wp_cause *);

#endif
