/*
 * on_hit: a process is paused at a hit, a command is run, or a core file is
 * written while the thread is stopped there; then the process continues as if
 * nothing had happened.
 */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "live.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"
#include "child.h"

enum { WRITES = 5, OTHERS = 4, PAUSES = 5 };

/* --- a victim: a thread that writes so often, and one that waits for it --- */

static void
start_counter(struct target *t)
{
	target_start(t, LIST(victim("counter"), "1", "5"));
}

static void
watch_counter(struct running *w, const struct target *t, const char *action,
    const char *n)
{
	watch_start(w, LIST(watchctl(), "-w", "counter", "-o", "json", "-p",
	    t->pid, "--on-hit", action, n == NULL ? NULL : "-n", n));
}

/* It has done all that it was to do. */
static void
hear_done(struct running *r)
{
	char line[256];

	hear(r, line, sizeof(line));
	assert_string_equal(line, "done");
}

static pid_t
tracer_of(pid_t pid)
{
	struct wp_proc_status status;

	assert_int_equal(wp_proc_status(pid, &status), 0);
	return status.tracer;
}

static void
expect_text(const char *text, const char *expected)
{
	if (strstr(text, expected) == NULL)
		fail_msg("no \"%s\" in \"%s\"", expected, text);
}

/* --- pause --- */

/* What gdb finds in a process that it attaches to. */
static void
expect_debuggable(const char *pid)
{
	struct outcome o;

	run(&o, LIST("/usr/bin/gdb", "-q", "-nx", "-batch", "-iex",
	    "set debuginfod enabled off", "-p", pid, "-ex",
	    "thread apply all bt", "-ex", "print counter"));
	expect_text(o.out, " bump ()");
	expect_text(o.out, " level15 ()");
	expect_text(o.out, " main (");
	expect_text(o.out, "$1 = 1");
}

TEST(pauses_for_a_debugger)
{
	char expected[128];
	struct running w;
	struct target t;
	struct outcome o;
	pid_t tid;

	start_counter(&t);
	watch_counter(&w, &t, "pause", NULL);
	say(&t.run, "go\n");
	finish_status(&w, &o, 0);
	expect_hits(&o, 1);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "paused");
	tid = (pid_t)number_of(first_of(&o, "hit"), "tid");
	(void)snprintf(expected, sizeof(expected), "process %s is stopped at "
	    "hit #1 (thread %d).  Attach: gdb -p %s   Go on: kill -CONT %s\n",
	    t.pid, (int)tid, t.pid, t.pid);
	expect_text(o.err, expected);

	await_state(t.run.pid, "T");
	await_state(tid, "T");
	assert_int_equal(tracer_of(t.run.pid), 0);
	assert_int_equal(tracer_of(tid), 0);
	expect_debuggable(t.pid);
	assert_int_equal(kill(t.run.pid, SIGCONT), 0);
	hear_done(&t.run);
	target_end(&t, 7);
}

/*
 * A command's process group loses its last link to the session when watchctl
 * ends, and the kernel then ends those of it that are stopped.  Under
 * timeout(1) it has a process group of its own, as under a shell.
 */
