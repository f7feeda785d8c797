/* trace_sample: a traced thread as a perf sample. */
#include "stop/trace_sample.h"

#include <errno.h>

#include "os/attr.h"
#include "proc/proc.h"

/* The part of the sample that precedes the registers. */
struct stop_sample_head {
	struct wp_sample sample;
	uint32_t raw_size;
	uint8_t raw[sizeof(struct wp_stop_value)];
	uint32_t pad;
	uint64_t abi;
	uint64_t regs[WP_TRACE_REGS_MAX];
};
_Static_assert(offsetof(struct stop_sample_head, abi) == 192,
    "the kernel adds no padding");

int
wp_trace_sample(void *bytes, size_t room, const struct wp_trace_sampled *what)
{
	struct stop_sample_head head = {
		.sample = {
			.id = what->id, .addr = what->addr,
			.time = what->time,
			.pid = (uint32_t)what->pid, .tid = (uint32_t)what->tid,
			.cpu = UINT32_MAX,
		},
		.raw_size = sizeof(head.raw) + sizeof(head.pad),
	};
	struct wp_trace_regs regs;
	uint8_t *end;
	size_t size, left;
	ssize_t stack;
	int err;

	if (what->regs != NULL)
		regs = *what->regs;
	else if ((err = wp_trace_regs(what->tid, &regs)) < 0)
		return err;
	head.sample.ip = regs.pc;
	head.abi = regs.abi;
	memcpy(head.regs, regs.reg, regs.n * sizeof(regs.reg[0]));
	size = offsetof(struct stop_sample_head,
	    regs) + regs.n * sizeof(head.regs[0]);
	if (room > UINT16_MAX)
		room = UINT16_MAX;
	if (room < size + 2 * sizeof(uint64_t))
		return -ENOBUFS;
	if (what->value != NULL)
		memcpy(head.raw, what->value, sizeof(head.raw));
	left = (room - size - 2 * sizeof(uint64_t)) & ~(size_t)7;
	end = (uint8_t *)bytes + size;
	stack = wp_proc_read(what->pid, regs.sp, end + sizeof(uint64_t),
	    what->stack < left ? what->stack : left);
	size += wp_sample_end(end, stack > 0 ? (size_t)stack : 0);
	head.sample.header = (struct perf_event_header){
		.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER,
		.size = (uint16_t)size,
	};
	memcpy(bytes, &head, offsetof(struct stop_sample_head, regs) +
	    regs.n * sizeof(head.regs[0]));
	return 0;
}
