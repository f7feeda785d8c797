/*
 * environment_specs: resolves the SPECs in a program's own environment.
 *
 * Each is a line "ACCESS:SPEC"; letters that follow ACCESS are for the library.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/remote_session.h"
#include "helper/serve.h"
#include "processes/synthetic_records.h"

/* The number of slots for the report, or 0 if the region cannot be watched,
   which the program will find out. */
static uint8_t
count_slots(const struct wp_region *region)
{
	struct wp_slot slot[WP_SLOTS_MAX];
	int n = wp_slot_plan(region, &wp_slot_usual, slot, NULL);

	return n > 0 ? (uint8_t)n : 0;
}

/* Answer with a place, after n others, and add it to the report. */
static int
answer(struct program *p, const struct spec *spec,
    const struct spec_place *place, struct wp_cell_watch *regions, unsigned n)
{
	const struct wp_region what = {
		.addr = place->addr, .len = place->len,
		.access = spec->access,
	};
	struct wp_cell_watch *region = &regions[n];
	unsigned nth = 0;

	*region = (struct wp_cell_watch){
		.addr = what.addr, .len = what.len,
		.access = (uint8_t)spec->access, .nslots = count_slots(&what),
	};
	(void)snprintf(region->label, sizeof(region->label), "%s", spec->text);
	for (unsigned i = 0; i < n; i++)
		nth += watch_registry_is_like(&regions[i], region);
	return watch_registry_add(&p->serve->registry, &p->serve->session,
	    p->pid, region, nth, spec->text, place->symbol);
}

/* Resolve one line.  Returns 0 or -errno with a cause. */
static int
resolve_line(struct program *p, char *line, struct wp_cell_watch *regions,
    unsigned n, struct wp_cause *cause)
{
	char *text = strchr(line, ':');
	struct spec_place place = {.symbol = NULL};
	struct spec spec;
	int err;

	if (text == NULL || strchr("wrax", *line) == NULL)
		return wp_cause_errno(cause, line, EINVAL);
	if ((err = spec_parse(text + 1, (enum wp_access)*line, &spec,
	    cause)) < 0)
		return err;
	spec.unborn = true;
	if ((err = live_broker_resolve(&p->serve->live, p->pid, &spec, false,
	    &place, cause)) == 0 && place.nmore > 0)
		err = spec_refuse(&spec, "this line has more than one address, "
		    "and --inside takes one for a SPEC: give addresses",
		    cause);
	else if (err < 0 && cause->code == WP_CAUSE_MODULE_UNKNOWN)
		err = spec_refuse(&spec, "no such module is mapped, and with "
		    "--inside none is waited for: without it, watchctl waits "
		    "for one that is opened later", cause);
	else if (err == 0 && (err = answer(p, &spec, &place, regions,
	    n)) < 0)
		(void)wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	free(place.symbol);
	spec_free(&spec);
	return err;
}

int
serve_learn(struct program *p)
{
	struct synthetic_records records = {0};
	int err = synthetic_records_take(&records, p->pid);

	if (err == 0)
		err = live_broker_learn(&p->serve->live, p->pid, records.bytes,
		    records.len, 0);
	synthetic_records_free(&records);
	return err;
}

static int
resolve_lines(struct program *p, char *text, struct wp_request *request,
    struct wp_cause *cause)
{
	int n = 0, err = serve_learn(p);
	char *at = NULL;

	if (err < 0)
		return wp_cause_errno(cause, "reading what the program maps",
		    -err);
	for (char *line = strtok_r(text, "\n", &at); line != NULL;
	    line = strtok_r(NULL, "\n", &at)) {
		if (n == WP_REGIONS_MAX)
			return wp_cause_errno(cause, "what to watch", E2BIG);
		err = resolve_line(p, line, request->region, (unsigned)n,
		    cause);
		if (err < 0)
			return err;
		n++;
	}
	request->nregions = (uint32_t)n;
	return n;
}

int
serve_resolve(struct program *p, struct wp_request *request)
{
	struct wp_cause cause = {0};
	char text[WP_TEXT_MAX + 1];
	int n;

	/* the explainer answers one question at a time */
	remote_session_catch_up(p->serve->remote, -1);
	memcpy(text, request->text, WP_TEXT_MAX);
	text[WP_TEXT_MAX] = '\0';
	if ((n = resolve_lines(p, text, request, &cause)) < 0)
		(void)snprintf(request->cause, sizeof(request->cause), "%s",
		    cause.text);
	return n;
}
