/*
 * known_stacks: while a program is watched, its stacks that come often become
 * known to the kernel; until it maps other code, or the explainer dies that has
 * said so.
 */
#include "test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "borrow.h"
#include "bpf/known_stack_map.h"
#include "explainers.h"
#include "live.h"
#include "watching.h"
#include "child.h"

#define SIZE sizeof(struct wp_known_table)

static volatile uint64_t word;		/* of the child */

/* What it is to do, and has done; both processes see it. */
static struct shared {
	atomic_uint stores, stored, maps, mapped;
	atomic_int turn;	/* which thread is to do it */
} *shared;

static void *
obey(void *arg)
{
	const int own = arg != NULL;
	const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (;;) {
		const bool turn = atomic_load(&shared->turn) == own;

		if (turn && atomic_load(&shared->stored) <
		    atomic_load(&shared->stores)) {
			word++;
			(void)atomic_fetch_add(&shared->stored, 1);
		} else if (turn && atomic_load(&shared->mapped) <
		    atomic_load(&shared->maps)) {
			if (mmap(NULL, 4096, PROT_READ | PROT_EXEC,
			    MAP_PRIVATE, program, 0) == MAP_FAILED)
				_exit(1);
			(void)atomic_fetch_add(&shared->mapped, 1);
		} else
			nap_us(100);
	}
	return arg;
}

/* In two threads, whose stacks are small. */
static void
run_threads(void *arg)
{
	pthread_t thread[2];

	if (pthread_create(&thread[0], NULL, obey, NULL) == 0 &&
	    pthread_create(&thread[1], NULL, obey, arg) == 0)
		(void)pthread_join(thread[0], NULL);
}

/* --- what watchctl knows --- */

/* How many are of a process. */
static unsigned
known_of(const struct wp_known_table *table, pid_t pid)
{
	const struct wp_known_entry *entry = table->entry;
	unsigned n = 0;

	for (unsigned i = 0; i < WP_KNOWN_ENTRIES; i++)
		n += __atomic_load_n(&entry[i].pid, __ATOMIC_SEQ_CST) ==
		    (uint64_t)pid;
	return n;
}

static uint64_t
changes_of(const struct wp_known_table *table)
{
	const struct wp_known_entry *entry = table->entry;
	uint64_t n = 0;

	for (unsigned i = 0; i < WP_KNOWN_ENTRIES; i++)
		n += __atomic_load_n(&entry[i].version, __ATOMIC_SEQ_CST);
	return n;
}

/* Of how many threads it is known where their stacks begin. */
static unsigned
threads_of(const struct wp_known_table *table)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WP_KNOWN_THREADS; i++)
		n += __atomic_load_n(&table->thread[i].begin,
		    __ATOMIC_SEQ_CST) != 0;
	return n;
}

static void
store(unsigned times)
{
	(void)atomic_fetch_add(&shared->stores, times);
	await(atomic_load(&shared->stored) == atomic_load(&shared->stores));
}

/* False: BPF does not deliver. */
static bool
watch(struct running *w, pid_t pid)
{
	char line[4096], spec[32], text[16];

	(void)snprintf(spec, sizeof(spec), "%#" PRIxPTR ":8",
	    (uintptr_t)&word);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	watch_hear(w, LIST(watchctl(), "-w", spec, "-o", "json", "-p", text),
	    line);
	return strstr(line, "\"delivery\":\"bpf\"") != NULL;
}

/* The next explainer has said nothing of them. */
TEST(stacks_are_known_until_who_knows_them_may_err)
{
	struct running w;
	struct outcome o;
	bool bpf;
	pid_t pid, explainer;
	uint64_t changed;
	const struct wp_known_table *table;

	shared = shared_memory(sizeof(*shared));
	pid = child_start(run_threads, shared);
	bpf = watch(&w, pid);
	if (bpf) {
		assert_non_null(table = borrow_map(w.pid, SIZE));
		assert_int_equal(known_of(table, pid), 0);
		store(20);
		await(known_of(table, pid) == 1);
		(void)atomic_fetch_add(&shared->maps, 1);
		await(known_of(table, pid) == 0);
		store(20);
		await(known_of(table, pid) == 1);
		explainer = explainer_of(w.pid);
		assert_true(explainer > 0);
		changed = changes_of(table);
		assert_int_equal(kill(explainer, SIGKILL), 0);
		store(1);
		/* the next one may make it known at once, as it was */
		await(changes_of(table) > changed);
		borrow_end(table, SIZE);
	}
	child_kill(pid);
	finish_status(&w, &o, 0);
	if (bpf)
		assert_int_equal(number_of(account_of(&o), "reported"),
		    atomic_load(&shared->stored));
	if (!bpf)
		skip();
}

/* What is known of one thread's stack is known of another's. */
TEST(threads_share_what_is_known)
{
	struct running w;
	struct outcome o;
	const struct wp_known_table *table;
	uint64_t changes;
	bool bpf;
	pid_t pid;

	shared = shared_memory(sizeof(*shared));
	pid = child_start(run_threads, shared);
	bpf = watch(&w, pid);
	if (bpf) {
		assert_non_null(table = borrow_map(w.pid, SIZE));
		store(20);
		await(known_of(table, pid) == 1 && threads_of(table) == 1);
		changes = changes_of(table);
		atomic_store(&shared->turn, 1);
		store(20);
		await(threads_of(table) == 2);
		store(20);
		assert_int_equal(known_of(table, pid), 1);
		assert_int_equal(changes_of(table), changes);
		borrow_end(table, SIZE);
	}
	child_kill(pid);
	finish_status(&w, &o, 0);
	if (!bpf)
		skip();
}

int
main(void)
{
	return run_live_tests();
}
