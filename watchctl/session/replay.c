/*
 * replay: a recording, explained as live hits are.
 *
 * Events that have one name, one kind of access and regions that follow each
 * other are the slots of one watch.
 */
#include "session/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <string.h>

#include "session/explained_session.h"
#include "space/space.h"
#include "util/complain.h"
#include "symbol/symbol.h"
#include "os/slot.h"

static enum wp_access
access_of(const struct perf_event_attr *attr)
{
	switch (attr->bp_type) {
	case HW_BREAKPOINT_X:
		return WP_EXEC;
	case HW_BREAKPOINT_W:
		return WP_WRITE;
	case HW_BREAKPOINT_R:
		return WP_READ;
	default:
		return attr->config == REPLAY_READS ?
		    WP_READ : WP_ACCESS;
	}
}

static bool
is_watch(const struct ex_perf_event *event)
{
	return event->attr.type == PERF_TYPE_BREAKPOINT;
}

static bool
continues(const struct ex_perf_event *a, const struct ex_perf_event *b)
{
	return is_watch(a) && is_watch(b) && a->name != NULL &&
	    b->name != NULL && strcmp(a->name, b->name) == 0 &&
	    a->attr.bp_type == b->attr.bp_type &&
	    a->attr.config == b->attr.config &&
	    a->attr.bp_type != HW_BREAKPOINT_X &&
	    a->attr.bp_addr + a->attr.bp_len == b->attr.bp_addr;
}

/* The watch that starts with event i: its region and number of events. */
static int
add_watch(struct session *s, const struct ex_perf_event *events, size_t n,
    size_t i)
{
	const struct perf_event_attr *attr = &events[i].attr;
	uint64_t len = wp_slot_bytes(attr->bp_type, attr->bp_len);
	unsigned slots = 1;
	char name[64];

	while (i + slots < n && continues(&events[i + slots - 1],
	    &events[i + slots])) {
		len += events[i + slots].attr.bp_len;
		slots++;
	}
	(void)snprintf(name, sizeof(name), "%#llx:%" PRIu64,
	    (unsigned long long)attr->bp_addr, len);
	return session_add_watch(s, events[i].name != NULL ? events[i].name :
	    name, NULL, attr->bp_addr, len, access_of(attr), slots);
}

static int
add_watches(struct session *s, const struct ex_perfdata *data)
{
	const struct ex_perf_event *events;
	size_t n = ex_perfdata_events(data, &events);

	for (size_t i = 0; i < n; i++) {
		const struct perf_event_attr *attr = &events[i].attr;
		int err = 0;

		if (is_watch(&events[i]) &&
		    (i == 0 || !continues(&events[i - 1], &events[i])))
			err = add_watch(s, events, n, i);
		if (err == 0)
			err = session_add_slot(s, is_watch(&events[i]) ?
			    (int)s->nwatches - 1 : -1, attr->bp_addr,
			    wp_slot_bytes(attr->bp_type, attr->bp_len));
		if (err < 0)
			return complain("out of memory");
	}
	if (s->nwatches == 0)
		return complain("%s: recorded no watch; make one with -o perf, "
		    "or perf record -e mem:ADDR/8:w", s->options->file);
	return 0;
}

/* Whether each access has a record, so that every hit found what the previous
   one left. */
static bool
has_all(const struct ex_perfdata *data)
{
	const struct ex_perf_event *events;
	size_t n = ex_perfdata_events(data, &events);

	for (size_t i = 0; i < n; i++)
		if (is_watch(&events[i]) && (events[i].attr.freq != 0 ||
		    events[i].attr.sample_period != 1))
			return false;
	return true;
}

/* Whether children inherit an event. */
static bool
follows(const struct perf_event_attr *attr)
{
	return attr->inherit && !attr->inherit_thread;
}

/* Whether an event covers the kernel and all threads.  Those of --stop are not
   inherited: each thread has its own. */
static bool
sees_all(const struct perf_event_attr *attr)
{
	return !attr->exclude_kernel && !attr->exclude_user &&
	    (attr->inherit || (attr->sample_type & PERF_SAMPLE_RAW) != 0);
}

static int
find_values(struct session *s, const struct ex_perfdata *data)
{
	struct ex_value_options values = {.follows = true, .crowds = true};
	const struct ex_perf_event *events;
	size_t n = ex_perfdata_events(data, &events);
	int err;

	if (!has_all(data))
		return 0;
	for (size_t i = 0; i < n; i++)
		values.follows = values.follows && (!is_watch(&events[i]) ||
		    follows(&events[i].attr));
	if ((err = ex_explainer_values(s->explainer, &values)) < 0)
		return err;
	for (size_t i = 0; i < s->nslots && i < n; i++) {
		if (s->slots[i].watch == NULL)
			continue;
		ex_explain_doubt(s->explainer, s->slots[i].watch,
		    EX_UNMAPPED);
		if (!sees_all(&events[i].attr))
			ex_explain_doubt(s->explainer, s->slots[i].watch,
			    EX_UNSEEN);
	}
	return 0;
}

static void
take_build_id(void *arg, const char *path, const uint8_t *id, size_t len)
{
	ex_space_build_id(arg, path, id, len);
}

