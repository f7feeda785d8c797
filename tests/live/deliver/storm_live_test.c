/*
 * storm: watchctl, or one of its processes, is killed by SIGKILL at random
 * moments in every way of watching.  The watched program continues and computes
 * the right result, and nothing is left behind: no stopped or traced thread, no
 * armed event, no process.
 */
#include "test.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "beside.h"
#include "live.h"
#include "ptrace/ptrace.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"

enum {
	/* of each mode; where $THOROUGH is set, and sanitizers make watchctl
	   slow to begin */
	KILLS = 50,
	THOROUGH_KILLS = SANITIZED ? 60 : 80,
	PROCESSES = 64,		/* at most */
};

static const struct mode {
	enum { ATTACH, TWO, COMMAND } on;
	const char *option[7];
	const char *delivery;	/* $WATCHPOINT_DELIVERY, or NULL */
	bool pauses;		/* it may leave its process stopped */
	bool helper;		/* who is killed is a process of watchctl's */
} attached[] = {
	{ATTACH, {"-w", "word"}},
	{ATTACH, {"-x", "bump"}},
	{ATTACH, {"-w", "word", "-f"}},
	{ATTACH, {"-w", "word", "--count"}},
	{ATTACH, {"-w", "word", "-o", "perf"}},
	{TWO, {"-w", "word"}},
	{ATTACH, {"-w", "word", "--stop"}},
	{TWO, {"-w", "word", "--stop", "-f"}},
	{ATTACH, {"-w", "word", "--on-hit", "pause"}, .pauses = true},
	{ATTACH, {"-w", "word", "--on-hit", "core"}},
	{ATTACH, {"-w", "word", "--on-hit", "exec true"}},
}, commands[] = {
	{COMMAND, {"-w", "word"}},
	{COMMAND, {"-w", "libc.so.6!environ", "-f"}},
	{COMMAND, {"-w", "word", "-o", "perf"}},
	{COMMAND, {"-w", "word", "--stop"}},
	{COMMAND, {"-w", "word", "--on-hit", "exec true"}},
}, inside[] = {
	{COMMAND, {"-w", "word", "--inside"}},
	{COMMAND, {"-w", "word", "--inside"}, "async"},
	{COMMAND, {"-w", "word", "--inside", "-f"}},
	{COMMAND, {"-w", "word", "--inside", "-f"}, "async"},
}, refused_attached[] = {
	{ATTACH, {"-w", "word", "--stop"}},
	{TWO, {"-w", "word", "--stop"}},
	{ATTACH, {"-w", "word", "--on-hit", "pause"}, .pauses = true},
	{ATTACH, {"-w", "word", "--on-hit", "core"}},
	{ATTACH, {"-w", "word", "--on-hit", "exec true"}},
	{ATTACH, {"-w", "word", "--stop"}, .helper = true},
}, refused_commands[] = {
	{COMMAND, {"-w", "word", "--stop"}},
	{COMMAND, {"-w", "word", "--inside"}},
	{COMMAND, {"-w", "word", "--inside", "-f"}},
	{COMMAND, {"-w", "word", "--stop"}, .helper = true},
	{COMMAND, {"-w", "word", "--inside"}, .helper = true},
	{COMMAND, {"-w", "word", "--inside", "-f"}, .helper = true},
};

static struct target target[2];	/* those attached to */
static unsigned targets;
static unsigned short seed[3];
static uint64_t span;		/* us that kills are spread over */

/* Wait until a condition holds.  Result: whether it ever did. */
#define holds_soon(condition)						\
	({								\
		const uint64_t limit = now_us() +			\
		    COMMAND_PATIENCE_MS * 1000ull;			\
		bool holds;						\
		while (!(holds = (condition)) && now_us() < limit)	\
			(void)usleep(200);				\
		holds;							\
	})

/* --- who there is --- */

/* The children of a process that has one thread. */
static size_t
children_of(pid_t pid, pid_t child[PROCESSES])
{
	char path[64];
	size_t n = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid,
	    pid);
	f = fopen(path, "re");
	while (f != NULL && n < PROCESSES && fscanf(f, "%d", &child[n]) == 1)
		n++;
	if (f != NULL)
		(void)fclose(f);
	return n;
}

