/*
 * spec: SPECs, texts that name what to watch.
 *
 *	ADDR[:LEN]  [MODULE!]SYMBOL[+OFF][:LEN]  [MODULE!]EXPRESSION[:LEN]
 *	FILE:LINE   [MODULE!]THREAD_LOCAL[+OFF]@TID[:LEN]
 *	kernel!SYMBOL[+OFF][:LEN]
 *	shm:/NAME+OFF[:LEN]  file:PATH+OFF[:LEN]
 *	alloc:[MODULE!]FUNCTION[#N][->MEMBER|+OFF][:LEN]
 *
 * ADDR, OFF and LEN are decimal, or hex with 0x.  MODULE may be a source file,
 * for its static names; then "::" may be in place of "!".  What can be both a
 * symbol and an expression (expression.h), such as "server.clients", is the
 * symbol if one exists.  Parsing is pure; resolving uses a process's modules
 * and memory.
 */
#ifndef SPEC_H
#define SPEC_H

#include "os/cause.h"
#include "spec/expression.h"
#include "watchpoint.h"

struct ex_process;

struct spec {
	char *text;		/* as given, malloc'd */
	char *module;		/* or source file; NULL: any */
	char *real;		/* the path that it leads to, if it is a path,
				   malloc'd; NULL: not known; for resolving */
	char *symbol;		/* or expression; NULL: an address */
	struct expression *expression;	/* symbol as an expression, malloc'd;
					   NULL: it is none */
	bool expression_only;	/* it cannot be a symbol */
	bool unborn;		/* for resolving: the process has not begun, so
				   its memory does not count */
	int line;		/* execution: the line in source file `symbol';
				   0: none */
	bool follow;		/* for resolving: the pointers that lead to it
				   are wanted */
	pid_t thread;		/* thread-local: the thread; 0: not given */
	bool all;		/* for resolving: where uprobes see the calls of
				   all functions with this name is wanted */
	bool finds_local;	/* for resolving: the offset in its module's
				   thread-local storage is wanted */
	char *shared;		/* a file's path, malloc'd: the SPEC means the
				   bytes at off in the file, wherever it is
				   mapped shared; NULL: none */
	char *allocator;	/* [MODULE!]FUNCTION, malloc'd: the SPEC means
				   the bytes at off, or of the expression, in
				   what it returns; NULL: none */
	uint64_t instance;	/* the number of the only object that is meant;
				   0: all */
	bool kernel;		/* kernel!SYMBOL, or an address of the
				   kernel's */
	uint64_t addr;		/* an address; 0 with a symbol */
	bool has_off;
	uint64_t off;
	uint64_t len;		/* 0: by default */
	enum wp_access access;
};

/* The place of a spec in one process. */
enum { SPEC_MORE_MAX = 3 };
struct spec_place {
	uint64_t addr, len;
	/* nmore of them.  For a line: its other addresses.  For a followed
	   object: addr is that of the first of the pointers, and the next
	   pointer, or the object, is at this offset from where each one
	   points.  For objects of a function: addr is where a uprobe sees its
	   calls; the watched bytes are at this offset in each object, and this
	   is their number, 0: not known.  For several symbols of one name: the
	   others. */
	uint64_t more[SPEC_MORE_MAX];
	unsigned nmore;
	bool narrow;		/* followed pointers are 4 bytes wide */
	char *symbol;		/* its name ("counter", "table+8"), malloc'd;
				   NULL: the address is in no symbol */
	bool code;		/* execution: each address is the start of an
				   instruction */
	bool later;		/* it is not mapped yet */
	bool rotates;		/* slots move over it */
	bool local;		/* it is thread-local; as resolved, addr is an
				   offset in the storage of a module, ... */
	uint64_t base;		/* ... whose vaddrs have base added to them;
				   later, addr is an address, and base the
				   control block of its thread; each thread has
				   its own */
};

/* Parse text.  0, or -EINVAL with a cause that points at the character;
   -ENOMEM. */
int spec_parse(const char *text, enum wp_access, struct spec *,
    struct wp_cause *);
void spec_free(struct spec *);

/* Report an error in an expression, at a character of spec->text. -EINVAL with
   a cause. */
int spec_error(const struct spec *, const char *at, const char *what,
    struct wp_cause *);

/* Refuse a valid SPEC that cannot be watched, with the reason. -ERANGE with a
   cause. */
int spec_refuse(const struct spec *, const char *why, struct wp_cause *);

/* The name of a place at this offset from a symbol: "table+8", malloc'd.  NULL:
   no memory. */
char *spec_place_name(const char *symbol, uint64_t off);

/* How well a module, by its path, matches the module name of a SPEC. */
enum spec_fit {
	FIT_NONE,
	FIT_SONAME,		/* "libc" for libc.so.6 */
	FIT_NAME,		/* the last part, or more, of its path */
	FIT_PATH,		/* its whole path */
	FIT_ANY,		/* no module was named: want is NULL */
};
enum spec_fit spec_module_fit(const char *path, const char *want);

/* The default length of a watch at an address: the largest of 8, 4, 2, 1 bytes
   to which it is aligned. */
uint64_t spec_alignment(uint64_t addr);

/*
 * Find the place of a SPEC in a process.  0 or -errno with a cause: symbol
 * unknown (with the nearest names), ambiguous (with the candidates),
 * thread-local, or module not mapped.  Only -ENOENT may change when more
 * modules are loaded; without a cause the search for near names is skipped.
 */
int spec_resolve(const struct spec *, struct ex_process *, struct spec_place *,
    struct wp_cause *);

/* The same while a command's libraries are still to be mapped: symbols of the
   dynamic loader's private copy of much of the C library are ignored. */
int spec_resolve_early(const struct spec *, struct ex_process *,
    struct spec_place *, struct wp_cause *);

/* For hits: give the len bytes at addr, where the object begins, the type of an
   expression, if it has a cast, or if nothing else is known of these bytes. */
void spec_declare(const struct spec *, struct ex_process *, uint64_t addr,
    uint64_t len);

#endif
