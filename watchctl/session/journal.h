/*
 * journal: everything that goes into a session, as a sequence of entries, for a
 * session that another process keeps (remote/remote_session.h) and that reads
 * them.
 *
 * The writer's side puts entries into the journal by session.h's functions; the
 * reader calls, for each entry, the function of the same name.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring/uptime.h"
#include "policy/hit_filter.h"
#include "util/origin.h"

enum journal_what {
	JOURNAL_NOTHING,	/* that is no more to be done */
	JOURNAL_FORMAT,		/* bytes: struct perf_event_attr, and ids */
	JOURNAL_IDS,		/* value[0]: the format, from 0; bytes: ids */
	JOURNAL_LEARN,		/* bytes: a record that is reported already;
				   value[0] 1: one of session_learn;
				   value[1]: its time */
	JOURNAL_WATCH,		/* bytes: struct journal_watch; tid: a process
				   in which its symbol is to be found; 0: it has
				   none, or that one */
	JOURNAL_SLOT,		/* bytes: struct journal_slot */
	JOURNAL_READY,
	JOURNAL_VALUES,		/* value[0]: enum journal_values, together */
	JOURNAL_UNSEEN,		/* value[0]: the watch, from 0 */
	JOURNAL_MISSED_PART,	/* the same */
	JOURNAL_KNOWN,		/* the same; value[1]: when; tid: the process;
				   bytes: what was known then */
	JOURNAL_MAPPED,		/* tid: a process, whose mappings are not
				   reported by records; bytes: struct
				   journal_mapped */
	JOURNAL_OBJECT,		/* tid: a process; value: address and length;
				   bytes: the SPEC, with its NUL */
	JOURNAL_START,		/* bytes: struct journal_start */
	JOURNAL_RECORD,		/* bytes: a record; of samples of watches
				   value[0]: its number; value[1]: its time;
				   tid: its thread */
	JOURNAL_CHANNEL_HIT,	/* bytes: struct channel_hit, and its record;
				   value[0]: its number; value[1]: its time;
				   tid: its thread */
	JOURNAL_HINTS,		/* tid: a thread that is stopped; 0: none is */
	JOURNAL_FLUSH,		/* value[0]: of session_flush */
	JOURNAL_FORESEE,	/* bytes: a record that will come */
	JOURNAL_LEFT_OUT,	/* value[0]: hits */
	JOURNAL_LAST,		/* bytes: text */
	JOURNAL_LOST,		/* value[0]: hits */
	JOURNAL_WARNING,	/* bytes: text */
	JOURNAL_EVENT,		/* bytes: struct watch_event */
	JOURNAL_INSTANCE,	/* bytes: struct object_event, and a sample */
	JOURNAL_DAMAGE,		/* bytes: struct hg_finding */
	JOURNAL_TALLY,		/* bytes: struct wp_target_tally, of hits that
				   were only counted; its watch is the
				   session's */
	JOURNAL_RESUME,		/* bytes: struct journal_resume */
	JOURNAL_RECALL,		/* bytes: struct journal_recall */
	JOURNAL_MISSED,		/* what was there before is not known of
				   values */
	JOURNAL_THREADS,	/* bytes: struct wp_thread_count, several */
	JOURNAL_COVERAGE,	/* bytes: struct coverage, several */
	JOURNAL_END,		/* bytes: struct journal_end */
};

struct journal_entry {
	uint32_t size;		/* in all, a multiple of 8 */
	uint16_t what;		/* enum journal_what */
	uint8_t settled;	/* a sample: nothing comes of it any more */
	uint8_t passed;		/* its thread was stopped, and goes on */
	uint32_t len;		/* of the bytes */
	int32_t tid;
	int32_t pid;		/* of a sample's thread */
	uint64_t value[2];
	uint8_t bytes[];
};

/* Entries, and a record in one, begin at multiples of 8. */
static inline size_t
journal_padded(size_t size)
{
	return (size + 7) / 8 * 8;
}

enum journal_values {
	JOURNAL_READS = 1, JOURNAL_FOLLOWS = 2, JOURNAL_AT_ONCE = 4,
	JOURNAL_CROWDS = 8, JOURNAL_IN_ORDER = 16,
};

struct journal_watch {
	uint64_t addr, len;
	unsigned number, slots;
	pid_t pid;
	int access;
	char comm[32];
	bool pending, local;
	uint64_t block;		/* as of session_local */
	bool moves;		/* as of session_moves, like since */
	uint64_t since;
	unsigned whole;		/* as of session_part */
	uint64_t object;	/* as of session_instance, like since */
	uint64_t freed;		/* as of struct ex_watch, like freed_by */
	pid_t freed_by;
	uint32_t symbol;	/* where it is in text; 0: it has none */
	char text[];		/* the SPEC */
};

struct journal_slot {
	uint64_t addr, len;
	int watch;
};

struct journal_start {
	struct origin origin;
	uint64_t time, wall;
	double frozen_ms;
	pid_t pid;
	unsigned threads;
	char mode[16], delivery[16], comm[32];	/* "": not known */
};

/* As of struct live_maps_origin. */
struct journal_mapped {
	uint64_t program, code;
	bool known;
	pid_t parent;		/* it maps what this one did, if it maps nothing
				   any more; 0: it is not known */
};

/* How far it is, for one that goes on where another left off. */
struct journal_resume {
	uint64_t reported, rejected, unchanged, thinned, stray, unjudged,
	    dropped;
	struct hit_filter_place place;
	uint32_t ncounts;
	struct hit_filter_count count[];	/* ncounts of them */
};

/* The hits with one backtrace, before it.  value[1] of the entry: 0; or what it
   has is a struct channel_hit and its record, of this watch, from 1. */
struct journal_recall {
	uint64_t count, first_seq, first, last;
	uint32_t nthreads;
	pid_t thread[];		/* nthreads of them; and the record of the first
				   hit, at a multiple of 8 */
};

struct journal_end {
	uint64_t lost, handled, skipped, merged, late_unknown;
	struct wp_uptime uptime;
	int status, err;
	bool quiet;
	char reason[16], doubt[320];
	uint32_t ncounts;	/* 0: none */
	uint64_t count[];
};

/* Where entries are put. */
struct journal {
	/* Add one: of `what', tid and value as in entry, its bytes from two
	   parts. */
	void (*put)(struct journal *, const struct journal_entry *,
	    const void *part, size_t len, const void *more, size_t more_len);
	/* Have all of it read; records up to this time (ns) are there.  False:
	   no more is wanted. */
	bool (*flush)(struct journal *, uint64_t now);
	/* The same, of a journal that is at its end.  Result: the exit
	   status. */
	int (*end)(struct journal *);
};

#endif