/* One of those that watchctl has for itself, and their own. */
static pid_t
find_helper(pid_t pid)
{
	pid_t child[PROCESSES], found = 0;
	char path[64], name[4] = "";
	size_t n = children_of(pid, child);

	for (size_t i = 0; i < n; i++) {
		pid_t below = find_helper(child[i]);
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%d/comm", child[i]);
		if ((f = fopen(path, "re")) == NULL)
			continue;
		if (fgets(name, sizeof(name), f) != NULL &&
		    strcmp(name, "wp-") == 0)
			found = below == 0 || erand48(seed) < 0.5 ? child[i] :
			    below;
		(void)fclose(f);
	}
	return found;
}

static char
state_and_tracer(pid_t tid, pid_t *tracer)
{
	struct wp_proc_status status = {0};

	if (wp_proc_status(tid, &status) < 0)
		return 0;
	*tracer = status.tracer;
	return status.state;
}

static const char *
name_of(const struct mode *mode)
{
	static char name[256];
	size_t n = 0;

	for (size_t i = 0; i < 6 && mode->option[i] != NULL; i++)
		n += (size_t)snprintf(name + n, sizeof(name) - n, "%s ",
		    mode->option[i]);
	(void)snprintf(name + n, sizeof(name) - n, "%s%s%s",
	    mode->on == COMMAND ? "--" : mode->on == TWO ? "-p -p" : "-p",
	    mode->delivery != NULL ? ", by events that signal" : "",
	    mode->helper ? ", a helper" : "");
	return name;
}

/* Fail, and print which processes are left. */
static _Noreturn void
fail_at(const char *name, unsigned i, const char *why)
{
	pid_t child[PROCESSES];

	for (size_t n = children_of(getpid(), child); n > 0; n--) {
		struct wp_proc_status status = {0};
		char path[64], comm[32] = "\n";
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%d/comm",
		    child[n - 1]);
		if ((f = fopen(path, "re")) != NULL) {
			(void)!fgets(comm, sizeof(comm), f);
			(void)fclose(f);
		}
		(void)wp_proc_status(child[n - 1], &status);
		print_message("%d %c, traced by %d, %u threads: %s",
		    child[n - 1], status.state, status.tracer, status.threads,
		    comm);
	}
	fail_msg("%s, kill %u: %s", name, i, why);
	abort();
}

/* --- processes that are attached to --- */

/* No thread is stopped or traced. */
static bool
runs(const struct target *t, bool pauses)
{
	pid_t *tids = NULL, tracer = 0;
	size_t cap = 0;
	bool all = true;

	for (int n = wp_proc_threads(t->run.pid, &tids, &cap); n > 0; n--) {
		const char state = state_and_tracer(tids[n - 1], &tracer);

		if (state == 'T' && tracer == 0 && pauses)
			(void)kill(t->run.pid, SIGCONT);
		if (state != 0 && (tracer != 0 || strchr("tT", state) != NULL))
			all = false;
	}
	free(tids);
	return all;
}

static long
progress(const struct target *t)
{
	long word = -1;

	(void)wp_proc_read(t->run.pid, strtoull(t->addr, NULL, 16), &word,
	    sizeof(word));
	return word;
}

static void
expect_unharmed(const struct target *t, const struct mode *mode, unsigned i)
{
	const long before = progress(t);

	if (!holds_soon(has_ended(t->run.pid) || runs(t, mode->pauses)))
		fail_at(name_of(mode), i, "a thread is stopped or traced");
	if (!holds_soon(has_ended(t->run.pid) ||
	    (runs(t, mode->pauses) && progress(t) > before)))
		fail_at(name_of(mode), i, "it stands still");
	if (has_ended(t->run.pid) && !mode->helper)
		fail_at(name_of(mode), i, "it has ended");
}

static unsigned long
debug_register(pid_t tid, size_t n)
{
#ifdef __x86_64__
	return (unsigned long)ptrace(PTRACE_PEEKUSER, tid, (void *)(offsetof(
	    struct user, u_debugreg) + n * sizeof(long)), NULL);
#else
	(void)tid;
	(void)n;
	return 0;
#endif
}

/* A thread that an armed one made shows its control register, but has no
   address in the others: nothing is set there. */
static unsigned
enabled_registers(pid_t tid)
{
	const unsigned long control = debug_register(tid, 7);
	unsigned enabled = 0;

	for (size_t n = 0; n < WP_DEBUG_REGISTERS; n++)
		enabled += (control >> (2 * n) & 3) != 0 &&
		    debug_register(tid, n) != 0;
	return enabled;
}

/* No debug register is set in any of its threads. */
static void
expect_disarmed(const struct target *t)
{
	struct wp_hold hold = {0};

	assert_int_equal(wp_hold_process(&hold, t->run.pid), 0);
	for (size_t i = 0; i < hold.n; i++)
		if (hold.thread[i].stopped)
			assert_int_equal(enabled_registers(
			    hold.thread[i].tid), 0);
	wp_hold_release(&hold);
}

