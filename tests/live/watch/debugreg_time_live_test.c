/*
 * debugreg_time: for how long the debug registers of a thread were on, which
 * the test traces itself.
 */
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <sys/wait.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "watch/debugreg_time.h"

static volatile uint64_t word;

static const struct wp_slot none[WP_DEBUG_REGISTERS];
static struct wp_slot slots[WP_DEBUG_REGISTERS];
static struct debugreg_time timed;
static struct wp_uptime uptime;
static pid_t pid;

static void
calculate(void *arg)
{
	volatile unsigned long spent = 0;

	(void)arg;
	for (;;)
		spent++;
}

/* What it has to report next. */
static enum wp_trace_what
await_stop(void)
{
	struct wp_trace trace;

	await(wp_trace_next(pid, &trace) > 0);
	return trace.what;
}

static void
start_traced(void)
{
	pid = child_start(calculate, NULL);
	assert_int_equal(wp_trace_thread(pid), 0);
	assert_int_equal(await_stop(), WP_TRACE_STOP);
	wp_trace_report_exit(pid);
	timed = (struct debugreg_time){0};
	uptime = (struct wp_uptime){0};
	slots[1] = (struct wp_slot){(uintptr_t)&word, 8, HW_BREAKPOINT_W};
	slots[2] = (struct wp_slot){(uintptr_t)&word, 2, HW_BREAKPOINT_RW};
	assert_int_equal(wp_trace_registers(pid, slots, 6), 0);
	debugreg_time_begin(&timed, pid, slots, 6);
}

/* Let it go on until it has run for so long, ns. */
static void
let_run(uint64_t ns)
{
	uint64_t before, now;

	assert_int_equal(wp_proc_ran(pid, &before), 0);
	wp_trace_continue(pid, 0);
	await(wp_proc_ran(pid, &now) == 0 && now >= before + ns);
}

static void
stop(void)
{
	wp_trace_interrupt(pid);
	assert_int_equal(await_stop(), WP_TRACE_STOP);
}

static void
end_traced(void)
{
	wp_trace_let_go(pid, 0);
	child_kill(pid);
}

TEST(registers_that_are_set_were_set_all_the_time)
{
	start_traced();
	let_run(20000000);
	stop();
	debugreg_time_end(&timed, pid, 5, &uptime);
	assert_true(uptime.known);
	assert_int_equal(uptime.threads, 1);
	assert_in_range(uptime.ran, 20000000, UINT64_MAX);
	assert_int_equal(uptime.off, 0);
	assert_int_equal(uptime.worst, 0);
	/* the same thread, and nothing while they are off */
	assert_int_equal(wp_trace_registers(pid, none, 0), 0);
	debugreg_time_begin(&timed, pid, none, 0);
	debugreg_time_end(&timed, pid, 5, &uptime);
	debugreg_time_lost(&timed, &uptime);
	assert_int_equal(uptime.threads, 1);
	assert_int_equal(uptime.unknown, 0);
	end_traced();
}

/* Each in its own way. */
TEST(a_register_that_was_changed_is_a_gap)
{
	for (int i = 0; i < 4; i++) {
		struct wp_slot other[WP_DEBUG_REGISTERS];

		start_traced();
		memcpy(other, slots, sizeof(other));
		if (i == 0)
			other[1].addr += 8;
		else if (i == 1)
			other[2].len = 4;
		assert_int_equal(wp_trace_registers(pid, other, i == 2 ? 2 :
		    i == 3 ? 0 : 6), 0);
		let_run(2000000);
		stop();
		debugreg_time_end(&timed, pid, 5, &uptime);
		assert_true(uptime.known);
		assert_in_range(uptime.off, 2000000, UINT64_MAX);
		assert_int_equal(uptime.off, uptime.ran);
		assert_int_equal(uptime.worst, uptime.off);
		assert_int_equal(uptime.watch, 5);
		assert_int_equal(uptime.tid, pid);
		end_traced();
	}
}

/* Also of a thread that is killed. */
TEST(the_last_look_is_before_the_end)
{
	start_traced();
	let_run(2000000);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(await_stop(), WP_TRACE_EXIT);
	debugreg_time_end(&timed, pid, 5, &uptime);
	assert_true(uptime.known);
	assert_in_range(uptime.ran, 2000000, UINT64_MAX);
	assert_int_equal(uptime.off, 0);
	wp_trace_continue(pid, 0);
	assert_int_equal(await_stop(), WP_TRACE_END);
	child_kill(pid);
}

TEST(a_thread_that_was_not_examined_is_unknown)
{
	start_traced();
	debugreg_time_lost(&timed, &uptime);
	assert_int_equal(uptime.unknown, 1);
	uptime = (struct wp_uptime){0};
	debugreg_time_begin(&timed, pid, slots, 6);
	let_run(1000);
	/* it runs */
	debugreg_time_end(&timed, pid, 5, &uptime);
	assert_int_equal(uptime.unknown, 1);
	assert_false(uptime.known);
	stop();
	end_traced();
}

RUN_LIVE_TESTS(.after_each = children_end)
