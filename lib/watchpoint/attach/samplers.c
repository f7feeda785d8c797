/* samplers: the programs that write samples.  See samplers.h. */
#include "attach/samplers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/target_private.h"
#include "bpf/sampler.h"
#include "os/libc.h"

static volatile uint64_t word;	/* watched to prove that sampling works */

uint64_t
wp_sampler_id(size_t watch, unsigned slot)
{
	return UINT64_C(1) << 63 | wp_target_stop_id(watch, slot);
}

/* The id of the event that proves it. */
#define PROOF_ID UINT64_MAX

static struct wp_sampler
sampler_of(const struct wp_rings *rings, unsigned ring, uint64_t id,
    const struct wp_tickets *tickets, const struct wp_counters *counters)
{
	return (struct wp_sampler){
		.id = id, .cpu = wp_rings_cpu(rings, ring),
		.ringbuf = wp_rings_bpf(rings, ring), .tickets = tickets->map,
		.line = 1 + ring, .counters = counters, .known = {-1, -1, NULL},
	};
}

/* --- proof --- */

/* The resources of the proof. */
struct proof {
	struct wp_rings *rings;
	struct perf_event_attr attr;
	struct wp_tickets tickets;
	const struct wp_counters *counters;
	bool slots;		/* there are slots to watch with */
	const char *step;	/* the step that is being tried */
};

/* Load the program for this ring.  Returns a descriptor or -errno. */
static int
load_proof(struct proof *proof, unsigned ring)
{
	const struct wp_sampler sampler = sampler_of(proof->rings, ring,
	    PROOF_ID, &proof->tickets, proof->counters);

	proof->step = "loading a BPF program";
	return wp_sampler_load(&proof->attr, &sampler);
}

/* Attach a program for this ring to the proof's event.  Returns 0 or -errno. */
static int
attach(struct proof *proof, unsigned ring, int event)
{
	const int program = load_proof(proof, ring);
	int err;

	if (program < 0)
		return program;
	proof->step = "attaching a BPF program";
	err = wp_perf_set_bpf(event, program);
	(void)close(program);
	return err;
}

/* Make one hit in this thread while it has events with programs.  Returns 0 or
   -errno. */
static int
hit_own(struct proof *proof)
{
	struct wp_events events = {0};
	int err;

	proof->step = "perf_event_open";
	err = wp_events_open(&events, &proof->attr, 0, 0, 0, proof->rings);
	for (unsigned i = 0; err == 0 && i < events.n; i++)
		err = attach(proof, i, events.event[i].fd);
	if (err == 0)
		word = 1;
	wp_events_close(&events, 0);
	return err;
}

static bool
is_that_hit(const struct perf_event_header *header)
{
	const struct wp_sample *sample = (const void *)header;

	return header->type == PERF_RECORD_SAMPLE &&
	    sample->id == PROOF_ID && sample->tid == (uint32_t)wp_libc_tid() &&
	    sample->addr == (uintptr_t)&word;
}

/* Whether the rings hold exactly the sample of that hit. */
static bool
is_proved(struct wp_rings *rings)
{
	const struct perf_event_header *header;
	unsigned right = 0, all = 0;

	while ((header = wp_rings_next(rings, UINT64_MAX)) != NULL) {
		all++;
		right += is_that_hit(header);
	}
	return right == 1 && all == 1;
}

/* Without slots there is no hit: for uprobes it is sufficient that the kernel
   accepts the program.  Returns 0 or -errno. */
static int
load_only(struct proof *proof)
{
	const int program = load_proof(proof, 0);

	if (program >= 0)
		(void)close(program);
	return program < 0 ? program : 0;
}

