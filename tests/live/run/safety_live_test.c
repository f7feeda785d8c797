/*
 * safety: watchctl is killed by SIGKILL at random moments, and the watched
 * program continues as if it had never been watched.
 */
#include "test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

enum {
	PARTS = 5,		/* of the busy victim */
	KILLS = 30,		/* at any moment */
	HELD_KILLS = 12,	/* while the victim is held */
	COMMAND_KILLS = 12,	/* in command mode */
	THOROUGH = 3,		/* times as often where $THOROUGH is set */
	SPAN_MIN = 60000,	/* us that kills are spread over; at most, */
	SPAN_MAX = 150000,	/* on a machine that is not too busy */
	HOLD_US = 1500,		/* about how long the victim is held */
};

static struct target busy;	/* the victim; pid 0: none */

static unsigned
how_often(unsigned n)
{
	return getenv("THOROUGH") != NULL ? n * THOROUGH : n;
}

/* watchctl on the victim, with its report to a file. */
static void
begin_watch(struct running *w)
{
	start(w, LIST(watchctl(), "-w", "word", "-o", "json", "-O",
	    scratch_path("report"), "-p", busy.pid));
}

/* Kill it; it must not have ended by itself. */
static void
kill_watch(struct running *w)
{
	struct outcome o;

	(void)kill(w->pid, SIGKILL);
	finish(w, &o);
	if (o.status != 128 + SIGKILL)
		fail_msg("watchctl: status %d: %s", o.status, o.err);
}

/* Whether it has come so far that the report has begun: it is armed. */
static bool
is_armed(void)
{
	struct stat st;

	return stat(scratch_path("report"), &st) == 0 && st.st_size > 0;
}

static void
await_armed(void)
{
	uint64_t began = now_us();

	while (!is_armed() && now_us() - began < COMMAND_PATIENCE_MS * 1000)
		(void)usleep(500);
	assert_true(is_armed());
}

static void
forget_report(void)
{
	(void)unlink(scratch_path("report"));
}

/* A span of us such that many kills come before it is armed, and many after. */
static unsigned
find_span(void)
{
	unsigned took = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t began = now_us();
		struct running w;

		begin_watch(&w);
		await_armed();
		took += (unsigned)(now_us() - began) / 3;
		kill_watch(&w);
		forget_report();
	}
	if (took * 2 <= SPAN_MAX)
		return took * 2 < SPAN_MIN ? SPAN_MIN : took * 2;
	return took + took / 4 < SPAN_MAX ? SPAN_MAX : took + took / 4;
}

/* Moments spread over a span, random within each of n steps. */
static unsigned
moment(unsigned i, unsigned n, unsigned span)
{
	static unsigned short state[3] = {1, 2, 3};

	return (unsigned)((i + erand48(state)) * span / n);
}

/* Wait for such a moment; but the first one is at once, and the last when it is
   armed, though the machine has become less or more busy since the span was
   found. */
static void
await_moment(unsigned i, unsigned n, unsigned span)
{
	if (i == 0)
		return;
	if (i + 1 < n)
		(void)usleep(moment(i, n, span));
	else
		await_armed();
}

static void
read_progress(long progress[PARTS])
{
	const size_t size = PARTS * sizeof(*progress);

	assert_int_equal(wp_proc_read(busy.run.pid,
	    strtoull(busy.addr, NULL, 16), progress, size), size);
}

/* Every part gets on. */
static void
expect_progress(void)
{
	long then[PARTS], now[PARTS];
	unsigned behind = PARTS;

	read_progress(then);
	for (unsigned i = 0; behind > 0 && i < COMMAND_PATIENCE_MS * 5; i++) {
		(void)usleep(200);
		read_progress(now);
		behind = 0;
		for (unsigned k = 0; k < PARTS; k++)
			behind += now[k] <= then[k];
	}
	if (behind > 0)
		fail_msg("%u parts stand still", behind);
}

/* No thread is stopped, or traced. */
static void
expect_running(void)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int n = wp_proc_threads(busy.run.pid, &tids, &cap);

	assert_true(n > PARTS);
	for (int i = 0; i < n; i++) {
		struct wp_proc_status status;

		if (wp_proc_status(tids[i], &status) < 0)
			continue;	/* it has just ended */
		if (status.tracer != 0 || strchr("tT", status.state) != NULL)
			fail_msg("thread %d: state %c, traced by %d", tids[i],
			    status.state, status.tracer);
	}
	free(tids);
}

/* All slots of the threads that stay are free. */
static void
expect_free_slots(void)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int n = wp_proc_threads(busy.run.pid, &tids, &cap);

	assert_true(n > PARTS);
	for (int i = 0; i <= PARTS; i++)
		live_await_free_slots(tids[i], live_features.caps.slots);
	free(tids);
}

