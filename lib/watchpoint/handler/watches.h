/*
 * watches: the table of watches that this program has on itself, as the signal
 * handler sees it, and how a watch is armed.
 *
 * The handler takes no lock: it reads entries whose serial says that they are
 * open.  Everything declared here is async-signal-safe, but where it says that
 * it is called with the table locked (inside/table.h).
 */
#ifndef WP_WATCHES_H
#define WP_WATCHES_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "os/cause.h"
#include "handler/channel.h"
#include "handler/async_count.h"
#include "os/slot.h"
#include "handler/sig_data.h"
#include "watchpoint.h"

/* One armed event. */
struct wp_armed {
	int fd;			/* high, close-on-exec */
	uint16_t slot;		/* index of the slot */
	pid_t tid;		/* the thread it was opened on */
	bool loaded;		/* async: it is armed for one overflow */
	uint64_t before;	/* counted before, for another watch */
	struct wp_async_count fired;	/* async: its thread's alone */
	uint64_t id;		/* the event's: shows whether the descriptor
				   still is this event, or the program has
				   closed it and reused the number; 0: not an
				   event */
};

struct wp_delivery;
struct wp_arming;
struct wp_run;

/* The program's action for one of our signals (handler/program_action.c). */
struct wp_program_action {
	_Atomic uint32_t turn;		/* its lowest bit: which of them */
	_Atomic uint32_t spent;		/* the last turn that was for one signal
					   only, and has had it */
	struct sigaction action[2];
};

struct wp_watch {
	/* Which use of this entry is open; 0: none.  The handler reads it
	   first, after users was raised; closing zeroes it first, then waits
	   for users. */
	_Atomic uint32_t serial;
	_Atomic uint32_t users;		/* handlers at work on it */
	/* Whether an access is a hit at all; NULL: each is.  One that is not is
	   not counted as one. */
	bool (*is_hit)(const struct wp_run *);
	struct wp_attr attr;		/* label points to the next */
	char label[WP_LABEL_MAX];
	struct wp_region region;
	struct wp_slot slot[WP_SLOTS_MAX];
	unsigned nslots;
	const struct wp_delivery *delivery;
	pid_t tid;			/* WP_THIS_THREAD: whose; else 0 */
	struct wp_armed *armed;		/* narmed of them, mapped memory */
	_Atomic size_t narmed;		/* the handler may look at these */
	size_t mapped;			/* bytes of armed */
	_Atomic uint64_t hits;		/* the handler got */
	_Atomic uint64_t until;		/* it is disabled at this many hits */
	_Atomic uint64_t accounted;	/* accesses accounted for, by
					   wp_accounted: see account.c */
	_Atomic uint64_t slot_accounted[WP_SLOTS_MAX]; /* of each slot, when its
					   signal was last accounted for */
	_Atomic uint64_t suppressed;	/* of these, dropped: the helper does
					   not learn of them */
	_Atomic uint32_t settled;	/* how often its baseline was taken, or
					   begun to be taken */
	_Atomic bool settling;		/* a thread is taking it */
	_Atomic bool on;		/* enabled */
	bool kernel;			/* the kernel's accesses too */
	bool inexact;		/* a thread may be missed or counted twice */
	_Atomic bool disarmed;		/* async: an event could not be armed
					   again after a hit */
	bool orphan;			/* async: the helper armed it, and
					   died; armed here again, but accesses
					   in between were not counted */
};

/* The largest number of accesses in `accounted'.  The bits above it count the
   corrections downwards, so that no value of the word repeats. */
#define WP_ACCOUNTED_MAX ((UINT64_C(1) << 48) - 1)

static inline uint64_t
wp_accounted(const struct wp_watch *w)
{
	return atomic_load(&w->accounted) & WP_ACCOUNTED_MAX;
}

/* At least 1. */
static inline uint64_t
wp_watch_period(const struct wp_watch *w)
{
	return w->attr.period > 0 ? w->attr.period : 1;
}

/* How a watch is armed and signals its hits. */
struct wp_delivery {
	const char *name;		/* "sigtrap", "async", "ptrace" */
	/* Its events count every access of every thread, and can be read at any
	   time.  A signal names one of the slots that were touched: the others,
	   and the other watches, are found by their counts. */
	bool counts_all;
	/* A signal names the event's descriptor, and has no sig_data. */
	bool by_descriptor;
	/* The helper traces the threads and passes the hits on: those of
	   the program's own accesses, not of the kernel's. */
	bool by_tracer;
	/* How its events are armed, if they are the program's own; else NULL
	   (inside/delivery.h). */
	const struct wp_arming *arming;
	int (*signal)(void);		/* that brings its hits */
	/*
	 * Called with the table locked: 0 or -errno with a cause; a failed open
	 * or move leaves things as they were.  What open opens is disabled, and
	 * signals under a serial that the watch is given afterwards, but see
	 * wp_self_events_open; move sets the watch's slots and region.
	 */
	int (*open)(struct wp_watch *, uint32_t serial, struct wp_cause *);
	void (*close)(struct wp_watch *);
	int (*enable)(struct wp_watch *);
	int (*move)(struct wp_watch *, const struct wp_slot *,
	    struct wp_cause *);
	/* Async-signal-safe, the table may be locked or not.  0 or -errno. */
	int (*disable)(struct wp_watch *);
	int (*count)(const struct wp_watch *, uint64_t *);
};

