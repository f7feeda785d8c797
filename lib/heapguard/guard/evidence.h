/*
 * evidence: the memory that guarded programs share with watchctl.
 *
 * Overview.  One memfd, mapped by watchctl and by each program of a run that
 * has the guard in it.  Programs add what they find, and say that they are
 * guarded; watchctl reads when all have ended.  Nothing in here is a pointer
 * that the reader may follow, and nothing is locked: a place is claimed by one
 * atomic instruction, so a program may be killed at any moment.  The reader
 * checks all that it uses.
 */
#ifndef HG_EVIDENCE_H
#define HG_EVIDENCE_H

#include <stdatomic.h>
#include <stdint.h>

enum {
	HG_VERSION = 1,
	HG_FINDINGS_MAX = 256,
	HG_PROGRAMS_MAX = 8192,	/* that are about to be executed at a time */
	HG_FRAMES_MAX = 16,	/* of a backtrace */
	HG_MAPS_MAX = 24,	/* that its backtraces lie in */
	HG_BYTES_MAX = 64,	/* damaged bytes that are kept */
	HG_PATH_MAX = 240,
	HG_HITS_MAX = 16,	/* that are named as a finding's */
	HG_IMAGES_MAX = 4096,	/* distinct programs with their arguments */
	HG_ALIKE_MAX = 4,	/* findings of which no more are wanted */
	HG_WANTED_MAX = 64,	/* blocks that are watched in a further run */
	HG_LABEL_MAX = 64,	/* as the watch library has it */
	HG_CAUSE_MAX = 256,
};
#define HG_MAGIC 0x64726175676865ULL	/* "heguard" */

/* The variable that leads to it: "PATH QUARANTINE", with its size in bytes. */
#define HG_VARIABLE "WATCHPOINT_HEAP"

enum hg_kind {
	HG_OVERFLOW = 1, HG_UNDERFLOW, HG_USE_AFTER_FREE, HG_DOUBLE_FREE,
	HG_INVALID_FREE, HG_MISMATCH,
	HG_KINDS
};

/* How a block was allocated, or freed. */
enum hg_family { HG_MALLOC, HG_NEW, HG_NEW_ARRAY };

/* When it was noticed. */
enum hg_when { HG_AT_FREE, HG_AT_REALLOC, HG_AT_REUSE, HG_AT_EXIT, HG_AT_EXEC,
	HG_AT_CRASH, HG_AT_WRITE };

enum hg_stack_of { HG_STACK_ALLOC, HG_STACK_FREE, HG_STACK_NOTICED,
	HG_STACK_OTHER, HG_STACKS };

/* Return addresses, innermost first. */
struct hg_stack {
	uint32_t n;
	uint32_t whole;		/* the last is the thread's first function */
	uint64_t pc[HG_FRAMES_MAX];
};

/* A mapping of a file, with code in it. */
struct hg_map {
	uint64_t start, len, pgoff, ino;
	uint32_t maj, min;
	char path[HG_PATH_MAX];	/* NUL-terminated */
};

/* A block as another process knows it, which fork(2) made; and another run of
   the same program. */
struct hg_identity {
	uint64_t callers;	/* hash of modules and offsets */
	uint64_t size;
	uint32_t number;	/* among those of the same callers, from 1, */
	uint32_t in_thread;	/* and among those of its thread */
};

/* A program that is executed, as another run of the command knows it. */
struct hg_image {
	uint64_t path, arguments;	/* hashes */
	uint64_t order;		/* among those that are the same, from 1; 0:
				   not known */
};

