/*
 * sampler: a BPF program that writes the sample of a hit as the kernel would,
 * in half the time.
 */
#ifndef WP_SAMPLER_H
#define WP_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "os/perf_event.h"
#include "bpf/process_filter.h"
#include "bpf/uprobe_guard.h"
#include "bpf/known_stack_map.h"
#include "bpf/stack_counter.h"
#include "os/filter.h"

struct wp_sampler {
	uint64_t id;		/* the identifier of its samples */
	int cpu;		/* the processor that its events count on */
	const struct wp_uprobe_guard *uprobe;	/* or: it is the program of this
						   uprobe, on all processors;
						   NULL: it is for events */
	const struct wp_own *own;	/* the process whose hits are sampled;
					   NULL: all hits are */
	int ringbuf;		/* the BPF ring buffer that samples go to */
	int tickets;		/* with PERF_SAMPLE_RAW: the slot's tickets
				   (ticket.h), an array that can be mapped; else
				   < 0 */
	unsigned line;		/* its own line in the tickets, from 1 */
	const struct wp_counters *counters;	/* counters to read at each hit,
						   if there are tickets; NULL:
						   none */
	struct wp_known known;	/* known stacks, of which it makes short copies;
				   its map < 0: none */
	const struct wp_stack_table *tallies;	/* where it counts the hits of
						   known stacks; NULL: it writes
						   samples of them */
	bool trial;		/* it copies known stacks whole nevertheless,
				   and adds a wp_known_trial */
	const struct wp_filter *filter;	/* if this is certainly false at a hit,
					   the sample has no stack; NULL: every
					   sample has one */
};

/*
 * Load the program for events of this attribute.  Some hits it leaves to the
 * kernel to write: hits of the kernel and of 32-bit code, those of threads that
 * have no id here (wp_code_thread_ids()), and those for which the ring buffer
 * has no room.
 * Result: a descriptor; -ENOTSUP: this processor or attribute is not supported;
 * or -errno.
 */
int wp_sampler_load(const struct perf_event_attr *, const struct wp_sampler *);

/*
 * Generate code for a uprobe's program that writes a sample of this attribute,
 * without a ticket.  Where the ring buffer has no room, and for 32-bit code, it
 * writes none.  R6 holds the program's context; the end of the stack holds the
 * thread's ID and, behind it, the process's.  The code changes the other
 * registers, and the stack from WP_SAMPLE_OWN to WP_SAMPLE_KEPT.
 */
enum { WP_SAMPLE_OWN = -48, WP_SAMPLE_KEPT = -16 };
struct code;
void wp_code_sample(struct code *, const struct perf_event_attr *, int ringbuf);

#endif
