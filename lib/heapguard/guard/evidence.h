/*
 * evidence: the memory that guarded programs share with watchctl.
 *
 * Overview.  It is one memfd, mapped by watchctl and by each program of a run
 * that contains the guard.  Programs add findings and register themselves as
 * guarded; watchctl reads when all have ended.  The memory contains no pointer
 * that the reader follows, and no lock: entries are claimed by one atomic
 * instruction, so a program may be killed at any moment.  The reader checks
 * everything that it uses.
 */
#ifndef HG_EVIDENCE_H
#define HG_EVIDENCE_H

#include <stdatomic.h>
#include <stdint.h>

enum {
	HG_VERSION = 2,
	HG_FINDINGS_MAX = 256,
	HG_PROGRAMS_MAX = 8192,	/* executions in progress at a time */
	HG_FRAMES_MAX = 16,	/* of a backtrace */
	HG_MAPS_MAX = 24,	/* mappings of a finding's backtraces */
	HG_BYTES_MAX = 64,	/* copied damaged bytes */
	HG_PATH_MAX = 240,
	HG_HITS_MAX = 16,	/* hits named in a finding */
	HG_IMAGES_MAX = 4096,	/* distinct programs with their arguments */
	HG_ALIKE_MAX = 4,	/* findings that are alike, after which no more
				   are kept where there is only one run, or
				   watched in a further one */
	HG_WANTED_MAX = HG_FINDINGS_MAX,	/* blocks that are watched in a
						   further run */
	HG_LABEL_MAX = 64,	/* as in libwatchpoint */
	HG_CAUSE_MAX = 256,
};
#define HG_MAGIC 0x64726175676865ULL	/* "heguard" */

/* The environment variable that leads to it: "PATH QUARANTINE", the latter in
   bytes. */
#define HG_VARIABLE "WATCHPOINT_HEAP"

enum hg_kind {
	HG_OVERFLOW = 1, HG_UNDERFLOW, HG_USE_AFTER_FREE, HG_DOUBLE_FREE,
	HG_INVALID_FREE, HG_MISMATCH,
	HG_KINDS
};

/* How a block was allocated, or freed. */
enum hg_family { HG_MALLOC, HG_NEW, HG_NEW_ARRAY };

/* When damage was noticed. */
enum hg_when { HG_AT_FREE, HG_AT_REALLOC, HG_AT_REUSE, HG_AT_EXIT, HG_AT_EXEC,
	HG_AT_CRASH, HG_AT_WRITE };

enum hg_stack_of { HG_STACK_ALLOC, HG_STACK_FREE, HG_STACK_NOTICED,
	HG_STACK_OTHER, HG_STACKS };

/* Return addresses, innermost first. */
struct hg_stack {
	uint32_t n;
	uint32_t whole;		/* it ends with the thread's first function */
	uint64_t pc[HG_FRAMES_MAX];
};

/* An executable mapping of a file. */
struct hg_map {
	uint64_t start, len, pgoff, ino;
	uint32_t maj, min;
	char path[HG_PATH_MAX];	/* NUL-terminated */
};

/* What identifies a block in another process (after fork(2)) and in another run
   of the same program. */
struct hg_identity {
	uint64_t callers;	/* hash of modules and offsets */
	uint64_t size;
	uint32_t number;	/* among the blocks of these callers, from 1, */
	uint32_t in_thread;	/* and among those of the same thread */
};

/* What identifies an executed program in another run of the command. */
struct hg_image {
	uint64_t path, arguments;	/* hashes */
	uint64_t order;		/* among equal ones, from 1; 0: not known */
};

struct hg_finding {
	_Atomic uint32_t ready;	/* written last */
	uint32_t kind;		/* enum hg_kind */
	uint32_t when;		/* enum hg_when */
	int32_t pid, tid;	/* the thread that noticed it */
	uint32_t allocated_by, freed_by;	/* HG_MISMATCH: enum
						   hg_family */
	uint32_t nbytes;	/* length of `bytes', from the first damaged
				   byte to the last */
	uint64_t addr;		/* of the block; HG_INVALID_FREE: the address
				   passed to free */
	uint64_t size;		/* of the block, as requested */
	int64_t offset;		/* of the first damaged byte, from the block's
				   start */
	uint64_t other_size;	/* of the block in front, if that block has a
				   stack */
	uint64_t other_gap;	/* and the bytes between both */
	struct hg_identity identity;
	struct hg_image image;
	uint32_t watched;	/* the id of the block's watch; 0: it had
				   none */
	uint32_t nhits;		/* set by watchctl: number of hits that did the
				   damage, */
	uint64_t hit[HG_HITS_MAX];	/* their numbers in the report */
	uint8_t bytes[HG_BYTES_MAX];
	struct hg_stack stack[HG_STACKS];
	uint32_t nmaps;
	struct hg_map map[HG_MAPS_MAX];
	char program[HG_PATH_MAX];
};

