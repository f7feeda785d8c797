/*
 * session: one run from its records to its report, whether the records come
 * from the rings or from a file.
 *
 * Life-cycle: session_open opens the report's stream; the caller finds out what
 * is watched and adds that; session_ready fixes it; session_start begins the
 * report; session_record takes each record; session_end closes the account:
 *
 *	hits = reported + rejected + unchanged + skipped + handled + lost
 *
 * The records are used in one of three ways.  They are recorded (-o perf).  Or
 * another process keeps the session: then everything is written to its journal
 * (journal.h), and this process knows the state of the report as of the last
 * session_flush.  Or, in that other process, the records are explained
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

/* What becomes of a hit. */
enum session_fate {
	SESSION_REPORTED,
	SESSION_REJECTED,	/* by --if */
	SESSION_UNCHANGED,	/* by --changed */
	SESSION_SKIPPED,	/* by --every, --once, --max-rate or --last */
	SESSION_BEYOND,		/* those that --each asked for, or the end of
				   the thread whose instance is watched; it
				   does not count */
};

/* When a thread of a process ended, ns. */
struct thread_end {
	pid_t pid;		/* 0: it has not */
	uint64_t time;
};

struct channel_hit;
struct last_hits;
struct hit_condition;
struct learned;
struct ci;
struct session;

/* What a session does that explains its hits itself; each is called by the
   function of its name. */
struct session_ops {
	int (*ready)(struct session *);
	void (*slot)(struct session *);	/* there is one more */
	void (*start)(struct session *, const struct report_start *);
	void (*record)(struct session *, const struct ex_record *);
	void (*flush)(struct session *, uint64_t now);
	void (*tell)(struct session *);	/* hits that are held */
	void (*tally)(struct session *, const struct wp_target_tally *);
	/* of the explainer; NULL: there is none yet */
	const struct ex_tally *(*explained)(const struct session *);
	/* fill in those of the policy */
	void (*findings)(struct session *, struct report_end *);
	/* say what the policy says at the end, and put what is written beside
	   the report */
	void (*sides)(struct session *, const struct report_end *);
	void (*damage)(struct session *, const struct hg_finding *);
	void (*close)(struct session *);
};

