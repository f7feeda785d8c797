/*
 * thread_counter: a BPF program that counts the hits of each thread.  Its event
 * needs no ring.
 */
#ifndef WP_THREAD_COUNTER_H
#define WP_THREAD_COUNTER_H

#include <stdint.h>

/* Whose hits, of which watch. */
struct wp_thread_key {
	uint32_t tid, pid;
	uint64_t watch;
};

/* A map from that to a uint64_t, of so many at most.  A descriptor, or
   -errno. */
int wp_thread_counter_map(unsigned max);

/* The program for the events of a watch, whose samples it drops; or for a
   uprobe, if there is a guard; or for hits of one process alone, own.  It does
   not count threads of another pid
   namespace, those for which the map has no room, and hits amid another
   program.  A descriptor, or -errno. */
struct wp_uprobe_guard;
struct wp_own;
int wp_thread_counter_load(int map, uint64_t watch,
    const struct wp_uprobe_guard *, const struct wp_own *own);

#endif
