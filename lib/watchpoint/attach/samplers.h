/*
 * samplers: the BPF programs that write the samples of a target's slots.
 *
 * Overview: rings that are made for them are tried by a hit of our own.  Then
 * each slot of the watches that a process is about to have gets its program,
 * before any thread is held; its events run it as soon as they are opened.
 * Where a slot has none, the kernel writes its samples.
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
	int *program;		/* of each ring, slot and watch; < 0: none */
	size_t n;
	size_t first;		/* of these watches */
	unsigned rings;
	struct wp_sampled {
		struct wp_tickets *tickets;	/* of each slot; NULL: none */
		unsigned n;
	} *watch;		/* nwatches of them: all so far */
	size_t nwatches;
	struct wp_known *known;	/* stacks, of all watches; NULL: none are */
	struct wp_stack_counts *tallied;	/* and what is counted of them;
				   NULL: each is a sample */
};

/* Have rings whose samples programs write, of at most so many bytes for each
   processor in all, and prove that by a hit of this thread's own; with tickets,
   if that can be, which the options then say, and which counters (NULL: none)
   need.  0, or -errno with a cause: nothing is left. */
int wp_samplers_rings(struct wp_rings **, struct wp_options *, size_t size,
    const struct wp_counters *, struct wp_cause *);

/* Have stacks that can be known, and perhaps counted, before the first is
   loaded; without memory none is. */
void wp_samplers_know(struct wp_samplers *, unsigned rings, bool tally);

/* Load those of watches first to first + n - 1 of a target in place of what
   there was.  Result: whether each of their slots has one. */
bool wp_samplers_load(struct wp_samplers *, const struct wp_target *,
    size_t first, size_t n);

/* Attach a slot's to its events, which are those from first on, of each
   ring. */
void wp_samplers_attach(const struct wp_samplers *, const struct wp_events *,
    size_t first, size_t watch, unsigned slot);

/* The program of a slot that is a uprobe, to be closed.  -errno: there is
   none. */
int wp_samplers_take(const struct wp_samplers *, size_t watch, unsigned slot);

/* The identifier of what it writes: none of the kernel's. */
uint64_t wp_sampler_id(size_t watch, unsigned slot);

/* The tickets of a slot; NULL: it has none. */
struct wp_tickets *wp_samplers_tickets(const struct wp_samplers *,
    size_t watch, unsigned slot);

/* The events of a watch are stopped, and about to be closed: its tickets are as
   they are for ever. */
void wp_samplers_end(struct wp_samplers *, const struct wp_events *,
    const struct wp_options *, size_t watch);

/* Those of running events live on, and the tickets. */
void wp_samplers_unload(struct wp_samplers *);

void wp_samplers_free(struct wp_samplers *);

#endif
