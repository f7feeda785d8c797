/* doctor_json: the findings, as one line of JSON. */
#include "doctor_private.h"

#include <string.h>

#include "util/field.h"

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
	if (doctor_knows_slots(d))
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
		field_text(b, "seccomp", doctor_seccomp_name(d->seccomp));
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
	for (size_t i = 0; doctor_features[i].name != NULL; i++)
		field_bool(b, doctor_features[i].name,
		    doctor_has_feature(d, &doctor_features[i]));
	buffer_puts(b, "}");
}

static void
json_delivery(const struct doctor *d, struct buffer *b)
{
	if (doctor_delivery(d) == NULL)
		return;
	field_text(b, "delivery", doctor_delivery(d));
	if (strcmp(doctor_delivery(d), "bpf") != 0)
		field_text(b, "delivery_reason", doctor_delivery_reason(d));
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
	const struct sandbox_trial *broker = &d->broker;
	struct buffer line = {0};

	json_object(b, "sandbox");
	field_bool(b, "ok", doctor_is_sandboxed(d));
	doctor_describe_box(d, &line);
	field_text(b, "detail", buffer_text(&line));
	buffer_free(&line);
	if (broker->started) {
		field_dec(b, "uid", broker->uid);
		field_bool(b, "capabilities", !broker->powerless);
		field_bool(b, "filtered", broker->filtered);
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
