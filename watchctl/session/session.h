/*
 * session: one run from its records to its report, whether the records come
 * from the rings or from a file.
 *
 * Life-cycle: session_open opens the report's stream; the caller resolves and
 * adds the watches; session_ready fixes them; session_start begins the report;
 * session_record takes each record; session_end closes the account:
 *
 *	hits = reported + rejected + unchanged + skipped + handled + lost
 *
 * The records are used in one of three ways.  They are recorded (-o perf).  Or
 * another process keeps the session: everything is written to its journal
 * (journal.h), and this process only knows the state of the report as of the
 * last session_flush.  Or, in that other process, the records are explained
 * (explained_session.h).  This file does not depend on the code that explains,
 * and neither does watchctl.
 *
 * With --allow or --error-exitcode each hit is judged before it is reported,
 * however it was delivered.  The owner of the session reports what was missed
 * (session_doubt), and session_end derives the exit status from all of this.
 */
#ifndef SESSION_H
#define SESSION_H

#include "guard/evidence.h"
#include "option/options.h"
#include "record/perfdata.h"
#include "session/journal.h"
#include "report/output.h"
#include "report/report.h"
#include "report/heap_writers.h"
#include "policy/hit_filter.h"
#include "attach/target.h"
#include "ring/uptime.h"

/* The fate of a hit. */
enum session_fate {
	SESSION_REPORTED,
	SESSION_REJECTED,	/* by --if */
	SESSION_UNCHANGED,	/* by --changed */
	SESSION_SKIPPED,	/* by --every, --once, --max-rate or --last */
	SESSION_BEYOND,		/* after those of --each, or after the end of
				   the thread whose instance is watched; it does
				   not count */
};

/* When a thread of a process ended, ns. */
struct thread_end {
	pid_t pid;		/* 0: it has not ended */
	uint64_t time;
};

struct channel_hit;
struct last_hits;
struct hit_condition;
struct learned;
struct ci;
struct session;

/* The functions of a session that explains its hits itself; each is called by
   the function of the same name. */
struct session_ops {
	int (*ready)(struct session *);
	void (*slot)(struct session *);	/* a slot was added */
	void (*start)(struct session *, const struct report_start *);
	void (*record)(struct session *, const struct ex_record *);
	void (*flush)(struct session *, uint64_t now);
	void (*release)(struct session *);	/* report the held hits */
	void (*tally)(struct session *, const struct wp_target_tally *);
	/* the explainer's tally; NULL: there is none yet */
	const struct ex_tally *(*explained)(const struct session *);
	/* fill in the policy's findings */
	void (*findings)(struct session *, struct report_end *);
	/* print the policy's final notes, and write the side files */
	void (*sides)(struct session *, const struct report_end *);
	void (*damage)(struct session *, const struct hg_finding *);
	void (*close)(struct session *);
};

