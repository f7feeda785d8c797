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

/* Bytes of its own stack that a program copies at most. */
enum { WP_STACK_MAX = 16384 };

/* How to watch. */
struct wp_options {
	bool count;		/* count only: no records */
	bool kernel;		/* the kernel's accesses too */
	bool callchain;		/* with kernel: its callchain */
	bool follow;		/* child processes too */
	bool everywhere;	/* whatever runs, on each processor */
	bool processors;	/* with bpf: a process of many threads is
				   watched on each processor, not in each
				   thread, where that can be: by one target
				   one alone */
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
	bool tally;		/* with bpf: hits of stacks that are known are
				   only counted (bpf/stack_counter.h), as far as
				   that can be */
	bool whole_stacks;	/* with bpf: also of stacks that are known
				   (bpf/known_stack_map.h); or, */
	bool try_known;		/* for tests, only where a short copy would be
				   enough it is said how long that is */
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
				   of data, where unwind tables lie, too; and a
				   callchain, were it empty */
	uint32_t stack;		/* bytes of user stack to copy: a multiple of 8,
				   below 65528 */
};

/* Take back what features do not allow, and use what they offer: callchain is
   set with kernel, and the last ones are as the kernel has them. */
void wp_options_fit(struct wp_options *, const struct wp_features *);

/* The event of one slot.  side: it also reports maps, names, forks and exits of
   its thread. */
void wp_attr_watch(struct perf_event_attr *, const struct wp_slot *,
    const struct wp_options *, bool side);

/* The read_format of these, and of their references. */
uint64_t wp_attr_format(const struct wp_options *);

/* One that never fires, and runs whenever a thread does that is watched with
   these options, or one that inherits. */
void wp_attr_reference(struct perf_event_attr *, const struct wp_options *);

/* What all events have that signal the program they watch: of one slot, on its
   own thread, disabled, without records.  period 0 is 1. */
#define WP_INSIDE_FORMAT PERF_FORMAT_TOTAL_TIME_RUNNING	/* their read_format */
void wp_attr_inside(struct perf_event_attr *, const struct wp_slot *,
    uint64_t period, bool kernel);

/* And what one has whose signal says no more than that it came: in its ring is
   the stack pointer and the pc, in this order, of each overflow
   (async_count.h). */
void wp_attr_fires(struct perf_event_attr *);

/* A uprobe, by its PMU's type, so far into a file; there its programs run. */
void wp_attr_uprobe(struct perf_event_attr *, uint32_t type, const char *path,
    uint64_t offset);

/* In place of an event that is a uprobe: one that never fires, with its
   side. */
void wp_attr_beside(struct perf_event_attr *);

/* The event that owns a ring and never fires; records wake its poller when
   watermark bytes wait. */
void wp_attr_ring(struct perf_event_attr *, uint32_t watermark);

/* Which of a sample's user registers, from 0, is where its thread was in the
   program. */
unsigned wp_attr_user_pc(void);

/* How a sample of these events begins, and their other records end.  In a
   sample these follow, if its event has them: callchain, raw bytes, the user's
   registers behind their ABI, the user's stack. */
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

/* When a whole record was made, ns. */
static inline uint64_t
wp_attr_time(const struct perf_event_header *header)
{
	uint64_t time;

	memcpy(&time, (const uint8_t *)header + wp_attr_time_offset(header),
	    sizeof(time));
	return time;
}

/* How their records begin of what is created, and mapped; the path follows. */
struct wp_task_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};
struct wp_comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
};
struct wp_mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

/* End a sample by n bytes of the stack, that are at to + 8 already: before them
   their room, behind them their number; but for none, a 0 alone.  How many
   bytes these are. */
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

/* One that never fires, and records what a thread maps (or, tasks, which
   threads and processes it creates), and so of those, until they execute
   another program.  The trailers of its records are as of the others.  Its
   read_format is PERF_FORMAT_LOST. */
void wp_attr_side(struct perf_event_attr *, bool tasks);

/* The same of all threads that are on a processor, and which programs they
   execute; or, code, also what they map to execute it. */
void wp_attr_programs(struct perf_event_attr *, bool code);

/* One that makes a sample whenever its tracepoint, of this id, is passed on a
   processor: its raw bytes are the tracepoint's. */
void wp_attr_tracepoint(struct perf_event_attr *, uint64_t id);

/* The same, and what they map. */
void wp_attr_mappings(struct perf_event_attr *);

/* One that says nothing but for how long its thread, and with inherit threads
   that it makes, have run. */
void wp_attr_clock(struct perf_event_attr *, bool inherit);

#pragma GCC visibility pop

#endif
