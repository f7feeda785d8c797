/* doctor_examine: finds out what the machine can do. */
#include "doctor.h"

#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/target.h"
#include "os/attr.h"
#include "os/perf.h"
#include "proc/proc.h"
#include "probe/probe.h"
#include "processes/cgroup.h"
#include "option/options.h"

#define NOBODY 65534
#define FIRST_USER_NAMESPACE 0xeffffffd	/* its inode, on every kernel */

/* "key : value\n" of /proc/cpuinfo: the value, when key is this one; its
   newline is cut off. */
static char *
cpuinfo_value(char *line, const char *key)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) != 0 ||
	    line[len + strspn(line + len, "\t ")] != ':')
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	line = strchr(line + len, ':') + 1;
	return line + strspn(line, " ");
}

/* Of the first processor, as all are alike in this. */
static void
examine_processor(struct doctor *d)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *line = NULL, *value;
	size_t cap = 0;

	d->hypervisor = -1;
	d->cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	if (f == NULL)
		return;
	while (getline(&line, &cap, f) > 1) {
		if ((value = cpuinfo_value(line, "model name")) != NULL)
			(void)snprintf(d->processor, sizeof(d->processor), "%s",
			    value);
		else if ((value = cpuinfo_value(line, "flags")) != NULL)
			d->hypervisor = strstr(value, " hypervisor") != NULL;
	}
	free(line);
	(void)fclose(f);
}

static void
examine_user(struct doctor *d)
{
	struct wp_proc_status status;
	struct stat space;

	d->uid = geteuid();
	d->cap_perfmon = wp_probe_capable(CAP_PERFMON);
	d->cap_sys_admin = wp_probe_capable(CAP_SYS_ADMIN);
	d->cap_sys_ptrace = wp_probe_capable(CAP_SYS_PTRACE);
	d->cap_ipc_lock = wp_probe_capable(CAP_IPC_LOCK);
	d->confined = stat("/proc/self/ns/user", &space) == 0 &&
	    space.st_ino != FIRST_USER_NAMESPACE;
	d->seccomp = wp_proc_status(getpid(), &status) == 0 ? status.seccomp :
	    -1;
}

static void
examine_limits(struct doctor *d)
{
	struct rlimit limit;

	d->kptr_restrict = wp_proc_setting("kptr_restrict");
	d->ptrace_scope = wp_proc_setting("yama/ptrace_scope");
	d->mlock_kb = wp_proc_setting("perf_event_mlock_kb");
	d->memlock = d->nofile = UINT64_MAX;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		d->memlock = limit.rlim_cur;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_max != RLIM_INFINITY)
		d->nofile = limit.rlim_max;
}

/* In a child: become an ordinary user, and find out. */
static _Noreturn void
be_another(int fd)
{
	struct doctor_other other = {0};
	struct wp_features features;

	if (setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY) == 0) {
		other.known = true;
		other.opened = wp_probe_features(&features, NULL) == 0;
		other.kernel = other.opened && features.kernel;
	}
	(void)!write(fd, &other, sizeof(other));
	_exit(0);
}

static void
examine_another(struct doctor *d)
{
	int fd[2];
	pid_t pid;

	if (d->uid != 0 || pipe(fd) != 0)
		return;
	if ((pid = fork()) == 0)
		be_another(fd[1]);
	(void)close(fd[1]);
	if (pid > 0) {
		(void)!read(fd[0], &d->other, sizeof(d->other));
		(void)waitpid(pid, NULL, 0);
	}
	(void)close(fd[0]);
}

static void
examine_ways(struct doctor *d, const char *program)
{
	static const struct doctor_way ways[DOCTOR_WAYS] = {
		[DOCTOR_RING] = {.name = "ring", .attach = true},
		[DOCTOR_STOP] = {.name = "--stop"},
		[DOCTOR_INSIDE] = {.name = "--inside"},
	};

	for (int i = 0; i < DOCTOR_WAYS; i++) {
		d->way[i] = ways[i];
		doctor_try(&d->way[i], program);
	}
}

/* As --exe, --cgroup and --all-cpus find them (setup/arrivals.h). */
static void
examine_newcomers(struct doctor *d)
{
	struct wp_tracepoint point;
	struct perf_event_attr attr;
	int fd;

	wp_attr_programs(&attr, true);
	if ((fd = wp_perf_open(&attr, -1, sched_getcpu())) < 0)
		return;
	(void)close(fd);
	d->newcomers = true;
	d->moves = cgroup_moves(&point) == 0;
}

static void
examine_delivery(struct doctor *d)
{
	const struct wp_options wish = {.kernel = true, .bpf = true};
	struct wp_features without = d->features;
	struct wp_target *target;

	if (options_usual_delivery() == DELIVERY_RING) {
		(void)wp_cause_set(&d->no_bpf, WP_CAUSE_SYSTEM,
		    "WATCHCTL_DELIVERY", "ring");
		d->no_uprobe = d->no_bpf;
		return;
	}
	wp_probe_without_slots(&without);
	(void)wp_target_try_uprobe(&without, &d->no_uprobe);
	if (!d->opened)
		d->no_bpf = d->refusal;
	else if (wp_target_new(&target, &d->features, &wish, &d->no_bpf) == 0) {
		d->no_bpf = *wp_target_no_bpf(target);
		wp_target_free(target);
	}
}

void
doctor_examine(struct doctor *d, const char *program)
{
	struct utsname name;

	memset(d, 0, sizeof(*d));
	if (uname(&name) == 0) {
		memcpy(d->kernel, name.release, sizeof(d->kernel));
		memcpy(d->arch, name.machine, sizeof(d->arch));
	}
	examine_processor(d);
	examine_user(d);
	examine_limits(d);
	(void)wp_proc_check(&d->no_proc);
	d->opened = wp_probe_features(&d->features, &d->refusal) == 0;
	d->free_slots = wp_probe_free_slots();
	d->all_slots = wp_probe_all_slots();
	for (unsigned kind = 0; kind < WP_PROBE_KINDS; kind++)
		wp_probe_fire((enum wp_probe_kind)kind, &d->probe[kind]);
	examine_delivery(d);
	examine_newcomers(d);
	examine_another(d);
	examine_ways(d, program);
	sandbox_trial_run(&d->broker);
}
