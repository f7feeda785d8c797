/*
 * report: what a run reports, in one of several forms.
 *
 * The loop passes everything that happens to the report, in order; a report
 * writes to one stream and keeps nothing but what it needs for a summary.  Text
 * that comes from the target is printed with control characters made visible.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "guard/evidence.h"
#include "report/output.h"
#include "policy/policy.h"
#include "report/watch_event.h"
#include "attach/target.h"
#include "ring/uptime.h"
#include "util/origin.h"

/* How a run began. */
struct report_start {
	pid_t pid;		/* the first target; 0: not known */
	const char *comm;	/* its name, during start; NULL: not known */
	const char *mode;	/* "ring", "stop"; NULL: not known (a
				   recording) */
	const char *delivery;	/* "bpf", "ring", "ptrace"; NULL: neither, or
				   not known */
	unsigned threads;	/* covered when it began; 0: not known */
	double frozen_ms;	/* the target was held; < 0: not known */
	const struct ex_watch *const *watches;	/* nwatches of them, which
						   outlive the report */
	unsigned nwatches;
	uint64_t time;		/* ns on the records' clock: 0 of the report */
	uint64_t wall;		/* the same by the time of day, ns since 1970;
				   0: not known */
	struct origin origin;	/* where that was */
};

/* For how long a part of what slots moved over had one. */
struct coverage {
	unsigned watch;		/* the session's, from 0 */
	int place;		/* that of the part; < 0: it had no hits */
	uint64_t addr, len;
	uint64_t on, all;	/* ns, of all that the watch was on; or blocks
				   */
	uint64_t hits;		/* filled in by the session */
	/* or it is of objects: there were so many, and so many of them were
	   watched, for this long of their lives, unless that is unknown */
	bool instances, unknown;
	uint64_t objects, watched;
	/* or of blocks of a heap, of no watch: on of all were watched, and so
	   many of the call sites that allocated them, if those are counted */
	bool heap;
	uint64_t sites, sites_watched;
};

/* 0 to 1. */
static inline double
coverage_share(const struct coverage *part)
{
	return part->all == 0 ? 0 : part->on >= part->all ? 1 :
	    (double)part->on / (double)part->all;
}

/* How it ended. */
struct report_end {
	uint64_t hits, reported, lost;
	uint64_t unchanged;	/* --changed: hits that are therefore not
				   reported */
	bool changed;		/* that was asked for */
	uint64_t rejected;	/* --if: likewise */
	bool conditional;	/* that was asked for */
	uint64_t skipped;	/* --every, --once, --max-rate: likewise */
	bool thinned;		/* one of them was asked for */
	uint64_t handled;	/* hits that went to handlers of the program,
				   and no further */
	uint64_t merged;	/* accesses beyond the first of hits that came
				   late, as far as they are known */
	uint64_t dropped;	/* -r: accesses that were writes */
	struct wp_uptime uptime;	/* as of session_uptime */
	const char *reason;	/* "count", "time", "exit", "signal", "until",
				   "detached"; NULL: none */
	int status;		/* watchctl's exit status */
	const uint64_t *counts;	/* --count: hits of each watch; else NULL */
	const struct wp_thread_count *threads;	/* nthreads of these hits, by
						   watches: of which threads
						   they are, as far as that is
						   known */
	size_t nthreads;
	const struct coverage *coverage;	/* ncoverage of them, by watches
						   and addresses */
	size_t ncoverage;
	bool judged;		/* a policy was in force; else there is nothing
				   of what follows */
	uint64_t stray;		/* hits */
	const struct finding *const *findings;	/* nfindings of them */
	size_t nfindings;
	uint64_t unjudged;	/* hits */
	const struct finding *const *doubts;	/* ndoubts findings of them */
	size_t ndoubts;
};

/* What was found in a program's heap, and its backtraces, by enum hg_stack_of,
   and of who did it first; NULL: none is known. */
struct report_damage {
	const struct hg_finding *found;
	const struct ex_stack *stack[HG_STACKS];
	const struct ex_stack *writer;
};

struct report;
struct summary_row;

