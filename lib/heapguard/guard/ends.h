/* ends: intercepts the end of a process, or of the program in it, so that all
   blocks are checked first. */
#ifndef HG_ENDS_H
#define HG_ENDS_H

/* Install the checks for exit(3), crashes and forked children. */
void hg_ends_begin(void);

#endif
