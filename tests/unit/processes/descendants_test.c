/* descendants: which of them executed another program before the watch
   ended. */
#include "test.h"

#include <unistd.h>

#include "child.h"
#include "os/clock.h"
#include "processes/descendants.h"

static bool
is_never_caught(void *arg, const struct child *child)
{
	(void)arg;
	(void)child;
	return false;
}

static void
end_at_once(void *arg)
{
	(void)arg;
}

/* Two that are gone, and of whose end there was no record, are made at 10 and
   at 30.  Result: which is blamed if the watch ends then; 0: none. */
static uint64_t
blamed(uint64_t since)
{
	struct descendants d = {0};
	uint64_t born;

	for (unsigned i = 0; i < 2; i++) {
		const struct child child = {
			.pid = child_start(end_at_once, NULL),
			.parent = getpid(), .born = 10 + 20 * i,
		};

		assert_int_equal(child_wait(child.pid), 0);
		descendants_made(&d, &child, is_never_caught, NULL);
	}
	descendants_leave(&d, since);
	descendants_settle(&d, is_never_caught, NULL);
	born = d.executed.pid != 0 ? d.executed.born : 0;
	descendants_close(&d);
	return born;
}

TEST(the_first_is_blamed)
{
	assert_int_equal(blamed(40), 10);
}

TEST(what_is_made_after_the_end_does_not_matter)
{
	assert_int_equal(blamed(20), 10);
	assert_int_equal(blamed(5), 0);
}

static void
execute_sleep(void *arg)
{
	(void)arg;
	(void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
}

static void
wait_for_signal(void *arg)
{
	(void)arg;
	(void)pause();
}

struct found {
	pid_t pid;
	uint64_t after;
	unsigned n;
};

static void
find(void *arg, const struct child *child, uint64_t after)
{
	struct found *found = arg;

	*found = (struct found){child->pid, after, found->n + 1};
}

/* Of one that executes nothing, one that does, and one that has ended, the
   second is found, once. */
TEST(one_that_executes_a_program_is_found)
{
	void (*const does[])(void *) = {
		wait_for_signal, execute_sleep, end_at_once,
	};
	const uint64_t born = wp_clock_ns();
	struct descendants d = {0};
	struct found found = {0};
	pid_t pid[3];

	for (unsigned i = 0; i < 3; i++) {
		const struct child child = {
			.pid = pid[i] = child_start(does[i], NULL),
			.parent = getpid(), .born = born,
		};

		descendants_made(&d, &child, is_never_caught, NULL);
	}
	while (found.n == 0)
		descendants_find_executed(&d, true, find, &found);
	assert_int_equal(found.pid, pid[1]);
	assert_true(found.after >= born && found.after < wp_clock_ns());
	descendants_find_executed(&d, true, find, &found);
	assert_int_equal(found.n, 1);
	descendants_close(&d);
}

/* One is not looked at each time. */
TEST(one_is_looked_at_again_later)
{
	const struct child child = {
		.pid = child_start(execute_sleep, NULL), .parent = getpid(),
		.born = wp_clock_ns(),
	};
	struct descendants d = {0};
	struct found found = {0};

	descendants_made(&d, &child, is_never_caught, NULL);
	d.one[0].seen = wp_clock_ns() + UINT64_C(600000000000);
	descendants_find_executed(&d, false, find, &found);
	assert_int_equal(found.n, 0);
	while (found.n == 0)
		descendants_find_executed(&d, true, find, &found);
	descendants_close(&d);
}

RUN_TESTS(.after_all = children_end)
