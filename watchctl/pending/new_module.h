/*
 * new_module: modules that a process maps while the watch is on, with
 * dlopen(3), and the SPECs that wait for them: MODULE!SYMBOL.
 */
#ifndef NEW_MODULE_H
#define NEW_MODULE_H

#include <stdbool.h>
#include <sys/types.h>

#include "spec/spec.h"

struct options;
struct run;
struct wp_cause;

/* The option that excludes looking at a process repeatedly; and the one that
   excludes waiting for a module.  NULL: none does. */
const char *run_changes_not_with(const struct options *);
const char *run_waits_not_with(const struct options *);

/* Whether a SPEC names a module, not a source file, that may be mapped later,
   and something that can be watched then. */
bool module_may_come(const struct spec *);

/* Whether a process has mapped the module that a SPEC names. */
bool module_is_mapped(pid_t, const struct spec *);

/*
 * Watch a process that runs, and is held and traced from here on by the calling
 * thread: what it has, and by and by what SPECs name in modules that it maps.
 * 0 or -errno with a cause.
 */
int run_attach_waiting(struct run *, pid_t, struct wp_cause *);

/* A thread of a process is stopped in its loader's hook, traced by the calling
   thread: watch what SPECs name in modules that are mapped by now, before their
   constructors run, and stop watching what was in unmapped ones. */
void run_modules(struct run *, pid_t);

#endif