static void
expect_free_slots(const struct target *t)
{
	if (live_features.caps.slots > 0)
		live_await_free_slots(t->run.pid, live_features.caps.slots);
}

static void
start_targets(unsigned n)
{
	for (targets = 0; targets < n; targets++)
		target_start(&target[targets], LIST( victim("storm")));
}

static void
end_targets(void)
{
	while (targets > 0) {
		struct target *t = &target[--targets];
		struct outcome o;

		expect_disarmed(t);
		say(&t->run, "end\n");
		finish(&t->run, &o);
		assert_string_equal(o.out, "done\n");
		assert_string_equal(o.err, "");
		assert_int_equal(o.status, 7);
	}
}

/* --- watchctl --- */

static void
start_watch(struct running *w, const struct mode *mode, const char *report)
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl()));

	if (mode->delivery != NULL)
		(void)setenv("WATCHPOINT_DELIVERY", mode->delivery, 1);
	else
		(void)unsetenv("WATCHPOINT_DELIVERY");
	n = append(argv, n, mode->option);
	n = append(argv, n, LIST("-O", report));
	for (unsigned i = 0; i < targets; i++)
		n = append(argv, n, LIST("-p", target[i].pid));
	if (mode->on == COMMAND)
		(void)append(argv, n, LIST("--", victim("storm"), "once"));
	start(w, argv);
}

/* How long it takes to begin. */
static uint64_t
start_takes(const struct mode *mode)
{
	const char *report = scratch_path("report");
	const uint64_t began = now_us();
	struct running w;
	struct stat st = {0};
	uint64_t took;

	start_watch(&w, mode, report);
	assert_true(holds_soon(stat(report, &st) == 0 && st.st_size > 0));
	took = now_us() - began;
	end(&w);
	(void)unlink(report);
	expect_unharmed(target, mode, 0);
	return took;
}

/* By the quickest of some: one that had to wait for a processor would make the
   storm last for hours. */
static void
find_span(const struct mode *mode)
{
	start_targets(1);
	span = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		const uint64_t took = start_takes(mode) * 3 / 2;

		span = took < span ? took : span;
	}
	print_message("within %llu ms\n", (unsigned long long)span / 1000);
	end_targets();
}

static bool
is_watched(const struct target *t)
{
	return wp_proc_tracer(t->run.pid) != 0 || (live_features.caps.slots >
	    0 && live_free_slots(t->run.pid) < live_features.caps.slots);
}

/* To look takes registers, which it must not find taken then: it stands. */
static bool
is_watching(const struct running *w)
{
	siginfo_t info;
	bool watched;

	(void)kill(w->pid, SIGSTOP);
	(void)waitid(P_PID, (id_t)w->pid, &info, WSTOPPED | WEXITED | WNOWAIT);
	watched = is_watched(target);
	(void)kill(w->pid, SIGCONT);
	return watched;
}

static bool
watch_has_ended(const struct running *w)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOWAIT |
	    WNOHANG) == 0 && info.si_pid != 0;
}

static bool
traces(const struct mode *mode)
{
	for (size_t i = 0; i < 6 && mode->option[i] != NULL; i++)
		if (strcmp(mode->option[i], "--stop") == 0 ||
		    strcmp(mode->option[i], "--on-hit") == 0)
			return true;
	return false;
}

/* Whether it has begun.  To look whether events are there takes registers that
   it wants itself, so that is for when nothing else tells. */
static bool
has_begun(const struct running *w, const struct mode *mode)
{
	struct pollfd out = {.fd = w->out, .events = POLLIN};

	if (watch_has_ended(w))
		return true;
	if (mode->on == COMMAND)
		return poll(&out, 1, 0) > 0;
	return traces(mode) ? wp_proc_tracer(target->run.pid) != 0 :
	    is_watching(w);
}

/* A random moment of number i of n: of one in four when it has begun, so that
   those come however long that takes. */
static void
await_moment(const struct running *w, const struct mode *mode, unsigned i,
    unsigned n)
{
	uint64_t us = span;

	if (i + 1 == n || (i % 4 == 3 && (mode->on == COMMAND ||
	    traces(mode)))) {
		assert_true(holds_soon(has_begun(w, mode)));
		us = span / 8;
	}
	(void)usleep((useconds_t)(erand48(seed) * (double)us));
}

