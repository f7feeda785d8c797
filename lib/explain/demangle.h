/* demangle: what ex_demangle leaves out. */
#ifndef EX_DEMANGLE_H
#define EX_DEMANGLE_H

/* Demangle a C++ name with its parameters; malloc'd.  NULL: not mangled, or no
   memory. */
char *ex_demangle_whole(const char *raw);

#endif
