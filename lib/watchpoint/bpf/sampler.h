/*
 * sampler: a BPF program that writes the sample of a hit as the kernel would,
 * in half the time.
 */
#ifndef WP_SAMPLER_H
#define WP_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "os/perf_event.h"
#include "bpf/others.h"
#include "bpf/uprobe_guard.h"
#include "bpf/known_stack_map.h"
#include "bpf/stack_counter.h"
#include "os/filter.h"

struct wp_sampler {
	uint64_t id;		/* that samples have */
	int cpu;		/* that its events count on; */
	const struct wp_uprobe_guard *uprobe;	/* or it is of this one, on all
				   of them; NULL: of events, */
	const struct wp_own *own;	/* of which these hits are meant; NULL:
					   all are */
	int ringbuf;		/* a BPF ring buffer, for samples */
	int tickets;		/* the slot's (ticket.h), with PERF_SAMPLE_RAW:
				   an array that can be mapped; else < 0 */
	unsigned line;		/* in them, of its own; from 1 */
	const struct wp_counters *counters;	/* read at each hit, with
						   tickets; NULL: none */
	struct wp_known known;	/* stacks of which a short copy is enough; its
				   map < 0: none */
	const struct wp_stack_table *tallies;	/* where hits of known stacks
						   are counted; NULL: these are
						   samples all the same */
	bool trial;		/* they are copied whole all the same */
	const struct wp_filter *filter;	/* where this is surely false, the
					   sample has no stack; NULL: each has
					   one */
};

/*
 * Load it for events of this attribute.  What it does not write is left to the
 * kernel: hits of the kernel and of 32-bit code, of a process in another pid
 * namespace, and those that find no room.  A descriptor; -ENOTSUP: there is
 * none for this processor or attribute; or -errno.
 */
int wp_sampler_load(const struct perf_event_attr *, const struct wp_sampler *);

/*
 * In a program of a uprobe: write the sample of where it runs, of this
 * attribute, which is without tickets.  Without room, or of 32-bit code, there
 * is none.  R6 is what the program is given, and at the stack's end are the
 * thread and, behind it, the process; the other registers are changed, and what
 * is from WP_SAMPLE_OWN to WP_SAMPLE_KEPT.
 */
enum { WP_SAMPLE_OWN = -48, WP_SAMPLE_KEPT = -16 };
struct code;
void wp_code_sample(struct code *, const struct perf_event_attr *, int ringbuf);

#endif
