/*
 * run_stop: watchctl --stop, what it reports, and that programs do not notice
 * it, not even when it is killed.
 */
#include "test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "explainers.h"
#include "live.h"
#include "proc/proc.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"
#include "child.h"

static void
start_stop(struct running *w, const struct target *t, const char *access,
    const char *spec, const char *more)
{
	watch_start(w, LIST(watchctl(), "--stop", access, spec, "-o", "json",
	    "-p", t->pid, more));
}

/* Let the victim act and end; watchctl ends by itself.  Its report is read
   meanwhile: each hit waits until there is room for it. */
static void
act_and_end(struct target *t, struct running *w, struct outcome *o)
{
	struct outcome its;

	say(&t->run, "go\nend\n");
	finish_status(w, o, 0);
	finish_status(&t->run, &its, 7);
	assert_string_equal(its.err, "");
}

/* Stop a victim at each access to a variable: so many hits. */
static void
stop_all_of(struct outcome *o, const char *const argv[], const char *spec,
    json_int_t hits)
{
	struct target t;
	struct running w;

	target_start(&t, argv);
	start_stop(&w, &t, "-w", spec, NULL);
	act_and_end(&t, &w, o);
	expect_hits(o, hits);
}

TEST(each_hit_with_its_values)
{
	struct outcome o;
	const json_t *line;
	uint64_t value = 0;
	size_t i;

	stop_all_of(&o, LIST(victim("counter"), "1", "300"), "counter", 300);
	assert_int_equal(number_of(account_of(&o), "lost"), 0);
	each_hit(&o, i, line) {
		assert_string_equal(text_of(line, "value_source"), "stop");
		assert_int_equal(hex_of(line, "old"), value);
		assert_int_equal(hex_of(line, "new"), ++value);
		expect_function(line, 0, "bump");
	}
	assert_int_equal(value, 300);
}

/* More where there is time for it. */
static bool
is_thorough(void)
{
	return getenv("THOROUGH") != NULL;
}

TEST(nothing_is_lost_of_threads)
{
	const bool more = is_thorough();
	struct outcome o;

	stop_all_of(&o, LIST(victim("counter"), "5", more ? "400" : "100"),
	    "counter", more ? 2000 : 500);
	assert_int_equal(number_of(account_of(&o), "lost"), 0);
	assert_string_equal(text_of(account_of(&o), "reason"), "exit");
}

TEST(storm_of_threads)
{
	const bool more = is_thorough();
	struct outcome o;

	stop_all_of(&o, LIST(victim("acts"), "storm", more ? "300" : "100"),
	    "word", more ? 300 : 100);
}

TEST(ends_after_as_many_hits_as_asked)
{
	const char *const argv[] = {victim("counter"), "1", "300", NULL};
	struct target t;
	struct running w;
	struct outcome o;
	char done[32];

	target_start(&t, argv);
	watch_start(&w, LIST(watchctl(), "--stop", "-w", "counter", "-o",
	    "json", "-n", "10", "-p", t.pid));
	say(&t.run, "go\n");
	finish_status(&w, &o, 0);
	expect_hits(&o, 10);
	assert_string_equal(text_of(account_of(&o), "reason"), "count");
	hear(&t.run, done, sizeof(done));
	assert_string_equal(done, "done");
	assert_int_equal(wp_proc_tracer(t.run.pid), 0);
	target_end(&t, 7);
}

TEST(children_too)
{
	const char *const argv[] = {victim("acts"), "father", "5", NULL};
	static const struct {
		const char *follow;
		json_int_t hits;
	} table[] = {{NULL, 5}, {"-f", 55}};

	for (size_t i = 0; i < 2; i++) {
		struct target t;
		struct running w;
		struct outcome o;

		target_start(&t, argv);
		start_stop(&w, &t, "-w", "word", table[i].follow);
		act_and_end(&t, &w, &o);
		expect_hits(&o, table[i].hits);
	}
}

TEST(two_processes)
{
	/* the report of the first's hits has room in the pipe */
	const char *const argv[] = {victim("acts"), "writer", "5", NULL};
	struct target one, two;
	struct running w;
	struct outcome o;

	target_start(&one, argv);
	target_start(&two, argv);
	watch_start(&w, LIST(watchctl(), "--stop", "-w", "word", "-o", "json",
	    "-p", one.pid, "-p", two.pid));
	(void)target_act(&one);
	target_end(&one, 7);
	act_and_end(&two, &w, &o);
	expect_hits(&o, 10);
}

