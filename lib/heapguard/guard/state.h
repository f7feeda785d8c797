/* state: the guard's state in this process and in its threads. */
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
	HG_SITES = 1 << 14,	/* remembered callers of a thread, */
	HG_SITES_FIRST = 1 << 10,	/* and the part of their table that is
					   used first */
	HG_SPARE = 1 << 10,	/* free ledger entries of a thread */
	HG_CALLERS_MAX = 1 << 16,
};

/* Remembered callers, identified by the words of the stack that were read to
   find them: the same words in the same places lead to the same callers. */
struct hg_site {
	uint64_t sum;		/* of the frames but the last */
	uint64_t bp;		/* rbp in the last but one, if the last is found
				   by it */
	uint64_t word;		/* the last frame's return address, */
	uint32_t at;		/* and its distance from the stack pointer; 0:
				   there is no last frame */
	uint16_t callers;
	bool by_bp;
};
_Static_assert(sizeof(struct hg_site) == 32, "two are in a cache line");

/* A thread's state, which the next thread takes over when this one ends. */
struct hg_thread {
	struct hg_thread *next;		/* in the list of all */
	_Atomic bool used;
	_Atomic pid_t late;		/* the thread that uses it during its
					   last destructors; 0: it is used by
					   one whose end will be seen */
	_Atomic bool busy;		/* it is giving a block back */
	/* The quarantine: entries [first, last) modulo HG_RING. */
	uint32_t first, last;
	size_t held;			/* bytes in the quarantine */
	uint32_t nspare, spare[HG_SPARE];	/* entries of the ledger */
	uint32_t grown;		/* log2 of how much of the table of sites is
				   used, over the first part */
	uint32_t learned;	/* sites, since that last changed */
	_Alignas(64) struct hg_site site[HG_SITES];
	uint32_t ring[HG_RING];
	uint32_t count[HG_CALLERS_MAX];	/* its blocks, by their callers */
};

/* What is done with operators new and delete. */
enum hg_cxx {
	HG_CXX_PASSED,		/* they are the C++ library's */
	HG_CXX_AS_MALLOC,	/* what they allocate is malloc's */
	HG_CXX_DISTINGUISHED,	/* it is distinguished from that */
};

extern struct hg_state {
	bool on;			/* blocks are guarded */
	enum hg_cxx cxx;
	_Atomic pid_t pid;
	size_t quarantine;		/* its size in bytes; 0: none */
	struct hg_evidence *evidence;	/* nobody reads any */
	struct hg_image image;		/* this program */
	_Atomic(struct hg_thread *) threads;
	_Atomic uint32_t nthreads;
	_Atomic bool several;		/* blocks may be of several threads */
	_Atomic size_t share;		/* a thread's share of the quarantine */
	_Atomic pid_t sweeper;		/* the thread that checks all blocks,
					   while none is given back; 0: none */
	_Atomic bool exhausted;		/* the ledger has been full: a block may
					   be missing from it */
	_Atomic bool shared;		/* a library may use the allocator
					   itself */
	_Atomic uint64_t forgotten;	/* counts the times when modules were
					   unloaded */
} hg_state __attribute__((visibility("hidden")));

/* This thread's state; NULL: there is no memory for it. */
extern _Thread_local struct hg_thread *hg_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
struct hg_thread *hg_thread_make(void);

static inline struct hg_thread *
hg_thread(void)
{
	return hg_self != NULL ? hg_self : hg_thread_make();
}

/* Call this in a forked child, which has no other threads. */
void hg_thread_forked(void);

#endif
