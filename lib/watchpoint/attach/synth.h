/*
 * synth: describes what existed before the watch as perf records: the names of
 * a process's threads and its mappings, as COMM and MMAP2 records of time 0 in
 * the layout of wp_attr_watch's events.
 */
#ifndef WP_SYNTH_H
#define WP_SYNTH_H

#include <sys/types.h>

#include "os/perf_event.h"

#pragma GCC visibility push(default)

/*
 * Call fn with each record, which is valid during the call; its non-zero result
 * ends it and is returned.  0 or -errno: -ESRCH when the process has ended.
 */
int wp_synth_process(pid_t pid,
    int (*fn)(void *arg, const struct perf_event_header *), void *arg);

/*
 * The kernel's own code as an MMAP record, as perf writes it to name kernel
 * addresses by; no call when /proc/kallsyms hides addresses.  Results as above.
 */
int wp_synth_kernel(int (*fn)(void *arg, const struct perf_event_header *),
    void *arg);

#pragma GCC visibility pop

#endif
