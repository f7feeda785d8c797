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

/* The accesses since the last moment at which all counts were known, and what
   the bytes were then. */
struct wp_crowd {
	uint64_t number;	/* 0: there has been no such moment */
	bool unseen;		/* others may have written since, uncounted */
	bool known;		/* byte */
	uint8_t byte[WP_STOP_BYTES];
};

/* What a watch's bytes were, at a moment when no thread accessed them. */
struct wp_stop_baseline {
	bool known;
	bool consistent;	/* the counts that were read last are of one
				   moment */
	bool shared;		/* mapped so: others may write them, unseen */
	bool gap;		/* others may have written them since they were
				   read last: a child that has the memory, a
				   thread that has ended, or another process
				   that mapped them */
	uint8_t byte[WP_STOP_BYTES];
	pid_t memory;		/* whose they are: of processes that share them
				   the one that made the others */
	struct wp_crowd crowd;	/* that has not ended */
};

/* A traced process. */
struct wp_stop_process {
	pid_t pid;
	size_t first, n;	/* its watches */
	size_t scout, nscouts;	/* its scouts, of their target */
	bool scouted;		/* one was hit, or may have been */
	uint64_t own, own_end;	/* a mapping that nobody else has, since nothing
				   was mapped after it was looked at; own_end 0:
				   none is known */
	unsigned threads;	/* traced; 0: it has ended */
	uint64_t left;		/* when one was last seen to have ended, ns; 0:
				   none has */
	uint64_t caught;	/* signals that it has a handler for, as was
				   seen last ... */
	int stat;		/* ... there (wp_proc_caught); < 0: not open */
	bool warned;		/* that no signal is free */
	bool lent;		/* others have had its memory since before it
				   was traced; ... */
	bool unsure;		/* ... or may have: that is not said yet */
	struct wp_stop_baseline baseline[WP_SLOTS_MAX];	/* by watch - first */
	struct wp_stop_thread *thread;	/* the first of them */
	struct wp_stop_process *next;
};

/* A traced thread. */
struct wp_stop_thread {
	struct wp_thread traced;
	struct wp_stop_process *process;
	struct wp_events events, scouts;
	uint64_t block;		/* its control block, when it was armed; 0:
				   none */
	uint64_t *id;		/* of each of its events */
	int signal;		/* that its events send; 0: none for now */
	bool signal_blocked;	/* it blocks that: samples wait for no stop */
	uint64_t taken[WP_SLOTS_MAX];	/* its accesses up to its last stop, by
					   watch - first */
	uint64_t counted[WP_SLOTS_MAX];	/* accesses that there had been when the
					   watch was looked at last */
	uint64_t ended[WP_SLOTS_MAX];	/* those up to the end of the last
					   crowd */
	struct {
		uint64_t number;	/* of the crowd, which has ended, that
					   its accesses since its last stop
					   belong to; 0: to none that has; */
		uint64_t counted;	/* up to this one */
		uint64_t since;		/* all of them came later, ns */
	} crowd[WP_SLOTS_MAX];
	uint64_t scout_ip;	/* where it last hit a scout since its last
				   stop; 0: nowhere */
	bool held;		/* by us; it goes on with ... */
	int pass;		/* ... this signal */
	struct wp_stop_thread *next_in_process;	/* in its process */
};

struct wp_stops {
	struct wp_target *target;
	struct wp_target *scouts;	/* NULL: there are none */
	size_t scout, nscouts;		/* of a process that is attached */
	bool moving;			/* calls.held is called */
	const struct wp_stops_calls *calls;
	void *arg;
	struct wp_ptrace_loop loop;
	struct wp_stop_process *process;
	struct {
		bool any;	/* there was a process; ... */
		size_t first, n;	/* ... of all that there were, n 0: they
					   had none; ... */
		bool differ;	/* ... but of some of them */
	} watches;
	struct wp_stop_queue queue;
	struct wp_shared_vm lent;	/* to children that are not traced */
	struct wp_perf_count *closed_total; /* of threads that have ended:
					   nclosed, by watch */
	size_t nclosed;
	uint64_t crowds;		/* numbers of them given out */
	struct wp_uptime uptime;	/* of those threads */
	uint64_t looked;		/* when at handlers, ns */
	uint64_t last;			/* hit that a thread stopped at: time */
	int last_cpu;			/* and processor, */
	pid_t last_tid;			/* and thread */
	bool ending;			/* each thread is released at its
					   stop */
	bool holds;			/* other threads than the one that
					   hit */
};

