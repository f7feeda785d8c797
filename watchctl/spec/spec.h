/*
 * spec: the text that names what to watch.
 *
 *	ADDR[:LEN]  [MODULE!]SYMBOL[+OFF][:LEN]  [MODULE!]EXPRESSION[:LEN]
 *	FILE:LINE   [MODULE!]THREAD_LOCAL[+OFF]@TID[:LEN]
 *	kernel!SYMBOL[+OFF][:LEN]
 *	shm:/NAME+OFF[:LEN]  file:PATH+OFF[:LEN]
 *	alloc:[MODULE!]FUNCTION[#N][->MEMBER|+OFF][:LEN]
 *
 * ADDR, OFF and LEN are decimal, or hex with 0x.  MODULE may be a source file,
 * for its static names; then "::" may be in place of "!".  What can be a
 * symbol, as "server.clients" can, is one if there is such a symbol, else an
 * expression (expression.h).  Parsing is pure; resolving asks a process's
 * modules, and its memory.
 */
#ifndef SPEC_H
#define SPEC_H

#include "os/cause.h"
#include "module/module.h"
#include "spec/expression.h"
#include "watchpoint.h"

struct spec {
	char *text;		/* as given, malloc'd */
	char *module;		/* or source file; NULL: any */
	char *real;		/* where that leads as a path, if it is one,
				   malloc'd; NULL: not known; for resolving */
	char *symbol;		/* or expression; NULL: an address */
	struct expression *expression;	/* what that means in C, malloc'd; NULL:
				   nothing */
	bool expression_only;	/* no symbol is called so */
	bool unborn;		/* for resolving: the process has not begun, so
				   that what is in its memory does not count */
	int line;		/* of execution: of the source file symbol; 0:
				   it is none */
	bool follow;		/* for resolving: the way to it is wanted */
	pid_t thread;		/* of a thread-local one: whose; 0: not given */
	bool all;		/* for resolving: where each function of this
				   name begins is wanted */
	bool finds_local;	/* for resolving: where it is in its module's
				   thread-local storage is wanted */
	char *shared;		/* a file's path, malloc'd: the bytes at off in
				   it, wherever it is mapped shared; NULL: in a
				   process */
	char *allocator;	/* [MODULE!]FUNCTION, malloc'd: the bytes at
				   off, or of the expression, in what it
				   returns; NULL: no such */
	uint64_t instance;	/* of those, the one of this number; 0: all */
	bool kernel;		/* kernel!SYMBOL, or an address of the
				   kernel's */
	uint64_t addr;		/* an address; 0 with a symbol */
	bool has_off;
	uint64_t off;
	uint64_t len;		/* 0: by default */
	enum wp_access access;
};

/* What a spec means in one process. */
enum { SPEC_MORE_MAX = 3 };
struct spec_place {
	uint64_t addr, len;
	/* nmore of them.  A line: its other addresses.  What is followed: addr
	   is that of the first of so many pointers, and the next pointer, or
	   the object, lies this far behind where each points to.  Objects:
	   addr is the function's; the watched bytes lie this far behind the
	   beginning of each object, and there are so many of them, 0: not
	   known.  Several symbols of one name: the others. */
	uint64_t more[SPEC_MORE_MAX];
	unsigned nmore;
	bool narrow;		/* pointers that are followed have 4 bytes */
	char *symbol;		/* what to call it ("counter", "table+8"),
				   malloc'd; NULL for an address that lies in
				   no symbol */
	bool code;		/* of execution: an instruction begins at each
				   address */
	bool later;		/* it is not mapped yet */
	bool rotates;		/* slots move over it */
	bool local;		/* it is thread-local; resolved: addr is an
				   offset in the storage of a module, */
	uint64_t base;		/* whose vaddrs have this added to them; then:
				   addr is that of the thread with this control
				   block, and each has its own */
};

/* Parse text.  0, or -EINVAL with a cause that points at the character;
   -ENOMEM. */
int spec_parse(const char *text, enum wp_access, struct spec *,
    struct wp_cause *);
void spec_free(struct spec *);

/* Say what is wrong with an expression, at a place in spec->text.  -EINVAL with
   a cause. */
int spec_error(const struct spec *, const char *at, const char *what,
    struct wp_cause *);

/* Refuse one that parses: what it names cannot be watched, and why.  -ERANGE
   with a cause. */
int spec_refuse(const struct spec *, const char *why, struct wp_cause *);

/* What to call the place that is so far behind a symbol: "table+8", malloc'd.
   NULL: no memory. */
char *spec_place_name(const char *symbol, uint64_t off);

/* How many bytes at an address are meant if that is not said: the largest of 8,
   4, 2, 1 that it is aligned to. */
uint64_t spec_alignment(uint64_t addr);

/*
 * Find the place in a process.  0 or -errno with a cause: symbol unknown (the
 * nearest names), ambiguous (the candidates), thread-local, or module not
 * mapped.  -ENOENT alone may change when more modules are loaded; asking
 * without a cause then spares the search for near names.
 */
int spec_resolve(const struct spec *, struct ex_process *, struct spec_place *,
    struct wp_cause *);

/* The same, while a command's libraries have still to be mapped: what the
   dynamic loader has for itself, much of the C library, is not meant. */
int spec_resolve_early(const struct spec *, struct ex_process *,
    struct spec_place *, struct wp_cause *);

/* For hits: the len bytes at addr are from here on of the type that an
   expression gives them, if it does so by a cast, or if nothing else is known
   of them.  The object begins at addr. */
void spec_declare(const struct spec *, struct ex_process *, uint64_t addr,
    uint64_t len);

#endif
