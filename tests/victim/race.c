/*
 * race: threads write one word, and log what they wrote.
 *
 *	race hot THREADS WRITES		at once, in bursts with pauses
 *	race flat THREADS WRITES	at once, without a pause
 *	race calm THREADS WRITES	one at a time, 10 ms apart
 *	race pairs MS WRITES		two threads, MS ms after the last writes
 *	race adds THREADS WRITES	at once, xadd alone
 *	race copies THREADS WRITES	the same, the operand is in a register
 *	race swaps THREADS WRITES	at once, xchg alone
 *	race sums THREADS WRITES	at once, xadd alone, of what memory has
 *
 * A stored value is unique, with low byte 0; each addition adds 1, but those of
 * sums.  At the end each write is logged in a line, thread by thread, in order:
 *
 *	write TID OPERATION|STORED|OLD
 *
 * STORED is what was stored, or added; OLD is the value before, which xchg,
 * xadd and the lock show; else "-".  The writes of a pair are stores: what is
 * left shows which was the last, and so what each found.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile uint64_t word;

enum { THREADS_MAX = 8 };

static struct thread {
	unsigned number;
	pid_t tid;
	unsigned random;
	struct {
		const char *operation;
		uint64_t stored, old;
		int has_old;
	} *log;
} threads[THREADS_MAX];

static unsigned writes, pause_ms;
static int flat, calm, pairs, adds, copies, swaps, sums;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t ready;

static unsigned
next_random(struct thread *t)
{
	t->random = t->random * 1103515245 + 12345;
	return t->random >> 16;
}

/* The i-th write of a thread. */
static void
put(struct thread *t, unsigned i)
{
	uint64_t value = (uint64_t)(t->number + 1) << 40 | (uint64_t)i << 8;
	const char *operation = "mov";
	uint64_t old = word, loaded;
	int has_old = calm;

	/* calm: what an exchange leaves behind nobody can tell */
	switch (calm && i % 8 != 0 ? next_random(t) % 2 * 6 :
	    next_random(t) % 8) {
	case 0:
	case 1:
	case 2:
		__asm__ volatile("movq %1,%0" : "=m"(word) : "r"(value));
		break;
	case 3:
	case 4:
		operation = "xchg";
		loaded = value;
		__asm__ volatile("xchgq %1,%0" : "+m"(word), "+r"(loaded));
		old = loaded;
		has_old = 1;
		break;
	case 5:
		operation = "xadd";
		value = loaded = 1;
		__asm__ volatile("lock xaddq %1,%0" : "+m"(word),
		    "+r"(loaded));
		old = loaded;
		has_old = 1;
		break;
	case 6:
		operation = "lock add";
		value = 1;
		__asm__ volatile("lock addq $1,%0" : "+m"(word));
		break;
	default:
		operation = "add";
		value = 1;
		__asm__ volatile("addq $1,%0" : "+m"(word));
	}
	t->log[i].operation = operation;
	t->log[i].stored = value;
	t->log[i].old = old;
	t->log[i].has_old = has_old;
}

static void
note_loaded(struct thread *t, unsigned i, const char *operation,
    uint64_t stored, uint64_t loaded)
{
	t->log[i].operation = operation;
	t->log[i].stored = stored;
	t->log[i].old = loaded;
	t->log[i].has_old = 1;
}

/* As compilers do it: the operand is put into the register just before. */
static void
put_adds(struct thread *t)
{
	for (unsigned i = 0; i < writes; i++) {
		uint64_t loaded;

		__asm__ volatile("movl $1,%k1; lock xaddq %1,%0" :
		    "+m"(word), "=r"(loaded));
		note_loaded(t, i, "xadd", 1, loaded);
	}
}

/* As compilers do it in a loop: the operand is kept in another register.  The
   linker puts it behind all other code: no other function begins where it
   ends. */
__attribute__((noinline, section(".text.last"))) static void
put_copies(struct thread *t, uint64_t operand)
{
	for (unsigned i = 0; i < writes; i++) {
		uint64_t loaded;

		__asm__ volatile("movq %2,%1; lock xaddq %1,%0" :
		    "+m"(word), "=&r"(loaded) : "r"(operand));
		note_loaded(t, i, "xadd", operand, loaded);
	}
}

