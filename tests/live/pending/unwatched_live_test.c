/*
 * unwatched: threads that --stop cannot arm, and processes that it did not see
 * being made: they are named, and the run is not vouched for.
 *
 * The tracer is stopped while they are made, and somebody takes all debug
 * registers of the thread, or kills the maker.
 */
#include "test.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "live.h"
#include "refuse.h"
#include "watching.h"
/* has an await() of its own */
#include "puppet.h"

enum { DOUBTED = 120 };

/* A process that was there before anything was refused, and opens events. */
static struct {
	int ask[2], said[2];
} holder;

/* All registers of the threads that it is told of, as long as it lives. */
static void
be_holder(void *arg)
{
	static uint64_t word;
	pid_t tid;

	(void)arg;
	(void)close(holder.ask[1]);
	while (read(holder.ask[0], &tid, sizeof(tid)) == sizeof(tid)) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
			.exclude_kernel = 1, .bp_type = HW_BREAKPOINT_W,
			.bp_len = sizeof(word), .bp_addr = (uintptr_t)&word,
		};
		int n = 0;

		while (wp_perf_open(&attr, tid, -1) >= 0)
			n++;
		(void)!write(holder.said[1], &n, sizeof(n));
	}
}

static void
holder_start(void)
{
	assert_int_equal(pipe(holder.ask), 0);
	assert_int_equal(pipe(holder.said), 0);
	(void)child_start(be_holder, NULL);
}

static void
hold_registers(pid_t tid)
{
	int n;

	assert_int_equal(write(holder.ask[1], &tid, sizeof(tid)), sizeof(tid));
	assert_int_equal(read(holder.said[0], &n, sizeof(n)), sizeof(n));
	assert_true(n > 0);
}

static void
make_word(void)
{
	puppet_word = shared_memory(sizeof(*puppet_word));
	puppet_signals = shared_memory(sizeof(*puppet_signals));
}

/* Watch the word, and vouch for it. */
static void
watch_word(struct running *w, const struct puppet *p,
    const struct puppet *other, const char *more)
{
	const char *argv[ARGS];
	char spec[32], pid[2][16];
	size_t n;

	(void)snprintf(spec, sizeof(spec), "%p:8",
	    (void *)(uintptr_t)puppet_word);
	(void)snprintf(pid[0], sizeof(pid[0]), "%d", p->pid);
	n = append(argv, 0, LIST(watchctl(), "--stop", "-w", spec, "-o",
	    "json", "--allow", "be_second", "--error-exitcode", "66", "-p",
	    pid[0]));
	if (more != NULL)
		n = append(argv, n, LIST(more));
	if (other != NULL) {
		(void)snprintf(pid[1], sizeof(pid[1]), "%d", other->pid);
		n = append(argv, n, LIST("-p", pid[1]));
	}
	argv[n] = NULL;
	watch_start(w, argv);
}

/* Stop the tracer of a process that is not stopped by it.  Result: the
   tracer. */
static pid_t
stop_tracer(pid_t pid)
{
	const pid_t tracer = wp_proc_tracer(pid);

	assert_true(tracer > 0);
	for (unsigned ms = 0; ms < COMMAND_PATIENCE_MS; ms++) {
		assert_int_equal(kill(tracer, SIGSTOP), 0);
		await_state(tracer, "T");
		if (state_of(pid) == 'S')
			return tracer;
		assert_int_equal(kill(tracer, SIGCONT), 0);
		nap_us(1000);
	}
	fail_msg("process %d never sleeps", pid);
	return 0;
}

/* Have the puppet make its second while its tracer is stopped.  Result: the
   tracer. */
static pid_t
make_unseen(const struct puppet *p, char second)
{
	const pid_t tracer = stop_tracer(p->pid);

	puppet_tell(p->lead[1], second);
	await_state(p->pid, "t");
	return tracer;
}

