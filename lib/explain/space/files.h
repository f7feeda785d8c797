/*
 * files: keeps the known modules, and opens their files, which come from a
 * running process, or from this machine's disk for a recording.
 */
#ifndef EX_FILES_H
#define EX_FILES_H

#include "module/module_private.h"
#include "space/space.h"

struct ex_files;

/* NULL: out of memory.  With the files go all modules. */
struct ex_files *ex_files_new(enum ex_source);
void ex_files_free(struct ex_files *);

/* A build id from a recording's table. */
void ex_files_build_id(struct ex_files *, const char *path, const uint8_t *id,
    size_t len);

/* The table's build id for a path.  Result: its length; 0: none, or two. */
size_t ex_files_find_id(const struct ex_files *, const char *path,
    uint8_t id[20]);

/*
 * The root directory of a running process, for ex_files_module: -1 when it is
 * ours.  It stays open with the files.  0 or -errno: -ESRCH if the process has
 * ended, -EPERM if its root is refused.
 */
int ex_files_root(struct ex_files *, pid_t, int *root);

/* The module of an executable mapping of a process with this root.  NULL: no
   module, such as code made at run time; or out of memory. */
struct ex_module *ex_files_module(struct ex_files *, pid_t, int root,
    const struct ex_mmap *);

/* See ex_space_rejected_debug. */
struct ex_module *ex_files_rejected_debug(struct ex_files *);

#endif