struct hg_finding {
	_Atomic uint32_t ready;	/* written last */
	uint32_t kind;		/* enum hg_kind */
	uint32_t when;		/* enum hg_when */
	int32_t pid, tid;	/* that noticed it */
	uint32_t allocated_by, freed_by;	/* HG_MISMATCH: enum
						   hg_family */
	uint32_t nbytes;	/* damaged, as far as they are kept, from the
				   first to the last */
	uint64_t addr;		/* the block's; HG_INVALID_FREE: what was to be
				   freed */
	uint64_t size;		/* asked for */
	int64_t offset;		/* of the first damaged byte from its start */
	uint64_t other_size;	/* HG_UNDERFLOW: of the block in front, if that
				   has a stack */
	uint64_t other_gap;	/* and bytes between both */
	struct hg_identity identity;
	struct hg_image image;
	uint32_t watched;	/* the id of its watch; 0: it had none */
	uint32_t nhits;		/* watchctl's: of hits that did it, */
	uint64_t hit[HG_HITS_MAX];	/* their numbers in the report */
	uint8_t bytes[HG_BYTES_MAX];
	struct hg_stack stack[HG_STACKS];
	uint32_t nmaps;
	struct hg_map map[HG_MAPS_MAX];
	char program[HG_PATH_MAX];
};

enum hg_hello {
	HG_GUARDED = 1,
	HG_OWN_MALLOC,		/* its blocks are not ours */
	HG_SANITIZED,		/* the same, by AddressSanitizer */
	HG_NO_MEMORY,		/* for what the guard needs */
};

/* A process that is about to execute a program which has not said hello, or
   the other way about. */
struct hg_program {
	_Atomic int32_t pid;	/* 0: free */
	int32_t balance;	/* 1: executed; -1: said hello */
	char path[HG_PATH_MAX];
};

enum hg_want { HG_NOT_YET, HG_WANTED_NOW, HG_SEEN };

/* A block whose bytes are to be watched, once it is there: by watchctl, before
   a further run; by a program whose run is the only one. */
struct hg_wanted {
	_Atomic uint32_t state;	/* enum hg_want, written last */
	struct hg_image image;
	struct hg_identity identity;
	int64_t offset;		/* of the bytes, from its start */
	uint32_t past;		/* or from its end */
	uint32_t len;		/* 1, 2, 4 or 8: the most that are aligned */
	uint32_t freed;		/* from its free on, not before */
	char label[HG_LABEL_MAX];	/* of the watch; NUL-terminated */
};

/* How many programs there were of a kind. */
struct hg_images {
	_Atomic uint64_t kind;	/* 0: free */
	_Atomic uint32_t count;
};

struct hg_evidence {
	uint64_t magic;
	uint32_t version, size;
	/* by watchctl before a run begins */
	uint32_t sample;	/* it is the only one, where programs choose
				   what they watch */
	uint32_t any_number;	/* all blocks of these callers and sizes share
				   the watches, in all programs of these
				   files */
	_Atomic uint32_t nwanted;	/* may be more than there is room for */
	struct hg_wanted wanted[HG_WANTED_MAX];
	/* of what is watched, by the programs */
	_Atomic uint64_t blocks;	/* that were to be watched, or could
					   be; */
	_Atomic uint64_t watched;	/* and were, at least for a moment */
	_Atomic uint32_t sites, sites_watched;	/* sample: the same of
						   callers */
	_Atomic uint32_t watches;	/* sample: their last id */
	_Atomic uint32_t repeated;	/* sample: findings like others, of
					   which there are enough */
	_Atomic uint32_t refusals;	/* watches that could not be had */
	char cause[HG_CAUSE_MAX];	/* why, of the last */
	struct hg_images images[HG_IMAGES_MAX];
	_Atomic uint32_t nfindings;	/* may be more than there is room for */
	_Atomic uint32_t hellos;	/* of guarded programs */
	_Atomic uint32_t refused;	/* of others, the last of which is: */
	_Atomic uint32_t refusal;	/* enum hg_hello */
	_Atomic uint32_t unnamed;	/* programs that were executed by a
					   process whose number is not known */
	_Atomic uint32_t answers;	/* hellos that are in no place of
					   program any more */
	_Atomic uint32_t nprograms;	/* places of it that were ever used */
	_Atomic uint32_t overflowed;	/* there was no room for a program */
	_Atomic uint32_t unswept;	/* ends at which not all was checked */
	char refused_path[HG_PATH_MAX];
	struct hg_program program[HG_PROGRAMS_MAX];
	struct hg_finding finding[HG_FINDINGS_MAX];
};

#endif