/* stop_threads.c */

struct wp_stop_thread *wp_stop_find(const struct wp_stops *, pid_t tid);
struct wp_stop_thread *wp_stop_at(const struct wp_stops *, size_t i);
struct wp_stop_process *wp_stop_find_process(const struct wp_stops *,
    pid_t pid);

/* A process with these watches, of which no thread is traced yet.  NULL: out of
   memory. */
struct wp_stop_process *wp_stop_add_process(struct wp_stops *, pid_t pid,
    size_t first, size_t n);

/* A stopped thread of it, before it does anything: arm it, unless it only waits
   to be released; made: before its first instruction.  0 or -errno. */
int wp_stop_add(struct wp_stops *, struct wp_stop_process *, pid_t tid,
    bool made);

/* A thread that was just created, perhaps of a child; by a thread of this
   process, NULL: by its parent, unless that only has it since its maker was
   killed.  0; -ECHILD, its maker was killed before it was seen to make it, and
   which watches it had is not known; -ESRCH, nothing of ours, or it was
   released or killed in the meantime; or -errno. */
int wp_stop_adopt(struct wp_stops *, pid_t tid,
    const struct wp_stop_process *maker);

/* It is traced no more: what the loop calls at its end.  And its process, if it
   was the last. */
void wp_stop_end(void *stops, struct wp_thread *);

/* The same for a process, that may have no thread yet. */
void wp_stop_forget_process(struct wp_stops *, struct wp_stop_process *);

/* stop_events.c */

/* Open a thread's events: as of wp_stop_add.  0 or -errno: none is open. */
int wp_stop_arm(struct wp_stops *, struct wp_stop_thread *, bool made);

/* Disable and close them; what they have counted is kept. */
void wp_stop_disarm(struct wp_stops *, struct wp_stop_thread *);

/* Accesses of a thread to a watch. */
uint64_t wp_stop_counted(const struct wp_stops *, const struct wp_stop_thread *,
    size_t watch);

/* What a signal is that a thread is about to get. */
enum wp_stop_signal {
	WP_STOP_SIGNAL_ITS_OWN,
	WP_STOP_SIGNAL_OURS,	/* of one of its events: to be taken away */
	WP_STOP_SIGNAL_MERGED,	/* ours, and perhaps one of its own that was
				   merged with it: it has been made to look
				   like its own, and is to be passed on */
};
enum wp_stop_signal wp_stop_signal_of(struct wp_stops *,
    struct wp_stop_thread *, int sig);

/* Its events signal no more, until wp_stop_look_at_signals finds it so. */
void wp_stop_mute(struct wp_stop_thread *);

/* Look whether the thread's signal still is one that does no harm and comes;
   else take another.  Result: whether one that was sent comes. */
bool wp_stop_signal_check(struct wp_stops *, struct wp_stop_thread *);

/* The same for all that have none, or one that their process handles; now and
   then. */
void wp_stop_look_at_signals(struct wp_stops *);

/* value_match.c */

/* Take in what is in the rings. */
void wp_stop_drain(struct wp_stops *);

/* What a thread is stopped behind. */
enum wp_stop_at {
	WP_STOP_AT_NOTHING,
	WP_STOP_AT_HIT,
	WP_STOP_AT_CALL,	/* a hit of the kernel, in a system call */
};

/* A thread is stopped: give its waiting samples their values. */
enum wp_stop_at wp_stop_join(struct wp_stops *, struct wp_stop_thread *);

/* Its samples wait no longer. */
void wp_stop_give_up(struct wp_stops *, pid_t tid);

/* A thread ends: if it accessed a watch since its baseline was taken, the
   baseline is void. */
void wp_stop_void_baselines(struct wp_stops *, struct wp_stop_thread *);

/* All threads of a process are stopped: take the bytes of its watches as they
   are now. */
void wp_stop_take_baselines(struct wp_stops *, struct wp_stop_process *);

/* A watch of it, from 0, has moved.  Nothing of before holds; held: all its
   threads are stopped. */
void wp_stop_begin_anew(struct wp_stops *, struct wp_stop_process *, size_t i,
    bool held);

/* stop_move.c */

/* Take in what is in the scouts' rings. */
void wp_stop_drain_scouts(struct wp_stops *);

/* Hold processes whose scouts were hit, and have calls.held called: then
   stops->holds is set. */
void wp_stop_look_at_scouts(struct wp_stops *);

#endif
