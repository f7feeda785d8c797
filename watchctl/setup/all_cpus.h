/* all_cpus: watches everything that runs on any processor (--all-cpus). */
#ifndef ALL_CPUS_H
#define ALL_CPUS_H

#include "os/cause.h"

struct process;
struct run;

/* Resolve the SPECs, and plan their watches.  0 or -errno with a cause. */
int all_cpus_find(struct run *, struct process *, struct wp_cause *);

/* Arm the watches, which then deliver records.  0; or -errno with a cause, and
   nothing is armed. */
int all_cpus_attach(struct run *, const struct process *, struct wp_cause *);

/* When the watches are armed, learn which processes there are and what they
   map; later ones are reported by records. */
void all_cpus_learn(struct run *);

#endif
