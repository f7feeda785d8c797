/* trace_sample: a traced thread as a perf sample. */
#include "stop/trace_sample.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "os/clock.h"
#include "os/proc.h"

/* The part of the sample before the registers. */
struct head {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time, addr;
	uint32_t cpu, zero;
	uint32_t raw_size;
	uint8_t raw[sizeof(struct wp_stop_value)];
	uint32_t pad;
	uint64_t abi;
	uint64_t regs[WP_TRACE_REGS_MAX];
};
_Static_assert(offsetof(struct head, abi) == 160, "the kernel adds no padding");

/* Room, the stack, how much of it is there; nothing but a 0 if none is. */
static size_t
put_stack(uint8_t *to, const struct wp_trace_sampled *what, uint64_t sp,
    size_t max)
{
	ssize_t n = wp_proc_read(what->pid, sp, to + sizeof(uint64_t), max);
	uint64_t size = n > 0 ? (uint64_t)n & ~7ull : 0;

	memcpy(to, &size, sizeof(size));
	if (size == 0)
		return sizeof(size);
	memcpy(to + sizeof(size) + size, &size, sizeof(size));
	return size + 2 * sizeof(size);
}

int
wp_trace_sample(void *bytes, size_t room, const struct wp_trace_sampled *what)
{
	struct head head = {
		.id = what->id, .addr = what->addr, .pid = (uint32_t)what->pid,
		.tid = (uint32_t)what->tid, .cpu = UINT32_MAX,
		.raw_size = sizeof(head.raw) + sizeof(head.pad),
	};
	struct wp_trace_regs regs;
	size_t size, left;
	int err = wp_trace_regs(what->tid, &regs);

	if (err < 0)
		return err;
	head.ip = regs.pc;
	head.abi = regs.abi;
	memcpy(head.regs, regs.reg, regs.n * sizeof(regs.reg[0]));
	size = offsetof(struct head, regs) + regs.n * sizeof(head.regs[0]);
	if (room > UINT16_MAX)
		room = UINT16_MAX;
	if (room < size + 2 * sizeof(uint64_t))
		return -ENOBUFS;
	head.time = wp_clock_ns();
	if (what->value != NULL)
		memcpy(head.raw, what->value, sizeof(head.raw));
	left = (room - size - 2 * sizeof(uint64_t)) & ~(size_t)7;
	size += put_stack((uint8_t *)bytes + size, what, regs.sp,
	    what->stack < left ? what->stack : left);
	head.header = (struct perf_event_header){
		.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER,
		.size = (uint16_t)size,
	};
	memcpy(bytes, &head, offsetof(struct head, regs) +
	    regs.n * sizeof(head.regs[0]));
	return 0;
}
