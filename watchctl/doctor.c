/*
 * doctor: examine the machine, and report what was found.
 */
#include "doctor.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/complain.h"
#include "util/field.h"
#include "spec/options.h"
#include "probe/probe.h"
#include "os/proc.h"
#include "attach/target.h"
#include "os/attr.h"
#include "os/perf.h"
#include "processes/cgroup.h"
#include "report/output.h"
#include "util/visible.h"

#define COLUMNS 78	/* text is folded to this many */
#define INDENT 14	/* column where what follows a heading begins */
#define NOBODY 65534
#define FIRST_USER_NAMESPACE 0xeffffffd	/* its inode, on every kernel */

/* Examining. */

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
	struct wp_target *target;

	if (!d->opened || options_usual_delivery() == DELIVERY_RING) {
		(void)wp_cause_set(&d->no_bpf, WP_CAUSE_SYSTEM,
		    "WATCHCTL_DELIVERY", "ring");
		d->no_uprobe = d->opened ? d->no_bpf : d->refusal;
		return;
	}
	(void)wp_target_try_uprobe(&d->features, &d->no_uprobe);
	if (wp_target_new(&target, &d->features, &wish, &d->no_bpf) < 0)
		return;
	d->no_bpf = *wp_target_no_bpf(target);
	wp_target_free(target);
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
	box_try(&d->box);
}

/* How hits come, as watchctl reports it at its start; NULL: not at all. */
static const char *
delivery(const struct doctor *d)
{
	return d->opened ? d->no_bpf.code == WP_CAUSE_NONE ? "bpf" : "ring" :
	    d->way[DOCTOR_STOP].ok ? "ptrace" : NULL;
}

/* Why it is not bpf. */
static const char *
delivery_reason(const struct doctor *d)
{
	return d->opened ? d->no_bpf.text : d->refusal.text;
}

/* The best way that works; DOCTOR_WAYS: none. */
static int
best_way(const struct doctor *d)
{
	int i = 0;

	while (i < DOCTOR_WAYS && !d->way[i].ok)
		i++;
	return i;
}

bool
doctor_ok(const struct doctor *d)
{
	return best_way(d) < DOCTOR_WAYS && d->no_proc.code == WP_CAUSE_NONE;
}

/* What reads others' files can do nothing else.  Where a user namespace has no
   user nobody, it is root there, without what makes one. */
static bool
is_sandboxed(const struct doctor *d)
{
	const struct box_trial *box = &d->box;

	return box->started && box->filtered && box->powerless &&
	    (box->uid != 0 || d->confined);
}

uint64_t
doctor_ring_kb(const struct doctor *d)
{
	const uint64_t page_kb = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	uint64_t cpus = d->cpus > 0 ? d->cpus : 1, kb = 0, ring = 0;

	if (d->cap_ipc_lock || d->memlock == UINT64_MAX ||
	    (d->features.paranoid < 0 && d->features.paranoid != INT_MIN))
		return UINT64_MAX;
	if (d->mlock_kb > 0)
		kb = (uint64_t)d->mlock_kb * cpus;
	kb += d->memlock / 1024;
	for (uint64_t next = page_kb; (next + page_kb) * cpus <= kb; next *= 2)
		ring = next;	/* and a control page */
	return ring;
}

/* What attributes are called, in text and in JSON. */
static const struct feature {
	const char *name;
	size_t offset;		/* of the bool in struct wp_features */
} features[] = {
	{"inherit_thread", offsetof(struct wp_features, inherit_thread)},
	{"remove_on_exec", offsetof(struct wp_features, remove_on_exec)},
	{"sigtrap", offsetof(struct wp_features, sigtrap)},
	{"format_lost", offsetof(struct wp_features, format_lost)},
	{"kernel", offsetof(struct wp_features, kernel)},
	{"callchain", offsetof(struct wp_features, callchain)},
};
#define NFEATURES (sizeof(features) / sizeof(features[0]))

static bool
has_feature(const struct doctor *d, const struct feature *feature)
{
	return *(const bool *)((const char *)&d->features + feature->offset);
}

/* Whether something refuses every event to everyone here, so that neither slots
   nor permissions are known. */
