/*
 * helper: starting one unnoticed, joining one, and asking it.
 *
 * The programs are children of the test.  Their helper (WATCHPOINT_HELPER) is
 * this test's own executable, which serves the channel and answers what it
 * finds itself to be; HELPER_DOES makes it fail.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "proc/proc.h"
#include "program.h"
#include "handler/watches.h"
#include "inside/fork.h"
#include "arming/helper.h"
#include "program/table.h"
#include "arming/delivery.h"

static struct shared {
	volatile pid_t helper, other;	/* of helpers that were started */
	volatile unsigned chld;		/* SIGCHLDs that came */
	volatile bool ready;
} *shared;

SHARED_FIXTURE
static char self[PATH_MAX];		/* this executable */

/*
 * The helper.
 */

/* What a helper finds, as words. */
static void
look(char *text, size_t size)
{
	struct wp_proc_status status;
	struct stat null, st;
	size_t n = 0;

	(void)stat("/dev/null", &null);
	for (int fd = 0; fd < 5000; fd++)
		if (fstat(fd, &st) == 0)
			n += (size_t)snprintf(text + n, size - n, "%d:%s ", fd,
			    st.st_rdev == null.st_rdev && S_ISCHR(st.st_mode) ?
			    "null" : S_ISFIFO(st.st_mode) ? "pipe" : "other");
	(void)wp_proc_status(getpid(), &status);
	(void)snprintf(text + n, size - n, "blocked:%llx ignored:%llx "
	    "session:%s preload:%s watch:%s channel:%s kept:%s",
	    (unsigned long long)status.blocked,
	    (unsigned long long)status.ignored,
	    getsid(0) == getpid() ? "own" : "not its own",
	    getenv("LD_PRELOAD") == NULL ? "no" : "yes",
	    getenv("WATCHPOINT_WATCH") == NULL ? "no" : "yes",
	    getenv("WATCHPOINT_CHANNEL") == NULL ? "no" : "yes",
	    getenv("KEPT") == NULL ? "no" : "yes");
}

static int
answer(struct wp_request *request)
{
	switch (request->what) {
	case WP_ASK_RESOLVE:
		look(request->text, sizeof(request->text));
		return (int)request->index;
	case WP_ASK_HOLD:
		(void)strcpy(request->cause, "threads cannot be held: because");
		return -EPERM;
	default:
		(void)memset(request->cause, 'x', sizeof(request->cause));
		return -ENOSYS;
	}
}

static bool
does(const char *what)
{
	const char *text = getenv("HELPER_DOES");

	return text != NULL && strcmp(text, what) == 0;
}

/* A child whose channel can be had, if it is to be. */
static void
adopt(struct wp_channel *channel)
{
	struct wp_adoption *a = wp_channel_adoption(channel);
	struct wp_channel *other;
	int pidfd, fd;

	if (a == NULL)
		return;
	if (!does("adopt")) {
		wp_channel_adopted(a, -EBUSY);
		return;
	}
	pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, a->fd, 0);
	CHECK(a->parent == channel->program);
	CHECK(wp_channel_map(fd, &other) == 0);
	CHECK(other->program == a->pid);
	wp_channel_serve_too(other);
	wp_channel_adopted(a, 0);
}

static void
serve(struct wp_channel *channel)
{
	struct wp_cell *cell;
	uint32_t heard = 0;

	wp_channel_serve(channel);
	while (kill(channel->program, 0) == 0) {
		if (wp_channel_asked(channel))
			wp_channel_answer(channel, answer(&channel->request));
		while ((cell = wp_channel_next(channel)) != NULL)
			wp_channel_done(channel, cell);
		adopt(channel);
		wp_channel_sleep(channel, &heard, 20);
	}
}

static int
be_helper(void)
{
	struct wp_channel *channel;

	if (does("exit"))
		return 3;
	if (wp_channel_map(3, &channel) < 0)
		return 2;
	serve(channel);
	return 0;
}

/*
 * Programs.
 */

static int
begin(void **state)
{
	(void)state;
	memset((void *)shared, 0, sizeof(*shared));
	return 0;
}

/* Run a program, and see that its helpers end too. */
static void
program_and_helpers(void (*fn)(void *), const void *arg)
{
	program(fn, arg);
	if (shared->helper != 0)
		await(is_gone(shared->helper));
	if (shared->other != 0)
		await(is_gone(shared->other));
}

