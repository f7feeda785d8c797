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

/* Whether the len bytes of code at vaddr begin with what looks like a jump,
   conditional or not. */
bool ex_jump_looks_like(const uint8_t *code, size_t len, uint64_t vaddr,
    struct ex_direct_jump *out);

/* Whether the jump is part of the module's code, decoded from the beginnings of
   its functions. */
bool ex_jump_is_code(struct ex_module *, const struct ex_direct_jump *);

/* The same for a jump through a register or memory. *end: the end of its
   instruction. */
bool ex_jump_looks_like_pointer(const uint8_t *code, size_t len,
    uint64_t vaddr, uint64_t *end);

/* The name of the symbol whose address the dynamic linker has stored in the
   slot that such a jump, ending there, reads; NULL: it may lead elsewhere. */
const char *ex_jump_slot(struct ex_module *, uint64_t end);

/* Whether the module's function at start has a jump through a pointer that ends
   there and may lead anywhere: not through such a slot, nor through a table of
   places in the function. *jump: its start. */
bool ex_jump_leads_anywhere(struct ex_module *, uint64_t start, uint64_t end,
    uint64_t *jump);

/* Whether it can be recognized in a module's code which addresses it takes. */
bool ex_jump_sees_addresses(struct ex_module *);

/* Values at the beginning of this code that may be addresses which it takes;
   fixed: the module is not relocatable.  Result: their number. */
enum { EX_ADDRESSES = 2 };
unsigned ex_jump_addresses(const uint8_t *code, size_t len, uint64_t vaddr,
    bool fixed, uint64_t out[EX_ADDRESSES]);

#endif
