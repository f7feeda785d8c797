/* ends: what ends a process, or a program in it, and so the evidence: all
   blocks are looked at before. */
#ifndef HG_ENDS_H
#define HG_ENDS_H

/* Be there at the end: for exit(3), crashes and children. */
void hg_ends_begin(void);

#endif
