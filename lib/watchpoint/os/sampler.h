/*
 * sampler: a BPF program that writes the sample of a hit by itself, as the
 * kernel would, which takes it half the time.
 */
#ifndef WP_SAMPLER_H
#define WP_SAMPLER_H

#include <linux/perf_event.h>
#include <stdint.h>

/*
 * Load it for events of this attribute that count on one processor; samples have
 * that id, and go into that BPF ring buffer.  What it does not write is left to
 * the kernel: hits of the kernel and of 32-bit code, of a process in another pid
 * namespace, and those that find no room.  A descriptor; -ENOTSUP: there is none
 * for this processor or attribute; or -errno.
 */
int wp_sampler_load(const struct perf_event_attr *, uint64_t id, int cpu,
    int ringbuf);

#endif