static bool
is_shut(const struct doctor *d)
{
	return !d->opened && d->refusal.code != WP_CAUSE_NO_SLOT &&
	    d->refusal.code != WP_CAUSE_DENIED_PARANOID &&
	    d->refusal.code != WP_CAUSE_DENIED_PERFMON;
}

static bool
knows_slots(const struct doctor *d)
{
	return d->opened || d->refusal.code == WP_CAUSE_NO_SLOT;
}

static const char *
seccomp_name(int mode)
{
	return mode == 0 ? "none" : mode == 1 ? "strict" : "filter";
}

/* Text. */

/* A heading in its column. */
static void
put_heading(struct buffer *b, const char *heading)
{
	buffer_printf(b, "%-*s", INDENT, heading);
}

/* Text from column INDENT on, folded at blanks, and the line's end. */
static void
put_folded(struct buffer *b, const char *text)
{
	size_t column = INDENT;

	while (*text != '\0') {
		size_t word = strcspn(text, " ");

		if (column > INDENT && column + 1 + word > COLUMNS) {
			buffer_puts(b, "\n");
			buffer_fill(b, ' ', INDENT);
			column = INDENT;
		} else if (column > INDENT) {
			buffer_puts(b, " ");
			column++;
		}
		buffer_put(b, text, word);
		column += word;
		text += word + strspn(text + word, " ");
	}
	buffer_puts(b, "\n");
}

/* The same with what is hidden made visible. */
static void
put_foreign(struct buffer *b, const char *text)
{
	struct buffer safe = {0};

	visible_put(&safe, text);
	put_folded(b, buffer_text(&safe));
	buffer_free(&safe);
}

/* A comma, and a setting with its value. */
static void
put_setting(struct buffer *b, const char *name, int value)
{
	if (value == DOCTOR_ABSENT)
		buffer_printf(b, ", %s absent", name);
	else
		buffer_printf(b, ", %s %d", name, value);
}

static void
text_machine(const struct doctor *d, struct buffer *b)
{
	struct buffer line = {0};

	buffer_printf(&line, "Linux %s %s, %u processor%s", d->kernel, d->arch,
	    d->cpus, d->cpus == 1 ? "" : "s");
	if (d->processor[0] != '\0')
		buffer_printf(&line, " (%s)", d->processor);
	if (d->hypervisor >= 0)
		buffer_puts(&line, d->hypervisor ? ", under a hypervisor" :
		    ", no hypervisor");
	put_heading(b, "machine");
	put_foreign(b, buffer_text(&line));
	buffer_free(&line);
}

static void
text_user(const struct doctor *d, struct buffer *b)
{
	struct buffer line = {0};

	buffer_printf(&line, "uid %u, %s, %s, %s", d->uid,
	    d->cap_perfmon ? "CAP_PERFMON" : "no CAP_PERFMON",
	    d->cap_sys_admin ? "CAP_SYS_ADMIN" : "no CAP_SYS_ADMIN",
	    d->cap_sys_ptrace ? "CAP_SYS_PTRACE" : "no CAP_SYS_PTRACE");
	if (d->confined)
		buffer_puts(&line, ", in a user namespace of its own, whose "
		    "capabilities do not count");
	if (d->seccomp >= 0)
		buffer_printf(&line, ", seccomp %s", seccomp_name(d->seccomp));
	put_heading(b, "user");
	put_folded(b, buffer_text(&line));

	line.len = 0;
	buffer_printf(&line, "kernel.perf_event_paranoid %d",
	    d->features.paranoid);
	if (d->features.paranoid == INT_MIN) {
		line.len = 0;
		buffer_puts(&line, "kernel.perf_event_paranoid absent");
	}
	put_setting(&line, "kptr_restrict", d->kptr_restrict);
	put_setting(&line, "yama.ptrace_scope", d->ptrace_scope);
	put_heading(b, "settings");
	put_folded(b, buffer_text(&line));
	buffer_free(&line);
}

