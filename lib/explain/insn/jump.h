/*
 * jump: what looks like a direct jump, at some byte of a module's code.
 *
 * What depends on the processor is in jump_x86_64.c and jump_aarch64.c.
 */
#ifndef EX_JUMP_H
#define EX_JUMP_H

#include "module/module.h"

struct ex_jump {
	uint64_t target, at, end;	/* vaddrs */
};

/* Whether the len bytes of code, which are at vaddr, begin with what looks like
   a jump, conditional or not. */
bool ex_jump_looks_like(const uint8_t *code, size_t len, uint64_t vaddr,
    struct ex_jump *out);

/* Whether the module's code, read from where its functions begin, has this
   one. */
bool ex_jump_is_code(struct ex_module *, const struct ex_jump *);

#endif
