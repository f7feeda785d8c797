/*
 * doctor: `watchctl doctor`: whether watching works on this machine, proved by
 * firing breakpoints; if not, why and what to do.
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

/* A way of watching, and what came of trying it. */
struct doctor_way {
	const char *name;	/* "ring", or its option */
	bool attach;		/* tried on a process that runs; else on a
				   command */
	bool ok;
	char detail[512];	/* what happened; !ok: why it does not work, and
				   what helps */
};
enum { DOCTOR_RING, DOCTOR_STOP, DOCTOR_INSIDE, DOCTOR_WAYS };

/* What was found. */
struct doctor {
	char kernel[65];	/* release, as of uname(2) */
	char arch[65];
	char processor[128];	/* as it calls itself; "": it does not say */
	unsigned cpus;		/* online */
	int hypervisor;		/* 1 under one, 0 not, -1 not known */
	unsigned free_slots, all_slots;
	uid_t uid;		/* effective */
	/* effective, and not those of a user namespace of one's own */
	bool cap_perfmon, cap_sys_admin, cap_sys_ptrace, cap_ipc_lock;
	bool confined;		/* the user namespace is another one */
	int seccomp;		/* 0 none, 1 strict, 2 filter; -1 not known */
	int kptr_restrict;	/* sysctls: DOCTOR_ABSENT */
	int ptrace_scope;	/* Yama's */
	int mlock_kb;		/* kernel.perf_event_mlock_kb */
	uint64_t memlock;	/* RLIMIT_MEMLOCK, bytes; UINT64_MAX: none */
	uint64_t nofile;	/* RLIMIT_NOFILE, hard; UINT64_MAX: none */
	struct wp_features features;	/* but for paranoid, only when opened */
	bool opened;		/* a write watch can be opened; else refusal */
	struct wp_cause no_bpf;	/* why the kernel's rings deliver; code 0: BPF
				   programs do */
	struct wp_cause no_uprobe;	/* why execution is watched by slots
					   alone; code 0: by uprobes, too */
	bool newcomers;		/* processes that come are noticed; */
	bool moves;		/* those that are moved to another control
				   group, too */
	struct wp_cause refusal;
	struct wp_cause no_proc;	/* why /proc is no use; code 0: it is */
	struct wp_probe_result probe[WP_PROBE_KINDS];
	struct doctor_way way[DOCTOR_WAYS];
	struct sandbox_trial broker;	/* of what reads others' files */
	/* what an ordinary user may open, if that could be tried, which takes
	   root */
	struct doctor_other {
		bool known, opened, kernel;
	} other;
};

/* Find out, with runs of this program, whose path it is.  Fires every probe:
   see probe.h for what that takes. */
void doctor_examine(struct doctor *, const char *program);

/* The main job works in one way: a store into a watched word was reported, and
   processes can be asked about. */
bool doctor_ok(const struct doctor *);

/* Try a way, whose name is given: detail and ok. */
void doctor_try(struct doctor_way *, const char *program);

/* What is watched then: wait for a line of standard input, or its end, and
   store, and end. */
_Noreturn void doctor_fire(void);

/* The largest ring that every processor can have, in KiB, by the two limits on
   locked memory; UINT64_MAX: no limit applies. */
uint64_t doctor_ring_kb(const struct doctor *);

/* Tell, as text or as one line of JSON.  In JSON, what is not known is left
   out, and a limit that does not apply is null. */
void doctor_text(const struct doctor *, bool colour, struct buffer *);
void doctor_json(const struct doctor *, struct buffer *);

/* The command; argv[0] is "doctor", and program the path of watchctl.  Result:
   the exit status: 0 the main job works here in one way, 1 it does not, 125
   after one line on stderr. */
int doctor(int argc, char **argv, const char *program, FILE *out);

#endif