struct session {
	const struct options *options;
	const struct session_ops *ops;	/* NULL: recorded, or another's to
					   keep */
	struct ex_space *space;
	struct ex_watch **watches;	/* nwatches of them, with their
					   strings */
	size_t nwatches;
	struct ex_slot *slots;		/* by format index; nslots of them */
	size_t nslots;
	struct ex_explainer *explainer;	/* NULL without ops */
	struct journal *journal;	/* for the process that keeps the
					   session; NULL: this one */
	const struct summary_row *recall;	/* what is explained now was
						   reported, as often as this
						   says; NULL: it was not */
	void (*progress)(void);		/* called when a recording's record was
					   read; NULL: not */
	void (*given)(void *arg, const struct ex_hit *, enum session_fate);
	void *given_arg;		/* called with each hit; NULL: not */
	struct {			/* of what watches are added: as of */
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
	struct ex_perfwriter *recording;	/* -o perf, once it has begun */
	struct report report;
	char comm[32];			/* of the first process; "": not
					   known */
	uint64_t skip;			/* hits that the reader has already; */
	bool skipping;			/* what is written until then is to be
					   dropped */
	bool resuming;			/* and what was before is not told to
					   its end */
	bool on_stderr;			/* the report goes there, as text */
	bool ready;			/* as of session_ready */
	bool started;			/* the report has begun */
	uint64_t samples;		/* of watches that were delivered */
	uint64_t *watch_samples;	/* the same of each, in a run with
					   --each */
	size_t nwatch_samples;
	uint64_t channel_hits;		/* as of session_channel_hit */
	uint64_t reported;		/* hits */
	uint64_t last_hit;		/* when the last of them was made, ns;
					   0: there is none; UINT64_MAX: it is
					   not known */
	uint64_t written;		/* those of them that are in the report,
					   whatever may become of watchctl */
	uint64_t unchanged;		/* hits not reported: --changed, */
	uint64_t rejected;		/* --if, */
	uint64_t thinned;		/* --every, --once, --max-rate, or
					   --last */
	uint64_t told;			/* reported, as of session_last; */
	bool told_unknown;		/* that is not known */
	struct hit_filter *filter;
	/* before this explainer: */
	uint64_t before;		/* hits */
	uint64_t dropped;		/* accesses that were not wanted */
	uint64_t joined;		/* samples that were one more of a
					   hit */
	uint64_t handled;		/* hits not reported: for handlers of
					   the program alone */
	uint64_t merged;		/* accesses that are part of hits that
					   came late, beyond the first; */
	uint64_t late_unknown;		/* hits of which that is not known */
	uint64_t lost;			/* hits, as reported so far */
	struct wp_uptime uptime;	/* of the watches */
	uint64_t skipped;		/* records of unknown type */
	struct policy *policy;		/* of --allow; NULL without ops, or */
	struct learned *learned;	/* of --learn, */
	struct ci *ci;			/* of --junit, --sarif, --github, */
	struct hit_condition *condition;	/* of --if; when it was not
				   asked for */
	struct hit_condition *ends;		/* of --until; */
	uint64_t ended;			/* of the hit for which it held, its
					   number `begun'; 0: it has not */
	struct thread_end *thread_ends;	/* those of the SPECs, by their index;
					   NULL: none has ended */
	struct last_hits *held;		/* NULL: hits are reported at once */
	uint64_t stray;			/* hits; with --count at the end */
	uint64_t unjudged;		/* hits; ... */
	uint64_t unjudged_late;		/* ... of these, came late */
	struct wp_thread_count *threads;	/* as of session_thread_counts:
					   nthreads of them */
	size_t nthreads;
	struct coverage *coverage;	/* as of session_coverage: ncoverage of
					   them */
	size_t ncoverage;
	uint64_t damage;		/* findings of heaps, but for those of
					   --allow: */
	uint64_t allowed;
	struct policy *known;		/* of those; NULL: none is allowed */
	struct heap_writers heap_writers;
	char doubt[320];		/* why the run cannot be vouched for;
					   "": it can, as far as is known */
	int (*put_side)(unsigned side, const char *bytes, size_t len);
					/* as of enum side; 0 or -errno; NULL:
					   nobody wants them */
	struct report *reply;		/* gets each hit, too; NULL: none */
	bool reply_only;		/* and nothing else does */
	bool quiet;			/* no account on stderr when nothing was
					   hit, or beside a report that has
					   it */
	bool full;			/* -n hits are there, or ... */
	bool until;			/* ... that of --until is */
	int err;			/* first -errno of the report's
					   stream */
};

/* A session for these options (which outlive it); out is where its report goes
   without -O.  A file that is there keeps its contents until the report or the
   recording begins; one that is not is made now, and removed by session_close
   if nothing began.  0, or -errno after a line on stderr. */
int session_open(struct session *, const struct options *, FILE *out);

/* The first process is known, and by it what -O names: open that, if it is not
   open.  0 or as above. */
int session_first_process(struct session *, pid_t);

/* Keep the first failure of the report's stream: nothing, or -errno. */
void session_note(struct session *, int err);

/* The watches that are added from here on are of one of several processes, and
   a reader knows them by this number; 0, 0, "": of any, by their order. */
void session_of_process(struct session *, unsigned number, pid_t,
    const char *comm);

/* The watches that are added from here on are not armed, or are again: what is
   watched for them, when it is there, are others of their numbers. */
void session_pending(struct session *, bool);

/* The watches that are added from here on are of thread-local variables; or the
   parts are a thread's own, with this control block, 0: they are not. */
void session_local(struct session *, bool, uint64_t block);

/* The watches that are added from here on are places of watches that move,
   where they are since a time, ns: a line for the event says that, so none is
   for the watch; 0: since the start. */
void session_moves(struct session *, bool moves, uint64_t since);

/* The watches that are added from here on are parts of this one, by its id,
   over which slots move; they are not reported; 0: they are no parts. */
void session_part(struct session *, unsigned whole);

/* Then: that part is the object of this number, which is there since a time,
   ns. */
void session_instance(struct session *, uint64_t object, uint64_t since);

/* A watch's region as a reader sees it; symbol may be NULL; strings are copied.
   A report that has begun gets it.  0 or -ENOMEM. */
int session_add_watch(struct session *, const char *spec, const char *symbol,
    uint64_t addr, uint64_t len, enum wp_access access, unsigned slots);

/* The same for one of a process that is given by its address alone: with a
   journal, whoever explains finds the symbol. */
int session_add_place(struct session *, pid_t, const char *spec, uint64_t addr,
    uint64_t len, enum wp_access access, unsigned slots);

/* What the next format index is a slot of; watch -1: of none.  0 or -ENOMEM. */
int session_add_slot(struct session *, int watch, uint64_t addr, uint64_t len);

/* Records of an event with these ids have its layout. */
void session_format(struct session *, const struct perf_event_attr *,
    const uint64_t *ids, size_t n);

/* More ids of an event that has been given a format, by its index. */
void session_ids(struct session *, size_t format, const uint64_t *ids,
    size_t n);

/* All watches and slots are there: be ready for records.  0 or -ENOMEM. */
int session_ready(struct session *);

/*
 * These are for a session with a journal alone.
 */

/* Look for what a region is in the debug information now: with much of it that
   takes longer than hits could wait.  It is what that SPEC means.  0; -EINVAL
   after a line on stderr: the condition cannot be meant for it. */
int session_object(struct session *, pid_t, const struct spec *,
    uint64_t addr, uint64_t len);

/* The same, when it moves there; nothing is waited for. */
void session_place(struct session *, pid_t, const struct spec *, uint64_t addr,
    uint64_t len);

/* The mappings of a process are not reported by records: the process that
   explains its samples looks for them. */
void session_mapped(struct session *, pid_t, const struct journal_mapped *);

/* A record of the state that a process has had since then, ns, as
   synthetic_records.h has them: for the hits from now on. */
void session_learn(struct session *, const struct ex_record *, uint64_t time);

/* As ex_explainer_values, ex_explain_doubt (EX_UNSEEN; EX_MISSED),
   ex_explain_known, and ex_explain_hints for a thread that is stopped at its
   hit; 0: none is. */
void session_values(struct session *, const struct ex_value_options *);
void session_unseen(struct session *, const struct ex_watch *);
void session_missed(struct session *, const struct ex_watch *);
void session_known(struct session *, const struct ex_watch *, pid_t,
    const uint8_t *bytes, size_t len, uint64_t time);
void session_stopped(struct session *, pid_t tid);

/* Take a hit that a program handed over, of so many bytes, with its record. */
void session_channel_hit(struct session *, const struct channel_hit *,
    size_t size, const struct ex_record *);

/*
 * These are for all of them.
 */

/* Begin the recording of -o perf.  0, or -errno after a line on stderr. */
int session_record_to_file(struct session *, const struct ex_perf_event *,
    size_t n);

/* Begin the report; the watches are filled in here. */
void session_start(struct session *, struct report_start *);

/* Take a record.  False: no more are wanted (-n, or the report failed). */
bool session_record(struct session *, const struct ex_record *);

/* Whether a record is a sample of a watch. */
bool session_is_sample(const struct session *, const struct ex_record *);

/* With a journal: a record will be taken later, when its process may be gone;
   hits, of so many samples, that would have come next are left out. */
void session_foresee(struct session *, const struct ex_record *);
void session_left_out(struct session *, uint64_t hits, uint64_t samples);

/* All that was taken, since the last time, are hits that were kept until now,
   for this reason (report.h): write them, and that. */
void session_last(struct session *, const char *reason);

/* Without a journal: they are written; say so. */
void session_told(struct session *, const char *reason);

/* All records of before now (ns; UINT64_MAX: all there will be) are there:
   write what can be written.  False as above. */
bool session_flush(struct session *, uint64_t now);

/* With a journal: hits that were only counted.  Without: they are reported. */
void session_tally(struct session *, const struct wp_target_tally *);

void session_lost(struct session *, uint64_t count);

/* Report what has become of a watch; as of the same time as the next record. */
void session_event(struct session *, const struct watch_event *);

/* The same of an object that is a part of one; with the len bytes of a sample
   of where it happened, which are of the layout of the watches'; 0: there is
   none. */
void session_object_event(struct session *, const struct object_event *,
    const void *sample, size_t len);

/* Report what was found in a program's heap. */
void session_damage(struct session *, const struct hg_finding *);

/* Report the text of a warning that has been said. */
void session_report_warning(struct session *, const char *text);

/* All records are there, and this many accesses were counted.  What was counted
   and not delivered is lost, whatever records said of it: they leave out the
   last ones, and count lost records that were no hits. */
void session_counted(struct session *, uint64_t counts);

/* How many samples of a watch have come. */
uint64_t session_samples(const struct session *, size_t watch);

/* Whether the last hit has come that -n or --each asks for. */
bool session_is_full(const struct session *);

void session_warn(struct session *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Why something stray may have been missed, as half a sentence ("5 hits were
   lost"); the first reason is kept. */
void session_doubt(struct session *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* With --count, at the end: how often each thread hit, by watches.  0 or
   -ENOMEM. */
int session_thread_counts(struct session *, const struct wp_thread_count *,
    size_t n);

/* At the end: for how long the slots were on each part of what they move over.
   0 or -ENOMEM. */
int session_coverage(struct session *, const struct coverage *, size_t n);

/* For how long watches were on, when they are so no more; threads 0: in how
   many threads is not known.  If one was off, this is reported. */
void session_uptime(struct session *, const struct wp_uptime *);

/*
 * End the report and say on stderr what became of the hits; counts as in
 * report_end.  Result: the exit status, which is 125 when the report could not
 * be written; with --error-exitcode its status when a hit was stray, or 120,
 * with a line on stderr, when one may have been missed; else status.
 */
int session_end(struct session *, const char *reason, int status,
    const uint64_t *counts);

/* Why it ended where no more is wanted. */
static inline const char *
session_full_reason(const struct session *s)
{
	return s->until ? "until" : s->full ? "count" : "detached";
}

void session_close(struct session *);

#endif
