/*
 * thread_counts: the BPF programs that count the hits of each thread, where
 * hits are only counted; one for each watch.
 */
#ifndef WP_THREAD_COUNTS_H
#define WP_THREAD_COUNTS_H

#include "ring/event_table.h"
#include "attach/target.h"

struct wp_thread_counts {
	int map;		/* < 0: there is none */
	int *program;		/* n of them, of watches; < 0: none */
	size_t n;
};

/* Make the map, and check that a program for it can be loaded.  0 or -errno. */
int wp_thread_counts_open(struct wp_thread_counts *);

/* Load the programs of watches first to first + n - 1 of a target.  Hits of a
   watch without a program are counted, but not for any thread.  Result: whether
   each watch has one. */
bool wp_thread_counts_load(struct wp_thread_counts *, const struct wp_target *,
    size_t first, size_t n);

/* Attach the program of a watch to its events, from index first on. */
void wp_thread_counts_attach(const struct wp_thread_counts *,
    const struct wp_events *, size_t first, size_t watch);

/* As wp_target_thread_counts. */
ssize_t wp_thread_counts_read(const struct wp_thread_counts *,
    struct wp_thread_count **);

void wp_thread_counts_close(struct wp_thread_counts *);

#endif
