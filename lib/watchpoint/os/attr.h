/*
 * attr: the perf_event_attr of each event that is opened, in one place.
 *
 * Records of all watches have one layout, so that a ring's reader finds a
 * record's time without decoding it.  Pure functions.
 */
#ifndef WP_ATTR_H
#define WP_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "os/perf_event.h"
#include "os/features.h"
#include "os/slot.h"

struct wp_filter;

#pragma GCC visibility push(default)

/* The most bytes of its own stack that a program copies, in its signal
   handler. */
enum { WP_STACK_MAX = 16384 };

/* How to watch. */
struct wp_options {
	bool count;		/* count only: no records */
	bool kernel;		/* the kernel's accesses too */
	bool callchain;		/* with kernel: its callchain */
	bool follow;		/* child processes too */
	bool everywhere;	/* watch whatever runs, on each processor */
	bool processors;	/* with bpf: a process of many threads is
				   watched on each processor, not in each
				   thread, where possible; a target may have
				   only one such process */
	bool uprobes;		/* with bpf: execution watches that find no slot
				   are uprobes, where they can */
	bool stop;		/* one thread alone, which stops: its sample
				   has room for a value (value_sample.h) */
	bool registers;		/* with stop: by debug registers, not events; so
				   there are no rings */
	bool bpf;		/* BPF programs write samples, where they can,
				   in half the time; */
	bool threads;		/* or, with count, count each thread's hits */
	const struct wp_filter *filter;	/* with bpf: which samples need no stack
					   (filter.h); it outlives what is
					   opened; NULL: each has one */
	bool tally;		/* with bpf: hits of known stacks are only
				   counted (bpf/stack_counter.h), where
				   possible */
	bool whole_stacks;	/* with bpf: known stacks are copied whole, too
				   (bpf/known_stack_map.h) */
	bool try_known;		/* for tests: stacks are copied whole, and
				   samples say how long a sufficient copy would
				   be */
	bool tickets;		/* with bpf: samples have room for a ticket
				   (ticket.h) */
	uint32_t with;		/* with bpf: counters that are read at each hit:
				   bits, 1 << enum wp_counter (counter.h) */
	bool eager;		/* rings are small, and their poller is woken by
				   each record */
	bool remove_on_exec;	/* watches end at execve */
	bool inherit_thread;	/* the kernel can tell threads from children */
	bool format_lost;	/* the kernel counts lost records */
	bool physical;		/* samples have the physical address that was
				   accessed; not with bpf */
	bool for_perf;		/* what perf needs to unwind by itself: mappings
				   of data too, in which unwind tables lie; and
				   a callchain, even if it is empty */
	uint32_t stack;		/* bytes of user stack to copy: a multiple of 8,
				   below 65528 */
};

/* Clear the options that the features do not allow, and set those that they
   offer: callchain together with kernel; remove_on_exec, inherit_thread and
   format_lost as the kernel has them. */
void wp_options_fit(struct wp_options *, const struct wp_features *);

/* The event of one slot.  With side it also reports maps, names, forks and
   exits of its thread. */
void wp_attr_watch(struct perf_event_attr *, const struct wp_slot *,
    const struct wp_options *, bool side);

/* The read_format of these, and of their references. */
uint64_t wp_attr_format(const struct wp_options *);

/* An event that never fires, and runs whenever a thread that is watched with
   these options, or one that inherits, does. */
void wp_attr_reference(struct perf_event_attr *, const struct wp_options *);

/* The common attribute of events that signal the program which they watch: of
   one slot, on its own thread, disabled, without records. period 0 is 1. */
#define WP_INSIDE_FORMAT PERF_FORMAT_TOTAL_TIME_RUNNING	/* their read_format */
void wp_attr_inside(struct perf_event_attr *, const struct wp_slot *,
    uint64_t period, bool kernel);

/* Adapt it for an event whose signal carries no data: its ring gets the stack
   pointer and the pc, in this order, of each overflow (async_count.h). */
void wp_attr_fires(struct perf_event_attr *);

/* A uprobe, by the type of its PMU, at an offset of a file, where its BPF
   programs run. */
void wp_attr_uprobe(struct perf_event_attr *, uint32_t type, const char *path,
    uint64_t offset);

/* A uprobe that is named in tracefs, by its id; one that is inherited ends with
   the program. */
void wp_attr_named(struct perf_event_attr *, uint64_t id, bool inherit);

/* An event that never fires, in place of one that is a uprobe, with its side
   records. */
void wp_attr_beside(struct perf_event_attr *);

/* The event that owns a ring and never fires; records wake its poller when
   watermark bytes wait. */
void wp_attr_ring(struct perf_event_attr *, uint32_t watermark);

/* The index, from 0, of the program counter among a sample's user registers. */
unsigned wp_attr_user_pc(void);

/* The beginning of a sample of these events, and the end of their other
   records.  In a sample these parts follow, if its event has them: callchain,
   raw bytes, the ABI and the user's registers, the user's stack. */
struct wp_sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time, addr;
	uint32_t cpu, zero;
};
struct wp_trailer {
	uint32_t pid, tid;
	uint64_t time;		/* ns, CLOCK_MONOTONIC */
	uint32_t cpu, zero;
	uint64_t id;
};

static inline uint32_t
wp_attr_time_offset(const struct perf_event_header *header)
{
	return header->type == PERF_RECORD_SAMPLE ?
	    offsetof(struct wp_sample, time) : header->size -
	    (sizeof(struct wp_trailer) - offsetof(struct wp_trailer, time));
}

/* The time of a complete record, ns. */
static inline uint64_t
wp_attr_time(const struct perf_event_header *header)
{
	uint64_t time;

	memcpy(&time, (const uint8_t *)header + wp_attr_time_offset(header),
	    sizeof(time));
	return time;
}

/* The beginning of their records of created tasks, of names, and of mappings;
   in the last two a name or path follows. */
struct wp_task_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};
struct wp_comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];		/* with a NUL, before what a sample has */
};
struct wp_mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

/* End a sample by n bytes of the stack, which are at to + 8 already: their size
   is put before them, and again after them; if there are none, only a 0.
   Result: the number of bytes that all this takes. */
static inline size_t
wp_sample_end(uint8_t *to, size_t n)
{
	const uint64_t size = n & ~(size_t)7;

	memcpy(to, &size, sizeof(size));
	if (size == 0)
		return sizeof(size);
	memcpy(to + sizeof(size) + size, &size, sizeof(size));
	return size + 2 * sizeof(size);
}

/* An event that never fires, and records what a thread maps (or, with tasks,
   which threads and processes it creates), and the same for these, until they
   execute another program.  Its records have the same trailers as others.  Its
   read_format is PERF_FORMAT_LOST. */
void wp_attr_side(struct perf_event_attr *, bool tasks);

/* The same with tasks for all threads on a processor, and the programs that
   they execute; with code, also what they map for execution.  read_format is
   PERF_FORMAT_TOTAL_TIME_RUNNING, as with the following two. */
void wp_attr_programs(struct perf_event_attr *, bool code);

/* An event that makes a sample whenever the tracepoint with this id is passed
   on a processor; the sample's raw bytes are the tracepoint's. */
void wp_attr_tracepoint(struct perf_event_attr *, uint64_t id);

/* As wp_attr_programs, with everything that they map. */
void wp_attr_mappings(struct perf_event_attr *);

/* An event that only measures for how long its thread, and with inherit the
   threads that it creates, have run. */
void wp_attr_clock(struct perf_event_attr *, bool inherit);

#pragma GCC visibility pop

#endif