/* Bytes that a form holds back: what an explainer writes goes through it at
   once, and each time is a change of processes.  At the end it is more, as long
   as there is memory: what is written then is not written again if the process
   that explains dies, so it is to be one piece. */
enum { REPORT_WRITE_AT = 240 << 10, REPORT_END_WRITE_AT = 16 << 20 };

/*
 * One form of report.  Verbs return 0, -errno from the stream, or -ENOMEM.  A
 * form holds lines back until flush, or until it has many, and then writes
 * whole ones and flushes the stream.  What a form has no words for (folded:
 * lost hits and warnings) it leaves out.  A start that fails for want
 * of memory may be followed by end only.
 */
struct report_ops {
	const char *name;	/* as -o names it */
	int (*start)(struct report *, const struct report_start *);
	/* there is one watch more, the last of these, which replace start's;
	   NULL: a reader need not know before its first hit */
	int (*watch)(struct report *, const struct ex_watch *const *watches,
	    unsigned nwatches);
	/* something became of one of the watches; NULL: of no interest */
	int (*event)(struct report *, const struct watch_event *);
	/* or of an object that is a part of one; NULL: the same */
	int (*object)(struct report *, const struct object_event *);
	int (*hit)(struct report *, const struct ex_hit *);
	/* there were hits like this before, as many as that row says, which
	   another one reported; NULL: that is for the summary */
	int (*recall)(struct report *, const struct ex_hit *,
	    const struct summary_row *);
	int (*lost)(struct report *, uint64_t count);
	/* a heap is damaged; NULL: there are no words for it */
	int (*damage)(struct report *, const struct report_damage *);
	/* a thread began or ended; NULL: of no interest to a reader */
	int (*thread)(struct report *, bool exited, pid_t tid);
	int (*warning)(struct report *, const char *text);
	/* the hits before this were kept until now, for this reason ("crash",
	   "exit", "signal", "time", "until"): so many, UINT64_MAX: not known;
	   NULL: as thread */
	int (*last)(struct report *, uint64_t count, const char *reason);
	/* flush what is buffered: called when the loop is about to wait */
	int (*flush)(struct report *);
	/* summary and end line, flushed; frees what start made, whatever it
	   returns; end may be NULL, to free only */
	int (*end)(struct report *, const struct report_end *);
};

extern const struct report_ops report_text, report_json, report_folded,
    report_gcc, report_trace, report_html;

/* The caller fills those up to ending; start makes the rest. */
struct report {
	const struct report_ops *ops;
	FILE *out;
	struct output_screen screen;	/* text: what it is read on; a hit's
					   lines are cut at its columns */
	bool stacks_once;	/* JSON: each backtrace on a line of its own */
	bool summary_only;	/* hits are only counted, for the summary */
	/* open a source file, for what it has around a line: a descriptor, or
	   -errno; NULL: none is opened */
	int (*open_source)(const char *path);
	bool verbose;		/* text: at the end, each backtrace of a
				   writer */
	bool ending;		/* set before end is called, with an end */
	struct report_start begin;	/* as given to start */
	struct summary *summary;	/* NULL: this form has none */
	void *own;		/* the form's own state */
	uint64_t written;	/* hits that are written, whole */
	/* of those that are not yet: where each ends in what is held back; and
	   how many there are for which there was no memory to note that */
	size_t *ends, nends, cap;
	uint64_t unplaced;
};

struct buffer;

/* For the forms.  A hit ends where the buffer does now; write the buffer, and
   count the hits that are thereby written; the same once it is full enough; the
   report has ended: there is no summary any more, and nothing of the form's
   own. */
void report_hit_ends(struct report *, const struct buffer *);
int report_write(struct report *, struct buffer *);
int report_write_full(struct report *, struct buffer *);
void report_done(struct report *);

/* Add a hit to the summary, with its value.  0 or -ENOMEM. */
int report_count(struct report *, const struct ex_hit *);

/* Add such hits that were only counted.  0 or -ENOMEM. */
int report_tally(struct report *, const struct ex_hit *,
    const struct wp_target_tally *);

/* The summary is written: so is each hit in it. */
void report_counted(struct report *);

#endif