static void
remove_cores(void)
{
	glob_t cores;

	if (glob("core.*", 0, NULL, &cores) == 0)
		for (size_t i = 0; i < cores.gl_pathc; i++)
			(void)unlink(cores.gl_pathv[i]);
	globfree(&cores);
}

/* Kill it, or one of its processes: then it ends by itself, and says so. */
static void
kill_watch(struct running *w, const struct mode *mode)
{
	const pid_t helper = mode->helper ? find_helper(w->pid) : 0;
	struct outcome o;

	(void)kill(helper > 0 ? helper : w->pid, SIGKILL);
	finish(w, &o);
	if (helper > 0 && strstr(o.err, "was killed") == NULL)
		fail_msg("helper killed, and status %d: %s", o.status, o.err);
	if (helper == 0 && o.status != 128 + SIGKILL && o.status != 0)
		fail_msg("watchctl: status %d: %s", o.status, o.err);
}

/* Who is left of its processes ends by itself. */
static bool
are_alone(void)
{
	pid_t child[PROCESSES];

	while (children_of(getpid(), child) > targets) {
		const size_t n = children_of(getpid(), child);

		for (size_t i = 0; i < n; i++) {
			bool is_target = false;

			for (unsigned k = 0; k < targets; k++)
				is_target = is_target ||
				    target[k].run.pid == child[i];
			if (!is_target &&
			    waitpid(child[i], NULL, WNOHANG) == 0)
				return false;
		}
	}
	return true;
}

/* Whether a target has died of a hit, as it may when the tracer is killed: a
   new one takes its place. */
static bool
replace_dead(void)
{
	struct outcome o;

	if (!has_ended(target->run.pid))
		return false;
	finish(&target->run, &o);
	assert_int_equal(o.status, 128 + SIGTRAP);
	start_targets(1);
	return true;
}

/* Attach, kill.  Result: whether it was watched by then. */
static bool
kill_attached(const struct mode *mode, unsigned i, unsigned n,
    unsigned *died)
{
	struct running w;
	bool watched;

	start_watch(&w, mode, "/dev/null");
	await_moment(&w, mode, i, n);
	watched = is_watching(&w);
	kill_watch(&w, mode);
	if (!holds_soon(are_alone()))
		fail_at(name_of(mode), i, "a process of watchctl's is left");
	for (unsigned k = 0; k < targets; k++)
		expect_unharmed(&target[k], mode, i);
	if (mode->helper) {
		/* one that dies of a hit may have written once more */
		(void)usleep(2000);
		expect_unharmed(target, mode, i);
		*died += replace_dead();
	}
	if (live_features.caps.slots > 0)
		expect_free_slots(target);
	return watched;
}

/* --- commands --- */

/* Whether no process is left.  One that was left stopped, if that was asked
   for, is continued. */
static bool
is_childless(const struct mode *mode, unsigned statuses[256])
{
	pid_t child[PROCESSES], pid, tracer = 0;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		statuses[WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
		    WEXITSTATUS(status)]++;
	if (pid < 0)
		return true;
	for (size_t n = children_of(getpid(), child); n > 0; n--)
		if (mode->pauses &&
		    state_and_tracer(child[n - 1], &tracer) == 'T' &&
		    tracer == 0)
			(void)kill(child[n - 1], SIGCONT);
	return false;
}

/* Append what there is to a text; of a long one not all is kept. */
static void
hear_more(int fd, char *text, size_t size)
{
	size_t len = strlen(text);
	char rest[4096];
	ssize_t n;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((n = len < size - 1 ? read(fd, text + len, size - 1 - len) :
	    read(fd, rest, sizeof(rest))) > 0)
		if (len < size - 1)
			text[len += (size_t)n] = '\0';
}

/* Start one, and kill.  It never became what it should be, or comes to its end.
   Result: whether it does; or the tracer was killed, and it died of a hit, or
   was not watched yet. */
