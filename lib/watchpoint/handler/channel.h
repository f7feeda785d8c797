/*
 * channel: the memory that a watched program shares with its helper.
 *
 * Overview.  One memfd, mapped by both.  The program's signal handler puts each
 * hit into a cell, as a perf sample; the helper explains it and gives the cell
 * back.  Everything rarer is done by requests, one at a time, which the program
 * makes and the helper answers.  Neither side trusts what the other writes: the
 * helper checks the lengths and indexes that it reads from here, and nothing in
 * here is a pointer.
 *
 * Cells are a bounded queue of many writers and one reader.  A writer takes the
 * next ticket t and cell t modulo WP_CELLS, whose turn says which side owns it:
 *
 *	turn == t		free for ticket t
 *	turn == t + 1		filled: the helper's
 *	turn == t + 2		explained, with WP_CELL_REPLY: the writer's,
 *				which reads the reply and gives the cell back
 *	turn == t + WP_CELLS	given back: free for the next round
 *
 * so hits are explained in the order of their tickets.  A writer that waits for
 * its report waits until turn is no longer t + 1.  All waiting is by futex(2);
 * the helper sleeps on bell.
 *
 * Life: the word `helper' holds the helper's thread id and is on that thread's
 * robust list (set_robust_list(2)): whatever the helper dies of, the kernel
 * sets FUTEX_OWNER_DIED in it.  A thread that waits for the helper waits with a
 * timeout and looks there.
 *
 * Family: a child made by fork(2) that watches itself too has a channel of its
 * own, but shares the helper of its parent.  The first channel that the helper
 * serves, the root, stays mapped in all of them: only its bell is used, its
 * word says whether the helper lives, and a child asks through it to be
 * adopted.
 *
 * Signal safety: functions marked so are called by the signal handler.
 */
#ifndef WP_CHANNEL_H
#define WP_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"
#include "os/attr.h"
#include "os/slot.h"

enum {
	WP_CHANNEL_VERSION = 11,
	WP_CELLS = 64,
	WP_WATCHES_MAX = 256,		/* open at a time */
	WP_LABEL_MAX = 64,
	WP_STACK_USUAL = 4096,
	WP_RECORD_MAX = WP_STACK_MAX + 1024,
	WP_REPLY_MAX = 4096,
	WP_ALSO_MAX = 8,
	WP_TEXT_MAX = 4096,
	WP_REGIONS_MAX = 64,
	WP_BASELINE_MAX = 32,		/* bytes of the largest watch */
	WP_ADOPTIONS_MAX = 64,
	WP_MAKINGS_MAX = 1024,
};
#define WP_CHANNEL_MAGIC 0x6c656e6168637077u	/* "wpchanel" */

/* Flags of a hit in a cell. */
enum wp_cell_flags {
	WP_CELL_WAITS = 1,	/* the thread waits until the cell is given
				   back */
	WP_CELL_REPLY = 2,	/* and wants the report as text in reply: after
				   wp_channel_wait it calls wp_channel_give */
	WP_CELL_STRAY = 4,	/* stray by the program's own rules */
	WP_CELL_LATE = 8,	/* the signal had been blocked: pc is not it */
	WP_CELL_FATAL = 16,	/* the thread will abort(3) after this */
	WP_CELL_QUIET = 32,	/* explain into reply, do not print */
	WP_CELL_ALONE = 64,	/* the program has one thread */
	WP_CELL_COUNTED = 128,	/* counted and suppressed are the watch's at a
				   moment after the ticket was taken; else
				   suppressed alone is */
	WP_CELL_BYTES = 256,	/* and byte is what its bytes were just before
				   that */
};

/* Both sides need the same layout, but a 32-bit program would align such a
   number to 4 bytes. */
typedef uint64_t wp_shared64 __attribute__((aligned(8)));
typedef _Atomic uint64_t wp_atomic64 __attribute__((aligned(8)));

/* A watch as a hit knows it: copied, since the watch may be closed in the
   meantime. */
struct wp_cell_watch {
	char label[WP_LABEL_MAX];	/* NUL-terminated */
	wp_shared64 addr, len;		/* the whole region */
	uint32_t serial;		/* one for each wp_open */
	uint8_t access;			/* enum wp_access */
	uint8_t nslots;
	uint16_t index;			/* in watch[] below */
	uint32_t settled;		/* number of its settling that was last
					   begun (baseline.c) */
	uint32_t slots;			/* a hit's: which were touched, a bit
					   for each; 0: not known */
	uint32_t times;			/* a late hit's: how many accesses were
					   counted; 0: not known */
};

