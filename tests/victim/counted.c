/*
 * counted: a victim that knows what is counted between its writes.
 *
 *	counted THREADS WRITES
 *
 * Each thread writes `word' that many times.  Before the nth write, from 0, it
 * touches n % 4 new pages and sleeps n % 3 times, and it may be moved to
 * another processor.  Then it prints "TID N FAULTS SWITCHES NS" on stderr: what
 * has been counted in it by the write, or -1 where something happened between
 * the two looks at that, and how long it has run.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

volatile long word;
static long writes;

static long
faults(const struct rusage *u)
{
	return u->ru_minflt + u->ru_majflt;
}

static long
switches(const struct rusage *u)
{
	return u->ru_nvcsw + u->ru_nivcsw;
}

static __attribute__((noinline)) void
store(long n)
{
	word = n;
}

/* Each page of which a page fault makes. */
static volatile char *
new_pages(long n)
{
	void *pages = mmap(NULL, (size_t)(n + 1) * PAGE,
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		abort();
	(void)madvise(pages, (size_t)(n + 1) * PAGE, MADV_NOHUGEPAGE);
	return pages;
}

static void
work(long n)
{
	volatile char *pages = new_pages(n % 4);
	cpu_set_t set;

	for (long i = 0; i < n % 4; i++)
		pages[i * PAGE] = 1;
	for (long i = 0; i < n % 3; i++)
		(void)usleep(1);
	(void)munmap((void *)(size_t)pages, (size_t)(n % 4 + 1) * PAGE);
	CPU_ZERO(&set);
	CPU_SET((size_t)(n / 2 % sysconf(_SC_NPROCESSORS_ONLN)), &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void *
run(void *arg)
{
	struct { struct rusage before, after; struct timespec ran; } *seen;

	seen = calloc((size_t)writes, sizeof(*seen));
	if (seen == NULL)
		abort();
	for (long n = 0; n < writes; n++) {
		work(n);
		(void)getrusage(RUSAGE_THREAD, &seen[n].before);
		store(n);
		(void)getrusage(RUSAGE_THREAD, &seen[n].after);
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &seen[n].ran);
	}
	for (long n = 0; n < writes; n++) {
		const struct rusage *a = &seen[n].before, *b = &seen[n].after;

		(void)fprintf(stderr, "%d %ld %ld %ld %lld\n", (int)gettid(),
		    n, faults(a) == faults(b) ? faults(a) : -1,
		    switches(a) == switches(b) ? switches(a) : -1,
		    seen[n].ran.tv_sec * 1000000000ll +
		    seen[n].ran.tv_nsec);
	}
	return arg;
}

int
main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;
	pthread_t thread[64];

	writes = argc > 2 ? atol(argv[2]) : 1;
	for (long i = 0; i < n && i < 64; i++)
		if (pthread_create(&thread[i], NULL, run, NULL) != 0)
			abort();
	for (long i = 0; i < n && i < 64; i++)
		(void)pthread_join(thread[i], NULL);
	return 0;
}
