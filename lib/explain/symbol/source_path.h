/*
 * source_path: a source file's whole path, from the parts that debug
 * information has.
 */
#ifndef EX_SOURCE_PATH_H
#define EX_SOURCE_PATH_H

/*
 * The path of a file that the compiler was given as name, when it worked in a
 * directory (DW_AT_comp_dir; NULL: not known): without ".", and without ".."
 * where a part is in front of it.  That is by the text alone, as the file may
 * lie on another machine: where that part is a symbolic link, another file may
 * be meant.  The caller frees it; NULL: no memory.
 */
char *ex_source_path(const char *directory, const char *name);

#endif