TEST(a_command)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "--stop", "-w", "word", "-o", "json", "-O",
	    "/dev/stderr", "--", victim("acts"), "at_once", "40"));
	finish(&w, &o);
	assert_holds(o.err, "\"mode\":\"stop\"");
	if (strstr(o.err, "\"hits\":40,\"reported\":40,\"lost\":0") == NULL)
		fail_msg("%s", o.err);
	/* its library is found, and its end told */
	run(&o, LIST(watchctl(), "--stop", "-w", "libc.so.6!environ", "-o",
	    "json", "--", "/bin/sh", "-c", "kill -TERM $$"));
	assert_int_equal(o.status, 128 + SIGTERM);
	assert_holds(o.err, ", 0 lost");
}

/* A program that checks signals, calculations, sleeps and children notices
   nothing. */
TEST(nothing_is_noticed)
{
	const char *const argv[] = {victim("busy"), NULL};
	const bool more = is_thorough();
	struct running w, v;
	struct outcome o;
	char pid[16], addr[32];

	start(&v, argv);
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	watch_start(&w, LIST(watchctl(), "--stop", "-w", "word", "-o", "json",
	    "-n", more ? "2000" : "500", "-p", pid));
	finish(&w, &o);
	expect_hits(&o, more ? 2000 : 500);
	say(&v, "end\n");
	finish_status(&v, &o, 7);
}

