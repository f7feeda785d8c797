/*
 * report: writes what a run reports, in one of several forms.
 *
 * The session passes everything that happens to the report, in order.  A report
 * writes to one stream and keeps only what a summary needs.  Control characters
 * in text from the target are made visible.
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
	const char *comm;	/* its name, valid during start; NULL: not
				   known */
	const char *mode;	/* "ring", "stop"; NULL: not known (a
				   recording) */
	const char *delivery;	/* "bpf", "ring", "ptrace"; NULL: neither, or
				   not known */
	unsigned threads;	/* threads covered at the beginning; 0: not
				   known */
	double frozen_ms;	/* ms for which the target was held; < 0: not
				   known */
	const struct ex_watch *const *watches;	/* nwatches of them, which
						   outlive the report */
	unsigned nwatches;
	uint64_t time;		/* the report's time 0, ns on the records'
				   clock */
	uint64_t wall;		/* the same as wall time, ns since 1970; 0: not
				   known */
	struct origin origin;	/* the machine and rank of the run */
};

/* How much of something was watched: for how long a part of an object, over
   which slots moved, had a slot; */
struct coverage {
	unsigned watch;		/* the session's, from 0 */
	int place;		/* the part's place; < 0: it had no hits */
	uint64_t addr, len;
	uint64_t on, all;	/* ns with a slot, of all ns that the watch was
				   on; or blocks */
	uint64_t hits;		/* filled in by the session */
	/* or how many of the objects were watched, and for how long of their
	   lives, unless that is unknown; */
	bool instances, unknown;
	uint64_t objects, watched;
	/* or, without a watch, how many of a heap's blocks were watched, `on'
	   of `all', and how many of the call sites that allocated them, if
	   these are counted */
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

/* How a run ended. */
struct report_end {
	uint64_t hits, reported, lost;
	uint64_t unchanged;	/* --changed: hits not reported for that */
	bool changed;		/* that option was given */
	uint64_t rejected;	/* --if: likewise */
	bool conditional;	/* that option was given */
	uint64_t skipped;	/* --every, --once, --max-rate: likewise */
	bool thinned;		/* one of these was given */
	uint64_t handled;	/* hits that only the program's own handlers
				   got */
	uint64_t merged;	/* accesses of late hits beyond each one's
				   first, as far as known */
	uint64_t dropped;	/* -r: accesses that were writes */
	struct wp_uptime uptime;	/* as of session_uptime */
	const char *reason;	/* "count", "time", "exit", "signal", "until",
				   "detached"; NULL: none */
	int status;		/* watchctl's exit status */
	const uint64_t *counts;	/* --count: hits of each watch; else NULL */
	const struct wp_thread_count *threads;	/* nthreads of them: these hits
						   by watch and thread, as far
						   as known */
	size_t nthreads;
	const struct coverage *coverage;	/* ncoverage of them, sorted by
						   watch and address */
	size_t ncoverage;
	bool judged;		/* a policy was in force; else what follows is
				   zero */
	uint64_t stray;		/* hits */
	const struct finding *const *findings;	/* nfindings of them */
	size_t nfindings;
	uint64_t unjudged;	/* hits */
	const struct finding *const *doubts;	/* ndoubts findings of them */
	size_t ndoubts;
};

/* A finding in a program's heap, its backtraces by enum hg_stack_of, and the
   backtrace of its first writer; NULL: not known. */
struct report_damage {
	const struct hg_finding *found;
	const struct ex_stack *stack[HG_STACKS];
	const struct ex_stack *writer;
};

struct report;
struct summary_row;

/* Bytes that a form collects before it writes, because in an explainer each
   write is a switch of processes.  At the end it collects more, as far as
   memory allows: the end has to be one piece, which is not written twice if the
   explainer dies. */
enum { REPORT_WRITE_AT = 240 << 10, REPORT_END_WRITE_AT = 16 << 20 };

/*
 * One form of report.  Functions return 0, -errno from the stream, or -ENOMEM.
 * A form collects lines until flush, or until it has many, then writes complete
 * lines and flushes the stream.  It leaves out what it cannot express (folded:
 * lost hits and warnings).  After a start without memory only end may be
 * called.
 */
struct report_ops {
	const char *name;	/* its name in -o */
	int (*start)(struct report *, const struct report_start *);
	/* there is a new watch, the last of these, which replace start's; NULL:
	   it is not reported before its first hit */
	int (*watch)(struct report *, const struct ex_watch *const *watches,
	    unsigned nwatches);
	/* a watch has changed; NULL: not reported */
	int (*event)(struct report *, const struct watch_event *);
	/* an object that is a part of a watch has changed; NULL: not
	   reported */
	int (*object)(struct report *, const struct object_event *);
	int (*hit)(struct report *, const struct ex_hit *);
	/* there were earlier hits like this, counted in that row and reported
	   by another process; NULL: the summary counts them */
	int (*recall)(struct report *, const struct ex_hit *,
	    const struct summary_row *);
	/* hits were lost here; NULL: only the account says how many */
	int (*lost)(struct report *, uint64_t count);
	/* a heap is damaged; NULL: not reported */
	int (*damage)(struct report *, const struct report_damage *);
	/* a thread began or ended; NULL: not reported */
	int (*thread)(struct report *, bool exited, pid_t tid);
	int (*warning)(struct report *, const char *text);	/* NULL: not
								   reported */
	/* the hits before this were kept until now, for this reason ("crash",
	   "exit", "signal", "time", "until"), and this is their number
	   (UINT64_MAX: not known); NULL: not reported */
	int (*last)(struct report *, uint64_t count, const char *reason);
	/* flush what is buffered: called when the loop is about to wait; NULL:
	   everything is written at the end */
	int (*flush)(struct report *);
	/* write summary and end line, flush, and free what start allocated,
	   whatever the result; end NULL: only free */
	int (*end)(struct report *, const struct report_end *);
};

extern const struct report_ops report_text, report_json, report_folded,
    report_gcc, report_trace, report_html;

/* The caller fills in the members up to `ending'; start the rest. */
struct report {
	const struct report_ops *ops;
	FILE *out;
	struct output_screen screen;	/* text: the reader's screen; lines of
					   hits are cut at its columns */
	bool stacks_once;	/* JSON: each backtrace on a line of its own */
	bool summary_only;	/* hits are not written, only counted for the
				   summary */
	/* opens a source file, whose lines are shown: a descriptor, or -errno;
	   NULL: none is opened */
	int (*open_source)(const char *path);
	bool verbose;		/* text: show every backtrace of a writer at the
				   end */
	bool ending;		/* set before end is called, with an end */
	struct report_start begin;	/* as given to start */
	struct summary *summary;	/* NULL: this form has none */
	void *own;		/* the form's own state */
	uint64_t written;	/* hits that are completely written */
	/* of the hits that are collected: the offset of each one's end; and the
	   number of those whose offset could not be stored */
	size_t *ends, nends, cap;
	uint64_t unplaced;
};

struct buffer;

/* Write what the form has collected. */
static inline int
report_flush(struct report *r)
{
	return r->ops->flush == NULL ? 0 : r->ops->flush(r);
}

/* For the forms: a hit ends at the present end of the buffer; write the buffer,
   and count the hits that are thereby written; the same if it is full enough;
   and free the summary and the form's own state at the end. */
void report_hit_ends(struct report *, const struct buffer *);
int report_write(struct report *, struct buffer *);
int report_write_full(struct report *, struct buffer *);
void report_done(struct report *);

/* Add a hit to the summary, with its value.  0 or -ENOMEM. */
int report_count(struct report *, const struct ex_hit *);

/* Add hits like this one that BPF programs counted.  0 or -ENOMEM. */
int report_tally(struct report *, const struct ex_hit *,
    const struct wp_target_tally *);

/* The summary is written, and so all hits in it. */
void report_counted(struct report *);

/* A report has ended, with an end or NULL: what stands there was put, with a
   result of 0 or -errno, and all was flushed, with another.  Returns the first
   that is not 0.  The hits of a report that is a summary alone are written
   now. */
int report_ended(struct report *, const struct report_end *, int put,
    int flushed);

#endif
