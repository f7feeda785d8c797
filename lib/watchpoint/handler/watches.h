/*
 * watches: the table of watches that this program has on itself, and what its
 * parts share.
 *
 *	inside.c	wp_open and friends: from an attribute to an open watch
 *	pin.c		objects that must not be unloaded
 *	watches.c	the table, also after fork(2)
 *	threads.c	the program's threads
 *	apart.c		a thread that opens events, and ends
 *	deliver_*.c	arming, one file for each delivery
 *	armed.c		what those by the program's own events have in common
 *	settle.c	what a watch's bytes are before it is hit
 *	trap.c		the signal handler
 *	helper.c	the helper process: starting it, asking it
 *	scope.c		what the macros stand for
 *	preload.c	watches from the environment
 *
 * Lock order: wp_watches_lock alone.  The signal handler takes no lock: it reads
 * entries whose serial says that they are open.
 *
 * Nothing here allocates by malloc(3): the program's heap may be the very thing
 * that is being corrupted, and its lock may be held by a thread held still.
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
#include "handler/fired.h"
#include "os/slot.h"
#include "watchpoint.h"

/* One armed event. */
struct wp_armed {
	int fd;			/* high, close-on-exec */
	uint16_t slot;		/* index of the slot */
	pid_t tid;		/* the thread it was opened on */
	bool loaded;		/* async: it was given its one overflow */
	uint64_t before;	/* counted for another watch */
	struct wp_fired fired;	/* async: its thread's alone */
	uint64_t id;		/* the event's, by which it is known again should
				   the program close the number and get it for
				   a file of its own; 0: not an event */
};

struct wp_delivery;

struct wp_watch {
	/* Which use of this entry is open; 0: none.  The handler reads it first,
	   after users was raised; closing zeroes it first, then waits for
	   users. */
	_Atomic uint32_t serial;
	_Atomic uint32_t users;		/* handlers at work on it */
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
	_Atomic uint64_t hits;		/* the handler was told of */
	_Atomic uint64_t until;		/* it is disabled at so many hits */
	_Atomic uint64_t seen;		/* accesses accounted for: see
					   account.c */
	_Atomic uint64_t slot_seen[WP_SLOTS_MAX];	/* of each slot, when its
					   signal was last accounted for */
	_Atomic uint64_t silent;	/* of these, dropped: the helper does not
					   hear of them */
	_Atomic uint32_t settled;	/* how often it was settled, or begun to be */
	_Atomic bool settling;		/* somebody is at it */
	_Atomic bool on;		/* enabled */
	bool kernel;			/* the kernel's accesses too */
	bool inexact;			/* a thread may be missed or counted twice */
	_Atomic bool deaf;		/* async: an event could not be armed again
					   after a hit */
};

/* How a watch is armed and signals its hits. */
struct wp_delivery {
	const char *name;		/* "sigtrap", "async", "ptrace" */
	/*
	 * All are called with the table locked, but disable and count, which
	 * are async-signal-safe.  0 or -errno with a cause; a failed open
	 * or move leaves things as they were.  What open opens is disabled, and
	 * signals under a serial that the watch is given afterwards, but see
	 * wp_armed_open; move sets the watch's slots and region.
	 */
	int (*open)(struct wp_watch *, uint32_t serial, struct wp_cause *);
	void (*close)(struct wp_watch *);
	int (*enable)(struct wp_watch *);
	int (*disable)(struct wp_watch *);
	int (*move)(struct wp_watch *, const struct wp_slot *, struct wp_cause *);
	int (*count)(const struct wp_watch *, uint64_t *);
};
extern const struct wp_delivery wp_deliver_sigtrap, wp_deliver_async,
    wp_deliver_ptrace;

/* The signal of the ptrace delivery; and what the handler sends itself for the
   tracer to see.  The async delivery's is wp_inside.event_signal. */
#define WP_SIGNAL (SIGRTMAX - 1)

/* What that can be: signals of which a program is not harmed, or that none uses,
   best first; 0 at the end. */
#define WP_EVENT_SIGNALS {SIGURG, SIGWINCH, SIGIO, SIGPWR, SIGSTKFLT, 0}