TEST(stopped_and_continued)
{
	const char *const argv[] = {victim("acts"), "writer", "50", NULL};
	struct target t;
	struct running w;
	struct outcome o;
	int status;

	target_start(&t, argv);
	start_stop(&w, &t, "-w", "word", NULL);
	assert_int_equal(kill(t.run.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(t.run.pid, &status, WUNTRACED), t.run.pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	assert_int_equal(kill(t.run.pid, SIGCONT), 0);
	act_and_end(&t, &w, &o);
	expect_hits(&o, 50);
}

TEST(ended_by_a_signal)
{
	const char *const argv[] = {victim("acts"), "writer", "50", NULL};
	struct target t;
	struct running w;
	struct outcome o;

	target_start(&t, argv);
	start_stop(&w, &t, "-w", "word", NULL);
	assert_int_equal(kill(w.pid, SIGTERM), 0);
	finish_status(&w, &o, 0);
	assert_string_equal(text_of(account_of(&o), "reason"), "signal");
	assert_int_equal(wp_proc_tracer(t.run.pid), 0);
	assert_int_equal(target_act(&t), 50);
	target_end(&t, 7);
}

/* A program of 32 bits, which stops itself before it works. */
TEST(narrow_registers)
{
	struct running v, w;
	struct outcome o;
	char pid[16];
	int status;

	skip_unless_narrow_runs(victim("narrow"));
	start(&v, LIST(victim("narrow")));
	assert_int_equal(waitpid(v.pid, &status, WUNTRACED), v.pid);
	assert_true(WIFSTOPPED(status));
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	watch_start(&w, LIST(watchctl(), "--stop", "-w", "list:4", "-o", "json",
	    "-n", "20", "-p", pid));
	assert_int_equal(kill(v.pid, SIGCONT), 0);
	finish_status(&w, &o, 0);
	expect_hits(&o, 20);
	for (size_t i = 0; i < json_array_size(o.lines); i++) {
		const json_t *hit = json_array_get(o.lines, i);

		if (strcmp(text_of(hit, "type"), "hit") == 0)
			assert_true(hex_of(hit, "new") >> 32 == 0);
	}
	end(&v);
}

/* The pipe that is a process's stdout. */
static int
open_stdout(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/1", pid);
	return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

/* Leave no room in the pipe that it writes to. */
static void
fill_stdout(pid_t pid)
{
	static const char bytes[4096];
	const int fd = open_stdout(pid);

	assert_true(fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
	    fcntl(fd, F_SETPIPE_SZ, sizeof(bytes)) >= 0);
	while (write(fd, bytes, sizeof(bytes)) > 0 || write(fd, "", 1) > 0)
		;
	(void)close(fd);
}

static void
await_that(bool (*holds)(pid_t), pid_t pid)
{
	for (int ms = 0; !holds(pid); ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
}

/* Who does not read does not keep watchctl, and the program by it, for ever. */
TEST(a_report_that_nobody_reads)
{
	const char *const argv[] = {victim("counter"), "1", "5000", NULL};
	struct target t;
	struct running w;
	struct outcome o;
	char line[64];

	target_start(&t, argv);
	start_stop(&w, &t, "-w", "counter", NULL);
	fill_stdout(w.pid);
	say(&t.run, "go\n");
	/* what is written first: that there is another thread, or that it has
	   hit */
	await_that(wp_proc_has_threads, t.run.pid);
	assert_int_equal(kill(w.pid, SIGTERM), 0);
	await_that(has_ended, w.pid);
	hear(&t.run, line, sizeof(line));
	assert_string_equal(line, "done");
	finish_status(&w, &o, 125);
	assert_holds(o.err, "it was not being read");
	target_end(&t, 7);
}

/* When there is something in the pipe, of which any more may have no room. */
static void
kill_explainer(const struct running *w)
{
	const pid_t pid = explainer_of(w->pid);
	int bytes = 0;

	for (int ms = 0; bytes == 0; ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		assert_int_equal(ioctl(w->out, FIONREAD, &bytes), 0);
		(void)usleep(1000);
	}
	(void)usleep(20000);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
}

/* Whether a program is done, though nobody reads its report before, and if so
   the explainer dies in between; then all of it is there. */
static void
expect_unhindered(const char *more, bool killed)
{
	const int times = killed ? 60 : 20;
	char number[16], line[4096];
	struct target t;
	struct running w;
	struct outcome o;
	int fifo;

	(void)unlink(scratch_path("fifo"));
	assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
	assert_int_equal(chmod(scratch_path("fifo"), 0666), 0);
	fifo = open(scratch_path("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fifo >= 0 && fcntl(fifo, F_SETFL, 0) == 0 &&
	    fcntl(fifo, F_SETPIPE_SZ, 4096) == 4096);
	(void)snprintf(number, sizeof(number), "%d", times);
	target_start(&t, LIST(victim("acts"), "stop_often", number));
	start(&w, LIST(watchctl(), "--stop", "-w", "word", "-o", "json", "-O",
	    scratch_path("fifo"), "-p", t.pid, more));
	(void)close(w.out);
	w.out = fifo;
	hear(&w, line, sizeof(line));
	say(&t.run, "go\n");
	if (killed)
		kill_explainer(&w);
	assert_int_equal(target_done(&t.run), 2 * times);
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	expect_hits(&o, (unsigned)(2 * times));
}

/* Nor does it keep threads that are created, or signals, children or the
   programs that these execute. */
TEST(a_reader_that_does_not_read_stops_no_thread)
{
	expect_unhindered(NULL, false);
}

TEST(an_unread_report_survives_the_explainer)
{
	expect_unhindered(NULL, true);
}

TEST(an_unread_report_stops_no_child)
{
	expect_unhindered("-f", false);
}

/* --- killed --- */

/* Of each kind; storm_live_test has more.  Sanitizers make watchctl slow to
   begin. */
enum { KILLS = 4, THOROUGH_KILLS = SANITIZED ? 12 : 25 };

/* A program that writes all the time, and its other threads. */
struct writer {
	volatile uint64_t word;
	volatile uint64_t beside[8];	/* what the others write */
	volatile int over;
	bool busy;
	int others;
};

static struct writer *writer;

static void *
be_beside(void *arg)
{
	volatile uint64_t *mine = arg;

	while (!writer->over) {
		if (!writer->busy)
			(void)usleep(1000);
		else if (++*mine % 64 == 0)
			writer->word++;
	}
	return NULL;
}

static void
write_on(void *arg)
{
	pthread_t thread[8];

	(void)arg;
	for (int i = 0; i < writer->others; i++)
		(void)pthread_create(&thread[i], NULL, be_beside,
		    (void *)(uintptr_t)&writer->beside[i]);
	while (!writer->over) {
		writer->word++;
		for (volatile int i = 0; i < 300; i++)
			;
	}
	for (int i = 0; i < writer->others; i++)
		(void)pthread_join(thread[i], NULL);
	_exit(9);
}

/* Whether it still writes. */
static bool
goes_on(void)
{
	const uint64_t was = writer->word;

	for (int ms = 0; ms < COMMAND_PATIENCE_MS && writer->word == was; ms++)
		(void)usleep(1000);
	return writer->word != was;
}

static bool
is_traced(pid_t pid)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	bool traced = false;

	for (int n = wp_proc_threads(pid, &tids, &cap); n > 0; n--)
		traced = traced || wp_proc_tracer(tids[n - 1]) != 0;
	free(tids);
	return traced;
}

static bool
is_untraced(pid_t pid)
{
	return !is_traced(pid);
}

/* Start watchctl and kill it so much later.  Result: whether it traced. */
static bool
watch_and_kill(pid_t pid, unsigned us)
{
	char spec[32], of[16];
	struct running w;
	struct outcome o;
	bool traced;

	(void)snprintf(spec, sizeof(spec), "%p:8", (void *)writer);
	(void)snprintf(of, sizeof(of), "%d", pid);
	/* that begins sooner than what explains */
	start(&w, LIST(watchctl(), "--stop", "-w", spec, "-o", "perf", "-O",
	    "/dev/null", "-p", of));
	for (int i = 0; i < COMMAND_PATIENCE_MS * 5 && wp_proc_tracer(pid) == 0;
	    i++)
		(void)usleep(200);
	(void)usleep(us);
	traced = wp_proc_tracer(pid) != 0;
	(void)kill(w.pid, SIGKILL);
	finish(&w, &o);
	if (o.status != 128 + SIGKILL)
		fail_msg("watchctl: status %d: %s", o.status, o.err);
	for (int i = 0; i < COMMAND_PATIENCE_MS * 5 && is_traced(pid); i++)
		(void)usleep(200);
	return traced;
}

TEST(killed_at_any_moment)
{
	static const struct {
		int others;
		bool busy;
	} table[] = {{0, false}, {4, false}, {4, true}};
	const unsigned n = is_thorough() ? THOROUGH_KILLS : KILLS;
	unsigned short seed[3] = {1, 2, 3};

	for (size_t i = 0; i < COUNT(table); i++) {
		unsigned traced = 0;
		pid_t pid;

		writer = shared_memory(sizeof(*writer));
		writer->others = table[i].others;
		writer->busy = table[i].busy;
		pid = child_start(write_on, NULL);
		for (unsigned k = 0; k < n; k++) {
			traced += watch_and_kill(pid,
			    (unsigned)(erand48(seed) * 6000));
			if (!goes_on())
				fail_msg("kill %u: it does not go on", k);
		}
		writer->over = 1;
		assert_int_equal(child_wait(pid), 9 << 8);
		assert_true(traced >= n / 2);
		(void)munmap(writer, sizeof(*writer));
	}
}

/* --- refused --- */

TEST(by_debug_registers)
{
	struct outcome o;
	const json_t *line;
	uint64_t value = 0;
	size_t i;

	stop_all_of(&o, LIST(victim("acts"), "writer", "100"), "word", 100);
	assert_holds(o.err, "debug registers are set");
	/* the kernel may have written in between */
	each_hit(&o, i, line) {
		assert_null(json_object_get(line, "old"));
		assert_int_equal(hex_of(line, "new"), value++);
		assert_string_equal(text_of(line, "value_source"), "stop");
		expect_function(line, 0, "store");
		expect_complete(line);
	}
}

TEST(threads_by_debug_registers)
{
	nothing_is_lost_of_threads(state);
	storm_of_threads(state);
}

TEST(a_command_by_debug_registers)
{
	struct outcome o;

	run_status(&o, 0, LIST(watchctl(), "--stop", "-w", "word", "-o", "json",
	    "-O", "/dev/stderr", "--", victim("acts"), "at_once", "40"));
	if (strstr(o.err, "\"hits\":40,\"reported\":40,\"lost\":0") == NULL)
		fail_msg("%s", o.err);
	assert_holds(o.err, "so the kernel's accesses");
	/* the kernel executes nothing of the program */
	run_status(&o, 0, LIST(watchctl(), "--stop", "-x", "store", "--",
	    victim("acts"), "at_once", "4"));
	assert_holds(o.err, "debug registers are set through ptrace: ");
	assert_lacks(o.err, "the kernel's accesses");
	run_status(&o, 2, LIST(watchctl(), "--stop", "-w", "word", "--",
	    victim("acts"), "unknown"));
}

#if !SANITIZED	/* whose library must come first, and calls what it likes */
/* What holds the registers has no memory for a thread: that is not watched,
   which is no green exit. */
TEST(little_memory_by_debug_registers)
{
	bool doubted = false, whole = false;
	char number[24];

	assert_int_equal(setenv("FAIL_FORKED", "1", 1), 0);
	/* how many allocations come before those of threads varies */
	for (unsigned n = 0; (!whole || !doubted) && n < 200; n++) {
		const unsigned i = 10 + n % 30;
		struct running w;
		struct outcome o;

		(void)snprintf(number, sizeof(number), "%u", i);
		assert_int_equal(setenv("FAIL_FROM", number, 1), 0);
		assert_int_equal(setenv("LD_PRELOAD", victim("failing"), 1),
		    0);
		start(&w, LIST(watchctl(), "--stop", "-w", "counter",
		    "--allow", "bump", "--error-exitcode", "66", "-o", "json",
		    "-O", "/dev/null", "--", victim("counter"), "3", "5"));
		assert_int_equal(unsetenv("LD_PRELOAD"), 0);
		say(&w, "\n\n");
		finish(&w, &o);
		if (o.status != 125 && o.status != 120 && (o.status != 7 ||
		    strstr(o.err, "15 hits, 15 reported") == NULL))
			fail_msg("%u: status %d: %s", i, o.status, o.err);
		doubted |= o.status == 120;
		whole |= o.status == 7;
	}
	assert_int_equal(unsetenv("FAIL_FROM"), 0);
	assert_int_equal(unsetenv("FAIL_FORKED"), 0);
	assert_true(doubted && whole);
}
#endif

TEST(few_descriptors_by_debug_registers)
{
	char command[3 * PATH_MAX];
	struct outcome o;

	(void)snprintf(command, sizeof(command), "ulimit -n 40 && exec '%s' "
	    "--stop -w word -- '%s' at_once 40", watchctl(), victim("acts"));
	run_status(&o, 0, LIST("/bin/sh", "-c", command));
	if (strstr(o.err, "40 hits, 40 reported, 0 lost") == NULL)
		fail_msg("%s", o.err);
}

/* It writes, and ends, while watchctl does something else until it is in one of
   these states. */
static void
end_unheeded(const char *word, const char *const command[], const char *states,
    struct outcome *o)
{
	const char *argv[ARGS];
	struct running w;
	char said[64];
	int pid;

	(void)append(argv, append(argv, 0, LIST(watchctl(), "--stop", "-w",
	    word, "-o", "json", "-O", scratch_path("report"), "--")), command);
	start(&w, argv);
	hear(&w, said, sizeof(said));
	assert_int_equal(sscanf(said, "pid %d", &pid), 1);
	await_that(is_traced, pid);
	assert_int_equal(kill(w.pid, SIGSTOP), 0);
	say(&w, "go\n");
	hear(&w, said, sizeof(said));	/* done */
	say(&w, "end\n");
	await_state(pid, states);
	assert_int_equal(kill(w.pid, SIGCONT), 0);
	finish(&w, o);
	outcome_take(o, scratch_path("report"));
}

TEST(hits_of_a_program_that_has_ended)
{
	const struct {
		const char *word, *function, *const *command;
		json_int_t hits;
	} table[] = {
		{"word", "store", LIST(victim("acts"), "writer", "5"), 5},
		{"counter", "bump", LIST(victim("counter"), "3", "4"), 12},
	};

	for (size_t k = 0; k < COUNT(table); k++) {
		struct outcome o;
		const json_t *line;
		size_t i;

		end_unheeded(table[k].word, table[k].command, "tZ", &o);
		assert_int_equal(o.status, 7);
		expect_hits(&o, table[k].hits);
		each_hit(&o, i, line) {
			assert_string_equal(text_of(json_object_get(line,
			    "insn"), "confidence"), "exact");
			expect_function(line, 0, table[k].function);
			assert_null(json_object_get(line, "truncated"));
		}
	}
}

TEST(a_program_ends_although_watchctl_is_stopped)
{
	struct outcome o;

	end_unheeded("word", LIST(victim("acts"), "writer", "5"), "Z", &o);
	assert_int_equal(o.status, 7);
	expect_hits(&o, 5);
}

/* However soon that ends: it may have written. */
TEST(another_program)
{
	const char *const argv[] = {watchctl(), "--stop", "-w", "state",
	    "--allow", "guest.c", "--error-exitcode", "66", "-O", "/dev/null",
	    "--", victim("guest"), "become_another", NULL};
	struct outcome o;

	run_status(&o, 120, argv);
	assert_holds(o.err, "executed another program");
}

/* Who traces a process, and its parent, which stands by. */
static pid_t
tracer_of(pid_t pid, bool stands_by)
{
	const pid_t tracer = wp_proc_tracer(pid);
	struct wp_proc_status status;

	assert_true(tracer > 0);
	assert_int_equal(wp_proc_status(tracer, &status), 0);
	return stands_by ? status.parent : tracer;
}

/* Whichever of the two is killed, the registers are cleared. */
TEST(the_tracer_killed)
{
	const char *const argv[] = {victim("acts"), "writer", "100", NULL};

	for (int stands_by = 0; stands_by <= 1; stands_by++) {
		struct target t;
		struct running w;
		struct outcome o;

		target_start(&t, argv);
		start_stop(&w, &t, "-w", "word", NULL);
		assert_int_equal(kill(tracer_of(t.run.pid, stands_by != 0),
		    SIGKILL), 0);
		finish_status(&w, &o, 125);
		assert_string_equal(text_of(account_of(&o), "reason"),
		    "detached");
		assert_holds(o.err, "was killed, which ends");
		assert_lacks(o.err, "executed");
		await_that(is_untraced, t.run.pid);
		assert_int_equal(target_act(&t), 100);
		target_end(&t, 7);
	}
}

/* Of a command, too; then nothing can be vouched for. */
TEST(a_commands_tracer_killed)
{
	const char *const argv[] = {watchctl(), "--stop", "-w", "word",
	    "--allow", "store", "--error-exitcode", "66", "-o", "json", "-O",
	    "/dev/null", "--", victim("acts"), "writer", "5", NULL};
	struct running w;
	struct outcome o;
	char line[64];
	int pid;

	start(&w, argv);
	hear(&w, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %d", &pid), 1);
	await_that(is_traced, pid);
	assert_int_equal(kill(tracer_of(pid, false), SIGKILL), 0);
	(await)(w.err, "was killed, which ends");	/* they are cleared */
	say(&w, "go\nend\n");
	finish_status(&w, &o, 120);
	assert_holds(o.err, "was killed");
	assert_holds(o.out, "done 5");
}

/* The thread stands at its hit as long as the command takes, and then goes
   on without SIGTRAP. */
TEST(the_tracer_killed_at_a_hit)
{
	static const char kill_tracer[] = "exec kill -KILL "
	    "$(sed -n 's/TracerPid:.//p' /proc/$WATCHCTL_PID/status)";
	const char *const argv[] = {victim("acts"), "writer", "1", NULL};
	struct target t;
	struct running w;
	struct outcome o;

	target_start(&t, argv);
	watch_start(&w, LIST(watchctl(), "--stop", "-w", "word", "-o", "json",
	    "--on-hit", kill_tracer, "-p", t.pid));
	say(&t.run, "go\n");
	finish_status(&w, &o, 125);
	assert_int_equal(count_of(&o, "hit"), 1);
	assert_int_equal(target_done(&t.run), 1);
	target_end(&t, 7);
}

/* Whether this process may make others last when memory runs out. */
static bool
may_outlast_others(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 &&
	    (data[0].effective >> CAP_SYS_RESOURCE & 1) != 0;
}

static void
expect_outlasting(pid_t pid)
{
	char path[64];
	int score = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &score), 1);
	(void)fclose(f);
	if (may_outlast_others())
		assert_int_equal(score, -1000);
}

static void
expect_spared(pid_t pid)
{
	char path[64], name[32] = "";
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, name, sizeof(name) - 1) > 0);
	(void)close(fd);
	assert_lacks(name, "watchctl");
	assert_int_equal(strncmp(name, "wp-", 3), 0);
	expect_outlasting(pid);
}

TEST(killing_watchctl_by_name_spares_its_tracers)
{
	const char *const argv[] = {victim("acts"), "writer", "1", NULL};
	struct target t;
	struct running w;

	target_start(&t, argv);
	start_stop(&w, &t, "-w", "word", NULL);
	expect_spared(tracer_of(t.run.pid, false));
	expect_spared(tracer_of(t.run.pid, true));
	end(&w);
	await_that(is_untraced, t.run.pid);
	target_end(&t, 7);
}

/* Whether it is said of a program with these signals blocked. */
static bool
is_said_to_block(uint64_t mask)
{
	const char *const argv[] = {victim("acts"), "writer", "1", NULL};
	struct target t;
	struct outcome o;
	uint64_t before;
	bool said;

	/* what libraries' functions leave out, too */
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before,
	    sizeof(mask));
	target_start(&t, argv);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL,
	    sizeof(mask));
	run(&o, LIST(watchctl(), "--stop", "-w", "word", "-t", "0.1", "-p",
	    t.pid));
	said = strstr(o.err, "ignores or blocks SIGTRAP") != NULL;
	target_end(&t, 7);
	return said;
}