static void
text_slots(const struct doctor *d, struct buffer *b)
{
	if (!knows_slots(d))
		return;
	put_heading(b, "slots");
	buffer_printf(b, "%u free of %u", d->free_slots, d->all_slots);
	if (d->opened)
		buffer_printf(b, ", each for %llu aligned bytes at most",
		    (unsigned long long)d->features.caps.range);
	buffer_puts(b, "\n");
}

static void
text_limits(const struct doctor *d, struct buffer *b)
{
	uint64_t ring = doctor_ring_kb(d), cpus = d->cpus > 0 ? d->cpus : 1;
	struct buffer line = {0};

	if (ring == UINT64_MAX)
		buffer_puts(&line, "ring buffers of any size");
	else
		buffer_printf(&line, "ring buffers of %llu KiB a processor at "
		    "most (kernel.perf_event_mlock_kb %d, ulimit -l %llu)",
		    (unsigned long long)ring, d->mlock_kb,
		    (unsigned long long)(d->memlock / 1024));
	if (d->nofile == UINT64_MAX)
		buffer_puts(&line, "; any number of descriptors");
	else
		buffer_printf(&line, "; %llu descriptors: one slot in %llu "
		    "threads", (unsigned long long)d->nofile,
		    (unsigned long long)(d->nofile / (cpus + 1)));
	put_heading(b, "limits");
	put_folded(b, buffer_text(&line));
	buffer_free(&line);
}

static void
text_delivery(const struct doctor *d, struct buffer *b)
{
	struct buffer line = {0};

	if (delivery(d) == NULL)
		return;
	buffer_puts(&line, delivery(d));
	if (strcmp(delivery(d), "ring") == 0)
		buffer_printf(&line, ": %s", delivery_reason(d));
	put_heading(b, "delivery");
	put_foreign(b, buffer_text(&line));
	buffer_free(&line);
}

/* Where slots run out, for execution. */
static void
text_uprobes(const struct doctor *d, struct buffer *b)
{
	if (!d->opened)
		return;
	put_heading(b, "uprobes");
	put_foreign(b, d->no_uprobe.code == WP_CAUSE_NONE ? "permitted" :
	    d->no_uprobe.text);
}

static void
text_newcomers(const struct doctor *d, struct buffer *b)
{
	if (!d->opened)
		return;
	put_heading(b, "newcomers");
	put_folded(b, !d->newcomers ? "not noticed, as that takes CAP_PERFMON: "
	    "no --exe, --cgroup and --all-cpus" : d->moves ? "noticed, also "
	    "those that are moved to a control group" : "noticed; those that "
	    "are moved to a control group are looked for: "
	    "/sys/kernel/tracing is not mounted, or this is a PID namespace");
}

static void
text_features(const struct doctor *d, struct buffer *b)
{
	struct buffer line = {0};

	if (!d->opened)
		return;
	for (size_t i = 0; i < NFEATURES; i++)
		buffer_printf(&line, "%s%s%s", i == 0 ? "" : ", ",
		    has_feature(d, &features[i]) ? "" : "no ",
		    features[i].name);
	put_heading(b, "features");
	put_folded(b, buffer_text(&line));
	buffer_free(&line);
}

static void
put_verdict(struct buffer *b, bool ok, const char *name, bool colour)
{
	buffer_puts(b, !colour ? "" : ok ? "\033[32m" : "\033[31m");
	buffer_puts(b, ok ? "ok" : "NO");
	buffer_printf(b, "%s  %-*s", colour ? "\033[0m" : "", INDENT - 4, name);
}

static void
text_probes(const struct doctor *d, bool colour, struct buffer *b)
{
	const char *shown = "";	/* one refusal often fails many probes */

	for (unsigned i = 0; i < WP_PROBE_KINDS; i++) {
		const struct wp_probe_result *p = &d->probe[i];

		put_verdict(b, p->ok, p->name, colour);
		put_foreign(b, p->detail);
		if (p->ok || strcmp(p->advice, shown) == 0)
			continue;
		buffer_fill(b, ' ', INDENT);
		put_foreign(b, p->advice);
		shown = p->advice;
	}
}

