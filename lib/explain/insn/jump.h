/*
 * jump: recognizes byte sequences in a module's code that may be a jump, or an
 * instruction that takes an address.
 *
 * The code for each processor is in jump_x86_64.c and jump_aarch64.c.
 */
#ifndef EX_JUMP_H
#define EX_JUMP_H

#include "module/module.h"

struct ex_direct_jump {
	uint64_t target, at, end;	/* vaddrs */
};

/* Whether the len bytes of code, which are at vaddr, begin with what looks like
   a jump, conditional or not. */
bool ex_jump_looks_like(const uint8_t *code, size_t len, uint64_t vaddr,
    struct ex_direct_jump *out);

/* Whether the module's code, read from where its functions begin, has this
   one. */
bool ex_jump_is_code(struct ex_module *, const struct ex_direct_jump *);

/* The same of a jump through a register or memory.  *end: where it ends. */
bool ex_jump_looks_like_pointer(const uint8_t *code, size_t len,
    uint64_t vaddr, uint64_t *end);

/* The name whose address the dynamic linker has put where such a jump, which
   ends there, takes its target from; NULL: it may lead elsewhere. */
const char *ex_jump_slot(struct ex_module *, uint64_t end);

/* Whether the code of the module's function that begins at start has a jump
   through a pointer that ends there, and it may lead anywhere: not by such a
   slot, nor through a table of the function's own places.  *jump: where it
   begins. */
bool ex_jump_leads_anywhere(struct ex_module *, uint64_t start, uint64_t end,
    uint64_t *jump);

/* Whether the addresses that a module's code takes can be seen in it. */
bool ex_jump_sees_addresses(struct ex_module *);

/* What may be an address that code takes, if it begins here; fixed: the module
   cannot be moved.  Result: how many. */
enum { EX_ADDRESSES = 2 };
unsigned ex_jump_addresses(const uint8_t *code, size_t len, uint64_t vaddr,
    bool fixed, uint64_t out[EX_ADDRESSES]);

#endif
