/* thread_counts: how many hits each thread made.  See thread_counts.h. */
#include "attach/thread_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/target_private.h"
#include "bpf/bpf.h"
#include "bpf/thread_counter.h"

enum { THREADS_MAX = 1 << 16 };	/* threads times watches */

int
wp_thread_counts_open(struct wp_thread_counts *t)
{
	int program;

	*t = (struct wp_thread_counts){
		.map = wp_thread_counter_map(THREADS_MAX),
	};
	if (t->map < 0)
		return t->map;
	if ((program = wp_thread_counter_load(t->map, 0, NULL,
	    NULL)) < 0) {
		wp_thread_counts_close(t);
		return program;
	}
	(void)close(program);
	return 0;
}

static void
unload(struct wp_thread_counts *t, size_t watch)
{
	if (t->program[watch] >= 0)
		(void)close(t->program[watch]);
	t->program[watch] = -1;
}

bool
wp_thread_counts_load(struct wp_thread_counts *t,
    const struct wp_target *target, size_t first, size_t n)
{
	bool each = true;
	int *more;

	if (t->map < 0)
		return false;
	if (first + n > t->n) {
		more = reallocarray(t->program, first + n, sizeof(*more));
		if (more == NULL)
			return false;
		t->program = more;
		while (t->n < first + n)
			more[t->n++] = -1;
	}
	for (size_t w = first; w < first + n; w++) {
		struct wp_own own;

		unload(t, w);
		t->program[w] = wp_thread_counter_load(t->map, w, NULL,
		    wp_target_own(target, w, 0, 0, &own) ? &own : NULL);
		each = each && t->program[w] >= 0;
	}
	return each;
}

void
wp_thread_counts_attach(const struct wp_thread_counts *t,
    const struct wp_events *events, size_t first, size_t watch)
{
	if (watch >= t->n || t->program[watch] < 0)
		return;
	for (size_t i = first; i < events->n; i++)
		(void)wp_perf_set_bpf(events->event[i].fd, t->program[watch]);
}

static int
compare(const void *a, const void *b)
{
	const struct wp_thread_count *x = a, *y = b;

	if (x->watch != y->watch)
		return x->watch < y->watch ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

ssize_t
wp_thread_counts_read(const struct wp_thread_counts *t,
    struct wp_thread_count **out)
{
	struct wp_thread_key key, last;
	size_t n = 0;

	*out = NULL;
	if (t->map < 0)
		return 0;
	if ((*out = calloc(THREADS_MAX, sizeof(**out))) == NULL)
		return -ENOMEM;
	while (n < THREADS_MAX && wp_bpf_next(t->map, n == 0 ? NULL : &last,
	    &key) == 0) {
		struct wp_thread_count *it = &(*out)[n++];

		last = key;
		*it = (struct wp_thread_count){
			.watch = key.watch, .pid = (pid_t)key.pid,
			.tid = (pid_t)key.tid,
		};
		(void)wp_bpf_lookup(t->map, &key, &it->count);
	}
	qsort(*out, n, sizeof(**out), compare);
	return (ssize_t)n;
}

void
wp_thread_counts_close(struct wp_thread_counts *t)
{
	for (size_t w = 0; w < t->n; w++)
		unload(t, w);
	free(t->program);
	if (t->map >= 0)
		(void)close(t->map);
	*t = (struct wp_thread_counts){.map = -1};
}
