/*
 * races: threads that open and close watches, and hit them, beside each other,
 * with a sanitizer for threads in the library (races.sh).  Exit status 1: not
 * each hit came.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <watchpoint.h>

enum { THREADS = 3, TIMES = 100 };

static volatile long word[THREADS];
static _Atomic int hits;

static void
note(const struct wp_hit *hit, void *arg)
{
	(void)hit;
	(void)arg;
	atomic_fetch_add(&hits, 1);
}

static void *
watch(void *arg)
{
	for (long i = 0; i < TIMES; i++) {
		const struct wp_attr attr = {
			.size = sizeof(attr), .addr = arg,
			.len = sizeof(word[0]), .handler = note,
			.threads = i % 2 == 0 ? WP_THIS_THREAD : WP_ALL_THREADS,
		};
		struct wp_watch *w;

		if (wp_open(&attr, &w) < 0) {
			(void)fprintf(stderr, "%s\n", wp_cause());
			return arg;
		}
		*(volatile long *)arg = i;
		(void)wp_disable(w);
		(void)wp_enable(w);
		*(volatile long *)arg = i;
		wp_close(w);
	}
	return NULL;
}

int
main(void)
{
	pthread_t thread[THREADS];
	void *failed;
	int bad = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, watch,
		    (void *)&word[i]) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		bad |= pthread_join(thread[i], &failed) != 0 || failed != NULL;
	(void)printf("%d hits\n", hits);
	return bad || hits != THREADS * TIMES * 2;
}