static int
start(struct wp_cause *cause)
{
	int err;

	wp_watches_lock();
	err = wp_helper_start(cause);
	wp_watches_unlock();
	if (err == 0)
		shared->helper = atomic_load(&wp_state.channel)->helper_pid;
	return err;
}

/* The helper's view of itself; the program's check fails without one. */
static const char *
ask_look(void)
{
	struct wp_request *request;

	wp_watches_lock();
	request = wp_helper_request(WP_ASK_RESOLVE);
	CHECK(request != NULL);
	request->index = 42;
	CHECK(wp_helper_ask(NULL) == 42);
	wp_watches_unlock();
	return request->text;
}

static void
on_chld(int sig)
{
	(void)sig;
	shared->chld++;
}

/* How a program may be when it starts its helper. */
struct scene {
	bool subreaper;		/* gets orphans among its descendants */
	bool ignores;		/* SIGCHLD is ignored */
	int closed;		/* this descriptor is; -1: none */
	int limit;		/* of descriptors; 0: as it is */
	const char *fds;	/* what the helper has */
};

static const struct scene scenes[] = {
	{false, false, -1, 0, "0:null 1:null 2:pipe 3:other "},
	{true, false, -1, 0, "0:null 1:null 2:pipe 3:other "},
	{false, true, -1, 0, "0:null 1:null 2:pipe 3:other "},
	{false, false, 0, 0, "0:null 1:null 2:pipe 3:other "},
	{false, false, 1, 0, "0:null 1:null 2:pipe 3:other "},
	{false, false, 2, 0, "0:null 1:null 2:null 3:other "},
	{false, false, -1, 16, "0:null 1:null 2:pipe 3:other "},
};

/* Descriptors as a helper may find them: 2 is a pipe, closed at execve(2); some
   that are not. */
static void
prepare(const struct scene *scene)
{
	struct rlimit limit;
	int fds[2];

	CHECK(pipe(fds) == 0);
	CHECK(dup3(fds[1], 2, O_CLOEXEC) == 2);
	if (scene->closed >= 0)
		(void)close(scene->closed);
	if (scene->limit != 0) {
		CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
		limit.rlim_cur = (rlim_t)scene->limit;
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	}
	CHECK(signal(SIGCHLD, scene->ignores ? SIG_IGN : on_chld) != SIG_ERR);
	CHECK(signal(SIGINT, SIG_IGN) != SIG_ERR);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, scene->subreaper) == 0);
}

/* What a program could notice. */
struct notice {
	int next_fd, subreaper;
	unsigned fds;
	void *brk;
	size_t allocated;
	uint64_t mask;
};