struct session {
	const struct options *options;
	const struct session_ops *ops;	/* NULL: records are recorded or written
					   to a journal */
	struct ex_space *space;
	struct ex_watch **watches;	/* nwatches of them, which own their
					   strings */
	size_t nwatches;
	struct ex_slot *slots;		/* by format index; nslots of them */
	size_t nslots;
	struct ex_explainer *explainer;	/* NULL without ops */
	struct journal *journal;	/* to the process that keeps the
					   session; NULL: none */
	const struct summary_row *recall;	/* the hits that are explained
						   now were already reported, as
						   counted here; NULL: they were
						   not */
	void (*progress)(void);		/* called after each record of a
					   recording; may be NULL */
	void (*given)(void *arg, const struct ex_hit *, enum session_fate);
	void *given_arg;		/* called with each hit; may be NULL */
	struct {			/* properties of watches that are added
					   next: as of */
		unsigned number;	/* session_of_process */
		pid_t pid;
		char comm[32];
		bool pending;		/* session_pending */
		bool local;		/* session_local */
		uint64_t block;
		bool moves, silent;	/* session_moves */
		uint64_t since;
		unsigned whole;		/* session_part */
		uint64_t object;	/* session_instance */
	} of;
	struct output output;
	struct ex_perfwriter *recording;	/* -o perf, once begun */
	struct report report;
	char comm[32];			/* of the first process; "": not
					   known */
	uint64_t skip;			/* hits that were already written; */
	bool skipping;			/* drop what is written until then */
	bool resuming;			/* the past has not been read
					   completely */
	bool on_stderr;			/* the report goes to stderr, as text */
	bool ready;			/* as of session_ready */
	bool started;			/* the report has begun */
	uint64_t samples;		/* delivered samples of watches */
	uint64_t *watch_samples;	/* the same by watch, in a run with
					   --each */
	size_t nwatch_samples;
	uint64_t channel_hits;		/* as of session_channel_hit */
	uint64_t reported;		/* hits */
	uint64_t last_hit;		/* time of the last reported hit, ns; 0:
					   none; UINT64_MAX: not known */
	uint64_t written;		/* reported hits that are in the output,
					   whatever may become of watchctl */
	uint64_t unchanged;		/* hits not reported: --changed, */
	uint64_t rejected;		/* --if, */
	uint64_t thinned;		/* --every, --once, --max-rate, or
					   --last */
	uint64_t released;		/* reported, as of session_last; */
	bool released_unknown;		/* their number is unknown */
	struct hit_filter *filter;
	/* Before this explainer: */
	uint64_t before;		/* hits */
	uint64_t dropped;		/* accesses of no wanted kind */
	uint64_t joined;		/* samples joined to another one's
					   hit */
	uint64_t handled;		/* hits that only handlers of the
					   program got */
	uint64_t merged;		/* accesses of late hits beyond each
					   one's first; */
	uint64_t late_unknown;		/* late hits whose number of accesses is
					   unknown */
	uint64_t lost;			/* hits, as reported so far */
	struct wp_uptime uptime;	/* of the watches */
	uint64_t skipped;		/* records of unknown type */
	struct policy *policy;		/* of --allow; NULL without ops, or */
	struct learned *learned;	/* of --learn, */
	struct ci *ci;			/* of --junit, --sarif, --github, */
	struct hit_condition *condition;	/* of --if; NULL: not given */
	struct hit_condition *ends;		/* of --until; */
	uint64_t ended;			/* the number `begun' of the hit at
					   which it held; 0: it has not */
	struct thread_end *thread_ends;	/* by SPEC: the end of its thread; NULL:
					   none has ended */
	struct last_hits *held;		/* NULL: hits are reported at once */
	uint64_t stray;			/* stray hits; with --count at the
					   end */
	uint64_t unjudged;		/* hits; ... */
	uint64_t unjudged_late;		/* ... of these, late ones */
	struct wp_thread_count *threads;	/* as of session_thread_counts:
					   nthreads of them */
	size_t nthreads;
	struct coverage *coverage;	/* as of session_coverage: ncoverage of
					   them */
	size_t ncoverage;
	uint64_t damage;		/* findings of heaps, except those of
					   --allow: */
	uint64_t allowed;
	struct policy *known;		/* their patterns; NULL: none */
	struct heap_writers heap_writers;
	char doubt[320];		/* why the run cannot be vouched for;
					   "": no reason is known */
	int (*put_side)(unsigned side, const char *bytes, size_t len);
					/* writes a side file (enum side): 0 or
					   -errno; NULL: none is wanted */
	struct report *reply;		/* a second report that gets each hit;
					   NULL: none */
	bool reply_only;		/* only that one gets hits */
	bool quiet;			/* no account on stderr when nothing was
					   hit, or when the report has it */
	bool full;			/* -n is reached, or ... */
	bool until;			/* ... the condition of --until held */
	int err;			/* first -errno of the report's
					   stream */
};

/* Open a session for these options, which must outlive it; out is the report's
   stream without -O.  An existing file keeps its contents until the report or
   recording begins; a new one is created now, and removed by session_close if
   nothing began.  0, or -errno after a line on stderr. */
int session_open(struct session *, const struct options *, FILE *out);

/* The first process is known, and thereby the name of -O: open it, if it is not
   open.  0 or as above. */
int session_first_process(struct session *, pid_t);

/* Keep the first failure of the report's stream: 0, or -errno. */
void session_note(struct session *, int err);

/* Watches added from here on belong to one of several processes, and are
   reported under this number; 0, 0, "": to no particular one, and are numbered
   in order. */
void session_of_process(struct session *, unsigned number, pid_t,
    const char *comm);

/* Watches added from here on are pending, or no longer: when their variables
   exist, other watches with their numbers are armed. */
void session_pending(struct session *, bool);

/* Watches added from here on are of thread-local variables; or, with a control
   block, parts that are the instance of that thread (0: they are not). */
void session_local(struct session *, bool, uint64_t block);

/* Watches added from here on are places of watches that move, where they are
   since this time, ns: the line of the event reports that instead of a line for
   the watch; 0: since the start. */
void session_moves(struct session *, bool moves, uint64_t since);

/* Watches added from here on are parts, over which slots move, of the watch
   with this id; they are not reported; 0: they are no parts. */
void session_part(struct session *, unsigned whole);

/* After session_part: the part is the object with this number, which exists
   since this time, ns. */
void session_instance(struct session *, uint64_t object, uint64_t since);

/* Add a watch, as the report shows it; symbol may be NULL; strings are copied.
   A report that has begun reports it.  0 or -ENOMEM. */
int session_add_watch(struct session *, const char *spec, const char *symbol,
    uint64_t addr, uint64_t len, enum wp_access access, unsigned slots);

/* The same for an address in a process; with a journal, the explainer finds its
   symbol. */
int session_add_place(struct session *, pid_t, const char *spec, uint64_t addr,
    uint64_t len, enum wp_access access, unsigned slots);

/* Add the slot of the next format index; watch -1: it has none.  0 or
   -ENOMEM. */
int session_add_slot(struct session *, int watch, uint64_t addr, uint64_t len);

/* Records of an event with these ids have its layout. */
void session_format(struct session *, const struct perf_event_attr *,
    const uint64_t *ids, size_t n);

/* Add ids to an event that has a format, by its index. */
void session_ids(struct session *, size_t format, const uint64_t *ids,
    size_t n);

