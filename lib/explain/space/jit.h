/*
 * jit: finds names of code that a running process has generated, from
 * /tmp/perf-PID.map: a line "START SIZE NAME" for each function, with
 * hexadecimal numbers, as perf takes them.
 *
 * The file is in the process's own root directory, named by its id in its own
 * PID namespace.  It is read only if it is a regular file and no link, belongs
 * to the process's user, and was written after the process began, because it
 * may remain from another process with the same id.  Its contents cannot be
 * verified.
 */
#ifndef EX_JIT_H
#define EX_JIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ex_jit;
struct ex_module;

/* Open the names of a running process, whose root is a descriptor that outlives
   this, or -1: ours.  NULL: not known, or out of memory. */
struct ex_jit *ex_jit_new(pid_t, int root);
void ex_jit_free(struct ex_jit *);

/*
 * The function that contains an address, and its start.  The name lives as long
 * as this.  NULL: the file does not list it, or is contradictory because other
 * code was there before.  The file is read again when an address is not found.
 */
const char *ex_jit_find(struct ex_jit *, uint64_t addr, uint64_t *start);

/* A number that changes when there may be new names. */
uint64_t ex_jit_edition(const struct ex_jit *);

/* Read the file again. */
void ex_jit_look(struct ex_jit *);

/* The module shown in frames: it has a name, and no contents. */
const struct ex_module *ex_jit_module(const struct ex_jit *);

#endif
