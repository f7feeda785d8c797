/*
 * trap_run: a run of the signal handler, from a signal to what it does, as its
 * parts share it (trap.h lists them).
 *
 * Everything here is async-signal-safe.
 */
#ifndef WP_TRAP_RUN_H
#define WP_TRAP_RUN_H

#include "handler/trap.h"

enum {
	WP_MATCH_MAX = 1 + WP_ALSO_MAX,
	WP_TAKEN_MAX = 16,	/* signals, at a time */
};

/* A watch that the step touched. */
struct wp_match {
	struct wp_watch *watch;
	uint32_t serial;
	uint32_t fired;		/* the slot whose signal it is; WP_SIG_MANY: not
				   known */
	uint32_t slots;		/* all that were touched, a bit for each; 0: not
				   known */
	uint64_t nth;		/* 0: it is no hit */
	uint64_t times;		/* how many accesses; 0: not known */
	bool stray;
};

/* An event of the async delivery that was armed for one hit, and has to be
   armed again. */
struct wp_fired {
	int fd, code;		/* si_fd, si_code; -1: those of the helper's */
	unsigned index;		/* of the watch */
};

/* A run of the handler. */
struct wp_run {
	ucontext_t *context;
	pid_t tid;
	unsigned n;		/* of match */
	struct wp_match match[WP_MATCH_MAX];	/* users is raised */
	unsigned nspent;
	struct wp_fired spent[WP_TAKEN_MAX];
	enum wp_steps steps;
	bool late;
	bool by_ptrace;
	bool begins;		/* inside another run, which has not found out
				   yet what its own signal reports: that is left
				   to it */
};

/*
 * trap.c
 */

/* The calling thread's id. */
pid_t wp_trap_thread(void);

/*
 * trap_run.c
 */

/* The watch of that index with users raised, if it is open and serial's bits
   under mask are its; else NULL.  And lower users again. */
struct wp_watch *wp_watch_enter(unsigned index, uint32_t serial,
    uint32_t mask);
void wp_watch_leave(struct wp_watch *);

/* One open watch after the other, entered; NULL: there are no more.  With nopen
   as left, the walk may end before one that is just being opened. */
struct wp_watch_walk {
	unsigned at;		/* index of the next */
	unsigned left;		/* at most so many are looked at */
};
#define WP_WALK_ALL {.left = WP_WATCHES_MAX}
struct wp_watch *wp_watch_next(struct wp_watch_walk *);

/* Whether the descriptor is one of the watch's own events. */
bool wp_watch_has(const struct wp_watch *, int fd);

/* The bytes of the debug register that the signal is of; of the watch, if that
   is not known.  And from the first register that was touched to the last, if
   these are known. */
struct wp_region wp_match_fired(const struct wp_match *);
struct wp_region wp_match_place(const struct wp_match *);

bool wp_run_has(struct wp_run *, const struct wp_watch *);

/* Take an entered watch into the run with these slots (a bit for each; 0: not
   known which) and accesses (0: not known how many), or leave it; NULL: nothing
   to do. */
void wp_run_add(struct wp_run *, struct wp_watch *, uint32_t slots,
    uint64_t times);

/* Account for a match that is reported.  Result: its slots. */
uint32_t wp_match_account(struct wp_match *, enum wp_steps);

/* Account for what is reported, and drop it: it is no hit. */
void wp_run_drop(struct wp_run *, enum wp_steps);

/*
 * identify.c
 */

/* Whether sig_data, of the kernel or of the tracer, is of our making. */
bool wp_signal_is_ours(const siginfo_t *);

/* Which watches a signal reports.  false: it is not ours, or the program's as
   well. */
bool wp_identify(struct wp_run *, int sig, const siginfo_t *);

/* Take a pending signal. */
bool wp_signal_take(int sig, siginfo_t *);

/*
 * classify.c, report.c, callbacks.c
 */

/* Account for the step; complete the watches that it touched, and drop those
   that were not hit. */
void wp_classify(struct wp_run *);

/* Whether the last one had all that the same instruction touches. */
bool wp_classify_foresaw(const struct wp_run *);

/* Report its hits; the report's text is kept until it is forgotten. */
void wp_report(struct wp_run *);
void wp_report_forget(void);

/* A hit as handlers see it. */
struct wp_hit wp_report_hit(const struct wp_run *, const struct wp_match *);

/* Call the handlers of a watch, if it is still open.  Whether to abort(3). */
bool wp_callbacks(const struct wp_run *, const struct wp_match *);

/* The handler that was called does not return. */
void wp_callbacks_forget(void);

/*
 * rearm.c
 */

/* The end of a run with events that have fired: arm them again; if the thread
   goes back to the instruction at the context, only after that. */
void wp_rearm(struct wp_run *, bool back);

/* Whether the signal ends a step over such an instruction; its end, if one is
   on: the thread has made the step, or never will. */
bool wp_rearm_is_step_end(int sig, const siginfo_t *);
void wp_rearm_end_step(ucontext_t *);

/* Whether a run is for the instruction that is being stepped over, and has not
   been executed yet: then what has fired is armed again behind it, too. */
bool wp_rearm_joins_step(const struct wp_run *);

void wp_rearm_forked(void);

/*
 * reentry.c
 */

/* A signal during a run, whose context is outer, or (NULL) at its very
   beginning or end.  begins: the run has not found out yet what its own signal
   reports.  false: it is not ours. */
bool wp_reentry_access(int sig, siginfo_t *, ucontext_t *,
    const ucontext_t *outer, bool begins);

/* Account for what the ptrace delivery's tracer has counted in the meantime: it
   keeps one signal for all of it. */
void wp_reentry_counted(void);

/* Send again what came in the meantime and was not ours. */
void wp_reentry_deferred(void);

/* Whether the last return from a handler made these hits: then they are
   dropped. */
bool wp_reentry_return(struct wp_run *);

#endif