/* Everything that the program has of it; one, zero at first. */
struct wp_inside {
	struct wp_watch watch[WP_WATCHES_MAX];
	_Atomic unsigned nopen;		/* how many are open */
	_Atomic unsigned nreads;	/* of these, how many see reads */
	_Atomic uint32_t serials;	/* the last given */
	struct wp_channel *_Atomic channel;	/* NULL: no helper */
	_Atomic uint64_t strays;
	_Atomic uint64_t missed;	/* see wp_stray_missed */
	int output;			/* for lines without a helper: 2, or of
					   WATCHPOINT_OUTPUT */
	struct stat standard;	/* what standard error was; st_ino 0: none */
	struct sigaction old_trap, old_signal, old_event;	/* what we
					   displaced */
	int event_signal;		/* of the async delivery; 0: not used */
	bool begins;			/* a preloaded library opens what it was to,
					   before the program's constructors */
	bool handling;			/* our handlers are installed */
	bool kept;			/* the helper has the events, too: they go
					   on when the program closes its own */
	_Atomic bool traced;		/* the ptrace delivery was used: SIGTRAPs of
					   debug registers are ours */
};
extern struct wp_inside wp_inside;

/*
 * sig_data of our events, and of the SIGTRAPs that the helper passes on: who it
 * is for, and of which use.
 *
 *	63      48 47           24 23       16 15           0
 *	[ "WP"    | serial, low   | slot      | index        ]
 *
 * From ptrace(2), when one instruction hit several slots of a watch, slot is 0x80
 * and a bit for each of them, 1 << slot.  When it hit several watches, slot is
 * 0xff and index and serial hold four bytes: 1 + index of each, or 0; watch
 * indexes of that delivery are below 255.
 */
#define WP_SIG_MAGIC	0x5750u
#define WP_SIG_SLOTS	0x80u
#define WP_SIG_MANY	0xffu
/* In a slot's place: no hit, but wp_helper_rearm. */
#define WP_SIG_REARM	0xfeu

static inline uint64_t
wp_sig_data(uint32_t serial, unsigned slot, unsigned index)
{
	return (uint64_t)WP_SIG_MAGIC << 48 |
	    (uint64_t)(serial & 0xffffff) << 24 | (uint64_t)(slot & 0xff) << 16 |
	    (index & 0xffff);
}

/* The slots that a slot's place names, a bit for each; 0: not known. */
static inline uint32_t
wp_sig_slots(unsigned slot)
{
	return slot < WP_SLOTS_MAX ? 1u << slot :
	    (slot & 0xf0) == WP_SIG_SLOTS ? slot & 0xf : 0;
}

/* With the data of several watches that events have seen: the slots, and how many
   accesses to each, of which those that are more than there is room for are
   lost. */
static inline uint64_t
wp_sig_times(unsigned slots, uint64_t times, unsigned i)
{
	return ((slots & 0xf) << 12 | (times < 0xfff ? times : 0xfff)) <<
	    16 * i;
}

static inline uint64_t
wp_sig_many(const uint8_t watch[4])
{
	return wp_sig_data((uint32_t)(watch[2] | watch[3] << 8), WP_SIG_MANY,
	    (unsigned)(watch[0] | watch[1] << 8));
}

/* The i-th of them, below 4: 1 + index, or 0. */
static inline unsigned
wp_sig_many_get(uint64_t data, unsigned i)
{
	return data >> (i < 2 ? 8 * i : 24 + 8 * (i - 2)) & 0xff;
}

/* Have dlclose(3) not unload the object, if any, that this lies in; not locked
   (pin.c). */
void wp_pin(const volatile void *);

/* While it is locked the thread has all signals blocked and cannot be cancelled,
   so nothing that could want the lock runs in it.  fork(2) waits for it.  errno
   is afterwards what it was before. */
void wp_watches_lock(void);
void wp_watches_unlock(void);

/* A free entry (serial is 0 and delivery NULL) with its serial drawn but not
   set, or NULL; locked. */
struct wp_watch *wp_watches_new(uint32_t *serial);

/* Put an armed event into a watch; room is mapped as needed, and a page of it
   stays with the entry.  0 or -ENOMEM. */
