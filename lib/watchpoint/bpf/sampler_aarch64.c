/* sampler_aarch64: there are no such programs: an access is trapped before it
   is made, and the kernel steps over it only for its own samples. */
#include "bpf/sampler.h"

#include <errno.h>

int
wp_sampler_load(const struct perf_event_attr *attr,
    const struct wp_sampler *sampler)
{
	(void)attr;
	(void)sampler;
	return -ENOTSUP;
}

void
wp_code_sample(struct code *c, const struct perf_event_attr *attr, int ringbuf)
{
	(void)c;
	(void)attr;
	(void)ringbuf;
}
