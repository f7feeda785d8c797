/*
 * bpf: the system call bpf(2), and programs for it, made at run time.
 *
 * Functions return 0 (or a descriptor, close-on-exec) or -errno, and are
 * thread-safe.
 */
#ifndef WP_BPF_H
#define WP_BPF_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* A ring buffer of so many bytes: a power of two, and at least a page. */
int wp_bpf_ringbuf(size_t size);

/* An array of one element of so many bytes, for programs, that can be
   mapped. */
int wp_bpf_shared(size_t size);

/* A map of so many elements at most; the key behind one, or the first (key
   NULL); the value of one.  -ENOENT: there is none. */
int wp_bpf_hash(size_t key, size_t value, unsigned max);
int wp_bpf_next(int map, const void *key, void *next);
int wp_bpf_lookup(int map, const void *key, void *value);

int wp_bpf_update(int map, const void *key, const void *value);

/* An array of so many perf events, which programs read.  They are in it until
   the descriptor is closed. */
int wp_bpf_events(unsigned max);

/* An array of one element, of which each processor has its own. */
int wp_bpf_per_cpu(size_t size);

/* A program for events. */
int wp_bpf_load(const struct bpf_insn *, unsigned n);

/* The same for uprobes. */
int wp_bpf_load_uprobe(const struct bpf_insn *, unsigned n);

/* One that runs at a tracepoint of this name, until the descriptor is
   closed. */
int wp_bpf_trace(const char *name, const struct bpf_insn *, unsigned n);

#endif
