/* ends: intercepts the end of a process, or of the program in it, so that all
   blocks are checked before. */
#ifndef HG_ENDS_H
#define HG_ENDS_H

/* Be there at the end: for exit(3), crashes and children. */
void hg_ends_begin(void);

#endif
