/*
 * flow: finds where the instructions of a function begin, by following its
 * branches from its first instruction.
 *
 * Bytes that are reached in this way are certainly code, even if data lies in
 * between.  Code that is reached only in other ways (through a table of
 * addresses, or by an exception) is not found.
 */
#ifndef EX_FLOW_H
#define EX_FLOW_H

#include <Zydis/Zydis.h>

#include "module/module.h"

struct ex_flow;

/* Follow the code of a module from start on, as far as it lies before end.
   NULL: no code there, or out of memory. */
struct ex_flow *ex_flow_new(struct ex_module *, const ZydisDecoder *,
    uint64_t start, uint64_t end);
void ex_flow_free(struct ex_flow *);

/* Whether it began there, and was decoded so. */
bool ex_flow_is(const struct ex_flow *, const ZydisDecoder *, uint64_t start);

/* The longest instruction that ends at vaddr: its length, and in *n how many
   do; 0: none that is reached. */
unsigned ex_flow_before(const struct ex_flow *, uint64_t vaddr, unsigned *n);

/* Where the last instruction ends that is reached and begins before vaddr: that
   may be beyond vaddr.  The start when there is none. */
uint64_t ex_flow_last(const struct ex_flow *, uint64_t vaddr);

/* Its jumps through memory, those in code that is not reached too: how many,
   and in *offsets where they begin, counted from the start. */
size_t ex_flow_jumps(const struct ex_flow *, const uint32_t **offsets);

/* Where it may be left for other code: its jumps through memory and registers,
   and the branches that lead out of it, those in code that is not reached too:
   how many, and in *offsets where they begin. */
size_t ex_flow_exits(const struct ex_flow *, const uint32_t **offsets);

/* Whether code goes on beyond its end, other than by coming back from a
   call. */
bool ex_flow_falls(const struct ex_flow *);

#endif
