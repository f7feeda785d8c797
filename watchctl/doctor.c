/* doctor: the command, and the conclusions from its findings. */
#include "doctor_private.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "report/output.h"
#include "option/options.h"
#include "util/complain.h"

const char *
doctor_delivery(const struct doctor *d)
{
	return d->opened ? d->no_bpf.code == WP_CAUSE_NONE ? "bpf" : "ring" :
	    d->way[DOCTOR_STOP].ok ? "ptrace" : NULL;
}

const char *
doctor_delivery_reason(const struct doctor *d)
{
	return d->opened ? d->no_bpf.text : d->refusal.text;
}

bool
doctor_breaks(const struct doctor *d)
{
	return d->opened && d->way[DOCTOR_RING].ok;
}

int
doctor_best_way(const struct doctor *d)
{
	int i = 0;

	while (i < DOCTOR_WAYS && !d->way[i].ok)
		i++;
	return i;
}

bool
doctor_ok(const struct doctor *d)
{
	return doctor_best_way(d) < DOCTOR_WAYS &&
	    d->no_proc.code == WP_CAUSE_NONE;
}

bool
doctor_is_sandboxed(const struct doctor *d)
{
	const struct sandbox_trial *broker = &d->broker;

	return broker->started && broker->filtered && broker->powerless &&
	    (broker->uid != 0 || d->confined);
}

void
doctor_describe_box(const struct doctor *d, struct buffer *line)
{
	const struct sandbox_trial *broker = &d->broker;

	if (broker->started)
		buffer_printf(line, "started as user %u, %s, %s",
		    (unsigned)broker->uid, broker->powerless ?
		    "without capabilities" :
		    "with capabilities that it could not give up",
		    broker->filtered ? "its system calls filtered" :
		    "its system calls not filtered");
	else if (broker->text[0] == '\0')
		buffer_puts(line, "watchctl-explain did not start");
	if (!doctor_is_sandboxed(d) && broker->text[0] != '\0')
		buffer_printf(line, "%s%s", broker->started ? ": " : "",
		    broker->text);
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

const struct doctor_feature doctor_features[] = {
	{"inherit_thread", offsetof(struct wp_features, inherit_thread)},
	{"remove_on_exec", offsetof(struct wp_features, remove_on_exec)},
	{"sigtrap", offsetof(struct wp_features, sigtrap)},
	{"format_lost", offsetof(struct wp_features, format_lost)},
	{"kernel", offsetof(struct wp_features, kernel)},
	{"callchain", offsetof(struct wp_features, callchain)},
	{0},
};

bool
doctor_has_feature(const struct doctor *d, const struct doctor_feature *feature)
{
	return *(const bool *)((const char *)&d->features + feature->offset);
}

bool
doctor_knows_slots(const struct doctor *d)
{
	return d->opened || d->refusal.code == WP_CAUSE_NO_SLOT;
}

const char *
doctor_seccomp_name(int mode)
{
	return mode == 0 ? "none" : mode == 1 ? "strict" : "filter";
}

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
