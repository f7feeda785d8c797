/*
 * capture: registers and stack of the interrupted thread as a perf sample.
 *
 * How memory is read that may not be there: rt_sigprocmask(2) with a `how` that
 * does not exist reads the 8 bytes of the mask first, and says EFAULT when it
 * cannot, else EINVAL.  One such call for each two pages, where they meet, and
 * the copy cannot fault: the stack of a thread that is in this handler is not
 * unmapped.  It takes a fifth of what process_vm_readv(2) takes, and is a call
 * that no seccomp filter refuses.
 */
#include "handler/capture.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/clock.h"
#include "os/libc.h"

enum {
	PAGE = 4096,		/* the smallest page size of any kernel */
	KERNEL_MASK = 8,	/* bytes of the kernel's sigset_t */
};

/* The part of a sample that precedes the registers. */
struct sample_head {
	struct wp_sample sample;
	uint64_t abi;
	uint64_t regs[];
};
_Static_assert(sizeof(struct sample_head) == 64, "the kernel adds no padding");

static bool
is_readable(uint64_t mask)
{
	int saved = errno;
	bool ok = syscall(SYS_rt_sigprocmask, -1, (uintptr_t)mask, NULL,
	    KERNEL_MASK) != 0 && errno == EINVAL;

	errno = saved;
	return ok;
}

static size_t
readable(uint64_t from, size_t len)
{
	uint64_t end = from + len, page = from & ~(uint64_t)(PAGE - 1);

	if (end < from)
		return 0;
	for (; page < end; page += PAGE)
		if (end - page > PAGE &&
		    is_readable(page + PAGE - KERNEL_MASK / 2))
			page += PAGE;	/* the bytes tested reach into the
					   next page */
		else if (!is_readable(page))
			return page > from ? (size_t)(page - from) : 0;
	return len;
}

bool
wp_is_readable(uint64_t from, size_t len)
{
	return readable(from, len) == len;
}

/* memcpy(3) will not do: a sanitizer checks it against the variables in the
   frames that are copied. */
typedef uint64_t block __attribute__((vector_size(16), aligned(1), may_alias));

__attribute__((no_sanitize("address"))) void
wp_copy(void *to, const void *from, size_t len)
{
	const volatile block *source = from;
	const volatile uint8_t *rest;
	block *target = to;
	uint8_t *last;

	for (; len >= sizeof(block); len -= sizeof(block))
		*target++ = *source++;
	rest = (const volatile uint8_t *)source;
	last = (uint8_t *)target;
	while (len-- > 0)
		*last++ = *rest++;
}

size_t
wp_peek(void *to, uint64_t from, size_t len)
{
	len = readable(from, len);
	wp_copy(to, (const void *)(uintptr_t)from, len);
	return len;
}

uint64_t
wp_capture(void *bytes, size_t room, const struct wp_captured *what,
    const ucontext_t *context)
{
	struct sample_head *head = bytes;
	struct wp_sample *sample = &head->sample;
	uint8_t *at;
	size_t left;

	sample->id = what->id;
	sample->ip = wp_cpu_pc(context);
	sample->pid = (uint32_t)what->pid;
	sample->tid = (uint32_t)what->tid;
	sample->time = wp_clock_ns();
	sample->addr = what->addr;
	sample->cpu = (uint32_t)sched_getcpu();
	sample->zero = 0;
	head->abi = WP_NARROW ? PERF_SAMPLE_REGS_ABI_32 :
	    PERF_SAMPLE_REGS_ABI_64;
	at = (uint8_t *)(head->regs + wp_cpu_regs(context, head->regs));
	left = room - (size_t)(at - (uint8_t *)bytes) - 2 * sizeof(uint64_t);
	at += wp_sample_end(at, wp_peek(at + sizeof(uint64_t),
	    wp_cpu_sp(context), what->stack < left ? what->stack :
	    left & ~(size_t)7));
	sample->header = (struct perf_event_header){
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_USER,
		.size = (uint16_t)(at - (uint8_t *)bytes),
	};
	return sample->time;
}