/* Returns 0 or -errno. */
static int
try_hit(struct proof *proof, const struct wp_options *options)
{
	int err = 0;

	proof->step = "making a BPF array";
	if (options->tickets)
		err = wp_tickets_open(&proof->tickets,
		    wp_rings_count(proof->rings));
	if (err == 0)
		err = proof->slots ? hit_own(proof) : load_only(proof);
	if (err == 0 && proof->slots && options->tickets &&
	    wp_tickets_taken(&proof->tickets) != 1)
		err = -ENOMSG;
	wp_tickets_close(&proof->tickets);
	return err;
}

/* Returns 0 or -errno, and the step that failed. */
static int
prove(struct wp_rings *rings, const struct wp_options *options, bool slots,
    const struct wp_counters *counters, const char **step)
{
	const struct wp_slot slot = {
		(uintptr_t)&word, sizeof(word), HW_BREAKPOINT_W,
	};
	struct proof proof = {
		.rings = rings, .tickets.map = -1, .counters = counters,
		.slots = slots,
	};
	int err;

	wp_attr_watch(&proof.attr, &slot, options, false);
	proof.attr.inherit = proof.attr.inherit_thread = 0;
	err = try_hit(&proof, options);
	*step = proof.step;
	if (err < 0)
		return err;
	*step = "a store into a watched word";
	return !slots || is_proved(rings) ? 0 : -ENOMSG;
}

/* Older kernels may lack what tickets need, and still be able to make samples,
   except with counters. */
static int
prove_either(struct wp_rings *rings, struct wp_options *options, bool slots,
    const struct wp_counters *counters, const char **step)
{
	int err;

	options->tickets = true;
	if ((err = prove(rings, options, slots, counters, step)) < 0 &&
	    counters == NULL) {
		options->tickets = false;
		err = prove(rings, options, slots, NULL, step);
	}
	return err;
}

/* The kernel's own rings, which are slower to write to, hold records other than
   samples, and samples that the BPF rings have no room for: a sample takes
   several times as much space in them. */
int
wp_samplers_rings(struct wp_rings **rings, struct wp_options *options,
    bool slots, size_t size, const struct wp_counters *counters,
    struct wp_cause *cause)
{
	const char *step = "making a BPF ring buffer";
	int err = wp_rings_open(rings, size / 8, cause);

	if (err < 0)
		return err;
	if ((err = wp_rings_add_bpf(*rings, size / 2)) == 0)
		err = prove_either(*rings, options, slots, counters,
		    &step);
	if (err == 0)
		return 0;
	wp_rings_close(*rings);
	*rings = NULL;
	return wp_cause_set(cause, WP_CAUSE_NO_BPF, step,
	    wp_libc_why(-err));
}

/* --- of a target --- */

void
wp_samplers_know(struct wp_samplers *samplers, unsigned rings, bool tally)
{
	struct wp_known *known = malloc(sizeof(*known));

	if (known != NULL && wp_known_open(known, rings) == 0)
		samplers->known = known;
	else
		free(known);
	if (tally && samplers->known != NULL)
		samplers->tallied = wp_stack_counts_new();
}

/* A program must not read what is watched for reads, for example a stack: it
   would make a hit while it runs, which nobody delivers. */
static bool
are_reads_watched(const struct wp_target *target)
{
	for (size_t w = 0; w < target->nwatches; w++)
		for (unsigned s = 0; s < target->watch[w].nslots; s++)
			if (target->watch[w].slot[s].type & HW_BREAKPOINT_R)
				return true;
	return false;
}

/* Programs contain the address of the watch and are loaded when it is armed.
   Threads that are added later have other addresses. */
static bool
is_each(const struct wp_target *target, size_t first, size_t n)
{
	for (size_t w = first; w < first + n; w++)
		if (target->watch[w].each)
			return true;
	return false;
}

/* If the kernel refuses a program that counts or has known stacks, it may still
   take one without.  Hits of several slots are not counted, as one access may
   hit more than one slot. */