/* It blocks all there are while its C library makes a thread. */
TEST(a_thread_that_creates_another_does_not_block_the_signal)
{
	assert_true(is_said_to_block(UINT64_C(1) << (SIGTRAP - 1)));
	assert_false(is_said_to_block(UINT64_MAX));
}

TEST(what_debug_registers_cannot_do)
{
	const char *const argv[] = {victim("acts"), "writer", "1", NULL};
	struct target t;
	struct outcome o;

	target_start(&t, argv);
	run_status(&o, 125, LIST(watchctl(), "--stop", "-w", "word", "-p",
	    t.pid, "-f"));
	assert_holds(o.err, "-f needs perf_event_open");
	assert_int_equal(target_act(&t), 1);
	target_end(&t, 7);
}

/* Not even for a moment.  The last one, since what is refused stays so: the
   second register. */
TEST(a_command_that_cannot_be_watched_does_not_run)
{
	static const struct refuse_arg second[] = {
		{.index = 0, .value = PTRACE_POKEUSER},
		{.index = 2, .value = offsetof(struct user, u_debugreg[1])},
	};
	struct outcome o;

	assert_true(refuse_call(SYS_ptrace, ENOSPC, second, COUNT(second)));
	for (int i = 0; i < 10; i++) {
		run(&o, LIST(watchctl(), "--stop", "-w", "config", "-w",
		    "motto", "--", victim("config")));
		if (o.status != 125 || o.out[0] != '\0' ||
		    strstr(o.err, "hold the others") == NULL)
			fail_msg("%d: status %d: %s%s", i, o.status, o.out,
			    o.err);
	}
}

