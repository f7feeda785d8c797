/*
 * random_log: the log of the victim "random", with which tests compare reports.
 */
#ifndef RANDOM_LOG_H
#define RANDOM_LOG_H

#include <stdint.h>

enum {
	RANDOM_WINDOW = 64,	/* bytes that watches may be on */
	RANDOM_BEFORE = 1024,	/* bytes of the arena before them */
};

enum {
	RANDOM_BY_KERNEL = 1,
	RANDOM_REPEATED = 2,	/* may be interrupted for several hits */
	RANDOM_OPTIONAL = 4,	/* may be no hit */
	RANDOM_CONTENDED = 8,	/* other threads access the bytes meanwhile */
	RANDOM_CHILD = 16,	/* by a child: of vfork, or with memory of its
				   own */
};

/* One access: an instruction, or a system call.  Masks have a bit for each byte
   of the window. */
struct random_access {
	uint64_t pc, end;	/* address of the instruction, and of the next
				   one executed */
	uint64_t stores, loads;	/* bytes accessed, */
	uint64_t maybe;		/* and bytes possibly accessed */
	uint64_t known_before, known_after;	/* which bytes of these are
						   known: */
	uint8_t before[RANDOM_WINDOW], after[RANDOM_WINDOW];
	int32_t pid, tid;
	uint32_t flags;
	uint32_t phase;		/* number of the interval between two points at
				   which all threads stop */
	char form[32];
};

struct random_log {
	uint64_t arena;		/* the window's address */
	uint32_t n, max;
	struct random_access access[];
};

#endif