static int
load(const struct wp_samplers *samplers, const struct wp_target *target,
    const struct perf_event_attr *attr, bool tally, struct wp_sampler sampler)
{
	int program;

	sampler.filter = target->options.filter;
	if (samplers->known != NULL)
		sampler.known = *samplers->known;
	sampler.trial = target->options.try_known;
	if (tally && samplers->tallied != NULL)
		sampler.tallies = &samplers->tallied->table;
	program = wp_sampler_load(attr, &sampler);
	if (program < 0 && sampler.tallies != NULL) {
		sampler.tallies = NULL;
		program = wp_sampler_load(attr, &sampler);
	}
	if (program >= 0 || samplers->known == NULL)
		return program;
	sampler.known.map = -1;
	return wp_sampler_load(attr, &sampler);
}

/* Load the program of a uprobe.  It runs on every processor, so all slots share
   the rings. */
static bool
load_uprobe(const struct wp_samplers *samplers, int *program,
    const struct wp_target *target, size_t watch, unsigned slot,
    const struct perf_event_attr *attr, struct wp_tickets *tickets)
{
	const uint64_t id = wp_sampler_id(watch, slot);
	struct wp_uprobe_guard guard;
	struct wp_sampler sampler = sampler_of(target->rings,
	    (unsigned)(id % wp_rings_count(target->rings)), id, tickets,
	    target->counters.n > 0 ? &target->counters : NULL);

	if (!wp_uprobes_guard(&target->uprobes, watch, slot, &guard))
		return false;
	sampler.uprobe = &guard;
	*program = load(samplers, target, attr, false, sampler);
	wp_tickets_loaded(tickets);
	return *program >= 0;
}

/* Load the programs of a slot, one for each ring.  Returns false if one of them
   cannot be loaded. */
static bool
load_slot(const struct wp_samplers *samplers, int *program,
    const struct wp_target *target, size_t watch, unsigned slot,
    struct wp_tickets *tickets)
{
	const unsigned rings = wp_rings_count(target->rings);
	struct perf_event_attr attr;
	bool each = true;

	wp_tickets_close(tickets);
	if (target->options.tickets && wp_tickets_open(tickets, rings) < 0)
		return false;
	wp_target_attr(target, watch, slot, &attr);
	if (target->watch[watch].uprobe)
		return load_uprobe(samplers, program, target, watch, slot,
		    &attr, tickets);
	for (unsigned i = 0; i < rings; i++) {
		struct wp_sampler sampler = sampler_of(target->rings, i,
		    wp_sampler_id(watch, slot), tickets,
		    target->counters.n > 0 ? &target->counters : NULL);
		struct wp_own own;

		if (wp_target_own(target, watch, slot, i, &own)) {
			sampler.own = &own;
			tickets->others = target->others.word + own.word - i;
		}
		program[i] = load(samplers, target, &attr,
		    target->watch[watch].nslots == 1, sampler);
		each = each && program[i] >= 0;
	}
	wp_tickets_loaded(tickets);
	return each;
}

static void
free_tickets(struct wp_sampled *sampled)
{
	while (sampled->n > 0)
		wp_tickets_close(&sampled->tickets[--sampled->n]);
	free(sampled->tickets);
	sampled->tickets = NULL;
}

/* Start with no tickets for any slot of a watch.  Returns false if there is no
   memory. */
static bool
new_tickets(struct wp_sampled *sampled, unsigned slots)
{
	free_tickets(sampled);
	sampled->tickets = calloc(slots, sizeof(*sampled->tickets));
	if (sampled->tickets == NULL)
		return false;
	while (sampled->n < slots)
		sampled->tickets[sampled->n++].map = -1;
	return true;
}

/* The same for n watches. */
static bool
make_tickets(struct wp_samplers *samplers, const struct wp_target *target,
    size_t first, size_t n)
{
	struct wp_sampled *more = reallocarray(samplers->watch,
	    first + n, sizeof(*more));

	if (more == NULL)
		return false;
	samplers->watch = more;
	while (samplers->nwatches < first + n)
		more[samplers->nwatches++] = (struct wp_sampled){.n = 0};
	for (size_t w = first; w < first + n; w++)
		if (!new_tickets(&more[w], target->watch[w].nslots))
			return false;
	return true;
}

