/*
 * cfi: who called whom, by call frame information, in this very process.
 *
 * Only what most functions have is understood: the CFA is a register (rsp or
 * rbp) and an offset, and rbp is where it was or saved beside it.  Other frames
 * end the walk.  A rule is looked up once for each return address and kept.
 */
#ifndef HG_CFI_H
#define HG_CFI_H

#include <stdbool.h>
#include <stdint.h>

struct hg_frame {
	uint64_t pc;		/* where it goes on */
	uint64_t sp, bp;	/* its registers then */
	bool by_bp;		/* of one that was stepped to: rbp led there */
};

/* Go to its caller.  False: there is none, or it is not known; *outermost says
   that there is none. */
bool hg_frame_step(struct hg_frame *, bool *outermost);

/* A library has gone: what is known of addresses is forgotten. */
void hg_frame_forget(void);

/* The module that an address lies in: where it was loaded, and its name.
   False: in none. */
bool hg_frame_module(uint64_t pc, uint64_t *base, const char **name);

#endif
