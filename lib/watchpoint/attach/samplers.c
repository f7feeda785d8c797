/* samplers: which programs write samples.  See samplers.h. */
#include "attach/samplers.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/target_private.h"
#include "os/sampler.h"

static volatile uint64_t word;	/* what the proof watches */

uint64_t
wp_sampler_id(size_t watch, unsigned slot)
{
	return UINT64_C(1) << 63 | wp_target_stop_id(watch, slot);
}

/* The proof's. */
#define PROOF_ID UINT64_MAX

static int
load(const struct wp_rings *rings, unsigned ring,
    const struct perf_event_attr *attr, uint64_t id)
{
	return wp_sampler_load(attr, id, wp_rings_cpu(rings, ring),
	    wp_rings_bpf(rings, ring));
}

/* A ring's own to its event.  0 or -errno, and the step. */
static int
attach(const struct wp_rings *rings, unsigned ring,
    const struct perf_event_attr *attr, int event, const char **step)
{
	const int program = load(rings, ring, attr, PROOF_ID);
	int err;

	*step = "loading a BPF program";
	if (program < 0)
		return program;
	*step = "attaching a BPF program";
	err = wp_perf_set_bpf(event, program);
	(void)close(program);
	return err;
}

/* One hit of this thread, by events that have a program.  0 or -errno, and the
   step. */
static int
hit_own(struct wp_rings *rings, struct perf_event_attr *attr,
    const char **step)
{
	struct wp_events events = {0};
	int err;

	*step = "perf_event_open";
	err = wp_events_open(&events, attr, 0, 0, 0, rings);
	for (unsigned i = 0; err == 0 && i < events.n; i++)
		err = attach(rings, i, attr, events.event[i].fd, step);
	if (err == 0)
		word = 1;
	wp_events_close(&events, 0);
	return err;
}

/* Whether what a program wrote is that hit, and nothing else is there. */
static bool
is_proved(struct wp_rings *rings)
{
	const struct perf_event_header *header;
	unsigned right = 0, all = 0;

	while ((header = wp_rings_next(rings, UINT64_MAX)) != NULL) {
		const struct wp_sample *sample = (const void *)header;

		all++;
		right += header->type == PERF_RECORD_SAMPLE &&
		    sample->id == PROOF_ID &&
		    sample->tid == (uint32_t)gettid() &&
		    sample->addr == (uintptr_t)&word;
	}
	return right == 1 && all == 1;
}

/* 0 or -errno, and the step. */
static int
prove(struct wp_rings *rings, const struct wp_options *options,
    const char **step)
{
	const struct wp_slot slot = {
		(uintptr_t)&word, sizeof(word), HW_BREAKPOINT_W,
	};
	struct perf_event_attr attr;
	int err;

	wp_attr_watch(&attr, &slot, options, false);
	attr.inherit = attr.inherit_thread = 0;
	if ((err = hit_own(rings, &attr, step)) < 0)
		return err;
	*step = "a store into a watched word";
	return is_proved(rings) ? 0 : -ENOMSG;
}

int
wp_samplers_rings(struct wp_rings **rings, const struct wp_options *options,
    size_t size, struct wp_cause *cause)
{
	const char *step = "making a BPF ring buffer";
	int err = wp_rings_open(rings, size / 2, cause);

	if (err < 0)
		return err;
	if ((err = wp_rings_add_bpf(*rings)) == 0)
		err = prove(*rings, options, &step);
	if (err == 0)
		return 0;
	wp_rings_close(*rings);
	*rings = NULL;
	return wp_cause_set(cause, WP_CAUSE_NO_BPF, step,
	    strerrordesc_np(-err));
}

/* What a program reads itself, a stack perhaps, must not be watched for that: it
   would hit while it runs, which nobody delivers. */
static bool
are_reads_watched(const struct wp_target *target)
{
	for (size_t w = 0; w < target->nwatches; w++)
		for (unsigned s = 0; s < target->watch[w].nslots; s++)
			if (target->watch[w].slot[s].type & HW_BREAKPOINT_R)
				return true;
	return false;
}

/* A slot's, of each ring.  False: one cannot be had. */
static bool
load_slot(int *program, const struct wp_target *target, size_t watch,
    unsigned slot)
{
	struct perf_event_attr attr;
	bool each = true;

	wp_target_attr(target, watch, slot, &attr);
	for (unsigned i = 0; i < wp_rings_count(target->rings); i++) {
		program[i] = load(target->rings, i, &attr,
		    wp_sampler_id(watch, slot));
		each = each && program[i] >= 0;
	}
	return each;
}

/* Where a slot's are. */
static int *
programs(const struct wp_samplers *samplers, size_t watch, unsigned slot)
{
	return samplers->program + (watch * WP_SLOTS_MAX + slot) *
	    samplers->rings;
}

bool
wp_samplers_load(struct wp_samplers *samplers, const struct wp_target *target,
    size_t first, size_t n)
{
	const unsigned rings = wp_rings_count(target->rings);
	const size_t all = (first + n) * WP_SLOTS_MAX * rings;
	bool each = true;

	wp_samplers_unload(samplers);
	if (rings == 0 || wp_rings_bpf(target->rings, 0) < 0 ||
	    are_reads_watched(target) || (samplers->program =
	    malloc(all * sizeof(*samplers->program))) == NULL)
		return false;
	while (samplers->n < all)
		samplers->program[samplers->n++] = -1;
	samplers->rings = rings;
	for (size_t w = first; w < first + n; w++)
		for (unsigned s = 0; s < target->watch[w].nslots; s++)
			each = load_slot(programs(samplers, w, s), target, w,
			    s) && each;
	return each;
}

/* Without one, the kernel writes the same. */
void
wp_samplers_attach(const struct wp_samplers *samplers,
    const struct wp_events *events, size_t first, size_t watch, unsigned slot)
{
	const int *program;

	if (samplers->n <= (watch * WP_SLOTS_MAX + slot) * samplers->rings)
		return;
	program = programs(samplers, watch, slot);
	for (size_t i = first; i < events->n; i++, program++)
		if (*program >= 0)
			(void)wp_perf_set_bpf(events->event[i].fd, *program);
}

void
wp_samplers_unload(struct wp_samplers *samplers)
{
	while (samplers->n > 0)
		if (samplers->program[--samplers->n] >= 0)
			(void)close(samplers->program[samplers->n]);
	free(samplers->program);
	samplers->program = NULL;
}