/* Name a watch by the symbol that contains it. */
static void
name_watch(struct session *s, struct ex_watch *watch, pid_t pid)
{
	struct ex_process *process = ex_space_process(s->space, pid);
	struct spec_place place;
	struct spec spec = {
		.addr = watch->addr, .len = watch->len,
		.access = watch->access, .text = (char *)(uintptr_t)watch->spec,
	};

	if (watch->symbol == NULL && process != NULL &&
	    spec_resolve(&spec, process, &place, NULL) == 0)
		watch->symbol = place.symbol;
}

/* Find the object of a watch in the debug information; its SPEC describes it if
   that is an expression.  Returns 0, or -EINVAL if the condition does not suit
   it. */
static int
find_object(struct session *s, struct ex_watch *watch, pid_t pid)
{
	struct spec spec;
	const bool parsed = watch->spec != NULL &&
	    spec_parse(watch->spec, watch->access, &spec, NULL) == 0;
	const bool says = parsed && spec.expression_only;
	int err;

	if (!says)
		name_watch(s, watch, pid);
	err = explained_session_object(s, pid, says ? &spec : NULL, watch->addr,
	    watch->len);
	if (parsed)
		spec_free(&spec);
	return err;
}

/* Start the report of the recording with its first record.  Returns 0, or
   -EINVAL if the condition does not suit it. */
static int
start(struct session *s, const struct ex_perfdata *data,
    const struct ex_record *first)
{
	const unsigned *rank = ex_perfdata_rank(data);
	struct report_start begin = {
		.pid = first == NULL || first->pid < 0 ? 0 : first->pid,
		.frozen_ms = -1,
		.time = first == NULL ? 0 : first->time,
		.wall = first == NULL ? 0 : ex_perfdata_wall(data, first->time),
		.origin.ranked = rank != NULL,
		.origin.rank = rank != NULL ? *rank : 0,
	};

	(void)snprintf(begin.origin.host, sizeof(begin.origin.host), "%s",
	    ex_perfdata_host(data));
	if (first != NULL) {
		for (size_t i = 0; i < s->nwatches; i++) {
			if (find_object(s, s->watches[i], first->pid) < 0)
				return -EINVAL;
		}
		begin.comm = ex_space_comm(s->space, first->pid, first->pid);
	}
	if (s->nwatches > 0 && ex_watch_in_kernel(s->watches[0])) {
		begin.pid = -1;
		begin.comm = NULL;
	}
	session_start(s, &begin);
	return 0;
}

/* A LOST record counts what was lost since the previous one; LOST_SAMPLES,
   added by perf record, the total. */
static int
play(struct session *s, struct ex_perfdata *data)
{
	struct ex_record record;
	bool started = false;
	uint64_t lost = 0;
	int got;

	while ((got = ex_perfdata_next(data, &record)) > 0) {
		if (s->progress != NULL)
			s->progress();
		if (record.type == PERF_RECORD_LOST_SAMPLES) {
			lost += record.lost.count;
			continue;
		}
		if (!started && (record.type == PERF_RECORD_SAMPLE ||
		    record.type == PERF_RECORD_LOST)) {
			if (start(s, data, &record) < 0)
				return STATUS_OWN_FAILURE;
			started = true;
		}
		if (!started)
			(void)ex_explain(s->explainer, &record);
		else if (!session_record(s, &record))
			break;
	}
	if (!started)
		(void)start(s, data, NULL);
	if (got < 0) {	/* later records may have been due before */
		record = (struct ex_record){.type = PERF_RECORD_LOST};
		(void)ex_explain(s->explainer, &record);
	}
	if (session_flush(s, UINT64_MAX) && lost > s->lost)
		session_lost(s, lost - s->lost);
	s->skipped = ex_perfdata_skipped(data);
	if (got < 0) {
		session_doubt(s, "the recording is damaged");
		session_warn(s, "%s is damaged, or was not finished; the "
		    "rest is missing", s->options->file);
	}
	return session_end(s, s->full ? session_full_reason(s) : "exit", 0,
	    NULL);
}

/* Explain why a file cannot be read. */
static int
refuse(const char *file, int err, const char *why)
{
	switch (err) {
	case -EINVAL:
	case -ENOTSUP:
	case -EBADMSG:
	case -EISDIR:
	case -ENOMEM:
		(void)complain("%s: %s", file, why);
		break;
	default:
		(void)complain("%s: %s: %s", file, why, strerror(-err));
		break;
	}
	return STATUS_OWN_FAILURE;
}

int
replay(struct session *s)
{
	const char *const file = s->options->file;
	struct ex_perfdata *data;
	const char *why;
	int err, status = STATUS_OWN_FAILURE;

	if ((err = ex_perfdata_open(file, &data, &why)) < 0)
		return refuse(file, err, why);
	if (add_watches(s, data) == 0) {
		ex_perfdata_build_ids(data, take_build_id, s->space);
		if (session_ready(s) == 0 && find_values(s, data) == 0)
			status = play(s, data);
		else
			(void)complain("out of memory");
	}
	ex_perfdata_close(data);
	return status;
}
