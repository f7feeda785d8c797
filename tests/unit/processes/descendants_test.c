/* descendants: which of them executed another program before the watch
   ended. */
#include "test.h"

#include <unistd.h>

#include "child.h"
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

RUN_TESTS(.after_all = children_end)