int wp_watch_add(struct wp_watch *, int fd, unsigned slot, pid_t tid);
int wp_watch_put(struct wp_watch *, const struct wp_armed *);

/* Whether the descriptor still is the event; async-signal-safe. */
bool wp_armed_is(const struct wp_armed *);

/* Close an event; or its watch's from index first on. */
void wp_armed_drop(struct wp_armed *);
void wp_watch_drop(struct wp_watch *, size_t first);

/* It is open from now on: signals under its serial are for it (inside.c). */
void wp_watch_publish(struct wp_watch *, uint32_t serial);

/* Open a watch anew in a child made by fork(2) (inside.c); locked.  0, or -errno
   after a line that says why: it watches nothing then. */
int wp_watch_reopen(struct wp_watch *);

/*
 * Watches by perf events of the program's own (armed.c), one for each slot and
 * thread that exists: what deliveries are made of.
 */

/* How the events of a delivery differ. */
struct wp_arming {
	bool inherited;		/* threads to come have copies */
	/* complete what wp_attr_inside says of a slot's event */
	void (*attr)(struct perf_event_attr *, const struct wp_watch *,
	    uint32_t serial, unsigned slot);
	int (*ready)(struct wp_armed *);	/* it is open; NULL: so be it */
	int (*enable)(const struct wp_watch *, struct wp_armed *);
};

/* Open them, for all threads or w->tid, disabled: unless threads had to be held
   for it; then the watch is open and enabled (but for WP_DISABLED) when they go
   on.  0 or -errno with a cause. */
int wp_armed_open(struct wp_watch *, uint32_t serial, const struct wp_arming *,
    struct wp_cause *);

/* Close them; some are kept, disabled, for the next watch. */
void wp_armed_close(struct wp_watch *, const struct wp_arming *);

int wp_armed_enable(struct wp_watch *, const struct wp_arming *);
int wp_armed_disable(struct wp_watch *);
int wp_armed_move(struct wp_watch *, const struct wp_arming *,
    const struct wp_slot *, struct wp_cause *);
int wp_armed_count(const struct wp_watch *, uint64_t *);

/* The same of each slot by itself.  Both are async-signal-safe. */
int wp_armed_count_slots(const struct wp_watch *,
    uint64_t count[WP_SLOTS_MAX]);

/* At the end of the handler of an event's signal: si_fd and si_code; when its one
   overflow is used up, it gets another, if the watch is on
   (deliver_async.c).  0 or -errno: it watches no more.  Async-signal-safe. */
int wp_async_rearm(struct wp_watch *, int fd, int code);

/* The same descriptor with a high number, close-on-exec; the old one is closed,
   unless no higher one can be had: then it is the result. */
int wp_descriptor_high(int fd);

/*
 * Have fn(arg) called by a thread of its own, which has ended when this returns:
 * what it opens is nobody's, so that prctl(PR_TASK_PERF_EVENTS_DISABLE) does not
 * disable it.  Locked; little stack.  Its result, or -ECHILD: none can be made.
 */
int wp_apart(int (*fn)(void *), void *arg);

/* In the child of a fork(2), locked: events that are kept for the next watch are
   its parent's (armed.c). */
void wp_armed_forked(void);

/*
 * Call fn for every thread of the process until a whole list brings none that is
 * new since fn was first called: then nobody was made meanwhile who could have
 * inherited and be called too.  Otherwise undo is called and it begins anew; if
 * the threads do not settle, the helper holds the others still.  fn's -errno
 * ends it; -ESRCH is passed over.  It is called apart (see above), unless there is
 * but one thread.  If they had to be held, held (or NULL) is
 * called in the end, while they are.  Result: 0; 1 when they did not settle and
 * nobody could hold them (a thread may be missed or covered twice); -errno.
 */
int wp_threads_each(int (*fn)(void *arg, pid_t tid), void (*undo)(void *arg),
    void (*held)(void *arg), void *arg);

/*
 * What the watch's bytes are is known by the last hit or the last settling
 * (settle.c).  Before something that may change this unseen: the old value of
 * the next hit is not known.  And when it has been done, to settle it anew, if
 * that can be; readable: a moment ago its bytes were.  Async-signal-safe, both.
 */
