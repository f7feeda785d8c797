/* demangle: C++ names with the parts that ex_demangle leaves out. */
#ifndef EX_DEMANGLE_H
#define EX_DEMANGLE_H

/* Demangle a C++ name with its parameters; malloc'd.  NULL: not mangled, or no
   memory. */
char *ex_demangle_whole(const char *raw);

/* A C++ name in the form of demanglers, which put `const` after what it applies
   to: f(char const*) for f(const char*).  The name itself, or malloc'd in
   *owned, to be freed. */
const char *ex_demangle_form(const char *name, char **owned);

#endif
