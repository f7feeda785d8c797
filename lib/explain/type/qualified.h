/* qualified: compares names with the scopes that they are declared in. */
#ifndef EX_QUALIFIED_H
#define EX_QUALIFIED_H

#include <stdbool.h>

/* The part after the last "::" that is not among template arguments. */
const char *ex_qualified_last(const char *name);

/* Whether two names are the same apart from blanks, a leading "::", and ways to
   write the type of a number (unsigned long, long unsigned int); any_case: and
   apart from upper and lower case. */
bool ex_qualified_same(const char *, const char *, bool any_case);

#endif