/* The operand comes from further away. */
static void
put_swaps(struct thread *t)
{
	for (unsigned i = 0; i < writes; i++) {
		const uint64_t value = (uint64_t)(t->number + 1) << 40 |
		    (uint64_t)i << 8;
		uint64_t loaded = value;

		__asm__ volatile("nop; nop; nop; nop; nop; xchgq %1,%0" :
		    "+m"(word), "+r"(loaded));
		note_loaded(t, i, "xchg", value, loaded);
	}
}

/* The operand is read in memory, and is another each time. */
static void
put_sums(struct thread *t)
{
	for (unsigned i = 0; i < writes; i++) {
		const volatile uint64_t operand = next_random(t);
		uint64_t loaded;

		__asm__ volatile("movq %2,%1; lock xaddq %1,%0" :
		    "+m"(word), "=&r"(loaded) : "m"(operand));
		note_loaded(t, i, "xadd", operand, loaded);
	}
}

/* None, a short one, or one that is long enough for another to be alone. */
static void
pause_some(struct thread *t)
{
	unsigned kind = next_random(t) % 16;

	if (kind == 0)
		(void)usleep(next_random(t) % 16 * 20000);
	else if (kind < 8)
		(void)usleep(next_random(t) % 4000);
}

/* Both spin, so that they start at the same time. */
static void
start_together(unsigned i)
{
	static atomic_uint there;

	(void)atomic_fetch_add(&there, 1);
	while (atomic_load(&there) < 2 * (i + 1))
		;
}

static void
put_pairs(struct thread *t)
{
	uint64_t before = word, value;

	for (unsigned i = 0; i < writes; i++) {
		(void)usleep(pause_ms * 1000);
		value = (uint64_t)(t->number + 1) << 40 | (uint64_t)i << 8;
		start_together(i);
		word = value;
		(void)pthread_barrier_wait(&ready);
		t->log[i].operation = "mov";
		t->log[i].stored = value;
		t->log[i].old = word == value ? value ^ UINT64_C(3) << 40 :
		    before;
		t->log[i].has_old = 1;
		before = word;
		(void)pthread_barrier_wait(&ready);
	}
}

static void *
work(void *arg)
{
	struct thread *t = arg;
	unsigned burst = 0;

	t->tid = gettid();
	(void)pthread_barrier_wait(&ready);
	if (copies) {
		put_copies(t, 1);
		return NULL;
	}
	if (pairs || adds || swaps || sums) {
		(pairs ? put_pairs : adds ? put_adds : swaps ? put_swaps :
		    put_sums)(t);
		return NULL;
	}
	for (unsigned i = 0; i < writes; i++) {
		if (calm) {
			(void)pthread_mutex_lock(&lock);
			put(t, i);
			(void)usleep(10000);
			(void)pthread_mutex_unlock(&lock);
			continue;
		}
		put(t, i);
		if (flat || burst-- != 0)
			continue;
		burst = next_random(t) % 64;
		pause_some(t);
	}
	return NULL;
}

static void
tell(const struct thread *t)
{
	for (unsigned i = 0; i < writes; i++) {
		printf("write %d %s|%#llx|", (int)t->tid,
		    t->log[i].operation,
		    (unsigned long long)t->log[i].stored);
		if (t->log[i].has_old)
			printf("%#llx\n", (unsigned long long)t->log[i].old);
		else
			printf("-\n");
	}
}

int
main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	pthread_t thread[THREADS_MAX];

	if (argc != 4)
		return 2;
	flat = strcmp(argv[1], "flat") == 0;
	calm = strcmp(argv[1], "calm") == 0;
	pairs = strcmp(argv[1], "pairs") == 0;
	adds = strcmp(argv[1], "adds") == 0;
	copies = strcmp(argv[1], "copies") == 0;
	swaps = strcmp(argv[1], "swaps") == 0;
	sums = strcmp(argv[1], "sums") == 0;
	if (pairs) {
		pause_ms = n;
		n = 2;
	}
	writes = (unsigned)atoi(argv[3]);
	if (n < 1 || n > THREADS_MAX)
		return 2;
	if (pthread_barrier_init(&ready, NULL, n) != 0)
		return 2;
	for (unsigned i = 0; i < n; i++) {
		threads[i].number = threads[i].random = i;
		threads[i].log = calloc(writes, sizeof(*threads[i].log));
		if (threads[i].log == NULL || pthread_create(&thread[i], NULL,
		    work, &threads[i]) != 0)
			return 2;
	}
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < n; i++)
		tell(&threads[i]);
	return 0;
}
