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

#define SIZE (WP_KNOWN_ENTRIES * sizeof(struct wp_known_entry))

static volatile uint64_t word;		/* of the child */

/* What it is to do, and has done; both processes see it. */
static struct shared {
	atomic_uint stores, stored, maps, mapped;
} *shared;

static void *
obey(void *arg)
{
	const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (;;) {
		if (atomic_load(&shared->stored) <
		    atomic_load(&shared->stores)) {
			word++;
			(void)atomic_fetch_add(&shared->stored, 1);
		} else if (atomic_load(&shared->mapped) <
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

/* In a thread, whose stack is small. */
static void
run_thread(void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, obey, arg) == 0)
		(void)pthread_join(thread, NULL);
}

/* --- what watchctl knows --- */

/* How many are of a process. */
static unsigned
known_of(const struct wp_known_entry *entry, pid_t pid)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WP_KNOWN_ENTRIES; i++)
		n += __atomic_load_n(&entry[i].pid, __ATOMIC_SEQ_CST) ==
		    (uint64_t)pid;
	return n;
}

static uint64_t
changes_of(const struct wp_known_entry *entry)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < WP_KNOWN_ENTRIES; i++)
		n += __atomic_load_n(&entry[i].version, __ATOMIC_SEQ_CST);
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
TEST(stacks_are_known_until_the_explainer_may_err)
{
	struct running w;
	struct outcome o;
	bool bpf;
	pid_t pid, explainer;
	uint64_t changed;
	const struct wp_known_entry *entries;

	shared = shared_memory(sizeof(*shared));
	pid = child_start(run_thread, NULL);
	bpf = watch(&w, pid);
	if (bpf) {
		assert_non_null(entries = borrow_map(w.pid, SIZE));
		assert_int_equal(known_of(entries, pid), 0);
		store(20);
		await(known_of(entries, pid) == 1);
		(void)atomic_fetch_add(&shared->maps, 1);
		await(known_of(entries, pid) == 0);
		store(20);
		await(known_of(entries, pid) == 1);
		explainer = explainer_of(w.pid);
		assert_true(explainer > 0);
		changed = changes_of(entries);
		assert_int_equal(kill(explainer, SIGKILL), 0);
		store(1);
		/* the next one may make it known at once, as it was */
		await(changes_of(entries) > changed);
		borrow_end(entries, SIZE);
	}
	child_kill(pid);
	finish_status(&w, &o, 0);
	if (bpf)
		assert_int_equal(number_of(account_of(&o), "reported"),
		    atomic_load(&shared->stored));
	if (!bpf)
		skip();
}

int
main(void)
{
	return run_live_tests();
}