/* The programs of a slot of a watch that was loaded last, or NULL. */
static int *
programs(const struct wp_samplers *samplers, size_t watch, unsigned slot)
{
	const size_t at = watch < samplers->first ? SIZE_MAX :
	    ((watch - samplers->first) * WP_SLOTS_MAX + slot) *
	    samplers->rings;

	return at < samplers->n ? samplers->program + at : NULL;
}

bool
wp_samplers_load(struct wp_samplers *samplers, const struct wp_target *target,
    size_t first, size_t n)
{
	const unsigned rings = wp_rings_count(target->rings);
	const size_t all = n * WP_SLOTS_MAX * rings;
	bool each = true;

	wp_samplers_unload(samplers);
	if (rings == 0 || wp_rings_bpf(target->rings, 0) < 0 ||
	    are_reads_watched(target) || is_each(target, first, n) ||
	    !make_tickets(samplers, target, first, n) ||
	    (samplers->program =
	    malloc(all * sizeof(*samplers->program))) == NULL)
		return false;
	while (samplers->n < all)
		samplers->program[samplers->n++] = -1;
	samplers->first = first;
	samplers->rings = rings;
	for (size_t w = first; w < first + n; w++)
		for (unsigned s = 0; s < target->watch[w].nslots; s++)
			each = load_slot(samplers, programs(samplers, w, s),
			    target, w, s,
			    &samplers->watch[w].tickets[s]) && each;
	return each;
}

int
wp_samplers_take(const struct wp_samplers *samplers, size_t watch,
    unsigned slot)
{
	const int *program = programs(samplers, watch, slot);

	return program == NULL || *program < 0 ? -ENOENT :
	    fcntl(*program, F_DUPFD_CLOEXEC, 0);
}

/* An event without a program is sampled by the kernel. */
void
wp_samplers_attach(const struct wp_samplers *samplers,
    const struct wp_events *events, size_t first, size_t watch, unsigned slot)
{
	const int *program = programs(samplers, watch, slot);

	for (size_t i = first; program != NULL && i < events->n; i++)
		if (program[events->event[i].ring] >= 0)
			(void)wp_perf_set_bpf(events->event[i].fd,
			    program[events->event[i].ring]);
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

struct wp_tickets *
wp_samplers_tickets(const struct wp_samplers *samplers, size_t watch,
    unsigned slot)
{
	struct wp_tickets *tickets = watch < samplers->nwatches &&
	    slot < samplers->watch[watch].n ?
	    &samplers->watch[watch].tickets[slot] : NULL;

	return tickets != NULL && (tickets->ended || tickets->lines != NULL) ?
	    tickets : NULL;
}

/* Only the first slot has marks. */
void
wp_samplers_end(struct wp_samplers *samplers, const struct wp_events *events,
    const struct wp_options *options, size_t watch)
{
	wp_tickets_end(wp_samplers_tickets(samplers, watch, 0), events,
	    options, watch, wp_sampler_id(watch, 0));
	for (unsigned s = 1; s < WP_SLOTS_MAX; s++) {
		struct wp_tickets *tickets = wp_samplers_tickets(samplers,
		    watch, s);

		if (tickets != NULL)
			wp_tickets_close(tickets);
	}
}

void
wp_samplers_free(struct wp_samplers *samplers)
{
	wp_samplers_unload(samplers);
	while (samplers->nwatches > 0)
		free_tickets(&samplers->watch[--samplers->nwatches]);
	free(samplers->watch);
	samplers->watch = NULL;
	if (samplers->known != NULL)
		wp_known_close(samplers->known);
	free(samplers->known);
	samplers->known = NULL;
	wp_stack_counts_free(samplers->tallied);
	samplers->tallied = NULL;
}
