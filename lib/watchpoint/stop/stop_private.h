/*
 * stop_private: what the parts of stop share.
 *
 *	stop_threads.c	processes and their threads
 *	stop_events.c	the events of a thread, and its signal
 *	stop_setup.c	how it begins
 *	stop.c		stops, and the end
 *	stop_move.c	scouts, and watches that move
 *	value_match.c	records and values
 */
#ifndef WP_STOP_PRIVATE_H
#define WP_STOP_PRIVATE_H

#include "stop/shared_vm.h"
#include "stop/stop.h"
#include "stop/stop_queue.h"
#include "attach/target_private.h"
#include "stop/ptrace_loop.h"
#include "ring/uptime.h"

/* The accesses since the last moment at which all counts were known, and the
   bytes at that moment. */
struct wp_crowd {
	uint64_t number;	/* 0: there has been no such moment */
	bool unseen;		/* other processes may have written since,
				   uncounted */
	bool known;		/* byte */
	uint8_t byte[WP_STOP_BYTES];
};

/* A watch's bytes, at a moment when no thread accessed them. */
struct wp_stop_baseline {
	bool known;
	bool consistent;	/* the counts that were read last are all of one
				   moment */
	bool shared;		/* in a shared mapping: other processes may
				   write them, unseen */
	bool gap;		/* they may have been written since they were
				   last read: by a child that shares the memory,
				   a thread that has ended, or another process
				   that mapped them */
	uint8_t byte[WP_STOP_BYTES];
	pid_t memory;		/* the process whose memory they are in; of
				   processes that share it, the one that made
				   the others */
	struct wp_crowd crowd;	/* the current crowd */
};

/* A traced process. */
struct wp_stop_process {
	pid_t pid;
	size_t first, n;	/* its watches */
	size_t scout, nscouts;	/* its watches of the scouts' target */
	bool scouted;		/* a scout was hit, or may have been */
	uint64_t own, own_end;	/* a mapping that no other process has, because
				   nothing was mapped after it was checked;
				   own_end 0: none is known */
	unsigned threads;	/* number of traced threads; 0: it has ended */
	uint64_t left;		/* when a thread was last seen to have ended,
				   ns; 0: none has */
	uint64_t caught;	/* signals that it had a handler for when last
				   read ... */
	int stat;		/* ... from this file (wp_proc_caught); < 0: not
				   open */
	bool warned;		/* the warning that no signal is free was
				   given */
	bool lent;		/* other processes have shared its memory since
				   before it was traced; ... */
	bool unsure;		/* ... or may have: wp_stops_lend was not called
				   yet */
	struct wp_stop_baseline baseline[WP_SLOTS_MAX];	/* by watch - first */
	struct wp_stop_thread *thread;	/* its first thread */
	struct wp_stop_process *next;
};

/* A traced thread. */
struct wp_stop_thread {
	struct wp_thread traced;
	struct wp_stop_process *process;
	struct wp_events events, scouts;
	uint64_t block;		/* its control block when it was armed; 0:
				   none */
	uint64_t *id;		/* the identifier of each of its events */
	int signal;		/* the signal that its events send; 0: none for
				   now */
	bool signal_blocked;	/* it blocks that signal, so samples do not wait
				   for a stop */
	uint64_t taken[WP_SLOTS_MAX];	/* its accesses up to its last stop, by
					   watch - first */
	uint64_t counted[WP_SLOTS_MAX];	/* its accesses when the watch was last
					   read */
	uint64_t ended[WP_SLOTS_MAX];	/* its accesses up to the end of the
					   last crowd */
	struct {
		uint64_t number;	/* the crowd, which has ended, of its
					   accesses since its last stop; 0: none
					   has ended */
		uint64_t counted;	/* the last of its accesses in that
					   crowd */
		uint64_t since;		/* all of them were made after this,
					   ns */
	} crowd[WP_SLOTS_MAX];
	uint64_t scout_ip;	/* where it last hit a scout since its last
				   stop; 0: nowhere */
	bool held;		/* this process holds it; it continues with
				   ... */
	int pass;		/* ... this signal */
	struct wp_stop_thread *next_in_process;	/* in its process */
};

struct wp_stops {
	struct wp_target *target;
	struct wp_target *scouts;	/* NULL: there are none */
	size_t scout, nscouts;		/* of a process that is attached */
	bool moving;			/* calls.held is to be called */
	const struct wp_stops_calls *calls;
	void *arg;
	struct wp_ptrace_loop loop;
	struct wp_stop_process *process;
	struct {
		bool any;	/* a process was attached ... */
		size_t first, n;	/* ... and all of them had these
					   watches, n 0: none; ... */
		bool differ;	/* ... except that some had others */
	} watches;
	struct wp_stop_queue queue;
	struct wp_shared_vm lent;	/* memory shared with children that are
					   not traced */
	struct wp_perf_count *closed_total; /* by watch, nclosed of them: the
					       counts of threads that have
					       ended */
	size_t nclosed;
	uint64_t crowds;		/* the number of the last crowd */
	struct wp_uptime uptime;	/* uptime of threads that have ended */
	uint64_t looked;		/* when handlers were last looked at,
					   ns */
	uint64_t last;			/* the last hit at which a thread
					   stopped: its time */
	int last_cpu;			/* and processor, */
	pid_t last_tid;			/* and thread */
	bool ending;			/* each thread is released at its next
					   stop */
	bool holds;			/* threads other than the one that hit
					   are held */
};

