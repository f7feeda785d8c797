/*
 * symbol: finds names for addresses, and addresses for names, in one module.
 *
 * Sources, best first: DWARF (lines, inlined functions) of the file or of its
 * separate debug file, .symtab, .dynsym, .gnu_debugdata when elfutils reads it.
 * Answers are cached per vaddr in the module and live as long as it.
 */
#ifndef EX_SYMBOL_H
#define EX_SYMBOL_H

#include "module/module.h"

/* One level of a backtrace at one pc. */
struct ex_frame {
	uint64_t pc;		/* address in the process; 0: not known, of a
				   function that ended in a tail call */
	const char *function;	/* demangled, without parameters; NULL:
				   unknown */
	uint64_t offset;	/* of pc from the function's start; 0 when
				   inlined */
	const struct ex_module *module;	/* NULL: none known there */
	uint64_t vaddr;		/* pc as a vaddr of the module */
	const char *file;	/* its path; NULL: unknown */
	int line;		/* 0: unknown */
	int column;		/* 0: unknown */
	bool inlined;		/* it is inlined in the next one */
	bool signal;		/* a signal frame: the kernel called the next
				   inner */
	bool kernel;		/* in the kernel */
	bool jit;		/* code that the program generated, and named:
				   it cannot be checked */
	bool tail;		/* it ended in a tail call of the next inner
				   one: pc is that of its jump */
	bool gap;		/* functions may be missing between it and the
				   next inner one: tail calls, or inlined
				   ones */
	bool pointer;		/* its caller, or the jump to it, went through a
				   pointer, as far as is known, which may have
				   pointed to another function that ended in a
				   tail call of it */
};

/* The frames at one vaddr, innermost inlined function first; at least one. */
struct ex_frames {
	unsigned n;
	struct ex_frame *frame;	/* pc is the vaddr: the caller adds the base */
};

/*
 * Name a vaddr.  lookup is the vaddr whose line and inlining count: the same
 * for an instruction's own address, one less for a return address or for the
 * pc that a data watchpoint reports.  NULL only when out of memory.
 */
const struct ex_frames *ex_symbol_frames(struct ex_module *, uint64_t vaddr,
    uint64_t lookup);

/* A symbol as the ELF file has it. */
struct ex_symbol {
	const char *name;	/* raw, versions (@...) cut off */
	const char *file;	/* of a local symbol: its source file, as noted
				   by the linker; NULL: unknown */
	uint64_t value;		/* vaddr; for thread-local ones the TLS
				   offset */
	uint64_t size;		/* bytes; 0: not recorded */
	bool global;		/* STB_GLOBAL, WEAK or GNU_UNIQUE */
	bool function;		/* STT_FUNC or GNU_IFUNC */
	bool indirect;		/* STT_GNU_IFUNC: its code chooses the function
				   that calls by this name reach */
	bool old;		/* only programs that were linked with an older
				   version of the library reach it */
	bool object;		/* STT_OBJECT or COMMON */
	bool tls;		/* STT_TLS */
	bool mangled;		/* the name may be mangled: it begins with
				   '_' */
	uint16_t sum;		/* a checksum of the name */
};

/* Call fn for each defined symbol called name (raw or demangled; C++ names may
   leave out parameters, and have `const` where programmers write it).  fn's
   non-zero result ends it and is returned. */
int ex_symbol_find(struct ex_module *, const char *name,
    int (*fn)(void *arg, const struct ex_symbol *), void *arg);

/* The same for the raw name only, which is quick. */
int ex_symbol_find_raw(struct ex_module *, const char *name,
    int (*fn)(void *arg, const struct ex_symbol *), void *arg);

/* Call fn for every defined function, object and thread-local symbol. */
int ex_symbol_each(struct ex_module *,
    int (*fn)(void *arg, const struct ex_symbol *), void *arg);

/* The symbol that covers vaddr (nearest below whose size reaches it, or whose
   size is 0), functions and objects alike; false when none. */
bool ex_symbol_at(struct ex_module *, uint64_t vaddr, struct ex_symbol *out);

/* The extent of a function. */
struct ex_function {
	uint64_t start, end;	/* vaddrs */
	bool sized;		/* end is exact; else an upper bound */
};

/* The function that holds vaddr, by symbol or by its unwind entry (FDE),
   whichever begins nearer; false when neither is known. */
bool ex_symbol_function(struct ex_module *, uint64_t vaddr,
    struct ex_function *out);

/* Only its start. */
bool ex_symbol_function_start(struct ex_module *, uint64_t vaddr,
    uint64_t *start);

/* Demangle a C++ or Rust name (without parameters); the same pointer when it
   is not mangled, else malloc'd in *owned, for the caller to free. */
const char *ex_demangle(const char *raw, char **owned);

/* Kernel functions by address, from /proc/kallsyms of the running kernel;
   NULL when unknown or not allowed. */
const char *ex_kernel_symbol(uint64_t addr, uint64_t *offset);

#endif
