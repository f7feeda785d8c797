/* doctor_text: the findings, as text. */
#include "doctor_private.h"

#include <string.h>

#include "os/attr.h"
#include "util/visible.h"

#define COLUMNS 78	/* text is folded to this many */
#define INDENT 14	/* column where what follows a heading begins */

/* Whether something refuses every event to everyone here, so that neither slots
   nor permissions are known. */
static bool
is_shut(const struct doctor *d)
{
	return !d->opened && d->refusal.code != WP_CAUSE_NO_SLOT &&
	    d->refusal.code != WP_CAUSE_DENIED_PARANOID &&
	    d->refusal.code != WP_CAUSE_DENIED_PERFMON;
}

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
		buffer_printf(&line, ", seccomp %s",
		    doctor_seccomp_name(d->seccomp));
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
	if (!doctor_knows_slots(d))
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

	if (doctor_delivery(d) == NULL)
		return;
	buffer_puts(&line, doctor_delivery(d));
	if (strcmp(doctor_delivery(d), "ring") == 0)
		buffer_printf(&line, ": %s", doctor_delivery_reason(d));
	put_heading(b, "delivery");
	put_foreign(b, buffer_text(&line));
	buffer_free(&line);
}

/* Uprobes serve for execution where slots run out, or where no breakpoint
   works. */
static void
text_uprobes(const struct doctor *d, struct buffer *b)
{
	const bool serve = d->no_uprobe.code == WP_CAUSE_NONE;

	if (!d->opened && !serve)
		return;
	put_heading(b, "uprobes");
	put_foreign(b, !serve ? d->no_uprobe.text : doctor_breaks(d) ?
	    "permitted" : "permitted: they watch execution (-x), since "
	    "breakpoints cannot");
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
	for (size_t i = 0; doctor_features[i].name != NULL; i++)
		buffer_printf(&line, "%s%s%s", i == 0 ? "" : ", ",
		    doctor_has_feature(d, &doctor_features[i]) ? "" : "no ",
		    doctor_features[i].name);
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

static void
text_box(const struct doctor *d, bool colour, struct buffer *b)
{
	struct buffer line = {0};

	buffer_puts(b, "\nwhat reads executables and recordings of others\n");
	put_verdict(b, doctor_is_sandboxed(d), "sandbox", colour);
	doctor_describe_box(d, &line);
	put_foreign(b, buffer_text(&line));
	buffer_free(&line);
}

static const char own_without[] =
    "own processes, without the kernel's accesses";
static const char own_with[] = "own processes, with the kernel's accesses";

/* The ways that work without perf events. */
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
		    how[doctor_best_way(d)]);
		return;
	}
	buffer_puts(b, "\nthe main job does not work here: ");
	visible_put(b, d->no_proc.code != WP_CAUSE_NONE ? d->no_proc.text :
	    d->way[DOCTOR_RING].detail);
	buffer_puts(b, "\n");
	if (d->no_proc.code == WP_CAUSE_NONE &&
	    d->no_uprobe.code == WP_CAUSE_NONE)
		buffer_puts(b, "execution can be watched, by uprobes: "
		    "watchctl -x FUNCTION -p PID\n");
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
