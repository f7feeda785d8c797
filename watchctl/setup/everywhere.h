/* everywhere: watches of whatever runs on any processor. */
#ifndef EVERYWHERE_H
#define EVERYWHERE_H

#include "os/cause.h"

struct process;
struct run;

/* Find what the SPECs mean, and plan their watches.  0 or -errno with a
   cause. */
int everywhere_find(struct run *, struct process *, struct wp_cause *);

/* Arm them: records come from here on.  0 or -errno with a cause: nothing is
   armed. */
int everywhere_attach(struct run *, const struct process *, struct wp_cause *);

/* Learn, when they are armed, which processes there are and what they map: of
   those that come later there are records. */
void everywhere_learn(struct run *);

#endif