static pid_t
second_thread(pid_t pid)
{
	pid_t *tids = NULL, second = 0;
	size_t cap = 0;
	const int n = wp_proc_threads(pid, &tids, &cap);

	for (int i = 0; i < n; i++)
		if (tids[i] != pid)
			second = tids[i];
	free(tids);
	assert_true(second != 0);
	return second;
}

static void
expect_doubt(const struct outcome *o, const char *what, pid_t pid,
    const char *then)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s %d %s", what, pid, then);
	if (o->status != DOUBTED || strstr(o->err, text) == NULL ||
	    strstr(o->err, "nothing stray was seen, but") == NULL)
		fail_msg("status %d, without \"%s\": %s", o->status, text,
		    o->err);
}

TEST(a_thread_whose_registers_are_taken)
{
	struct puppet p;
	struct running w;
	struct outcome o;
	pid_t tracer, tid;

	make_word();
	puppet_start(&p);
	watch_word(&w, &p, NULL, NULL);
	tracer = make_unseen(&p, 't');
	tid = second_thread(p.pid);
	hold_registers(tid);
	assert_int_equal(kill(tracer, SIGCONT), 0);
	puppet_hear(&p);
	puppet_second(&p, 's');
	puppet_end(&p);
	finish(&w, &o);
	expect_doubt(&o, "thread", tid, "cannot be watched");
}

/* It takes a tracer where events are refused. */
TEST(a_thread_of_one_that_watches_itself)
{
	struct running w;
	struct outcome o;
	char line[256];
	pid_t tracer, pid, tid;

	start(&w, LIST(watchctl(), "--inside", "-w", "counter", "--allow",
	    "bump", "--error-exitcode", "66", "-O", "/dev/null", "--",
	    victim("counter"), "1", "10"));
	hear(&w, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %d", &pid), 1);
	tracer = stop_tracer(pid);
	say(&w, "go\n");
	await_state(pid, "t");
	tid = second_thread(pid);
	hold_registers(tid);
	assert_int_equal(kill(tracer, SIGCONT), 0);
	hear(&w, line, sizeof(line));
	assert_string_equal(line, "done");
	say(&w, "end\n");
	finish(&w, &o);
	expect_doubt(&o, "thread", tid, "cannot be watched");
}

/* The first child of a process. */
static pid_t
child_of(pid_t pid)
{
	char name[64], text[64];

	(void)snprintf(name, sizeof(name), "task/%d/children", pid);
	assert_true(wp_proc_text(pid, name, text, sizeof(text)) > 0);
	return (pid_t)atol(text);
}

/* Have it make a child that is its alone, and be killed for it.  Result: the
   child, which has written and been killed, too. */
static pid_t
make_orphan(const struct puppet *p)
{
	const pid_t tracer = make_unseen(p, 'f'), child = child_of(p->pid);

	assert_int_equal(kill(p->pid, SIGKILL), 0);
	await_state(p->pid, "Z");
	assert_int_equal(kill(tracer, SIGCONT), 0);
	puppet_hear(p);
	puppet_second(p, 's');
	assert_int_equal(kill(child, SIGKILL), 0);
	return child;
}

/* Of one program it is known what its child is to have. */
TEST(the_creator_is_killed)
{
	struct puppet p;
	struct running w;
	struct outcome o;

	make_word();
	puppet_start(&p);
	watch_word(&w, &p, NULL, "-f");
	(void)make_orphan(&p);
	puppet_end(&p);
	finish(&w, &o);
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.err);
	expect_hits(&o, 1);
}

TEST(one_of_two_creators_is_killed)
{
	struct puppet p, other;
	struct running w;
	struct outcome o;
	pid_t child;

	make_word();
	puppet_start(&p);
	puppet_start(&other);
	watch_word(&w, &p, &other, "-f");
	child = make_orphan(&p);
	puppet_end(&p);
	puppet_end(&other);
	finish(&w, &o);
	expect_doubt(&o, "process", child, "is not watched");
}

