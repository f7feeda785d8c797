/*
 * bpf: the system call bpf(2), and the maps and programs that are made with it.
 *
 * Functions return 0 (or a descriptor, close-on-exec) or -errno, and are
 * thread-safe.
 */
#ifndef WP_BPF_H
#define WP_BPF_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* A ring buffer of this size, bytes: a power of two, and at least a page. */
int wp_bpf_ringbuf(size_t size);

/* An array of one element of this size, bytes, which programs use and user
   space can map. */
int wp_bpf_shared(size_t size);

/* A hash table of at most max elements; the key that follows a key, or the
   first one (key NULL); the value of a key.  -ENOENT: there is none. */
int wp_bpf_hash(size_t key, size_t value, unsigned max);
int wp_bpf_next(int map, const void *key, void *next);
int wp_bpf_lookup(int map, const void *key, void *value);

int wp_bpf_update(int map, const void *key, const void *value);

/* An array of max perf events, which programs read.  An event stays in it until
   the descriptor is closed. */
int wp_bpf_events(unsigned max);

/* An array of one element that each processor has its own copy of. */
int wp_bpf_per_cpu(size_t size);

/* Load a program for perf events. */
int wp_bpf_load(const struct bpf_insn *, unsigned n);

/* The same for uprobes. */
int wp_bpf_load_uprobe(const struct bpf_insn *, unsigned n);

/* Load a program and attach it to the tracepoint of this name, until the
   descriptor is closed. */
int wp_bpf_trace(const char *name, const struct bpf_insn *, unsigned n);

#endif