/* All watches and slots are added: prepare for records.  0 or -ENOMEM. */
int session_ready(struct session *);

/*
 * The following are only for a session with a journal.
 */

/* Look up the variable of a region, which that SPEC means, in the debug
   information now, because with much of it that takes longer than hits could
   wait.  0; -EINVAL after a line on stderr: the condition does not fit it. */
int session_object(struct session *, pid_t, const struct spec *,
    uint64_t addr, uint64_t len);

/* The same, without waiting, when a watch moves there. */
void session_place(struct session *, pid_t, const struct spec *, uint64_t addr,
    uint64_t len);

/* No records report the mappings of a process: the explainer looks for them. */
void session_mapped(struct session *, pid_t, const struct journal_mapped *);

/* Learn a record of the state that a process has had since this time, ns
   (synthetic_records.h), for the hits from now on. */
void session_learn(struct session *, const struct ex_record *, uint64_t time);

/* As ex_explainer_values, ex_explain_doubt (EX_UNSEEN; EX_MISSED),
   ex_explain_known, and ex_explain_hints for a thread that is stopped at its
   hit (0: none). */
void session_values(struct session *, const struct ex_value_options *);
void session_unseen(struct session *, const struct ex_watch *);
void session_missed(struct session *, const struct ex_watch *);
void session_known(struct session *, const struct ex_watch *, pid_t,
    const uint8_t *bytes, size_t len, uint64_t time);
void session_stopped(struct session *, pid_t tid);

/* Take a hit that a program handed over, of size bytes, with its record. */
void session_channel_hit(struct session *, const struct channel_hit *,
    size_t size, const struct ex_record *);

/*
 * The following are for all sessions.
 */

/* Begin the recording of -o perf.  0, or -errno after a line on stderr. */
int session_record_to_file(struct session *, const struct ex_perf_event *,
    size_t n);

/* Begin the report; the watches are filled in by this function. */
void session_start(struct session *, struct report_start *);

/* Take a record.  False: no more records are wanted (-n, or the report
   failed). */
bool session_record(struct session *, const struct ex_record *);

/* Whether a record is a sample of a watch. */
bool session_is_sample(const struct session *, const struct ex_record *);

/* With a journal: announce a record that will be taken later, when its process
   may be gone; and leave out hits, of this many samples, that would have come
   next. */
void session_foresee(struct session *, const struct ex_record *);
void session_left_out(struct session *, uint64_t hits, uint64_t samples);

/* Everything taken since the last call are hits that were kept until now, for
   this reason (report.h): write them, and a line about them. */
void session_last(struct session *, const char *reason);

/* Without a journal: write the line that follows the released hits. */
void session_released(struct session *, const char *reason);

/* All records from before now (ns; UINT64_MAX: all) are there: write what can
   be written.  False as above. */
bool session_flush(struct session *, uint64_t now);

/* With a journal: add hits that BPF programs counted.  Without: report them. */
void session_tally(struct session *, const struct wp_target_tally *);

void session_lost(struct session *, uint64_t count);

/* Report a change of a watch, at the time of the next record. */
void session_event(struct session *, const struct watch_event *);

/* The same for an object that is a part of a watch, with len bytes of a sample
   of the place where it happened, in the layout of the watches' samples; 0:
   none. */
void session_object_event(struct session *, const struct object_event *,
    const void *sample, size_t len);

/* Report a finding in a program's heap. */
void session_damage(struct session *, const struct hg_finding *);

/* Add to the report a warning that has been printed. */
void session_report_warning(struct session *, const char *text);

/* All records are there, and this many accesses were counted.  The difference
   to those delivered is lost, whatever records of lost records say: these omit
   the last losses, and count records that were no hits. */
void session_counted(struct session *, uint64_t counts);

/* The number of samples of a watch so far. */
uint64_t session_samples(const struct session *, size_t watch);

/* Whether -n or --each has had its last hit. */
bool session_is_full(const struct session *);

void session_warn(struct session *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Note why a stray access may have been missed, as half a sentence ("5 hits
   were lost"); the first reason is kept. */
void session_doubt(struct session *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* With --count, at the end: set the number of hits by watch and thread.  0 or
   -ENOMEM. */
int session_thread_counts(struct session *, const struct wp_thread_count *,
    size_t n);

/* At the end: set for how long slots were on each part.  0 or -ENOMEM. */
int session_coverage(struct session *, const struct coverage *, size_t n);

/* At the end: set for how long watches were on; threads 0: in an unknown number
   of threads.  A watch that was off meanwhile is reported. */
void session_uptime(struct session *, const struct wp_uptime *);

/*
 * End the report and print the account on stderr; counts as in report_end.
 * Result: the exit status: 125 when the report could not be written; with
 * --error-exitcode its status when a hit was stray, or 120, after a line on
 * stderr, when one may have been missed; else status.
 */
int session_end(struct session *, const char *reason, int status,
    const uint64_t *counts);

/* The reason of an end because no more hits are wanted. */
static inline const char *
session_full_reason(const struct session *s)
{
	return s->until ? "until" : s->full ? "count" : "detached";
}

void session_close(struct session *);

#endif
