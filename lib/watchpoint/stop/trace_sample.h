/*
 * trace_sample: captures the state of a traced thread while it is stopped (its
 * registers, a piece of its stack and a watch's value) as a PERF_RECORD_SAMPLE
 * in the layout of wp_attr_watch's events with options.stop, without kernel.
 */
#ifndef WP_TRACE_SAMPLE_H
#define WP_TRACE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stop/value_sample.h"

enum { WP_TRACE_REGS_MAX = 40 };

/*
 * The part that differs by processor: trace_sample_x86_64.c,
 * trace_sample_aarch64.c.
 */

/* A thread's registers, as PERF_SAMPLE_REGS_USER has them. */
struct wp_trace_regs {
	uint64_t abi;			/* PERF_SAMPLE_REGS_ABI_* */
	uint64_t reg[WP_TRACE_REGS_MAX];	/* n of them */
	size_t n;
	uint64_t pc, sp;		/* two of them again */
};

/* Read a thread's registers.  0 or -errno. */
int wp_trace_regs(pid_t tid, struct wp_trace_regs *);

/*
 * The part that is common to all processors.
 */

/* The members of a sample that are not read from the thread. */
struct wp_trace_sampled {
	uint64_t id;
	uint64_t addr;		/* watched */
	uint64_t time;		/* time of the stop, ns: all its samples have
				   it */
	pid_t pid, tid;
	uint32_t stack;		/* bytes to copy at most, a multiple of 8 */
	const struct wp_trace_regs *regs;	/* NULL: read them from the
						   thread */
	const struct wp_stop_value *value;	/* NULL: none */
};

/* Make the record in a buffer of room bytes, which holds at least the stack and
   1024 more.  0 or -errno: -ESRCH, the thread was killed. */
int wp_trace_sample(void *bytes, size_t room, const struct wp_trace_sampled *);

#endif
