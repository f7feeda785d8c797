/*
 * debug_file: finds the separate file with a module's debug information.
 *
 * A hostile program can name any file, and put anything where it is looked
 * for.  So names that contain directories are not followed; only regular files
 * are opened, because opening others can block or have effects; and a file is
 * accepted only if its build id, or without one its checksum, is right.
 */
#ifndef EX_DEBUG_FILE_H
#define EX_DEBUG_FILE_H

#include "module/module_private.h"

/* The file, which remains the module's; NULL: there is none. */
const struct ex_file_image *ex_debug_file(struct ex_module *);

/* Unmap and forget it. */
void ex_debug_file_close(struct ex_module *);

/* libdwfl's callback find_debuginfo; the data is the module. */
int ex_debug_file_find(Dwfl_Module *, void **data, const char *name,
    Dwarf_Addr base, const char *file, const char *link, GElf_Word crc,
    char **found);

#endif
