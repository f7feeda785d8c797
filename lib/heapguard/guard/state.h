/* state: the guard's state of the process that it is in, and of threads. */
#ifndef HG_STATE_H
#define HG_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guard/evidence.h"

enum {
	HG_RING = 1 << 14,	/* blocks in a thread's quarantine */
	HG_SITES = 1 << 11,	/* callers that a thread knows again */
	HG_SPARE = 1 << 10,	/* free entries of the ledger that it has */
	HG_CALLERS_MAX = 1 << 16,
};

/* Callers, known by what was read of the stack to find them: the same word in
   the same place leads to them again. */
struct hg_site {
	uint64_t sum;		/* of the frames up to the last but one */
	uint64_t bp;		/* in that one, where the last is found by it */
	uint64_t word;		/* the last's return address, */
	uint32_t at;		/* and how far from the stack pointer it is; 0:
				   there is no last one */
	uint16_t callers;
	bool by_bp;
};
_Static_assert(sizeof(struct hg_site) == 32, "two are in a cache line");

/* A thread's; when it has ended the next one's. */
struct hg_thread {
	struct hg_thread *next;		/* of all there are */
	_Atomic bool used;
	_Atomic pid_t late;		/* used by a thread at its very end:
					   this one; 0: by one that says when it
					   ends */
	_Atomic bool busy;		/* it gives a block back */
	/* freed blocks that are kept: [first, last) modulo HG_RING */
	uint32_t first, last;
	size_t held;			/* their bytes */
	uint32_t nspare, spare[HG_SPARE];	/* entries of the ledger */
	struct hg_site site[HG_SITES];
	uint32_t ring[HG_RING];
	uint32_t count[HG_CALLERS_MAX];	/* its blocks, by their callers */
};

extern struct hg_state {
	bool on;			/* blocks are guarded */
	bool cxx;			/* new and delete are ours, too */
	_Atomic pid_t pid;
	size_t quarantine;		/* bytes in all; 0: none */
	struct hg_evidence *evidence;	/* NULL: nobody wants it */
	struct hg_image image;		/* this program */
	_Atomic(struct hg_thread *) threads;
	_Atomic uint32_t nthreads;
	_Atomic size_t share;		/* a thread's, of the quarantine */
	_Atomic pid_t sweeper;		/* who looks at all blocks, while none
					   is given back; 0: nobody */
	_Atomic bool exhausted;		/* the ledger is full: a block that is
					   not in it may be one */
	_Atomic uint64_t forgotten;	/* so often addresses got another
					   meaning */
} hg_state;

/* This thread's; NULL: there is no memory for it. */
extern _Thread_local struct hg_thread *hg_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
struct hg_thread *hg_thread_make(void);

static inline struct hg_thread *
hg_thread(void)
{
	return hg_self != NULL ? hg_self : hg_thread_make();
}

/* In the child of a fork: the other threads are not. */
void hg_thread_forked(void);

#endif