static void
expect_unharmed(void)
{
	expect_running();
	expect_free_slots();
	expect_progress();
}

static int
start_busy(void **state)
{
	target_start(&busy, LIST(victim("busy")));
	expect_progress();
	return scratch_make(state);
}

static int
kill_busy(void **state)
{
	if (busy.run.pid != 0)
		end(&busy.run);
	busy.run.pid = 0;
	return scratch_remove(state);
}

/* It has found nothing wrong, and ends as it does unwatched. */
static void
expect_good_end(void)
{
	struct outcome o;

	say(&busy.run, "end\n");
	finish(&busy.run, &o);
	busy.run.pid = 0;
	assert_string_equal(o.out, "done\n");
	assert_int_equal(o.status, 7);
}

TEST(the_target_alone)
{
	expect_unharmed();
	expect_good_end();
}

TEST(killed_at_any_moment)
{
	const unsigned n = how_often(KILLS);
	unsigned span, armed = 0;

	span = find_span();
	for (unsigned i = 0; i < n; i++) {
		struct running w;

		begin_watch(&w);
		await_moment(i, n, span);
		kill_watch(&w);
		armed += is_armed();
		expect_unharmed();
		forget_report();
	}
	expect_good_end();
	print_message("%u of %u kills within %u ms came when it was armed\n",
	    armed, n, span / 1000);
	assert_in_range(armed, 1, n - 1);
}

/* Wait until a process has a tracer.  False: it was missed. */
static bool
await_tracer(pid_t pid)
{
	uint64_t began = now_us();
	struct wp_proc_status status;

	while (wp_proc_status(pid, &status) == 0 && status.tracer == 0) {
		if (is_armed())
			return false;
		assert_true(now_us() - began < COMMAND_PATIENCE_MS * 1000);
	}
	return true;
}

TEST(killed_while_it_holds_the_process)
{
	const unsigned n = how_often(HELD_KILLS);
	unsigned met = 0;

	for (unsigned i = 0; i < n; i++) {
		struct running w;
		uint64_t seen;

		begin_watch(&w);
		met += await_tracer(busy.run.pid);
		seen = now_us();
		while (now_us() - seen < moment(i, n, HOLD_US))
			;
		kill_watch(&w);
		expect_unharmed();
		forget_report();
	}
	expect_good_end();
	print_message("%u of %u kills came while it was held\n", met, n);
	assert_true(met > 0);
}

static void
on_pipe(int sig)
{
	(void)sig;
}

/* Of a command whose watchctl was killed: its exit status, -1 when it had not
   been made yet.  The process that explains ends, too. */
static int
orphan_status(void)
{
	siginfo_t info = {0};
	char name[32];
	int status;

	do {
		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0)
			return -1;
		name[0] = '\0';
		(void)wp_proc_text(info.si_pid, "comm", name, sizeof(name));
		(void)waitpid(info.si_pid, &status, 0);
	} while (strncmp(name, "watchctl-explain", 15) == 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}

/* Kill number i of n.  Either the command has not become what it should be, or
   it goes on to its end.  Result: whether it does. */
static bool
kill_command(unsigned i, unsigned n, unsigned span)
{
	const char *spec = i % 2 == 0 ? "counter" : "environ";
	struct running w;
	struct outcome o;
	int status;
	bool began;

	start(&w, LIST(watchctl(), "-w", spec, "-o", "json", "-O",
	    scratch_path("report"), "--", victim("counter"), "2", "50"));
	await_moment(i, n, span);
	(void)kill(w.pid, SIGKILL);
	(void)!write(w.in, "go\nend\n", 7);
	finish(&w, &o);
	assert_int_equal(o.status, 128 + SIGKILL);
	status = orphan_status();
	began = *o.out != '\0';
	if (began && (strstr(o.out, "\ndone\n") == NULL || status != 7))
		fail_msg("kill %u: status %d, \"%s\"", i, status, o.out);
	if (!began && status != -1 && status != 127)
		fail_msg("kill %u: no output, status %d", i, status);
	return began;
}

TEST(killed_with_a_command)
{
	struct sigaction action = {.sa_handler = on_pipe};
	const unsigned n = how_often(COMMAND_KILLS);
	unsigned span, went_on = 0;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	(void)sigaction(SIGPIPE, &action, NULL);
	span = find_span();
	expect_unharmed();
	expect_good_end();	/* there must be no other child */
	for (unsigned i = 0; i < n; i++) {
		forget_report();
		went_on += kill_command(i, n, span);
	}
	print_message("%u of %u commands had begun\n", went_on, n);
	assert_in_range(went_on, 1, n - 1);
}

RUN_LIVE_TESTS(.before_each = start_busy, .after_each = kill_busy)