/* The state of the library in this program; there is one, zero at first. */
struct wp_state {
	struct wp_watch watch[WP_WATCHES_MAX];
	_Atomic unsigned nopen;		/* how many are open */
	_Atomic unsigned nreads;	/* of these, how many see reads */
	_Atomic uint32_t serials;	/* the last given, without the copy */
	_Atomic uint8_t copy;		/* which copy of the library this is
					   (inside/copies.h); 0: not known
					   yet */
	struct wp_channel *_Atomic channel;	/* NULL: no helper */
	_Atomic uint64_t strays;
	_Atomic uint64_t missed;	/* see wp_stray_missed */
	int output;			/* for lines without a helper: 2, or of
					   WATCHPOINT_OUTPUT */
	struct stat standard;	/* what standard error was; st_ino 0: none */
	struct wp_program_action old_trap, old_signal, old_event;
	pid_t program;			/* whose handlers are installed: not
					   those of a child of vfork(2), which
					   has this memory */
	int event_signal;		/* of the async delivery; 0: not used */
	bool begins;			/* a preloaded library opens what it was
					   to, before the program's
					   constructors */
	bool handling;			/* our handlers are installed */
	bool kept;			/* the helper has the events, too: they
					   go on when the program closes its
					   own */
	_Atomic bool traced;		/* the ptrace delivery was used:
					   SIGTRAPs of debug registers are
					   ours */
	void (*_Atomic look_after)(void);	/* called after each signal of
					   events, where the thread is not in
					   the handler already
					   (arming/lifeline.c); NULL: nothing */
};
extern struct wp_state wp_state;

static inline unsigned
wp_watch_index(const struct wp_watch *w)
{
	return (unsigned)(w - wp_state.watch);
}

/* The words in the channel through which program and helper inform each other
   about a watch. */
static inline struct wp_channel_watch *
wp_watch_words(const struct wp_watch *w, struct wp_channel *channel)
{
	return &channel->watch[wp_watch_index(w)];
}

/*
 * The bytes of a watch are known from its last hit, or from its baseline
 * (baseline.c).  Drop the baseline before something that may change the bytes
 * unseen: then the old value of the next hit is not known.  Take it anew
 * afterwards, if that is possible; readable: the bytes were a moment ago.  Both
 * are async-signal-safe.
 */
void wp_baseline_drop(struct wp_watch *);
void wp_baseline_take(struct wp_watch *, bool readable);

/* Read its bytes, if that is no hit of any watch.  False: it could be, or they
   cannot be read. */
bool wp_look_at(const struct wp_watch *, uint8_t to[WP_BASELINE_MAX]);

/* Take the baselines of the watches of these bytes if this thread's permits
   have suppressed accesses to them (classify.c). */
void wp_baseline_permitted(const volatile void *, size_t len);

/* Whether this thread's permits have suppressed any since this was last asked
   (classify.c). */
bool wp_has_permitted(void);

/* Install the signal handlers, for those of events too if there will be some
   (trap.c).  0 or -errno. */
int wp_trap_install(bool events);

/* True while the calling thread is in our handler; async-signal-safe. */
bool wp_trap_inside(void);

/* The watch whose handler the calling thread is in, and which has that in
   users; or NULL. */
const struct wp_watch *wp_trap_held(void);

/* In the child of a fork(2): its thread has another id. */
void wp_trap_forked(void);

/* The permits of the calling thread: the innermost scope, or NULL; a list by
   outer.  In initial-exec TLS: async-signal-safe. */
struct wp_scope **wp_permits(void);

/* Write a line, or lines, to the output; "watchpoint: " and a newline are added
   where they lack.  Async-signal-safe (fallback_report.c). */
void wp_fallback_line(const char *text);

/*
 * What deliveries do in the handler.
 */

/* Whether the descriptor still is the event; async-signal-safe. */
bool wp_armed_is(const struct wp_armed *);
int wp_armed_check(const struct wp_armed *);	/* 0, or -EBADF */

/* Of a watch by events of the program's own (perf_watches.c): disable it, or
   its events alone; count all accesses, and those to each slot by itself.  0 or
   -errno. */
int wp_watch_disable(struct wp_watch *);
int wp_watch_off(struct wp_watch *);
int wp_watch_count(const struct wp_watch *, uint64_t *);
int wp_watch_count_slots(const struct wp_watch *,
    uint64_t count[WP_SLOTS_MAX]);

/* To be called before and after a change that disables events of the async
   delivery, for a while or for good (rearm.c). */
void wp_async_change_begin(void);
void wp_async_change_end(void);

/* For a watch that the helper arms: switch it on or off, and count its
   accesses, by asking the helper through the channel (helper_watches.c).  0 or
   -errno. */
int wp_helper_switch(struct wp_watch *, bool on);
int wp_helper_count(const struct wp_watch *, uint64_t *);

#endif
