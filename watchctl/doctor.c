/*
 * doctor: examine the machine, and report what was found.
 */
#include "doctor.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "util/complain.h"
#include "util/field.h"
#include "spec/options.h"
#include "os/probe.h"
#include "os/proc.h"
#include "report/report.h"
#include "util/visible.h"

#define COLUMNS 78	/* text is folded to this many */
#define INDENT 14	/* column where what follows a heading begins */

/* Examining. */

/* The first number of a file, or DOCTOR_ABSENT. */
static int
read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[64], *end = line;
	long value = 0;

	if (f == NULL)
		return DOCTOR_ABSENT;
	if (fgets(line, sizeof(line), f) != NULL)
		value = strtol(line, &end, 10);
	(void)fclose(f);
	return end == line ? DOCTOR_ABSENT : (int)value;
}

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
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct wp_proc_status status;
	uint64_t caps = 0;

	if (syscall(SYS_capget, &header, data) == 0)
		caps = (uint64_t)data[1].effective << 32 | data[0].effective;
	d->uid = geteuid();
	d->cap_perfmon = (caps & (1ull << CAP_PERFMON |
	    1ull << CAP_SYS_ADMIN)) != 0;
	d->cap_sys_ptrace = (caps & 1ull << CAP_SYS_PTRACE) != 0;
	d->cap_ipc_lock = (caps & 1ull << CAP_IPC_LOCK) != 0;
	d->seccomp = wp_proc_status(getpid(), &status) == 0 ? status.seccomp :
	    -1;
}

static void
examine_limits(struct doctor *d)
{
	struct rlimit limit;

	d->kptr_restrict = read_number("/proc/sys/kernel/kptr_restrict");
	d->ptrace_scope = read_number("/proc/sys/kernel/yama/ptrace_scope");
	d->mlock_kb = read_number("/proc/sys/kernel/perf_event_mlock_kb");
	d->memlock = d->nofile = UINT64_MAX;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		d->memlock = limit.rlim_cur;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_max != RLIM_INFINITY)
		d->nofile = limit.rlim_max;
}

void
doctor_examine(struct doctor *d)
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
}

bool
doctor_ok(const struct doctor *d)
{
	return d->probe[WP_PROBE_WRITE].ok && d->probe[WP_PROBE_CPUS].ok &&
	    d->no_proc.code == WP_CAUSE_NONE;
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
	    d->refusal.code != WP_CAUSE_DENIED_PARANOID;
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

	buffer_printf(&line, "uid %u, %s, %s", d->uid,
	    d->cap_perfmon ? "CAP_PERFMON" : "no CAP_PERFMON",
	    d->cap_sys_ptrace ? "CAP_SYS_PTRACE" : "no CAP_SYS_PTRACE");
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
text_probes(const struct doctor *d, bool colour, struct buffer *b)
{
	const char *shown = "";	/* one refusal often fails many probes */

	for (unsigned i = 0; i < WP_PROBE_KINDS; i++) {
		const struct wp_probe_result *p = &d->probe[i];

		buffer_puts(b, !colour ? "" : p->ok ? "\033[32m" : "\033[31m");
		buffer_puts(b, p->ok ? "ok" : "NO");
		buffer_printf(b, "%s  %-*s", colour ? "\033[0m" : "",
		    INDENT - 4, p->name);
		put_foreign(b, p->detail);
		if (p->ok || strcmp(p->advice, shown) == 0)
			continue;
		buffer_fill(b, ' ', INDENT);
		put_foreign(b, p->advice);
		shown = p->advice;
	}
}

static const char *
others_may(const struct doctor *d)
{
	const int level = d->features.paranoid;
	const bool privileged = d->uid == 0 || d->cap_perfmon;

	if (level == INT_MIN)
		return "as kernel.perf_event_paranoid, which cannot be read, "
		    "lets them";
	if (level > 2 && privileged)
		return "nothing on the kernels of Debian, Ubuntu and Android; "
		    "elsewhere own processes, without the kernel's accesses";
	if (d->refusal.code == WP_CAUSE_DENIED_PARANOID)
		return "nothing";
	if (level >= 2)
		return "own processes, without the kernel's accesses";
	return "own processes, with the kernel's accesses";
}

static const char *
you_may(const struct doctor *d)
{
	if (!d->opened)
		return d->refusal.code == WP_CAUSE_NO_SLOT ?
		    "nothing while no slot is free" : "nothing";
	if (!d->cap_perfmon)
		return d->features.kernel ?
		    "own processes, with the kernel's accesses" :
		    "own processes, without the kernel's accesses";
	if (!d->features.kernel)
		return "own processes, without the kernel's accesses: the "
		    "capabilities of a user namespace (a container) do not "
		    "count";
	return d->cap_sys_ptrace ?
	    "every process, with the kernel's accesses" :
	    "every process, with the kernel's accesses; those of others are "
	    "attached without being held still, as that takes CAP_SYS_PTRACE";
}

static void
text_who(const struct doctor *d, struct buffer *b)
{
	if (is_shut(d))
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

void
doctor_text(const struct doctor *d, bool colour, struct buffer *b)
{
	text_machine(d, b);
	text_user(d, b);
	text_slots(d, b);
	text_limits(d, b);
	text_features(d, b);
	buffer_puts(b, "\n");
	text_probes(d, colour, b);
	text_who(d, b);
	buffer_puts(b, "\n");
	if (doctor_ok(d)) {
		buffer_puts(b, "the main job works here: watchctl -w ADDR -p "
		    "PID\n");
		return;
	}
	buffer_puts(b, "the main job does not work here: ");
	visible_put(b, d->no_proc.code != WP_CAUSE_NONE ? d->no_proc.text :
	    d->probe[!d->probe[WP_PROBE_WRITE].ok ? WP_PROBE_WRITE :
	    WP_PROBE_CPUS].detail);
	buffer_puts(b, "\n");
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
	field_bool(b, "cap_sys_ptrace", d->cap_sys_ptrace);
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
doctor(int argc, char **argv, FILE *out)
{
	struct buffer b = {0};
	struct doctor d;
	bool json;
	int err = parse(argc, argv, &json);

	if (err != 0)
		return err;
	doctor_examine(&d);
	if (json)
		doctor_json(&d, &b);
	else
		doctor_text(&d, report_wants_colour(out), &b);
	err = buffer_write(&b, out);
	buffer_free(&b);
	if (err < 0) {
		(void)complain("doctor: cannot write: %s", strerror(-err));
		return STATUS_OWN_FAILURE;
	}
	return doctor_ok(&d) ? 0 : 1;
}