static bool
kill_launched(const struct mode *mode, unsigned i, unsigned n, unsigned *died)
{
	unsigned statuses[256] = {0};
	char out[256] = "", err[4096] = "";
	struct running w;
	pid_t helper = 0;
	bool done;

	start_watch(&w, mode, "/dev/null");
	await_moment(&w, mode, i, n);
	if (mode->helper)
		helper = find_helper(w.pid);
	(void)kill(helper > 0 ? helper : w.pid, SIGKILL);
	if (!holds_soon((hear_more(w.err, err, sizeof(err)),
	    is_childless(mode, statuses))))
		fail_at(name_of(mode), i, "a process is left");
	hear_more(w.out, out, sizeof(out));
	hear_more(w.err, err, sizeof(err));
	(void)close(w.in);
	(void)close(w.out);
	(void)close(w.err);
	if (*out == '\0')
		return false;
	done = strstr(out, "\ndone\n") != NULL;
	if (helper > 0 && strstr(err, "was killed") != NULL &&
	    (done || statuses[128 + SIGTRAP] == 1 ||
	    strstr(err, "so the command was ended") != NULL)) {
		*died += !done;
		return true;
	}
	/* one that was told already when watchctl was killed is not seen */
	if (!done || statuses[7] + statuses[128 + SIGKILL] == 0 ||
	    statuses[7] > 1)
		fail_msg("%s, kill %u of %d: \"%s\", statuses 7: %u, SIGTRAP: "
		    "%u, SIGKILL: %u; %s", name_of(mode), i, helper, out,
		    statuses[7], statuses[128 + SIGTRAP],
		    statuses[128 + SIGKILL], err);
	return true;
}

/* --- storms --- */

static void
storm(const struct mode *mode)
{
	const unsigned n = getenv("THOROUGH") != NULL ? THOROUGH_KILLS : KILLS;
	const uint64_t began = now_us();
	unsigned watched = 0, died = 0;

	start_targets(mode->on == COMMAND ? 0 : mode->on == TWO ? 2 : 1);
	for (unsigned i = 0; i < n; i++) {
		watched += mode->on == COMMAND ?
		    kill_launched(mode, i, n, &died) :
		    kill_attached(mode, i, n, &died);
		remove_cores();
	}
	end_targets();
	print_message("%-40s %3u of %u when it watched, %u died, %llu ms\n",
	    name_of(mode), watched, n, died,
	    (unsigned long long)(now_us() - began) / 1000);
	assert_true(watched > 0);
}

/* In each mode, at moments within the time that the first of those that attach
   takes to begin. */
static void
storms(const struct mode *first, const struct mode *mode, size_t n)
{
	find_span(first);
	for (size_t i = 0; i < n; i++)
		storm(&mode[i]);
}

TEST(killed_attached)
{
	storms(attached, attached, COUNT(attached));
}

TEST(killed_with_a_command)
{
	storms(attached, commands, COUNT(commands));
}

TEST(killed_inside)
{
	storms(attached, inside, COUNT(inside));
}

TEST(killed_attached_without_events)
{
	storms(refused_attached, refused_attached, COUNT(refused_attached));
}

TEST(killed_with_a_command_without_events)
{
	storms(refused_attached, refused_commands, COUNT(refused_commands));
}

/* What is known of debug information is kept, or most of the time would go
   into that of the C library; and so who writes it is killed, too. */
static void
keep_index(void)
{
	struct outcome o;

	(void)setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
	run_status(&o, 7, LIST(watchctl(), "--stop", "-w", "word", "-O",
	    "/dev/null", "--", victim("storm"), "once"));
}

static int
begin(void **state)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || scratch_make(state) != 0 ||
	    chdir(scratch_dir) != 0)
		return -1;
	seed[0] = (unsigned short)now_us();
	print_message("seed %u\n", seed[0]);
	if (getenv("THOROUGH") == NULL)
		keep_index();
	return 0;
}

/* What a failed test left goes, too. */
static int
finish_all(void **state)
{
	pid_t child[PROCESSES];

	for (size_t n; (n = children_of(getpid(), child)) > 0;) {
		for (size_t i = 0; i < n; i++)
			(void)kill(child[i], SIGKILL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	targets = 0;
	return chdir("/") == 0 ? scratch_remove(state) : -1;
}

static int
begin_refused(void **state)
{
	live_features.caps.slots = 0;	/* they cannot be looked at */
	return be_refused(state) != 0 ? -1 : begin(state);
}

/* Beside each other: they mostly wait. */
static const struct {
	CMUnitTestFunction test;
	CMFixtureFunction before;
} parts[] = {
	{killed_attached, begin},
	{killed_with_a_command, begin},
	{killed_inside, begin},
	{killed_attached_without_events, begin_refused},
	{killed_with_a_command_without_events, begin_refused},
};

static int
run_part(unsigned i)
{
	return run_live_tests(
	    .only = (const CMUnitTestFunction[]){parts[i].test, NULL},
	    .before_all = parts[i].before, .after_all = finish_all);
}

int
main(void)
{
	return run_beside(COUNT(parts), run_part);
}
