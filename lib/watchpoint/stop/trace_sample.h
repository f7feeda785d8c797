/*
 * trace_sample: the state of a traced thread, captured while it is stopped: its
 * registers, a piece of its stack and a watch's value, as a PERF_RECORD_SAMPLE
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
 * What differs by processor: trace_sample_x86_64.c, trace_sample_aarch64.c.
 */

/* A thread's registers, as PERF_SAMPLE_REGS_USER has them. */
struct wp_trace_regs {
	uint64_t abi;			/* PERF_SAMPLE_REGS_ABI_* */
	uint64_t reg[WP_TRACE_REGS_MAX];	/* n of them */
	size_t n;
	uint64_t pc, sp;		/* those of them */
};

/* 0 or -errno. */
int wp_trace_regs(pid_t tid, struct wp_trace_regs *);

/*
 * What does not.
 */

/* The part of a sample that the thread does not have. */
struct wp_trace_sampled {
	uint64_t id;
	uint64_t addr;		/* watched */
	uint64_t time;		/* of the stop, ns: all its samples have it */
	pid_t pid, tid;
	uint32_t stack;		/* bytes to copy at most, a multiple of 8 */
	const struct wp_trace_regs *regs;	/* NULL: those that it has */
	const struct wp_stop_value *value;	/* NULL: none */
};

/* Make the record at bytes, of which room are there: enough for the stack and
   1024 more.  0 or -errno: -ESRCH, the thread was killed. */
int wp_trace_sample(void *bytes, size_t room, const struct wp_trace_sampled *);

#endif
