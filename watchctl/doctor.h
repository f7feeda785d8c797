/*
 * doctor: `watchctl doctor` finds out whether watching works on this machine,
 * by firing breakpoints; if not, why, and what to do.
 *
 * Examining and reporting are separate, so that the report can be tested
 * without the machine it describes.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "broker/sandbox_trial.h"
#include "util/buffer.h"
#include "os/cause.h"
#include "probe/probe.h"

/* A sysctl that this kernel does not have, or that cannot be read. */
#define DOCTOR_ABSENT INT_MIN

/* A way of watching, and the result of a trial. */
struct doctor_way {
	const char *name;	/* "ring", or its option */
	bool attach;		/* tried on a running process; else on a
				   command */
	bool ok;
	char detail[512];	/* what happened; !ok: why it does not work, and
				   what helps */
};
enum { DOCTOR_RING, DOCTOR_STOP, DOCTOR_INSIDE, DOCTOR_WAYS };

/* The state of this machine. */
struct doctor {
	char kernel[65];	/* release, as of uname(2) */
	char arch[65];
	char processor[128];	/* model name; "": not known */
	unsigned cpus;		/* online */
	int hypervisor;		/* 1 under one, 0 not, -1 not known */
	unsigned free_slots, all_slots;
	uid_t uid;		/* effective */
	/* effective, in the initial user namespace */
	bool cap_perfmon, cap_sys_admin, cap_sys_ptrace, cap_ipc_lock;
	bool confined;		/* in another user namespace */
	int seccomp;		/* 0 none, 1 strict, 2 filter; -1 not known */
	int kptr_restrict;	/* sysctls: DOCTOR_ABSENT */
	int ptrace_scope;	/* Yama's */
	int mlock_kb;		/* kernel.perf_event_mlock_kb */
	uint64_t memlock;	/* RLIMIT_MEMLOCK, bytes; UINT64_MAX: none */
	uint64_t nofile;	/* RLIMIT_NOFILE, hard; UINT64_MAX: none */
	struct wp_features features;	/* except for paranoid, valid only if
					   opened */
	bool opened;		/* a write watch can be opened; else refusal
				   says why not */
	struct wp_cause no_bpf;	/* why BPF programs do not deliver; code 0: they
				   do */
	struct wp_cause no_uprobe;	/* why uprobes do not watch execution;
					   code 0: they do */
	bool newcomers;		/* new processes are noticed; */
	bool moves;		/* moves between control groups, too */
	struct wp_cause refusal;
	struct wp_cause no_proc;	/* why /proc is of no use; code 0: it
					   is */
	struct wp_probe_result probe[WP_PROBE_KINDS];
	struct doctor_way way[DOCTOR_WAYS];
	struct sandbox_trial broker;	/* of the explainer */
	/* what an ordinary user may open; trying that takes root */
	struct doctor_other {
		bool known, opened, kernel;
	} other;
};

/* Examine the machine, by running the program with this path.  Fires every
   probe: probe.h says what that needs. */
void doctor_examine(struct doctor *, const char *program);

/* Whether watching works in one way: a store into a watched word was reported,
   and /proc can be read. */
bool doctor_ok(const struct doctor *);

/* Try the way that is named; sets detail and ok. */
void doctor_try(struct doctor_way *, const char *program);

/* The program that is watched in a trial: wait for a line or the end of
   standard input, store, and end. */
_Noreturn void doctor_fire(void);

/* The largest ring that every processor can have, in KiB, by the two limits on
   locked memory; UINT64_MAX: no limit applies. */
uint64_t doctor_ring_kb(const struct doctor *);

/* Write the report as text or as one line of JSON.  In JSON, unknown values are
   left out, and a limit that does not apply is null. */
void doctor_text(const struct doctor *, bool colour, struct buffer *);
void doctor_json(const struct doctor *, struct buffer *);

/* The command; argv[0] is "doctor", and program the path of watchctl.  Result:
   the exit status: 0 watching works here in one way, 1 it does not, 125 after
   one line on stderr. */
int doctor(int argc, char **argv, const char *program, FILE *out);

#endif
