/* thread_table: the threads that a process traces. */
#include "stop/thread_table.h"

#include <stdlib.h>
#include <string.h>

#include "os/array.h"

/* The index of a thread, or where it would be inserted. */
static size_t
place(const struct wp_thread_table *all, pid_t tid)
{
	size_t low = 0, high = all->n;

	while (low < high) {
		const size_t mid = (low + high) / 2;

		if (all->thread[mid]->tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct wp_thread *
wp_thread_find(const struct wp_thread_table *all, pid_t tid)
{
	const size_t i = place(all, tid);

	return i < all->n && all->thread[i]->tid == tid ? all->thread[i] : NULL;
}

struct wp_thread *
wp_thread_after(const struct wp_thread_table *all, pid_t tid)
{
	const size_t i = place(all, tid + 1);

	return i < all->n ? all->thread[i] : NULL;
}

struct wp_thread *
wp_thread_add(struct wp_thread_table *all, pid_t tid, size_t size)
{
	const size_t i = place(all, tid);
	struct wp_thread *thread;

	if (WP_ARRAY_ROOM(all, thread) < 0 ||
	    (thread = calloc(1, size)) == NULL)
		return NULL;
	thread->tid = tid;
	memmove(&all->thread[i + 1], &all->thread[i],
	    (all->n++ - i) * sizeof(struct wp_thread *));
	all->thread[i] = thread;
	return thread;
}

void
wp_thread_drop(struct wp_thread_table *all, struct wp_thread *thread)
{
	const size_t i = place(all, thread->tid);

	memmove(&all->thread[i], &all->thread[i + 1],
	    (--all->n - i) * sizeof(struct wp_thread *));
	free(thread);
	if (all->n == 0) {
		free(all->thread);
		*all = (struct wp_thread_table){0};
	}
}