/* stop_threads.c */

struct wp_stop_thread *wp_stop_find(const struct wp_stops *, pid_t tid);
struct wp_stop_thread *wp_stop_at(const struct wp_stops *, size_t i);
struct wp_stop_process *wp_stop_find_process(const struct wp_stops *,
    pid_t pid);

/* Add a process with these watches, of which no thread is traced yet.  NULL:
   out of memory. */
struct wp_stop_process *wp_stop_add_process(struct wp_stops *, pid_t pid,
    size_t first, size_t n);

/* Add a stopped thread of a process, before it does anything, and arm it,
   unless it only waits to be released; made: it is before its first
   instruction.  0 or -errno. */
int wp_stop_add(struct wp_stops *, struct wp_stop_process *, pid_t tid,
    bool made);

/* Add a thread that was just created, perhaps as a child process: by a thread
   of process maker; NULL: by its parent, unless that is only its parent because
   its maker was killed.  0; -ECHILD: its maker was killed before its report, so
   which watches it had is unknown; -ESRCH: it is not traced by us, or was
   released or killed in the meantime; or -errno. */
int wp_stop_adopt(struct wp_stops *, pid_t tid,
    const struct wp_stop_process *maker);

/* Forget a thread that is not traced any more, and its process with its last
   thread; called by the loop. */
void wp_stop_end(void *stops, struct wp_thread *);

/* The same for a process, which may have no thread yet. */
void wp_stop_forget_process(struct wp_stops *, struct wp_stop_process *);

/* stop_events.c */

/* Open a thread's events; made: as of wp_stop_add.  0 or -errno: none is
   open. */
int wp_stop_arm(struct wp_stops *, struct wp_stop_thread *, bool made);

/* Disable and close a thread's events; their counts are kept. */
void wp_stop_disarm(struct wp_stops *, struct wp_stop_thread *);

/* The number of accesses of a thread to a watch. */
uint64_t wp_stop_counted(const struct wp_stops *, const struct wp_stop_thread *,
    size_t watch);

/* The origin of a signal that a thread is about to get. */
enum wp_stop_signal {
	WP_STOP_SIGNAL_ITS_OWN,
	WP_STOP_SIGNAL_OURS,	/* from one of its events: to be taken away */
	WP_STOP_SIGNAL_MERGED,	/* from an event, perhaps merged with one of its
				   own: its siginfo now looks like its own, and
				   it is to be delivered */
};
enum wp_stop_signal wp_stop_signal_of(struct wp_stops *,
    struct wp_stop_thread *, int sig);

/* Have its events send no signal, until wp_stop_look_at_signals finds a usable
   one. */
void wp_stop_mute(struct wp_stop_thread *);

/* Check that the thread's signal still does no harm and still arrives;
   otherwise choose another.  Result: whether one that was already sent
   arrives. */
bool wp_stop_signal_check(struct wp_stops *, struct wp_stop_thread *);

/* At intervals, the same for all threads without a signal, or whose process has
   a handler for it. */
void wp_stop_look_at_signals(struct wp_stops *);

/* value_match.c */

/* Read the rings into the queue. */
void wp_stop_drain(struct wp_stops *);

/* What happened just before a thread stopped. */
enum wp_stopped_at {
	WP_STOP_AT_NOTHING,
	WP_STOP_AT_HIT,
	WP_STOP_AT_CALL,	/* a hit of the kernel, in a system call */
};

/* Give the waiting samples of a stopped thread their values. */
enum wp_stopped_at wp_stop_join(struct wp_stops *, struct wp_stop_thread *);

/* The samples of a thread wait no longer. */
void wp_stop_give_up(struct wp_stops *, pid_t tid);

/* At the end of a thread: if it accessed a watch since the watch's baseline was
   taken, that baseline is void. */
void wp_stop_void_baselines(struct wp_stops *, struct wp_stop_thread *);

/* While all threads of a process are stopped: take the current bytes of its
   watches as baselines. */
void wp_stop_take_baselines(struct wp_stops *, struct wp_stop_process *);

/* A watch of the process (its index from 0) has moved: forget what was known of
   its bytes; held: all threads are stopped. */
void wp_stop_begin_anew(struct wp_stops *, struct wp_stop_process *, size_t i,
    bool held);

/* stop_move.c */

/* Read the scouts' rings. */
void wp_stop_drain_scouts(struct wp_stops *);

/* Hold processes whose scouts were hit, and call calls.held; stops->holds is
   set then. */
void wp_stop_look_at_scouts(struct wp_stops *);

#endif
