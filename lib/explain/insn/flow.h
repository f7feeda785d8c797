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

/* Whether it began there, with that decoder. */
bool ex_flow_is(const struct ex_flow *, const ZydisDecoder *, uint64_t start);

/* The length of the longest instruction that ends at vaddr, and in *n the
   number of those; 0: none was reached. */
unsigned ex_flow_before(const struct ex_flow *, uint64_t vaddr, unsigned *n);

/* Whether an instruction that was reached begins at vaddr, and none that begins
   elsewhere has that byte. */
bool ex_flow_begins(const struct ex_flow *, uint64_t vaddr);

/* The end, maybe beyond vaddr, of the last reached instruction that begins
   before vaddr; the start if there is none. */
uint64_t ex_flow_last(const struct ex_flow *, uint64_t vaddr);

/* Its jumps through memory, including those in code that was not reached: their
   number, and in *offsets their offsets from the start. */
size_t ex_flow_jumps(const struct ex_flow *, const uint32_t **offsets);

/* Its exits: jumps through memory and registers, and branches that lead out of
   it, including those in code that was not reached: their number, and in
   *offsets their offsets. */
size_t ex_flow_exits(const struct ex_flow *, const uint32_t **offsets);

/* Whether control may continue beyond its end, other than by returning from a
   call. */
bool ex_flow_falls(const struct ex_flow *);

#endif