static void
text_ways(const struct doctor *d, bool colour, struct buffer *b)
{
	buffer_puts(b, "\nways to watch, each tried on a program\n");
	for (int i = 0; i < DOCTOR_WAYS; i++) {
		put_verdict(b, d->way[i].ok, d->way[i].name, colour);
		put_foreign(b, d->way[i].detail);
	}
}

/* What it can still do, and what was said of it. */
static void
describe_box(const struct doctor *d, struct buffer *line)
{
	const struct box_trial *box = &d->box;

	if (box->started)
		buffer_printf(line, "started as user %u, %s, %s",
		    (unsigned)box->uid, box->powerless ?
		    "without capabilities" :
		    "with capabilities that it could not give up",
		    box->filtered ? "its system calls filtered" :
		    "its system calls not filtered");
	else if (box->text[0] == '\0')
		buffer_puts(line, "watchctl-explain did not start");
	if (!is_sandboxed(d) && box->text[0] != '\0')
		buffer_printf(line, "%s%s", box->started ? ": " : "",
		    box->text);
}

static void
text_box(const struct doctor *d, bool colour, struct buffer *b)
{
	struct buffer line = {0};

	buffer_puts(b, "\nwhat reads executables and recordings of others\n");
	put_verdict(b, is_sandboxed(d), "sandbox", colour);
	describe_box(d, &line);
	put_foreign(b, buffer_text(&line));
	buffer_free(&line);
}

static const char own_without[] =
    "own processes, without the kernel's accesses";
static const char own_with[] = "own processes, with the kernel's accesses";

/* Without perf events. */
static const char *
by_ptrace(const struct doctor *d)
{
	if (d->way[DOCTOR_STOP].ok)
		return d->way[DOCTOR_INSIDE].ok ?
		    "own processes, without the kernel's accesses, with --stop "
		    "or --inside" :
		    "own processes, without the kernel's accesses, with "
		    "--stop";
	return d->way[DOCTOR_INSIDE].ok ? "own commands, without the kernel's "
	    "accesses, with --inside" : "nothing";
}

static const char *
others_may(const struct doctor *d)
{
	if (d->other.known)
		return !d->other.opened ? by_ptrace(d) : d->other.kernel ?
		    own_with : own_without;
	if (d->uid == 0 || d->cap_perfmon || d->cap_sys_admin)
		return "not known: `watchctl doctor` tries it for them";
	return "the same, each their own";
}

static const char *
you_may(const struct doctor *d)
{
	if (!d->opened)
		return d->refusal.code == WP_CAUSE_NO_SLOT ?
		    "nothing while no slot is free" : by_ptrace(d);
	if (!d->cap_perfmon && !d->cap_sys_admin)
		return d->features.kernel ? own_with : own_without;
	if (!d->features.kernel)
		return own_without;
	return d->cap_sys_ptrace ?
	    "every process, with the kernel's accesses" :
	    "every process, with the kernel's accesses; those of others are "
	    "attached without being held still, as that takes CAP_SYS_PTRACE";
}

static void
text_who(const struct doctor *d, struct buffer *b)
{
	if (is_shut(d) && !doctor_ok(d))
		return;
	buffer_puts(b, "\nwho may watch what\n");
	put_heading(b, "you");
	put_folded(b, you_may(d));
	put_heading(b, "other users");
	put_folded(b, others_may(d));
	if (d->ptrace_scope > 0 && !d->cap_sys_ptrace) {
		put_heading(b, "attaching");
		put_folded(b, "kernel.yama.ptrace_scope keeps a process from "
		    "being held still while it is attached, unless watchctl "
		    "started it");
	}
}

static void
text_end(const struct doctor *d, struct buffer *b)
{
	static const char *const how[DOCTOR_WAYS] = {
		": watchctl -w ADDR -p PID",
		" with --stop: watchctl --stop -w ADDR -p PID",
		" with --inside: watchctl --inside -w SYMBOL -- COMMAND",
	};

	if (doctor_ok(d)) {
		buffer_printf(b, "\nthe main job works here%s\n",
		    how[best_way(d)]);
		return;
	}
	buffer_puts(b, "\nthe main job does not work here: ");
	visible_put(b, d->no_proc.code != WP_CAUSE_NONE ? d->no_proc.text :
	    d->way[DOCTOR_RING].detail);
	buffer_puts(b, "\n");
}