enum hg_hello {
	HG_GUARDED = 1,
	HG_OWN_MALLOC,		/* it has its own allocator */
	HG_SANITIZED,		/* its allocator is AddressSanitizer's */
	HG_NO_MEMORY,		/* the guard got no memory */
};

/* A process that is about to execute a program which has not registered yet, or
   the other way round. */
struct hg_program {
	_Atomic int32_t pid;	/* 0: free */
	int32_t balance;	/* 1: executed; -1: registered */
	char path[HG_PATH_MAX];
};

enum hg_want { HG_NOT_YET, HG_WANTED_NOW, HG_SEEN };

/* A block whose bytes shall be watched from its allocation on.  Watchctl adds
   it before a further run; where there is only one run, a program does. */
struct hg_wanted {
	_Atomic uint32_t state;	/* enum hg_want, written last */
	struct hg_image image;
	struct hg_identity identity;
	int64_t offset;		/* of the bytes, from the block's start */
	uint32_t past;		/* or from the block's end */
	uint32_t len;		/* 1, 2, 4 or 8, as many as are aligned */
	uint32_t freed;		/* 1: only after it was freed */
	char label[HG_LABEL_MAX];	/* of the watch; NUL-terminated */
};

/* The number of executions of one program with the same arguments. */
struct hg_images {
	_Atomic uint64_t kind;	/* 0: free */
	_Atomic uint32_t count;
};

/* The article before a size, as it is spoken: "an 8-byte block". */
static inline const char *
hg_article(uint64_t size)
{
	while (size >= 1000)
		size /= 1000;
	return size == 8 || size == 11 || size == 18 || size / 10 == 8 ||
	    size / 100 == 8 ? "an" : "a";
}

struct hg_evidence {
	uint64_t magic;
	uint32_t version, size;
	/* set by watchctl before a run begins */
	uint32_t sample;	/* this is the only run: programs choose what
				   they watch */
	uint32_t any_number;	/* all blocks of the same callers and size share
				   the watches, in all programs of the same
				   file */
	uint32_t user_only;	/* watches do not see the kernel's writes */
	_Atomic uint32_t nwanted;	/* may be more than there is room for */
	struct hg_wanted wanted[HG_WANTED_MAX];
	/* counted by the programs: */
	_Atomic uint64_t blocks;	/* blocks that were to be watched, or
					   could be; */
	_Atomic uint64_t watched;	/* and that were, at least briefly */
	_Atomic uint32_t sites, sites_watched;	/* sample: the same, by
						   callers */
	_Atomic uint32_t watches;	/* sample: the last id of a watch */
	_Atomic uint32_t repeated;	/* findings left out because enough
					   others are alike */
	_Atomic uint32_t refusals;	/* watches that could not be set */
	char cause[HG_CAUSE_MAX];	/* why the last one could not */
	struct hg_images images[HG_IMAGES_MAX];
	_Atomic uint32_t nfindings;	/* may be more than there is room for */
	_Atomic uint32_t hellos;	/* of guarded programs */
	_Atomic uint32_t refused;	/* of programs that are not guarded; the
					   last one's: */
	_Atomic uint32_t refusal;	/* enum hg_hello */
	_Atomic uint32_t unnamed;	/* programs executed by a process with
					   an unknown number */
	_Atomic uint32_t answers;	/* registrations that are no longer in
					   any entry of `program' */
	_Atomic uint32_t nprograms;	/* entries of `program' that were ever
					   used */
	_Atomic uint32_t overflowed;	/* `program' was full */
	_Atomic uint32_t nopening;	/* libraries that are being opened with
					   RTLD_DEEPBIND; the last one: */
	char opening[HG_PATH_MAX];
	_Atomic uint32_t unswept;	/* ends of processes at which not all
					   blocks were checked */
	char refused_path[HG_PATH_MAX];
	struct hg_program program[HG_PROGRAMS_MAX];
	struct hg_finding finding[HG_FINDINGS_MAX];
};

#endif
