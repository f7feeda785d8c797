/*
 * capture: the state of a thread, captured in its signal handler: registers and
 * a piece of its stack, as a PERF_RECORD_SAMPLE of the event that
 * wp_channel_attr describes.
 *
 * Everything here is async-signal-safe, no point of cancellation, uses little
 * stack and survives any stack pointer.
 */
#ifndef WP_CAPTURE_H
#define WP_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

/* The part of a sample that the registers do not contain. */
struct wp_captured {
	uint64_t id;
	uint64_t addr;		/* watched */
	pid_t pid, tid;
	uint32_t stack;		/* bytes to copy at most, a multiple of 8 */
};

/* Make the record at bytes, of which room are there: enough for the stack and
   512 more.  Stack that is not mapped is not copied.  Result: the record's
   time. */
uint64_t wp_capture(void *bytes, size_t room, const struct wp_captured *,
    const ucontext_t *);

/* Whether memory of this process can be read. */
bool wp_is_readable(uint64_t from, size_t len);

/* Copy memory that is there, whatever a sanitizer thinks of it. */
void wp_copy(void *to, const void *from, size_t len);

/* Copy memory of this process from wherever it is to be, without a fault.
   Result: bytes copied, fewer where it is not readable from some page on. */
size_t wp_peek(void *to, uint64_t from, size_t len);

/*
 * What differs by processor: capture_x86_64.c, capture_aarch64.c.
 */

enum { WP_CPU_REGS_MAX = 40 };

/* The registers of PERF_SAMPLE_REGS_USER in their order.  Result: how many. */
unsigned wp_cpu_regs(const ucontext_t *, uint64_t out[WP_CPU_REGS_MAX]);

/* The address at which the thread continues, its stack pointer, and its frame
   pointer. */
uint64_t wp_cpu_pc(const ucontext_t *);
uint64_t wp_cpu_sp(const ucontext_t *);
uint64_t wp_cpu_fp(const ucontext_t *);

/* The first argument, at the first instruction of a function. */
uint64_t wp_cpu_argument(const ucontext_t *);

/* Whether it has just come out of a system call. */
bool wp_cpu_after_syscall(const ucontext_t *);

#endif
