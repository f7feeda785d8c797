/* sideband: what a child of the test does besides accesses is noticed. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "child.h"
#include "live.h"
#include "processes/sideband.h"

/* What the child and the test share. */
static struct shared {
	atomic_int asked;		/* to do step n */
	atomic_int done;
	void *_Atomic at;		/* where it has mapped */
} *shared;

static struct sideband side;
static struct sideband_mapping mapping;
static struct sideband_child child;
static unsigned mappings, children, loans, begun;

static void
await_step(int n)
{
	while (shared->asked < n)
		nap_us(100);
}

static void
map(int n, int flags)
{
	await_step(n);
	shared->at = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
	    MAP_ANONYMOUS | flags, -1, 0);
	shared->done = n;
}

/* By a thread that was there before, and one that it makes. */
static void *
act(void *unused)
{
	pid_t pid;

	map(1, MAP_PRIVATE);
	map(2, MAP_SHARED);
	await_step(3);
	if ((pid = vfork()) == 0) {
		shared->done = 3;
		await_step(4);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	shared->done = 4;
	await_step(5);
	if (fork() == 0) {
		map(5, MAP_PRIVATE);
		_exit(0);
	}
	await_step(6);
	return unused;
}

static void *
do_nothing(void *unused)
{
	return unused;
}

static void *
act_by_another(void *unused)
{
	pthread_t thread;

	shared->done = -1;
	await_step(1);
	if (pthread_create(&thread, NULL, act, NULL) != 0)
		_exit(1);
	(void)pthread_join(thread, NULL);
	return unused;
}

static void
run_threads(void *unused)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, act_by_another, unused) != 0)
		_exit(1);
	(void)pthread_join(thread, NULL);
}

static void
note_thread(void *arg, pid_t pid, uint64_t time)
{
	(void)arg;
	begun += pid == side.pid && time > 0;
}

static void
note(void *arg, const struct sideband_mapping *map)
{
	(void)arg;
	if (map->start > (uintptr_t)shared->at ||
	    map->end <= (uintptr_t)shared->at)
		return;
	mapping = *map;
	mappings++;
}

static void
note_child(void *arg, const struct sideband_child *made)
{
	(void)arg;
	child = *made;
	children++;
}

static void
note_loan(void *arg, pid_t pid)
{
	*(pid_t *)arg = pid;
	loans++;
}

static const struct sideband_calls calls = {
	note_thread, note, note_child, note_loan,
};

/* Nobody else has, or had, the memory of this process. */
static bool
is_quiet(pid_t pid)
{
	pid_t lent = 0;

	loans = children = 0;
	assert_true(sideband_look(&side, &calls, &lent));
	if (loans > 0)
		assert_int_equal(lent, pid);
	return loans == 0;
}

static void
do_step(int step)
{
	mappings = 0;
	shared->asked = step;
	await(shared->done == step);
}

TEST(records_mappings_and_children)
{
	const pid_t pid = child_start(run_threads, NULL);
	uint64_t before;

	await(shared->done == -1);
	sideband_open(&side, pid);
	assert_non_null(side.tasks.rings);
	assert_non_null(side.maps.rings);
	assert_true(is_quiet(pid));
	before = wp_clock_ns();
	do_step(1);
	assert_true(is_quiet(pid));
	assert_int_equal(begun, 1);
	assert_int_equal(mappings, 1);
	assert_int_equal(mapping.pid, pid);
	assert_false(mapping.shared);
	assert_in_range(mapping.time, before, wp_clock_ns());
	do_step(2);
	assert_true(is_quiet(pid));
	assert_int_equal(mappings, 1);
	assert_true(mapping.shared);
	/* it has the memory still, and then had it */
	before = wp_clock_ns();
	do_step(3);
	assert_false(is_quiet(pid));
	assert_int_equal(children, 1);
	assert_int_equal(child.parent, pid);
	assert_int_not_equal(child.pid, pid);
	assert_in_range(child.time, before, wp_clock_ns());
	assert_false(is_quiet(pid));
	do_step(4);
	assert_false(is_quiet(pid));
	assert_true(is_quiet(pid));
	/* of a child it is heard, too */
	do_step(5);
	assert_false(is_quiet(pid));
	assert_int_equal(children, 1);
	assert_int_equal(mappings, 1);
	assert_int_equal(mapping.pid, child.pid);
	shared->asked = 6;
	assert_int_equal(child_wait(pid), 0);
	sideband_close(&side);
	assert_false(sideband_look(&side, &calls, NULL));
}

/* More than there is room for, and then a child. */
static void
map_and_create(void *threads)
{
	pthread_t thread;

	shared->done = 1;
	await_step(2);
	for (int i = 0; i < 5000; i++)
		if (threads == NULL ? munmap(mmap(NULL, 4096, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096) != 0 :
		    pthread_create(&thread, NULL, do_nothing, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			_exit(1);
	if (fork() == 0)
		_exit(0);
	shared->done = 2;
	await_step(3);
}

TEST(many_mappings_hide_no_child)
{
	pid_t lent;
	const pid_t pid = child_start(map_and_create, NULL);

	await(shared->done == 1);
	sideband_open(&side, pid);
	if (side.tasks.rings == NULL || side.maps.rings == NULL)
		fail_msg("%s", side.cause.text);
	assert_true(sideband_look(&side, &calls, &lent));
	assert_true(sideband_knows_tasks(&side));
	do_step(2);
	children = 0;
	assert_false(sideband_look(&side, &calls, &lent));
	assert_int_equal(children, 1);
	assert_true(sideband_knows_tasks(&side));
	shared->asked = 3;
	assert_int_equal(child_wait(pid), 0);
}

TEST(too_many_threads_are_not_all_known)
{
	pid_t lent;
	const pid_t pid = child_start(map_and_create, shared);

	await(shared->done == 1);
	sideband_open(&side, pid);
	do_step(2);
	(void)sideband_look(&side, &calls, &lent);
	assert_false(sideband_knows_tasks(&side));
	shared->asked = 3;
	assert_int_equal(child_wait(pid), 0);
}

TEST(knows_nothing_of_a_process_that_is_gone)
{
	sideband_open(&side, 0x7ffffff0);
	assert_null(side.tasks.rings);
	assert_false(sideband_knows_tasks(&side));
	assert_false(sideband_look(&side, &calls, NULL));
}

/* Then a child may be missed that other limits would show. */
TEST(without_descriptors_it_is_not_refused)
{
	struct rlimit limit, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	sideband_open(&side, getpid());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(sideband_knows_tasks(&side));
	assert_false(side.refused);
	if (strstr(side.cause.text, "ulimit -n") == NULL)
		fail_msg("%s", side.cause.text);
}

static int
setup(void **state)
{
	(void)state;
	shared = shared_memory(sizeof(*shared));
	return 0;
}

static int
teardown(void **state)
{
	sideband_close(&side);
	(void)munmap(shared, sizeof(*shared));
	return children_end(state);
}

RUN_LIVE_TESTS(.before_each = setup, .after_each = teardown)
