/*
 * thread_counter: a BPF program that counts the hits of each thread.  Its event
 * needs no ring buffer.
 */
#ifndef WP_THREAD_COUNTER_H
#define WP_THREAD_COUNTER_H

#include <stdint.h>

/* The key of a count: the thread and the watch that it hit. */
struct wp_thread_key {
	uint32_t tid, pid;
	uint64_t watch;
};

/* Make a map from such keys to uint64_t, with at most max elements.  A
   descriptor, or -errno. */
int wp_thread_counter_map(unsigned max);

/* Load the program for the events of a watch, whose samples it drops; with a
   guard, for a uprobe; with own, for the hits of one process alone.  It does
   not count threads that have no id here (wp_code_thread_ids()), threads for
   which the map has no room, and hits during another program.  A descriptor, or
   -errno. */
struct wp_uprobe_guard;
struct wp_own;
int wp_thread_counter_load(int map, uint64_t watch,
    const struct wp_uprobe_guard *, const struct wp_own *own);

#endif
