/*
 * samplers: the BPF programs that write the samples of a target's slots.
 *
 * Overview: the rings for their samples are tested by a hit of this thread's
 * own.  Before a process is attached, each slot of its watches gets a program,
 * while all threads still run; the slot's events run it as soon as they are
 * opened.  For a slot without a program the kernel writes the samples.
 */
#ifndef WP_SAMPLERS_H
#define WP_SAMPLERS_H

#include "ring/event_table.h"
#include "attach/stack_counts.h"
#include "attach/target.h"
#include "attach/tickets.h"
#include "bpf/counters.h"
#include "bpf/known_stack_map.h"

struct wp_samplers {
	int *program;		/* by ring, slot and watch; < 0: none */
	size_t n;
	size_t first;		/* the first of the watches that they are for */
	unsigned rings;
	struct wp_sampled {
		struct wp_tickets *tickets;	/* by slot; NULL: none */
		unsigned n;
	} *watch;		/* nwatches of them: all watches so far */
	size_t nwatches;
	struct wp_known *known;	/* known stacks, for all watches; NULL: none are
				   known */
	struct wp_stack_counts *tallied;	/* the counts of hits with known
						   stacks; NULL: each hit is a
						   sample */
};

/* Make rings whose samples BPF programs write, of at most size bytes in all for
   each processor, and test them by a hit of this thread's own, unless it has no
   slots.  The programs take tickets if that is possible, which the options then
   say; counters (NULL: none) need tickets.  0, or -errno with a cause: nothing
   stays open. */
int wp_samplers_rings(struct wp_rings **, struct wp_options *, bool slots,
    size_t size, const struct wp_counters *, struct wp_cause *);

/* Prepare for known stacks and, with tally, for counting their hits, before the
   first program is loaded.  Without memory for it, no stack is known. */
void wp_samplers_know(struct wp_samplers *, unsigned rings, bool tally);

/* Load the programs of watches first to first + n - 1 of a target; they replace
   the previous ones.  Result: whether each of their slots has one. */
bool wp_samplers_load(struct wp_samplers *, const struct wp_target *,
    size_t first, size_t n);

/* Attach the programs of a slot to its events, from index first on. */
void wp_samplers_attach(const struct wp_samplers *, const struct wp_events *,
    size_t first, size_t watch, unsigned slot);

/* The program of a slot that is a uprobe; the caller closes it.  -errno: there
   is none. */
int wp_samplers_take(const struct wp_samplers *, size_t watch, unsigned slot);

/* The identifier of the samples that a program writes; the kernel gives none
   like it. */
uint64_t wp_sampler_id(size_t watch, unsigned slot);

/* The tickets of a slot; NULL: none. */
struct wp_tickets *wp_samplers_tickets(const struct wp_samplers *,
    size_t watch, unsigned slot);

/* Report that the events of a watch are stopped, and will be closed: its
   tickets do not change any more. */
void wp_samplers_end(struct wp_samplers *, const struct wp_events *,
    const struct wp_options *, size_t watch);

/* Close the programs.  Open events keep theirs, and the tickets stay. */
void wp_samplers_unload(struct wp_samplers *);

void wp_samplers_free(struct wp_samplers *);

#endif
