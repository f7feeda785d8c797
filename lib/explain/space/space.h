/*
 * space: processes, and which modules are mapped where in their memory.
 *
 * Life-cycle: a space holds processes and modules; all that is handed out lives
 * until ex_space_free.  Not thread-safe: one thread per space.
 */
#ifndef EX_SPACE_H
#define EX_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/record.h"

struct ex_jit;
struct ex_module;
struct ex_process;	/* one address space and the names of its threads */
struct ex_space;	/* all processes and modules known */

/* Where modules' files come from. */
enum ex_source {
	EX_LIVE,	/* running processes: /proc/PID first */
	EX_RECORDED,	/* a recording: paths and build ids only */
};

/* A new space, or NULL when out of memory. */
struct ex_space *ex_space_new(enum ex_source);
void ex_space_free(struct ex_space *);

/*
 * Learn from one record: COMM, MMAP, MMAP2, FORK and EXIT change what is
 * known; others are ignored.  A mapping replaces what it overlaps.
 */
void ex_space_learn(struct ex_space *, const struct ex_record *);

/*
 * Records report all that a process changes in its mappings from this time on,
 * ns on the events' clock; what is learned of them next, by records of time 0,
 * was read after it.  So what these and older records say of a mapping that is
 * known already is nothing new, and no reason to doubt its code.
 */
void ex_space_mapped(struct ex_space *, pid_t, uint64_t time);

/*
 * Announce a record that will be learned later, when the process may be gone:
 * the file that it maps is opened now.  Records are foreseen and learned in the
 * order of their times; not all have to be foreseen.
 */
void ex_space_foresee(struct ex_space *, const struct ex_record *);

/*
 * A build id that a recording gives for a path (its build-id table), to be
 * checked when that path is opened: call it before the records are learned.
 */
void ex_space_build_id(struct ex_space *, const char *path, const uint8_t *id,
    size_t len);

/* The process with this pid, made if it is not known; NULL: out of memory. */
struct ex_process *ex_space_process(struct ex_space *, pid_t pid);

/* The name of a thread ("" when unknown); lives until the next learn. */
const char *ex_space_comm(const struct ex_space *, pid_t pid, pid_t tid);

/* Whether its processes are running ones, and may be asked. */
bool ex_space_live(const struct ex_space *);

/*
 * Whether ex_kernel_symbol's names are right for this space: always for running
 * processes; for a recording if its kernel's build id and address (the record
 * for "[kernel.kallsyms]_text") are those of the running kernel.
 */
bool ex_space_kernel(struct ex_space *);

/*
 * The process's generation: changes whenever an address in it may have begun
 * to mean something else, so that what is cached by address can be dropped.
 */
uint64_t ex_process_generation(const struct ex_process *);

/*
 * The module at an address of a process, and the address inside it in *vaddr.
 * NULL: nothing known there.  Data of a module counts as well as its code: the
 * whole extent of its program headers belongs to it.
 */
struct ex_module *ex_process_module(struct ex_process *, uint64_t addr,
    uint64_t *vaddr);

/*
 * Whether the instruction that ends at an address is the one in the module's
 * file, as far as is known: the program cannot write there, and memory, if it
 * can be read, has the same EX_ORIGINAL bytes before the address.
 */
enum { EX_ORIGINAL = 16 };
bool ex_process_is_original(struct ex_process *, uint64_t end);

/* Read a running process's memory.  False: impossible. */
bool ex_process_read(const struct ex_process *, uint64_t addr, void *to,
    size_t len);

/* Call fn for each module of the process, the executable first, then by
   address; base is what to add to its vaddrs. fn's non-zero result ends the
   iteration and is returned. */
int ex_process_modules(struct ex_process *,
    int (*fn)(void *arg, struct ex_module *, uint64_t base), void *arg);

/* The next module whose debug information exists but is not used, and in *why
   the reason, in words; each is returned once.  NULL: no more. */
const struct ex_module *ex_space_rejected_debug(struct ex_space *,
    const char **why);

/* Names of code that a process generated; NULL: it cannot have any.  They
   belong to the process. */
struct ex_jit *ex_process_jit(const struct ex_process *);

/* What type/declared_object.c caches in a process; release, unless NULL, frees
   it with the process. */
void **ex_process_objects(struct ex_process *, void (*release)(void *));

#endif