/* Most hits write to the first page only. */
struct wp_cell {
	_Alignas(4096)
	_Atomic uint32_t turn;		/* futex: see above */
	uint32_t flags;			/* enum wp_cell_flags */
	wp_shared64 nth;		/* the watch's hits, with this one */
	wp_shared64 counted;	/* its accesses so far, of all threads */
	wp_shared64 suppressed;		/* of these, at least this many belong
					   to no cell */
	uint8_t byte[WP_BASELINE_MAX];	/* as many as the watch has */
	struct wp_cell_watch watch;	/* whose hit the signal said it is */
	/* watches whose counts have moved without a signal of their own: the
	   same instruction may have touched them too */
	uint32_t nalso;
	struct wp_cell_watch also[WP_ALSO_MAX];
	char comm[16];			/* the thread's name */
	/* a PERF_RECORD_SAMPLE as of the event that wp_channel_attr describes;
	   its id is watch.serial, its addr the debug register's */
	union {
		struct perf_event_header header;
		uint8_t bytes[WP_RECORD_MAX];
	} record;
	char reply[WP_REPLY_MAX];	/* by the helper; with WP_CELL_REPLY ""
					   at first */
};

/* The program's requests to the helper. */
enum wp_ask {
	WP_ASK_RESOLVE = 1,	/* text: one "ACCESS:SPEC" a line (with letters
				   behind ACCESS: u for WP_USER_ONLY, f for
				   WP_FORK); answer: as many regions, their
				   labels; the watches of a preloaded library */
	WP_ASK_ARMED,		/* and now they are open; or, with a text, why
				   they cannot be had */
	WP_ASK_HOLD,		/* hold still every thread but tid */
	WP_ASK_GO,		/* let them go on */
	WP_ASK_ARM,		/* arm slots of watch index in tid, or (0) in
				   all threads and those to come: by ptrace */
	WP_ASK_DISARM,		/* no more */
	WP_ASK_MOVE,		/* to the slots given */
	WP_ASK_LIFELINE,	/* hold fd, the writing end of a pipe, as long
				   as the helper lives, or a process of its that
				   traces (arming/lifeline.c) */
};

struct wp_request {
	_Atomic uint32_t state;		/* futex: 0 none, 1 asked, 2 answered */
	uint32_t what;			/* enum wp_ask */
	int32_t result;			/* answer: >= 0, or -errno */
	pid_t tid;			/* the thread it is about; 0: all */
	uint32_t index;			/* the watch it is about */
	uint32_t by_signal;		/* WP_ASK_ARM: 0 debug registers; else a
				   perf event that raises this signal */
	uint32_t once;			/* by_signal: for one overflow, and then
					   when the handler asks for the next */
	wp_shared64 period;		/* WP_ASK_ARM */
	uint32_t serial;		/* WP_ASK_ARM: the watch's */
	uint32_t kernel;		/* WP_ASK_ARM, by_signal: the kernel's
					   accesses too */
	int32_t fd;			/* WP_ASK_LIFELINE: the program's */
	uint32_t nslots;
	struct wp_slot slot[WP_SLOTS_MAX];
	uint32_t nregions;
	struct wp_cell_watch region[WP_REGIONS_MAX];
	char text[WP_TEXT_MAX];
	char cause[512];		/* answer, if result < 0: one line */
};

/* The bytes of a watch at some time before its next hit (baseline.c). */
struct wp_baseline {
	_Atomic uint32_t number;	/* which one it is, written last; 0: the
					   bytes are not known */
	uint32_t alone;			/* the program had one thread then, so
					   that no other thread was counted */
	wp_shared64 nth, counted, suppressed;	/* as in a cell */
	wp_shared64 time;		/* before they were read, ns */
	uint8_t byte[WP_BASELINE_MAX];	/* as many as the watch has */
};

/* A watch that is open now, for the helper to look at when it likes.  serial is
   written last on opening and zeroed first on closing. */
struct wp_channel_watch {
	_Atomic uint32_t serial;	/* 0: not open */
	struct wp_cell_watch what;
	uint32_t stray;			/* WP_STRAY is set */
	uint32_t signal;		/* that reports its hits */
	uint32_t kernel;	/* the kernel's accesses are seen, too */
	uint32_t exact;			/* each counted access is reported:
				   no period, no thread covered twice */
	wp_atomic64 hits;		/* what its events have counted and the
				   handler accounted for */
	wp_shared64 before;		/* of these, for other watches */
	wp_atomic64 undelivered;	/* of its accesses: its part of the
				   channel's */
	wp_atomic64 suppressed;	/* steps of no cell */
	int32_t fd[8];			/* first descriptors of its events, for
				   pidfd_getfd(2); -1: none */
	struct wp_baseline settled;	/* not copied from the table */
	/* Of watches that the helper has armed; not copied from the table.
	   What a signal handler wants of them cannot wait for the request. */
	_Atomic uint32_t on;		/* by the program: enabled */
	_Atomic uint32_t asked;	/* by the program: how often it asked to have
				   `on' put into effect, and counted updated */
	_Atomic uint32_t done;	/* futex, by the helper: the value of asked for
				   which that has been done */
	wp_atomic64 counted;	/* by the helper: accesses so far */
};

