/* qualified: names with the scopes that they are declared in. */
#ifndef EX_QUALIFIED_H
#define EX_QUALIFIED_H

#include <stdbool.h>

/* The part behind the last "::" that is not among template arguments. */
const char *ex_qualified_last(const char *name);

/* Whether two are the same but for blanks, "::" in front, and ways to write a
   number's type (unsigned long, long unsigned int); any_case: and for upper and
   lower case. */
bool ex_qualified_same(const char *, const char *, bool any_case);

#endif