static int
begin_refused(void **state)
{
	return be_refused(state) < 0 ? -1 : scratch_make(state);
}

int
main(void)
{
	const CMUnitTestFunction by_registers[] = {
		by_debug_registers, threads_by_debug_registers,
		a_command_by_debug_registers,
		few_descriptors_by_debug_registers,
#if !SANITIZED
		little_memory_by_debug_registers,
#endif
		hits_of_a_program_that_has_ended,
		a_program_ends_although_watchctl_is_stopped, another_program,
		the_tracer_killed, a_commands_tracer_killed,
		the_tracer_killed_at_a_hit,
		killing_watchctl_by_name_spares_its_tracers,
		a_thread_that_creates_another_does_not_block_the_signal,
		what_debug_registers_cannot_do,
		a_command_that_cannot_be_watched_does_not_run, NULL,
	};
	const CMUnitTestFunction by_events[] = {
		each_hit_with_its_values, nothing_is_lost_of_threads,
		storm_of_threads, children_too, a_command,
		stopped_and_continued, an_unread_report_stops_no_child, NULL,
	};
	int failed = run_live_tests(.except = by_registers,
	    .before_all = scratch_make, .after_all = scratch_remove);

	/* what is refused stays so */
	return failed + run_live_tests(.except = by_events,
	    .before_all = begin_refused, .after_all = scratch_remove);
}