/* A child, made by fork(2), that wants its own channel served. */
struct wp_adoption {
	_Atomic pid_t pid;		/* its owner; 0: none */
	_Atomic uint32_t state;		/* futex: 0 none, 1 asked, 2 answered */
	pid_t parent;			/* the program that made it */
	int32_t fd;		/* the channel, by its descriptor there */
	int32_t result;			/* answer: 0, or -errno */
};

/* A thread makes another process, in a way that the library knows
   (created_processes.c). */
enum wp_makes {
	WP_MAKES_FORK = 1,	/* fork(2), and no watch is the child's, too */
	WP_MAKES_WATCHED,	/* and one is */
	WP_MAKES_PROGRAM,	/* posix_spawn(3) and the like: the child
				   executes another program, and before that the
				   C library's code alone */
};

struct wp_making {
	wp_atomic64 begin, end;	/* ns; begin 0: it is being written, end
					   UINT64_MAX: it is not at its end */
	_Atomic pid_t tid;
	_Atomic uint32_t how;		/* enum wp_makes */
	_Atomic pid_t child;		/* by the helper, or the child; 0: not
					   known yet */
	_Atomic uint32_t settled;	/* by the child: it is watched, or
					   cannot be */
};

struct wp_channel {
	wp_shared64 magic;
	uint32_t version;		/* WP_CHANNEL_VERSION */
	uint32_t size;			/* of this structure */
	_Atomic uint32_t helper;	/* see Life; 0: none yet */
	_Atomic uint32_t ready;	/* futex: 0 not yet; 1 the helper serves */
	_Atomic uint32_t off;	/* set by the helper: no more hits wanted */
	_Atomic pid_t program;		/* its owner; 0: none yet */
	pid_t helper_pid;		/* set by the helper */
	uint32_t stack;			/* bytes to capture, multiple of 8 */
	uint32_t narrow;		/* by the program: it is a 32-bit one */
	/* What each side writes at each hit has a cache line of its own. */
	_Alignas(64)
	_Atomic uint32_t ticket;	/* next to be taken */
	_Atomic uint32_t bell;		/* futex: counts what the helper may
					   want to look at */
	_Alignas(64)
	_Atomic uint32_t served;	/* next to be explained */
	_Atomic uint32_t asleep;	/* it sleeps, or is about to */
	_Alignas(64)
	_Atomic uint32_t goodbye; /* the program ended by exit(3), after a last
				   look at its watches */
	_Atomic uint32_t locks, unlocks;	/* by the program: how often its
					   threads began to have their signals
					   blocked for wp_watches_lock, and had
					   them no more */
	_Atomic uint32_t gaps;		/* by the helper: how often the threads
					   that it arms were untraced, because
					   their tracer was killed */
	_Atomic uint32_t children;	/* by children that fork(2) made, and by
					   the helper, where it knows of them:
					   not 0 if there are any that a watch
					   did not follow into */
	_Atomic uint32_t strangers;	/* by the helper: how many processes the
					   program made of which the library
					   knew nothing */
	_Atomic uint32_t makings;	/* how many have been begun */
	_Atomic uint32_t forgotten;	/* of these, how many children were to
					   be watched, and had not asked for it
					   when their place was needed */
	struct wp_making making[WP_MAKINGS_MAX];
	_Atomic uint32_t executed;	/* by the helper: the program, traced,
					   is another now */
	wp_atomic64 handled;	/* by the program: hits that only
					   handlers got, and that are not to be
					   printed */
	wp_atomic64 undelivered;	/* exact: accesses that were counted and
				   reached no handler, because SIGTRAP was
				   blocked, ignored or handled by another */
	char warning[256];		/* by the program, one line; reported
					   at goodbye or with the next hit */
	_Atomic uint32_t warned;	/* counts warnings */
	_Atomic uint32_t unwatched;	/* how often a watch could not be armed
					   in a thread, or not again, or had to
					   be disabled */
	struct wp_adoption adoption[WP_ADOPTIONS_MAX];	/* of the root */
	struct wp_request request;
	struct wp_channel_watch watch[WP_WATCHES_MAX];
	struct wp_cell cell[WP_CELLS];
};

/* Make the memory: a memfd that is fit to be mapped by both.  A descriptor,
   close-on-exec, or -errno. */
int wp_channel_make(uint32_t stack);