static void
notice(struct notice *n)
{
	sigset_t mask;

	n->fds = open_descriptors();
	n->next_fd = open("/dev/null", O_RDONLY);
	(void)close(n->next_fd);
	(void)prctl(PR_GET_CHILD_SUBREAPER, &n->subreaper);
	(void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
	memcpy(&n->mask, &mask, sizeof(n->mask));
	n->brk = sbrk(0);
	n->allocated = mallinfo2().uordblks;
}

static void
unnoticed(void *arg)
{
	struct notice before = {0}, after = {0};
	struct wp_cause cause;
	sigset_t some;

	prepare(arg);
	(void)sigemptyset(&some);
	(void)sigaddset(&some, SIGUSR1);
	(void)pthread_sigmask(SIG_BLOCK, &some, NULL);
	notice(&before);
	errno = EDOM;
	CHECK(start(&cause) == 0);
	CHECK(errno == EDOM);
	CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	notice(&after);
	CHECK(shared->chld == 0);
	CHECK(before.fds == after.fds);
	CHECK(before.next_fd == after.next_fd);
	CHECK(before.subreaper == after.subreaper);
	CHECK(before.mask == after.mask);
	CHECK(before.brk == after.brk);
	CHECK(before.allocated == after.allocated);
	CHECK(kill(shared->helper, 0) == 0);
}

TEST(a_program_cannot_notice_its_helper)
{
	for (size_t i = 0; i < COUNT(scenes); i++) {
		(void)begin(state);
		program_and_helpers(unnoticed, &scenes[i]);
		assert_int_not_equal(shared->helper, 0);
	}
}

static void
look_at_helper(void *arg)
{
	const struct scene *scene = arg;
	char expected[512];

	prepare(scene);
	(void)setenv("LD_PRELOAD", "", 1);
	(void)setenv("WATCHPOINT_WATCH", "w:x", 1);
	(void)setenv("WATCHPOINT_CHANNEL", "/nowhere", 1);
	(void)setenv("KEPT", "1", 1);
	CHECK(start(NULL) == 0);
	(void)snprintf(expected, sizeof(expected), "%sblocked:0 ignored:0 "
	    "session:own preload:no watch:no channel:no kept:yes", scene->fds);
	if (strcmp(ask_look(), expected) != 0)
		(void)dprintf(1, "%s\n", ask_look());
	CHECK(strcmp(ask_look(), expected) == 0);
}

TEST(a_helper_starts_with_a_clean_state)
{
	for (size_t i = 0; i < COUNT(scenes); i++) {
		(void)begin(state);
		program_and_helpers(look_at_helper, &scenes[i]);
	}
}

/* Why there is none. */
static const struct failure {
	const char *path, *does;
	int err;
	enum wp_cause_code code;
	const char *text;
} failures[] = {
	{"", NULL, -ENOENT, WP_CAUSE_HELPER_OFF, "is empty"},
	{"/nowhere/watchctl", NULL, -ENOENT, WP_CAUSE_HELPER_EXEC,
	    "/nowhere/watchctl cannot be started: No such file"},
	{"/dev/null", NULL, -EACCES, WP_CAUSE_HELPER_EXEC, "Permission"},
	{"/", NULL, -EACCES, WP_CAUSE_HELPER_EXEC, "Permission"},
	{self, "exit", -EPIPE, WP_CAUSE_HELPER_SILENT, "it ended at once"},
};

static void
fail_to_start(void *arg)
{
	const struct failure *failure = arg;
	const unsigned before = open_descriptors();
	struct wp_cause cause;

	(void)signal(SIGCHLD, on_chld);
	(void)setenv("WATCHPOINT_HELPER", failure->path, 1);
	if (failure->does != NULL)
		(void)setenv("HELPER_DOES", failure->does, 1);
	CHECK(start(&cause) == failure->err);
	CHECK(cause.code == failure->code);
	CHECK(cause.err == -failure->err);
	CHECK(strstr(cause.text, failure->text) != NULL);
	CHECK(atomic_load(&wp_state.channel) == NULL);
	CHECK(open_descriptors() == before);
	CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
	CHECK(shared->chld == 0);
	/* it is not tried again */
	(void)setenv("WATCHPOINT_HELPER", self, 1);
	memset(&cause, 0, sizeof(cause));
	CHECK(start(&cause) == failure->err);
	CHECK(cause.code == failure->code);
	wp_watches_lock();
	CHECK(wp_helper_request(WP_ASK_GO) == NULL);
	CHECK(wp_helper_ask(&cause) == -EPIPE);
	wp_helper_describe(&wp_state.watch[0]);
	wp_watches_unlock();
}

TEST(a_helper_that_cannot_be_started_has_a_cause)
{
	for (size_t i = 0; i < COUNT(failures); i++) {
		(void)begin(state);
		program_and_helpers(fail_to_start, &failures[i]);
	}
}

static void
ask_in_vain(void *arg)
{
	struct wp_request *request;
	struct wp_cause cause;

	(void)arg;
	CHECK(start(NULL) == 0);
	wp_watches_lock();
	request = wp_helper_request(WP_ASK_HOLD);
	CHECK(request != NULL && request->tid == 0);
	CHECK(wp_helper_ask(&cause) == -EPERM);
	CHECK(cause.err == EPERM);
	CHECK(strcmp(cause.text, "threads cannot be held: because") == 0);
	/* one that has no end */
	CHECK(wp_helper_request(WP_ASK_GO) != NULL);
	CHECK(wp_helper_ask(&cause) == -ENOSYS);
	CHECK(strspn(cause.text, "x") == strlen(cause.text));
	wp_watches_unlock();
}

TEST(a_refusal_has_the_helpers_words)
{
	program_and_helpers(ask_in_vain, NULL);
}

static void
lose_helper(void *arg)
{
	struct wp_cause cause;

	(void)arg;
	CHECK(start(NULL) == 0);
	CHECK(kill(shared->helper, SIGKILL) == 0);
	for (unsigned i = 0; i < 20000 && !is_gone(shared->helper); i++)
		nap_us(1000);
	CHECK(start(&cause) == -EPIPE);
	CHECK(cause.code == WP_CAUSE_HELPER_DIED);
	wp_watches_lock();
	CHECK(wp_helper_request(WP_ASK_GO) == NULL);
	wp_watches_unlock();
}

TEST(the_death_of_a_helper_is_noticed)
{
	program_and_helpers(lose_helper, NULL);
}

/* A child of fork(2) is another program. */
static void
fork_with_helper(void *arg)
{
	pid_t pid;
	int status;

	(void)arg;
	wp_watches_lock();
	CHECK(wp_fork_prepare(NULL));
	wp_watches_unlock();
	CHECK(start(NULL) == 0);
	shared->other = shared->helper;
	pid = fork();
	if (pid == 0) {
		CHECK(atomic_load(&wp_state.channel) == NULL);
		CHECK(start(NULL) == 0);
		CHECK(atomic_load(&wp_state.channel)->program == getpid());
		CHECK((shared->helper == shared->other) == does("adopt"));
		if (!does("adopt"))
			(void)ask_look();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(atomic_load(&wp_state.channel)->helper_pid == shared->other);
	(void)ask_look();
}

TEST(a_child_is_adopted_by_the_helper)
{
	(void)setenv("HELPER_DOES", "adopt", 1);
	program_and_helpers(fork_with_helper, NULL);
	(void)unsetenv("HELPER_DOES");
}

TEST(a_child_may_start_a_helper_of_its_own)
{
	program_and_helpers(fork_with_helper, NULL);
}

/* Threads that are cancelled, and that hold the program's signals. */
static void *
start_cancelled(void *arg)
{
	(void)pthread_cancel(pthread_self());
	wp_watches_lock();
	*(int *)arg = wp_helper_start(NULL);
	wp_watches_unlock();
	pthread_testcancel();
	*(int *)arg = -1;
	return NULL;
}

static void
start_in_thread(void *arg)
{
	int err = -1;
	pthread_t thread;
	void *result;

	(void)arg;
	CHECK(pthread_create(&thread, NULL, start_cancelled, &err) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK(err == 0);
	shared->helper = atomic_load(&wp_state.channel)->helper_pid;
	(void)ask_look();
}

TEST(a_cancelled_thread_starts_it_whole)
{
	program_and_helpers(start_in_thread, NULL);
}

/*
 * A channel that is there.
 */

static void
serve_given(void *arg)
{
	struct wp_channel *channel;

	if (wp_channel_map(*(int *)arg, &channel) < 0)
		_exit(1);
	while (atomic_load(&channel->program) == 0)
		nap_us(100);
	serve(channel);
}

static void
join_given(void *arg)
{
	struct wp_cause cause;
	int status;
	pid_t pid;

	(void)setenv("WATCHPOINT_CHANNEL", arg, 1);
	wp_watches_lock();
	CHECK(wp_helper_join(&cause) == 0);
	CHECK(wp_helper_join(&cause) == 0);
	wp_watches_unlock();
	CHECK(start(NULL) == 0);
	(void)ask_look();
	pid = fork();
	if (pid == 0) {
		/* as if it had executed another program */
		wp_helper_forked();
		wp_watches_lock();
		CHECK(wp_helper_join(&cause) == -EBUSY);
		wp_watches_unlock();
		CHECK(start(NULL) == 0);
		shared->other = shared->helper;
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	shared->helper = atomic_load(&wp_state.channel)->helper_pid;
}

TEST(a_given_channel_is_joined_by_one_process)
{
	char path[64];
	int fd = wp_channel_make(WP_STACK_USUAL);
	pid_t given;

	assert_true(fd >= 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	given = child_start(serve_given, &fd);
	program_and_helpers(join_given, path);
	assert_int_equal(shared->helper, given);
	assert_int_not_equal(shared->other, given);
	assert_int_equal(child_wait(given), 0);
	(void)close(fd);
}

static void
join_nothing(void *arg)
{
	struct wp_cause cause;

	(void)arg;
	wp_watches_lock();
	(void)unsetenv("WATCHPOINT_CHANNEL");
	CHECK(wp_helper_join(&cause) == -ENOENT);
	(void)setenv("WATCHPOINT_CHANNEL", "/nowhere/channel", 1);
	CHECK(wp_helper_join(&cause) == -ENOENT);
	(void)setenv("WATCHPOINT_CHANNEL", "/dev/null", 1);
	CHECK(wp_helper_join(&cause) == -EPROTO);
	CHECK(strstr(cause.text, "/dev/null") != NULL);
	wp_watches_unlock();
	CHECK(atomic_load(&wp_state.channel) == NULL);
}

TEST(a_file_that_is_no_channel_is_not_joined)
{
	program_and_helpers(join_nothing, NULL);
}

/*
 * What is noted.
 */

static void
note_watch(void *arg)
{
	struct wp_watch *w = &wp_state.watch[3];
	const struct wp_channel_watch *noted;
	uint32_t bell;

	(void)arg;
	CHECK(start(NULL) == 0);
	noted = &atomic_load(&wp_state.channel)->watch[3];
	(void)strcpy(w->label, "counter");
	w->region = (struct wp_region){0x1000, 12, WP_ACCESS};
	w->nslots = 2;
	w->attr.flags = WP_STRAY;
	atomic_store(&w->serial, 77);
	atomic_store(&w->accounted, 5);
	wp_watches_lock();
	w->delivery = &wp_deliver_sigtrap;
	for (int i = 0; i < 3; i++)
		CHECK(wp_watch_add(w, 900 + i, 0, getpid()) == 0);
	wp_helper_describe(w);
	CHECK(noted->serial == 77 && noted->what.serial == 77);
	CHECK(strcmp(noted->what.label, "counter") == 0);
	CHECK(noted->what.addr == 0x1000 && noted->what.len == 12);
	CHECK(noted->what.access == WP_ACCESS && noted->what.nslots == 2);
	CHECK(noted->what.index == 3);
	CHECK(noted->stray == 1 && noted->exact == 1 && noted->hits == 5);
	CHECK(noted->fd[0] == 900 && noted->fd[2] == 902 && noted->fd[3] == -1);
	/* moved: nothing that cannot wait */
	bell = atomic_load(&wp_state.channel)->bell;
	w->region.addr = 0x2000;
	w->attr.period = 2;
	wp_helper_describe(w);
	CHECK(noted->what.addr == 0x2000 && noted->exact == 0);
	CHECK(bell == atomic_load(&wp_state.channel)->bell);
	atomic_store(&w->serial, 0);
	wp_helper_describe(w);
	CHECK(noted->serial == 0);
	CHECK(bell != atomic_load(&wp_state.channel)->bell);
	atomic_store(&w->narmed, 0);
	wp_watches_unlock();
}

TEST(the_helper_is_told_of_watches)
{
	program_and_helpers(note_watch, NULL);
}

static void
stack_setting(void *arg)
{
	static const struct { const char *text; uint32_t bytes; } cases[] = {
		{"1024", 1024}, {"16384", 16384}, {"99999", WP_STACK_MAX},
		{"0", 0}, {"", WP_STACK_USUAL}, {"much", WP_STACK_USUAL},
		{"8k", WP_STACK_USUAL}, {"1001", 1000},
	};
	const size_t i = (size_t)(uintptr_t)arg;

	if (i >= COUNT(cases))
		return;
	shared->ready = true;
	(void)setenv("WATCHPOINT_STACK", cases[i].text, 1);
	CHECK(start(NULL) == 0);
	CHECK(atomic_load(&wp_state.channel)->stack == cases[i].bytes);
}

TEST(the_size_of_stacks_is_a_setting)
{
	for (uintptr_t i = 0; i == 0 || shared->ready; i++) {
		(void)begin(state);
		program_and_helpers(stack_setting, (void *)i);
	}
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "helper") == 0)
		return be_helper();
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
	    setenv("WATCHPOINT_HELPER", self, 1) != 0)
		return 1;
	(void)argv;
	return run_all_tests(.before_each = begin, .after_each = children_end);
}