void wp_unsettle(struct wp_watch *);
void wp_settle(struct wp_watch *, bool readable);

/* Read its bytes, if that is no hit of any watch.  False: it could be, or they
   cannot be read. */
bool wp_look_at(const struct wp_watch *, uint8_t to[WP_SETTLED_MAX]);

/* Settle the watches of these bytes of which this thread's permits have made
   accesses silent (judge.c). */
void wp_settle_permitted(const volatile void *, size_t len);

/* Whether this thread's permits have, since it was last asked (judge.c). */
bool wp_has_permitted(void);

/* Install the signal handlers, for those of events too if there will be some
   (trap.c).  0 or -errno.  And see whether they are
   still there: 0, or 1 with a line in *cause that says who took them. */
int wp_trap_install(bool events);
int wp_trap_check(struct wp_cause *);

/* True while the calling thread is in our handler; async-signal-safe. */
bool wp_trap_inside(void);

/* The watch whose handler the calling thread is in, and which has that in users;
   or NULL. */
const struct wp_watch *wp_trap_held(void);

/* In the child of a fork(2): its thread has another id. */
void wp_trap_forked(void);

/* The permits of the calling thread: the innermost scope, or NULL; a list by
   outer.  In initial-exec TLS: async-signal-safe. */
struct wp_scope **wp_permits(void);

/* Whether the thread has the lock of scope.c, so that a handler must not leave;
   async-signal-safe. */
bool wp_scope_locked(void);

/* The helper (helper.c).  Start or join it once, locked; 0 when there is one,
   -errno with a cause when there is none. */
int wp_helper_start(struct wp_cause *);

/* Join the one of WATCHPOINT_CHANNEL, locked: 0; -ENOENT: there is none; -EBUSY:
   it is another process's, whose environment was passed on. */
int wp_helper_join(struct wp_cause *);

/* Ask it: fill the request between these (locked), which is all 0 but for what
   and slots.  -EPIPE: none. */
struct wp_request *wp_helper_request(uint32_t what);	/* NULL: no helper */
int wp_helper_ask(struct wp_cause *);

/* In a child made by fork(2), locked: the helper is its parent's. */
void wp_helper_forked(void);

/* Tell it what is open now; NULL-safe without a helper. */
void wp_helper_tell(struct wp_watch *);

/* Whether all accesses to an open watch have come to the handler, and tell of
   those that did not; *ms, which grows less, is there to wait for threads that
   are on their way.  Locked. */
void wp_helper_look(const struct wp_watch *, unsigned *ms);

/* How often so far threads that the helper arms may have made accesses that were
   not told; see channel.h. */
uint32_t wp_helper_gaps(void);

/* And that an open one has been moved. */
void wp_helper_moved(const struct wp_watch *);

/*
 * Watches that the helper arms in the program's threads, all or one: by debug
 * registers, or (by_signal) by perf events that raise that signal, whose numbers
 * are in channel->owner.  Locked, but for the last three, which are
 * async-signal-safe.  In deliver_ptrace.c.
 */
int wp_helper_arm(struct wp_watch *, uint32_t serial, int by_signal,
    struct wp_cause *);
void wp_helper_disarm(struct wp_watch *);
int wp_helper_move(struct wp_watch *, const struct wp_slot *,
    struct wp_cause *);
int wp_helper_switch(struct wp_watch *, bool on);
int wp_helper_count(const struct wp_watch *, uint64_t *);

/* At the end of the handler of such events' signal, where they are armed for one
   hit: have those of this thread armed again.  0 or -errno: they are not. */
int wp_helper_rearm(void);

/* A variable of our environment; NULL when unset, or the program runs with
   privileges it was given (secure_getenv(3)). */
const char *wp_setting(const char *name);

/* Have wp_inside.output; once, locked (output.c). */
void wp_output_open(void);

/* Write a line, or lines, to the output; "watchpoint: " and a newline are added
   where they lack.  Async-signal-safe (say.c). */
void wp_say(const char *text);

#endif