TEST(pauses_a_command)
{
	struct running w;
	struct outcome o;
	char line[256];
	int pid;

	start(&w, LIST("/usr/bin/timeout", "60", watchctl(), "-w", "counter",
	    "--on-hit", "pause", "--", victim("counter"), "1", "5"));
	hear(&w, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %d", &pid), 1);
	say(&w, "go\n");
	(await)(w.err, "Go on: kill -CONT");
	await_state(pid, "T");
	assert_int_equal(tracer_of(pid), 0);
	assert_int_equal(kill(pid, SIGCONT), 0);
	hear_done(&w);
	say(&w, "end\n");
	finish_status(&w, &o, 7);
	expect_text(o.err, "1 hit, 1 reported, 0 lost");
}

/* --- a program that writes all the time, and its other threads --- */

static struct busy {
	volatile uint64_t word;			/* one thread's */
	volatile uint64_t beside[OTHERS];	/* the others' */
} *busy;

static void *
be_beside(void *arg)
{
	volatile uint64_t *mine = arg;

	for (;;)
		++*mine;
	return NULL;
}

static void
be_busy(void *arg)
{
	pthread_t thread;

	(void)arg;
	for (int i = 0; i < OTHERS; i++)
		(void)pthread_create(&thread, NULL, be_beside,
		    (void *)(uintptr_t)&busy->beside[i]);
	for (;;) {
		busy->word++;
		for (volatile int i = 0; i < 300; i++)
			;
	}
}

static pid_t
busy_start(void)
{
	busy = shared_memory(sizeof(*busy));
	return child_start(be_busy, NULL);
}

static void
busy_end(pid_t pid)
{
	child_kill(pid);
	(void)munmap(busy, sizeof(*busy));
}

/* Wait until every thread has written again. */
static void
expect_busy(void)
{
	const struct busy was = *busy;

	for (int ms = 0; ms < COMMAND_PATIENCE_MS && busy->word == was.word;
	    ms++)
		(void)usleep(1000);
	assert_int_not_equal(busy->word, was.word);
	for (int i = 0; i < OTHERS; i++) {
		for (int ms = 0; ms < COMMAND_PATIENCE_MS &&
		    busy->beside[i] == was.beside[i]; ms++)
			(void)usleep(1000);
		assert_int_not_equal(busy->beside[i], was.beside[i]);
	}
}

static void
watch_busy(struct outcome *o, pid_t pid, const char *action)
{
	char spec[32], of[16];

	(void)snprintf(spec, sizeof(spec), "%p:8", (void *)busy);
	(void)snprintf(of, sizeof(of), "%d", (int)pid);
	run_status(o, 0, LIST(watchctl(), "-w", spec, "-o", "json", "-p", of,
	    "-n", "20", "--on-hit", action));
}

/* Hits come while threads are still being armed, too: nobody is left behind,
   and who hit has not gone on. */
TEST(pauses_where_it_hit)
{
	const pid_t pid = busy_start();
	struct outcome o;
	struct busy was;
	uint64_t value;

	for (int i = 0; i < PAUSES; i++) {
		expect_busy();
		watch_busy(&o, pid, "pause");
		expect_hits(&o, 1);
		value = hex_of(first_of(&o, "hit"), "new");
		await_state(pid, "T");
		was = *busy;
		assert_int_equal(was.word, value);
		(void)usleep(2000);
		assert_memory_equal((const void *)busy, &was, sizeof(was));
		assert_int_equal(tracer_of(pid), 0);
		assert_int_equal(kill(pid, SIGCONT), 0);
	}
	expect_busy();
	busy_end(pid);
}

TEST(acts_at_each_hit)
{
	const pid_t pid = busy_start();
	struct outcome o;

	expect_busy();
	watch_busy(&o, pid, "exec echo acted");
	expect_hits(&o, 20);
	for (const char *at = o.err; (at = strstr(at, "acted")) != NULL; at++)
		o.status++;
	assert_int_equal(o.status, 20);
	expect_busy();
	busy_end(pid);
}

/* --- exec --- */

TEST_WITH(runs_a_command, scratch_enter, scratch_leave)
{
	/* the thread that hit stands while the command runs */
	static const char action[] = "exec echo $WATCHCTL_SEQ $WATCHCTL_TID "
	    "$((WATCHCTL_NEW)) $WATCHCTL_FUNCTION $(grep State: "
	    "/proc/$WATCHCTL_PID/task/$WATCHCTL_TID/status) >> log";
	struct running w;
	struct target t;
	struct outcome o;
	const json_t *hit;
	char *log, *line, expected[128], n[16];
	size_t i;

	start_counter(&t);
	(void)snprintf(n, sizeof(n), "%d", WRITES);
	watch_counter(&w, &t, action, n);
	say(&t.run, "go\n");
	hear_done(&t.run);
	finish_status(&w, &o, 0);
	expect_hits(&o, WRITES);
	line = log = scratch_read("log", NULL);
	each_hit(&o, i, hit) {
		(void)snprintf(expected, sizeof(expected), "%d %d %d bump "
		    "State: t (tracing stop)\n", (int)number_of(hit, "seq"),
		    (int)number_of(hit, "tid"), (int)number_of(hit, "seq"));
		assert_memory_equal(line, expected, strlen(expected));
		line += strlen(expected);
	}
	assert_string_equal(line, "");
	target_end(&t, 7);
}

/* A command that takes long keeps neither watchctl nor, when that is killed,
   the program. */
TEST(does_not_wait_for_ever)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGKILL};

	for (size_t i = 0; i < COUNT(signals); i++) {
		struct running w;
		struct target t;
		struct outcome o;

		start_counter(&t);
		watch_counter(&w, &t, "exec echo standing; "
		    "while kill -0 $PPID; do sleep 0.1; done", NULL);
		say(&t.run, "go\n");
		(await)(w.err, "standing");
		assert_int_equal(kill(w.pid, signals[i]), 0);
		if (signals[i] != SIGKILL) {
			finish_status(&w, &o, 0);
			assert_string_equal(text_of(first_of(&o, "end"),
			    "reason"), "signal");
			expect_text(o.err, "ended by a signal for watchctl");
		} else {
			end(&w);
		}
		hear_done(&t.run);
		target_end(&t, 7);
	}
}

