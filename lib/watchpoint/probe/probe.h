/*
 * probe: finds out what this machine can do, by trying.
 *
 * Differences between kernels, processors and permissions are found here, once,
 * by opening (or firing) a real event in this process; never by version
 * numbers.  Not async-signal-safe.  Opening allocates nothing, and any thread
 * may do it.  Firing installs and restores signal handlers of the calling
 * process: call it from a program with one thread.
 */
#ifndef WP_PROBE_H
#define WP_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "os/features.h"
#include "os/slot.h"

#pragma GCC visibility push(default)

/*
 * Find out which events may be opened.  This is cheap: it opens events, and
 * makes one store. 0, or -errno with a cause when no data watch can be opened
 * at all: no breakpoints (ENODEV), no perf_event_open (ENOSYS), not permitted
 * (which of paranoid and seccomp), no free slot; or when one does not fire on
 * this processor (ENODEV).  Then nothing but paranoid is set.
 */
int wp_probe_features(struct wp_features *, struct wp_cause *);

/* The features of a thread that has no slots, for uprobes, after paranoid was
   set by wp_probe_features. */
void wp_probe_without_slots(struct wp_features *);

/* Fill in why perf_event_open refused this thread a plain write watch on itself
   with this errno (positive).  Result: the cause's errno, negated. */
int wp_probe_cause(int err, struct wp_cause *);

/* Whether this thread has a capability (CAP_*) that the kernel counts for the
   whole machine: not those of a user namespace of one's own. */
bool wp_probe_capable(unsigned capability);

/* The effect of a store into a watched word on each processor that the calling
   thread may run on. */
struct wp_probe_cpus {
	unsigned tried;		/* processors where a watch could be set */
	unsigned fired;		/* and hit */
	int silent;		/* the first where it did not; -1: none */
};

/* Fire a watch on each processor, by threads that end with the call: some tens
   of microseconds for each, at the same time. */
void wp_probe_cpus(struct wp_probe_cpus *);

/* One kind of breakpoint, fired for real. */
enum wp_probe_kind {
	WP_PROBE_WRITE,		/* a write watch counts, and fills a ring */
	WP_PROBE_CPUS,		/* it does so on each processor */
	WP_PROBE_ACCESS,	/* an access watch sees a read */
	WP_PROBE_EXECUTE,	/* an execution breakpoint */
	WP_PROBE_SIGTRAP,	/* sigtrap with sig_data */
	WP_PROBE_ASYNC,		/* O_ASYNC signal to the thread */
	WP_PROBE_KERNEL,	/* a kernel-mode write for a system call */
	WP_PROBE_BPF,		/* a BPF program filters a watch's hits */
	WP_PROBE_PTRACE,	/* a debug register planted through ptrace */
	WP_PROBE_KINDS
};

struct wp_probe_result {
	enum wp_probe_kind kind;
	const char *name;	/* "write", "access", ... */
	bool ok;
	int err;		/* errno of the step that failed; 0: it was set
				   but did not fire, or fired wrongly */
	char detail[160];	/* what happened, one line */
	char advice[512];	/* !ok: what it means and what to do; else "" */
};

/* Fire one kind.  Always fills *out.  WP_PROBE_PTRACE forks a child and reaps
   it. */
void wp_probe_fire(enum wp_probe_kind, struct wp_probe_result *out);

/* The number of slots that are free now in this thread (0 also if none can be
   opened at all), and of all slots of this processor. */
unsigned wp_probe_free_slots(void);
unsigned wp_probe_all_slots(void);

#pragma GCC visibility pop

#endif
