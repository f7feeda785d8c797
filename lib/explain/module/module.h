/*
 * module: an ELF file that processes map, and what it provides: names, lines,
 * unwind rows, code bytes.
 *
 * An ELF file has one module however many processes map it; addresses inside a
 * module are its own ("vaddr": those of its program headers and symbols).
 * Files come from another process's file system and are hostile until proven
 * otherwise.  A module lives as long as its space (space/space.h).
 */
#ifndef EX_MODULE_H
#define EX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ex_module;

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

/* Whether a running program cannot write to a vaddr: its segment is
   read-only, or becomes so when the module has been relocated. */
bool ex_module_is_constant(struct ex_module *, uint64_t vaddr);

#endif
