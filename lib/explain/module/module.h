/*
 * module: one ELF file that processes map, and what it provides: names, lines,
 * unwind rows, code bytes.  A process: which modules are mapped where in its
 * memory.
 *
 * An ELF file has one module however many processes map it; addresses inside a
 * module are its own ("vaddr": those of its program headers and symbols).
 * Files come from another process's file system and are hostile until proven
 * otherwise.
 *
 * Life-cycle: an ex_space holds processes and modules; all that is handed out
 * lives until ex_space_free.  Not thread-safe: one thread per space.
 */
#ifndef EX_MODULE_H
#define EX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/record.h"

struct ex_space;	/* all processes and modules known */
struct ex_process;	/* one address space and the names of its threads */
struct ex_module;	/* one ELF file */

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
 * Records tell of all that a process changes in its mappings from this time on,
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
 * checked when that path is opened: call it before the records are learnt.
 */
void ex_space_build_id(struct ex_space *, const char *path, const uint8_t *id,
    size_t len);

/* The process with this pid, made when it is not known; NULL: out of memory. */
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

/* The module's path as the process sees it ("[vdso]" too); its last part. */
const char *ex_module_path(const struct ex_module *);
const char *ex_module_name(const struct ex_module *);

/* Whether it is a 32-bit file.  False also if it cannot be opened. */
bool ex_module_is_narrow(struct ex_module *);

/* Build id in lower-case hex; "" when it has none. */
const char *ex_module_build_id(const struct ex_module *);

/* The reason, in words, why the module's file could not be used; NULL: it
   could. */
const char *ex_module_problem(const struct ex_module *);

/* The next module whose debug information exists but is not used, and in *why
   the reason, in words; each is returned once.  NULL: no more. */
const struct ex_module *ex_space_rejected_debug(struct ex_space *,
    const char **why);

/* Set the function that fetches debug information which is not on this machine:
   by a build id in lower-case hex it returns a descriptor of a file that may
   have it, or -errno.  Without it, nothing is fetched. */
void ex_module_fetcher(int (*fn)(const char *build_id));

/* From here on read no file with this path, as processes see it; "": no file at
   all.  False: out of memory. */
bool ex_module_leave_aside(const char *path);

/* Call fn whenever a module is read that is not the last one. */
void ex_module_observe(void (*fn)(const char *path));

/* Set a function, which does not return, to be called when elfutils finds no
   memory; by default elfutils ends the process. */
void ex_module_memory_handler(__attribute__((noreturn)) void (*fn)(void));

/* Copy up to len bytes of the module's contents at vaddr, as in the file.
   Result: bytes copied, which may be fewer or none. */
size_t ex_module_bytes(struct ex_module *, uint64_t vaddr, void *to,
    size_t len);

/* Whether a program that runs cannot write to a vaddr: its segment is
   read-only, or becomes so when the module has been relocated. */
bool ex_module_is_constant(struct ex_module *, uint64_t vaddr);

#endif
