/* probe_private: what the probes share. */
#ifndef WP_PROBE_PRIVATE_H
#define WP_PROBE_PRIVATE_H

#include <stdint.h>

#include "os/perf_event.h"
#include "probe/probe.h"

/* The attribute of a watch of this process's own accesses, disabled, each of
   which is a hit. */
struct perf_event_attr wp_probe_attr(uint32_t type, uint64_t addr,
    uint64_t len);

/* What it means that perf_event_open refused with this errno, in words. */
const char *wp_probe_refusal(int err);

/* Whether a store into a watched word is counted, on the processor where the
   calling thread is.  1, 0 or -errno. */
int wp_probe_fires(void);

#endif