void
doctor_text(const struct doctor *d, bool colour, struct buffer *b)
{
	text_machine(d, b);
	text_user(d, b);
	text_slots(d, b);
	text_limits(d, b);
	text_delivery(d, b);
	text_uprobes(d, b);
	text_newcomers(d, b);
	text_features(d, b);
	buffer_puts(b, "\n");
	text_probes(d, colour, b);
	text_ways(d, colour, b);
	text_box(d, colour, b);
	text_who(d, b);
	text_end(d, b);
}

/* JSON. */

static void
json_object(struct buffer *b, const char *name)
{
	field(b, name);
	buffer_puts(b, "{");
}

static void
json_limit(struct buffer *b, const char *name, uint64_t value)
{
	field(b, name);
	if (value == UINT64_MAX)
		buffer_puts(b, "null");
	else
		buffer_dec(b, value);
}

static void
json_setting(struct buffer *b, const char *name, int value)
{
	if (value == DOCTOR_ABSENT)
		return;
	field(b, name);
	buffer_printf(b, "%d", value);
}

static void
json_machine(const struct doctor *d, struct buffer *b)
{
	field_text(b, "kernel", d->kernel);
	field_text(b, "arch", d->arch);
	if (d->processor[0] != '\0')
		field_text(b, "processor", d->processor);
	field_dec(b, "cpus", d->cpus);
	if (d->hypervisor >= 0)
		field_bool(b, "hypervisor", d->hypervisor != 0);
	json_object(b, "slots");
	if (knows_slots(d))
		field_dec(b, "free", d->free_slots);
	field_dec(b, "all", d->all_slots);
	if (d->opened)
		field_dec(b, "range", d->features.caps.range);
	buffer_puts(b, "}");
}

static void
json_user(const struct doctor *d, struct buffer *b)
{
	json_object(b, "user");
	field_dec(b, "uid", d->uid);
	field_bool(b, "cap_perfmon", d->cap_perfmon);
	field_bool(b, "cap_sys_admin", d->cap_sys_admin);
	field_bool(b, "cap_sys_ptrace", d->cap_sys_ptrace);
	field_bool(b, "user_namespace", d->confined);
	if (d->seccomp >= 0)
		field_text(b, "seccomp", seccomp_name(d->seccomp));
	json_setting(b, "perf_event_paranoid", d->features.paranoid);
	json_setting(b, "kptr_restrict", d->kptr_restrict);
	json_setting(b, "ptrace_scope", d->ptrace_scope);
	buffer_puts(b, "}");
}

static void
json_limits(const struct doctor *d, struct buffer *b)
{
	json_object(b, "limits");
	json_limit(b, "ring_kb", doctor_ring_kb(d));
	json_setting(b, "perf_event_mlock_kb", d->mlock_kb);
	json_limit(b, "memlock", d->memlock);
	json_limit(b, "nofile", d->nofile);
	buffer_puts(b, "}");
}

static void
json_features(const struct doctor *d, struct buffer *b)
{
	if (!d->opened) {
		field_text(b, "refusal", d->refusal.text);
		return;
	}
	json_object(b, "features");
	for (size_t i = 0; i < NFEATURES; i++)
		field_bool(b, features[i].name, has_feature(d, &features[i]));
	buffer_puts(b, "}");
}

static void
json_delivery(const struct doctor *d, struct buffer *b)
{
	if (delivery(d) == NULL)
		return;
	field_text(b, "delivery", delivery(d));
	if (strcmp(delivery(d), "bpf") != 0)
		field_text(b, "delivery_reason", delivery_reason(d));
}

static void
json_uprobes(const struct doctor *d, struct buffer *b)
{
	field_bool(b, "uprobes", d->no_uprobe.code == WP_CAUSE_NONE);
	if (d->no_uprobe.code != WP_CAUSE_NONE)
		field_text(b, "uprobes_reason", d->no_uprobe.text);
}

