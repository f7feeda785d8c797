/*
 * debug_file: the separate file that holds a module's debug information.
 *
 * A hostile program can name anything, and put anything where it is looked for.
 * So names with directories in them are not followed, nothing is opened but
 * regular files, since opening another can block or do things, and none is
 * believed whose build id, or without one its checksum, is not as it should be.
 */
#ifndef EX_DEBUG_FILE_H
#define EX_DEBUG_FILE_H

#include "module/module_private.h"

/* A descriptor of the file, which the caller closes, for once; -1: there is
   none. */
int ex_debug_file_open(struct ex_module *);

/* Leave it. */
void ex_debug_file_close(struct ex_module *);

/* libdwfl's callback find_debuginfo; the data is the module. */
int ex_debug_file_find(Dwfl_Module *, void **data, const char *name,
    Dwarf_Addr base, const char *file, const char *link, GElf_Word crc,
    char **found);

#endif
