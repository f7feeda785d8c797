/*
 * source_path: composes a source file's path from the parts in debug
 * information.
 */
#ifndef EX_SOURCE_PATH_H
#define EX_SOURCE_PATH_H

/*
 * The path of a file that was given to the compiler as name, in a working
 * directory (DW_AT_comp_dir; NULL: not known): without ".", and without ".."
 * after another part.  This only edits the text, because the file may be on
 * another machine; where that part is a symbolic link, the path may be wrong.
 * The caller frees it; NULL: no memory.
 */
char *ex_source_path(const char *directory, const char *name);

#endif
