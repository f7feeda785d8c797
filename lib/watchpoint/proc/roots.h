/*
 * roots: the root directories of processes, each one once.
 */
#ifndef WP_ROOTS_H
#define WP_ROOTS_H

#include <stdbool.h>
#include <sys/types.h>

#pragma GCC visibility push(default)

struct wp_root;

/* All zero: none. */
struct wp_roots {
	struct wp_root *first;
};

/*
 * The root directory of a running process, in its mount namespace: -1 when it
 * is ours, else a descriptor (O_PATH) that stays open with these, whatever
 * becomes of the process.  0, or -errno: it is not available (any more).
 */
int wp_roots_find(struct wp_roots *, pid_t, int *root);

/* Whether root is a descriptor that wp_roots_find returned, and not -1. */
bool wp_roots_have(const struct wp_roots *, int root);

void wp_roots_free(struct wp_roots *);

#pragma GCC visibility pop

#endif