/* Result: whether a command had to end, for which the program needs a hit in
   this time; a busy machine may not give it the time. */
static bool
ends_with_its_time(const char *seconds)
{
	struct running w;
	struct target t;
	struct outcome o;
	bool waited;

	start_counter(&t);
	watch_start(&w, LIST(watchctl(), "-w", "counter", "-o", "json", "-t",
	    seconds, "-p", t.pid, "--on-hit", "exec sleep 100"));
	say(&t.run, "go\n");
	finish_status(&w, &o, 0);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "time");
	waited = strstr(o.err, "ended with the time of -t") != NULL;
	hear_done(&t.run);
	target_end(&t, 7);
	return waited;
}

TEST(does_not_wait_beyond_its_time)
{
	assert_true(ends_with_its_time("0.3") || ends_with_its_time("3") ||
	    ends_with_its_time("30"));
}

/* --- core --- */

TEST_WITH(writes_a_core, scratch_enter, scratch_leave)
{
	static const char gdb[] = "gdb -q -nx -batch "
	    "-iex 'set debuginfod enabled off' -ex bt -ex 'print counter' "
	    "-ex 'thread apply all print $_thread' "
	    "-ex 'print $_siginfo._sifields._sigfault.si_addr' "
	    "'%s' core.%s.%d > out 2>&1";
	struct running w;
	struct target t;
	struct outcome o;
	char *out, text[128];

	start_counter(&t);
	watch_counter(&w, &t, "core", "2");
	say(&t.run, "go\n");
	hear_done(&t.run);
	finish_status(&w, &o, 0);
	expect_hits(&o, 2);
	for (int seq = 1; seq <= 2; seq++) {
		(void)snprintf(text, sizeof(text), "hit #%d: wrote "
		    "core.%s.%d (", seq, t.pid, seq);
		expect_text(o.err, text);
		scratch_run(gdb, victim("counter"), t.pid, seq);
		out = scratch_read("out", NULL);
		expect_text(out, "#0 ");
		expect_text(out, " bump () at ");
		expect_text(out, " level15 () at ");
		expect_text(out, " work (");
		(void)snprintf(text, sizeof(text), "$1 = %d\n", seq);
		expect_text(out, text);
		expect_text(out, "$2 = 2\n");	/* the other thread */
		expect_text(out, "<counter>");
	}
	target_end(&t, 7);
}

int
main(void)
{
	int failed = run_live_tests();

	/* the same by debug registers; what is refused stays so */
	return failed + run_live_tests(.before_all = be_refused);
}
