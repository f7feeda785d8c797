/*
 * jit: names of code that a running process has generated, from
 * /tmp/perf-PID.map: a line "START SIZE NAME" for each function, with
 * hexadecimal numbers, as perf takes them.
 *
 * The file is the one in the process's own root directory, by the id that it
 * has in its own PID namespace.  It is read only if it is a regular file, no
 * link, belongs to the process's user, and was written since the process began:
 * it may be left from another that had the same id.  What it says cannot be
 * checked.
 */
#ifndef EX_JIT_H
#define EX_JIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ex_jit;
struct ex_module;

/* Those of a process that runs now, whose root is a descriptor, which outlives
   this, or -1: ours.  NULL: it is not known, or out of memory. */
struct ex_jit *ex_jit_new(pid_t, int root);
void ex_jit_free(struct ex_jit *);

/*
 * The function that holds an address, and its start.  The name lives as long as
 * this.  NULL: the file does not say, or says different things: code lay there
 * before.  The file is looked at again when an address is not found in it.
 */
const char *ex_jit_find(struct ex_jit *, uint64_t addr, uint64_t *start);

/* Changes when names may have come. */
uint64_t ex_jit_edition(const struct ex_jit *);

/* Look at the file again. */
void ex_jit_look(struct ex_jit *);

/* What is shown as the file in frames: it has a name, and no contents. */
const struct ex_module *ex_jit_module(const struct ex_jit *);

#endif