/* Map it; -EPROTO: it is none, or another version's.  0 or -errno. */
int wp_channel_map(int fd, struct wp_channel **);
void wp_channel_unmap(struct wp_channel *);

/* Set the attributes of an event that would produce samples like those in
   cells. */
void wp_channel_attr(struct perf_event_attr *);

/*
 * The program's side.
 */

/*
 * Have the channel for this process, if it is not owned yet, or was this
 * process's before an execve(2): then what that left unfinished is cleared
 * away.  -EBUSY: it is another process's.
 */
int wp_channel_join(struct wp_channel *);

/* Wait up to ms for the helper to serve.  0; -EPIPE: it died; -ETIMEDOUT. */
int wp_channel_await(struct wp_channel *, int ms);

/* In a child of fork(2), with its own channel behind fd: ask the root's helper
   to serve that, too.  0; -EPIPE: there is none any more; or the helper's
   -errno. */
int wp_channel_be_adopted(struct wp_channel *root, int fd, pid_t parent);

/* The root of all channels of this process, in the program's children and in
   the helper; NULL: there is one channel. */
void wp_channel_set_root(struct wp_channel *);

/*
 * From here to wp_channel_ring: async-signal-safe.
 */

/* Whether the helper serves and lives. */
bool wp_channel_has_helper(struct wp_channel *);

/* And this process is its program: not a child of it that has the memory, too
   (which is never hit). */
bool wp_channel_alive(struct wp_channel *);

/* Take a cell to fill: the next one, once it is free.  NULL: the helper is
   dead. */
struct wp_cell *wp_channel_take(struct wp_channel *, uint32_t *ticket);

/* It is filled: hand it over. */
void wp_channel_post(struct wp_channel *, struct wp_cell *, uint32_t ticket);

/* Wait until it is given back.  false: the helper died before. */
bool wp_channel_wait(struct wp_channel *, struct wp_cell *, uint32_t ticket);

/* The reply of a cell with WP_CELL_REPLY has been read: give it back. */
void wp_channel_give(struct wp_cell *, uint32_t ticket);

/* Ring the helper's bell. */
void wp_channel_ring(struct wp_channel *);

/* This thread is about to make a process; and has made it, or could not.  The
   last WP_MAKINGS_MAX are kept. */
struct wp_creation {
	struct wp_making *at;
	uint64_t begin;
};
struct wp_creation wp_creation_begin(struct wp_channel *, enum wp_makes);
void wp_creation_end(struct wp_creation);

/* Call these in the child: wp_creation_appear announces it, which nothing else
   does where events are refused; wp_creation_settle says that its watches are
   settled. */
void wp_creation_appear(struct wp_creation);
void wp_creation_settle(struct wp_creation);

/* Make the request, of which everything is filled in, and wait for the answer.
   Its result; -EPIPE: there is no helper any more. */
int wp_channel_ask(struct wp_channel *);

/*
 * The helper's side, one thread.
 */

/* Be the helper: put the word on this thread's robust list, say ready.  And of
   another channel, than the root. */
void wp_channel_serve(struct wp_channel *);
void wp_channel_serve_too(struct wp_channel *);

/* The next child that asks to be adopted, or NULL: its place is its own until
   it is answered.  Places of children that ended meanwhile become free. */
struct wp_adoption *wp_channel_adoption(struct wp_channel *root);
void wp_channel_adopted(struct wp_adoption *, int result);

/* The next filled cell in order, or NULL; give it back when it is explained.
   It is the program's memory: copy what must not change under you. */
struct wp_cell *wp_channel_next(struct wp_channel *);
void wp_channel_done(struct wp_channel *, struct wp_cell *);

/* The program has ended: pass over cells that it did not finish.  false: no
   filled one is left. */
bool wp_channel_skip(struct wp_channel *);

/* Whether there is a request to be answered; answer it. */
bool wp_channel_asked(const struct wp_channel *);
void wp_channel_answer(struct wp_channel *, int result);

/* How a thread created a process at that time, ns; 0: unknown.  Each recorded
   creation is claimed by one process. */
uint32_t wp_creation_claim(struct wp_channel *, pid_t tid, uint64_t time,
    pid_t child);

/* wp_creation_pending: whether a child that is to be watched is being created.
   wp_creation_unheard, when the program has ended: whether there may be a child
   that was never announced or (any) one that fork(2) created and that is not to
   be watched. */
bool wp_creation_pending(struct wp_channel *);
bool wp_creation_unheard(struct wp_channel *, bool any);

/* The helper serves no more. */
void wp_channel_leave(struct wp_channel *);

/* Sleep until the bell rings, at most ms. */
void wp_channel_sleep(struct wp_channel *, uint32_t *heard, int ms);

#endif
