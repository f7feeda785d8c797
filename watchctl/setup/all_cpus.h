/* all_cpus: watches of whatever runs on any processor. */
#ifndef ALL_CPUS_H
#define ALL_CPUS_H

#include "os/cause.h"

struct process;
struct run;

/* Find what the SPECs mean, and plan their watches.  0 or -errno with a
   cause. */
int all_cpus_find(struct run *, struct process *, struct wp_cause *);

/* Arm them: records come from here on.  0 or -errno with a cause: nothing is
   armed. */
int all_cpus_attach(struct run *, const struct process *, struct wp_cause *);

/* Learn, when they are armed, which processes there are and what they map: of
   those that come later there are records. */
void all_cpus_learn(struct run *);

#endif