static volatile pid_t *number;	/* of the child that is made */
static struct puppet made;

static void
make_puppet(void *arg)
{
	pid_t pid;

	(void)arg;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid == 0) {
		be_puppet(&made);
		_exit(0);
	}
	*number = pid;
}

/* Then what was killed is not known by who has its child. */
TEST(the_parent_is_not_the_creator)
{
	struct puppet p;
	struct running w;
	struct outcome o;
	pid_t child;

	make_word();
	number = shared_memory(sizeof(*number));
	puppet_call = make_puppet;
	puppet_pipes(&made);
	puppet_start(&p);
	puppet_lead(&p, 'l');
	made.pid = *number;
	watch_word(&w, &p, &made, "-f");
	child = make_orphan(&made);
	puppet_hang_up(&made);
	puppet_end(&p);
	finish(&w, &o);
	expect_doubt(&o, "process", child, "is not watched");
}

/* --- who has ended, by the rings --- */

static void
make_numbered(void *arg)
{
	pid_t pid = *number;
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};

	(void)arg;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(0);
	*number = pid;
	(void)waitpid(pid, NULL, 0);
}

/* Whether a child's number can be chosen; ours is taken. */
static bool
may_number(void)
{
	const pid_t pid = getpid();
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};
	const long child = syscall(SYS_clone3, &args, sizeof(args));

	assert_int_equal(child, -1);
	if (errno != EEXIST)
		print_message("clone3 with set_tid: %s\n", strerror(errno));
	return errno == EEXIST;
}

/* A process executes another program and ends, and before watchctl looks, a
   child of another one that is watched has its number, and ends.  That takes a
   privilege: without, there is no such child. */
TEST(another_process_with_the_same_number_ends)
{
	struct puppet p, other;
	struct running w;
	struct outcome o;
	char spec[32], pid[2][16];

	if (!may_number())
		return;
	make_word();
	number = shared_memory(sizeof(*number));
	puppet_call = make_numbered;
	puppet_start(&p);
	puppet_start(&other);
	(void)snprintf(spec, sizeof(spec), "%p:8",
	    (void *)(uintptr_t)puppet_word);
	(void)snprintf(pid[0], sizeof(pid[0]), "%d", p.pid);
	(void)snprintf(pid[1], sizeof(pid[1]), "%d", other.pid);
	watch_start(&w, LIST(watchctl(), "-f", "-w", spec, "-o", "json",
	    "--allow", "be_second", "--error-exitcode", "66", "-p", pid[0],
	    "-p", pid[1]));
	assert_int_equal(kill(w.pid, SIGSTOP), 0);
	await_state(w.pid, "T");
	puppet_tell(p.lead[1], 'x');
	*number = p.pid;
	assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
	child_note(p.pid, 0);
	puppet_lead(&other, 'l');
	assert_int_equal(*number, p.pid);
	assert_int_equal(kill(w.pid, SIGCONT), 0);
	puppet_hang_up(&p);
	puppet_end(&other);
	finish(&w, &o);
	if (o.status != DOUBTED ||
	    strstr(o.err, "executed another program") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

int
main(int argc, char **argv)
{
	int failed;

	(void)argv;
	if (argc > 1)
		return 0;	/* executed by a puppet */

	holder_start();
	failed = run_live_tests(.except = (const CMUnitTestFunction[]){
	    a_thread_of_one_that_watches_itself, NULL});
	/* by debug registers, too, where -f is refused; what is refused stays
	   so */
	failed += run_live_tests(.before_all = be_refused, .except =
	    (const CMUnitTestFunction[]){the_creator_is_killed,
	    one_of_two_creators_is_killed, the_parent_is_not_the_creator,
	    another_process_with_the_same_number_ends, NULL});
	(void)close(holder.ask[1]);	/* then it ends */
	return failed;
}
