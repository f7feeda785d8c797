/* fire_check: what is used is what is fired. */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "refuse.h"
#include "watch/fire_check.h"

/* Whether debug registers that do not fire are noticed where events are
   refused. */
static int
compare(void)
{
	if (!refuse_call(SYS_perf_event_open, EPERM, NULL, 0))
		return 2;
	return fire_check_inside() == fire_check_try(true) ? 0 : 1;
}

TEST(without_events_a_program_s_own_watches_need_debug_registers)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(compare());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status == 2 << 8)
		skip();
	assert_int_equal(status, 0);
}

RUN_TESTS()
