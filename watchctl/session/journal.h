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
	JOURNAL_NOTHING,	/* an entry that no longer applies */
	JOURNAL_FORMAT,		/* bytes: struct perf_event_attr, and ids */
	JOURNAL_IDS,		/* value[0]: the format, from 0; bytes: ids */
	JOURNAL_LEARN,		/* bytes: a record whose hits are already
				   reported; value[0] 1: of session_learn;
				   value[1]: its time */
	JOURNAL_WATCH,		/* bytes: struct journal_watch; tid: a process
				   in which to find its symbol; 0: none, or that
				   of the entry */
	JOURNAL_SLOT,		/* bytes: struct journal_slot */
	JOURNAL_READY,
	JOURNAL_VALUES,		/* value[0]: a set of enum journal_values */
	JOURNAL_UNSEEN,		/* value[0]: the watch, from 0 */
	JOURNAL_MISSED_PART,	/* the same */
	JOURNAL_KNOWN,		/* the same; value[1]: a time; tid: the process;
				   bytes: the values known then */
	JOURNAL_MAPPED,		/* tid: a process, whose mappings are not
				   reported by records; bytes: struct
				   journal_mapped */
	JOURNAL_OBJECT,		/* tid: a process; value: address and length;
				   bytes: the SPEC, with its NUL */
	JOURNAL_START,		/* bytes: struct journal_start */
	JOURNAL_RECORD,		/* bytes: a record; for samples of watches
				   value[0]: its number; value[1]: its time;
				   tid: its thread */
	JOURNAL_CHANNEL_HIT,	/* bytes: struct channel_hit, and its record;
				   value[0]: its number; value[1]: its time;
				   tid: its thread */
	JOURNAL_HINTS,		/* tid: a stopped thread; 0: none */
	JOURNAL_FLUSH,		/* value[0]: of session_flush */
	JOURNAL_FORESEE,	/* bytes: a record that will come */
	JOURNAL_LEFT_OUT,	/* value[0]: hits */
	JOURNAL_LAST,		/* bytes: text */
	JOURNAL_LOST,		/* value[0]: hits */
	JOURNAL_WARNING,	/* bytes: text */
	JOURNAL_EVENT,		/* bytes: struct watch_event */
	JOURNAL_INSTANCE,	/* bytes: struct object_event, and a sample */
	JOURNAL_DAMAGE,		/* bytes: struct hg_finding */
	JOURNAL_TALLY,		/* bytes: struct wp_target_tally of hits that
				   BPF programs counted, with the session's
				   watch */
	JOURNAL_RESUME,		/* bytes: struct journal_resume */
	JOURNAL_RECALL,		/* bytes: struct journal_recall */
	JOURNAL_MISSED,		/* earlier values are unknown */
	JOURNAL_THREADS,	/* bytes: struct wp_thread_count, several */
	JOURNAL_COVERAGE,	/* bytes: struct coverage, several */
	JOURNAL_END,		/* bytes: struct journal_end */
};

struct journal_entry {
	uint32_t size;		/* total size, a multiple of 8 */
	uint16_t what;		/* enum journal_what */
	uint8_t settled;	/* a sample: its fate is known */
	uint8_t passed;		/* its thread was stopped, and was released */
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
	uint32_t symbol;	/* its offset in text; 0: none */
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
	pid_t parent;		/* its mappings are those of this process, if it
				   has none of its own any more; 0: not known */
};

/* The state of a session, for an explainer that continues it. */
struct journal_resume {
	uint64_t reported, rejected, unchanged, thinned, stray, unjudged,
	    dropped;
	struct hit_filter_place place;
	uint32_t ncounts;
	struct hit_filter_count count[];	/* ncounts of them */
};

/* Past hits with one backtrace. value[1] of the entry: 0; or the watch, from 1,
   of a channel's hit: the record is a struct channel_hit and its record. */
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

/* Receives the entries. */
struct journal {
	/* Append an entry with what, tid and value of this one, and bytes from
	   two parts. */
	void (*put)(struct journal *, const struct journal_entry *,
	    const void *part, size_t len, const void *more, size_t more_len);
	/* Have everything read; all records up to this time (ns) are there.
	   False: no more is wanted. */
	bool (*flush)(struct journal *, uint64_t now);
	/* The same, at the journal's end.  Result: the exit status. */
	int (*end)(struct journal *);
};

#endif
