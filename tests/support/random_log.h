/*
 * random_log: the log of the victim "random", with which reports are compared.
 */
#ifndef RANDOM_LOG_H
#define RANDOM_LOG_H

#include <stdint.h>

enum {
	RANDOM_WINDOW = 64,	/* bytes that watches may lie in */
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
	uint64_t pc, end;	/* of the instruction, and where it went on */
	uint64_t stores, loads;	/* bytes accessed, */
	uint64_t maybe;		/* and those that may be */
	uint64_t known_before, known_after;	/* which bytes of these: */
	uint8_t before[RANDOM_WINDOW], after[RANDOM_WINDOW];
	int32_t pid, tid;
	uint32_t flags;
	uint32_t phase;		/* accesses between two points at which all
				   threads stand */
	char form[32];
};

struct random_log {
	uint64_t arena;		/* the window's address */
	uint32_t n, max;
	struct random_access access[];
};

#endif