static void
json_probe(const struct wp_probe_result *p, struct buffer *b)
{
	const char *name = p->err != 0 ? strerrorname_np(p->err) : NULL;

	buffer_puts(b, "{");
	field_text(b, "name", p->name);
	field_bool(b, "ok", p->ok);
	field_text(b, "detail", p->detail);
	if (name != NULL)
		field_text(b, "errno", name);
	if (!p->ok)
		field_text(b, "advice", p->advice);
	buffer_puts(b, "}");
}

/* The option's name without its dashes. */
static void
json_ways(const struct doctor *d, struct buffer *b)
{
	field(b, "ways");
	for (int i = 0; i < DOCTOR_WAYS; i++) {
		const struct doctor_way *way = &d->way[i];

		buffer_puts(b, i == 0 ? "[{" : ",{");
		field_text(b, "name", way->name + strspn(way->name, "-"));
		field_bool(b, "ok", way->ok);
		field_text(b, "detail", way->detail);
		buffer_puts(b, "}");
	}
	buffer_puts(b, "]");
}

static void
json_box(const struct doctor *d, struct buffer *b)
{
	const struct box_trial *box = &d->box;
	struct buffer line = {0};

	json_object(b, "sandbox");
	field_bool(b, "ok", is_sandboxed(d));
	describe_box(d, &line);
	field_text(b, "detail", buffer_text(&line));
	buffer_free(&line);
	if (box->started) {
		field_dec(b, "uid", box->uid);
		field_bool(b, "capabilities", !box->powerless);
		field_bool(b, "filtered", box->filtered);
	}
	buffer_puts(b, "}");
}

void
doctor_json(const struct doctor *d, struct buffer *b)
{
	buffer_puts(b, "{");
	field_text(b, "type", "doctor");
	field_text(b, "schema", "watchctl/1");
	field_bool(b, "ok", doctor_ok(d));
	if (d->no_proc.code != WP_CAUSE_NONE)
		field_text(b, "advice", d->no_proc.text);
	json_machine(d, b);
	json_user(d, b);
	json_limits(d, b);
	json_features(d, b);
	json_delivery(d, b);
	json_uprobes(d, b);
	field_bool(b, "newcomers", d->newcomers);
	field_bool(b, "cgroup_moves", d->moves);
	json_ways(d, b);
	json_box(d, b);
	field(b, "probes");
	for (unsigned i = 0; i < WP_PROBE_KINDS; i++) {
		buffer_puts(b, i == 0 ? "[" : ",");
		json_probe(&d->probe[i], b);
	}
	buffer_puts(b, "]}\n");
}

/* The command. */

static int
usage(const char *what, const char *which)
{
	(void)complain("doctor: %s '%s'; usage: watchctl doctor [-o text|json]",
	    what, which);
	return STATUS_OWN_FAILURE;
}

/* 0 or an exit status. */
static int
parse(int argc, char **argv, bool *json)
{
	static const struct option none[] = {{NULL, 0, NULL, 0}};
	int option;

	*json = false;
	optind = 0;		/* glibc: begin anew */
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:o:", none, NULL)) != -1) {
		if (option != 'o')
			return usage(option == ':' ? "no form after" :
			    "no such option", argv[optind - 1]);
		*json = strcmp(optarg, "json") == 0;
		if (!*json && strcmp(optarg, "text") != 0)
			return usage("no such form:", optarg);
	}
	return optind < argc ? usage("no argument expected:", argv[optind]) : 0;
}

int
doctor(int argc, char **argv, const char *program, FILE *out)
{
	struct buffer b = {0};
	struct doctor d;
	bool json;
	int err;

	if (argc == 2 && strcmp(argv[1], "--fire") == 0)
		doctor_fire();
	if ((err = parse(argc, argv, &json)) != 0)
		return err;
	doctor_examine(&d, program);
	if (json)
		doctor_json(&d, &b);
	else
		doctor_text(&d, output_screen(out).colour, &b);
	err = buffer_write(&b, out);
	buffer_free(&b);
	if (err < 0) {
		(void)complain("doctor: cannot write: %s", strerror(-err));
		return STATUS_OWN_FAILURE;
	}
	return doctor_ok(&d) ? 0 : 1;
}
