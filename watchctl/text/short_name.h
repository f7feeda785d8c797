/* short_name: shortens a function's name for a line of text. */
#ifndef SHORT_NAME_H
#define SHORT_NAME_H

enum { SHORT_NAME_COLUMNS = 40 };	/* a name of up to this many is left as
					   it is */

/*
 * A copy of a demangled name in which template arguments, if it is longer, are
 * "<...>": std::map<...>::operator[]. Rust's <T as Trait>::method keeps the
 * type.  The caller frees it; NULL: no memory.
 */
char *short_name(const char *name);

#endif
