/*
 * probe: the probes find what this machine really has, and each kind of
 * watchpoint fires.
 */
#include "test.h"

#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "os/perf.h"
#include "probe/probe.h"
#include "refuse.h"

#define NOBODY 65534

/* What a child found, in memory shared with it. */
struct finding {
	int err;		/* of wp_probe_features */
	struct wp_features features;
	struct wp_cause cause;
	struct wp_probe_result probe[WP_PROBE_KINDS];
	bool done;
};

static struct finding *finding;

static void
need_breakpoints(void)
{
	struct wp_features features;
	struct wp_cause cause;

	if (wp_probe_features(&features, &cause) == 0)
		return;
	print_message("wp_probe_features: %s\n", cause.text);
	skip();
}

/* Fill the finding in a child that first prepares itself. */
static void
find_in_child(void (*prepare)(const void *), const void *arg)
{
	int status;
	pid_t pid;

	memset(finding, 0, sizeof(*finding));
	assert_true((pid = fork()) >= 0);
	if (pid == 0) {
		prepare(arg);
		finding->err = wp_probe_features(&finding->features,
		    &finding->cause);
		for (unsigned k = 0; k < WP_PROBE_KINDS; k++)
			wp_probe_fire((enum wp_probe_kind)k,
			    &finding->probe[k]);
		finding->done = true;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(finding->done);
}

static bool
is_power_of_two(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

TEST(features_are_consistent)
{
	struct wp_features features;
	unsigned slots;

	need_breakpoints();
	assert_int_equal(wp_probe_features(&features, NULL), 0);
	slots = features.caps.slots;
	assert_in_range(slots, 1, WP_SLOTS_MAX);
	assert_int_equal(wp_probe_free_slots(), slots);
	assert_true(wp_probe_all_slots() >= slots);
	assert_true(is_power_of_two(features.caps.range));
	assert_in_range(features.caps.range, 8, 4096);
	assert_true(features.remove_on_exec || !features.sigtrap);
	assert_true(features.kernel || !features.callchain);
}

/* Whether a kind may fail here, as the features or the user foretell. */
static bool
may_fail(const struct wp_probe_result *result, const struct wp_features *has)
{
	switch (result->kind) {
	case WP_PROBE_SIGTRAP:
		return !has->sigtrap;
	case WP_PROBE_KERNEL:
#ifndef __x86_64__
		return true;
#else
		return !has->kernel;
#endif
	case WP_PROBE_BPF:
		return geteuid() != 0 && result->err == EPERM;
	case WP_PROBE_PTRACE:
#ifndef __x86_64__
		return true;
#endif
	default:
		return false;
	}
}

TEST(every_kind_fires)
{
	struct wp_features features;
	struct wp_probe_result r;

	need_breakpoints();
	assert_int_equal(wp_probe_features(&features, NULL), 0);
	for (unsigned k = 0; k < WP_PROBE_KINDS; k++) {
		wp_probe_fire((enum wp_probe_kind)k, &r);
		print_message("%s: %s\n", r.name, r.detail);
		assert_int_equal(r.kind, k);
		assert_string_not_equal(r.detail, "");
		if (r.ok) {
			assert_int_equal(r.err, 0);
			assert_string_equal(r.advice, "");
			continue;
		}
		assert_string_not_equal(r.advice, "");
		if (!may_fail(&r, &features))
			fail_msg("%s does not fire: %s", r.name, r.detail);
	}
}

static void
not_this_one(int sig)
{
	(void)sig;
	abort();
}

TEST(leaves_nothing_behind)
{
	struct sigaction action = {.sa_handler = not_this_one}, old, now;
	struct wp_probe_result r;
	unsigned before = open_descriptors();
	sigset_t mask, was, is;

	need_breakpoints();
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGTRAP);
	(void)sigaddset(&mask, SIGURG);
	assert_int_equal(sigprocmask(SIG_BLOCK, &mask, &was), 0);
	assert_int_equal(sigaction(SIGURG, &action, NULL), 0);
	action.sa_handler = SIG_IGN;
	assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);

	for (unsigned k = 0; k < WP_PROBE_KINDS; k++)
		wp_probe_fire((enum wp_probe_kind)k, &r);

	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &is), 0);
	assert_true(sigismember(&is, SIGTRAP) && sigismember(&is, SIGURG));
	assert_int_equal(sigaction(SIGTRAP, &old, &now), 0);
	assert_true(now.sa_handler == SIG_IGN);
	assert_int_equal(sigaction(SIGURG, &(struct sigaction){
	    .sa_handler = SIG_DFL}, &now), 0);
	assert_true(now.sa_handler == not_this_one);
	assert_int_equal(sigpending(&is), 0);
	assert_false(sigismember(&is, SIGTRAP) || sigismember(&is, SIGURG));
	assert_int_equal(sigprocmask(SIG_SETMASK, &was, NULL), 0);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Blocked and ignored by the caller, the signals come to the probe all the
   same. */
TEST(fires_where_signals_are_blocked)
{
	struct wp_features features;
	struct wp_probe_result r;
	struct sigaction old;
	sigset_t all, was;

	need_breakpoints();
	(void)wp_probe_features(&features, NULL);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &was);
	(void)sigaction(SIGTRAP, &(struct sigaction){.sa_handler = SIG_IGN},
	    &old);
	wp_probe_fire(WP_PROBE_SIGTRAP, &r);
	assert_int_equal(r.ok, features.sigtrap);
	wp_probe_fire(WP_PROBE_ASYNC, &r);
	assert_true(r.ok);
	(void)sigaction(SIGTRAP, &old, NULL);
	(void)sigprocmask(SIG_SETMASK, &was, NULL);
}

static volatile uint64_t held_word;

TEST(counts_the_slots_left)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&held_word,
		.bp_len = sizeof(held_word),
	};
	struct wp_features features;
	struct wp_probe_result r;
	struct wp_cause cause;
	int fd[WP_SLOTS_MAX];
	unsigned slots;

	need_breakpoints();
	slots = wp_probe_free_slots();
	for (unsigned held = 0; held < slots; held++) {
		assert_int_equal(wp_probe_features(&features, &cause), 0);
		assert_int_equal(features.caps.slots, slots - held);
		wp_probe_fire(WP_PROBE_WRITE, &r);
		assert_true(r.ok);
		fd[held] = wp_perf_open(&attr, 0, -1);
		assert_true(fd[held] >= 0);
	}

	assert_int_equal(wp_probe_features(&features, &cause), -ENOSPC);
	assert_int_equal(cause.code, WP_CAUSE_NO_SLOT);
	assert_int_equal(wp_probe_free_slots(), 0);
	assert_int_equal(wp_probe_all_slots(), slots);
	wp_probe_fire(WP_PROBE_WRITE, &r);
	assert_false(r.ok);
	assert_int_equal(r.err, ENOSPC);
	assert_holds(r.advice, "no free slot");
	for (unsigned i = 0; i < slots; i++)
		(void)close(fd[i]);
	assert_int_equal(wp_probe_free_slots(), slots);
}

/* perf_event_open answers an errno from now on, in this process. */
static void
refuse_with(const void *arg)
{
	if (!refuse_call(SYS_perf_event_open, *(const int *)arg, NULL, 0))
		_exit(1);
}

TEST(names_who_refuses)
{
	static const struct {
		int err;
		enum wp_cause_code code;
		const char *text;
	} cases[] = {
		{EPERM, WP_CAUSE_DENIED_SECCOMP, "seccomp"},
		{ENOSYS, WP_CAUSE_SYSTEM, "seccomp"},
		{ENODEV, WP_CAUSE_NO_BREAKPOINTS, "no hardware breakpoints"},
		{ENOENT, WP_CAUSE_NO_BREAKPOINTS, "no hardware breakpoints"},
		{EOPNOTSUPP, WP_CAUSE_NO_BREAKPOINTS, "no hardware break"},
		{ENOSPC, WP_CAUSE_NO_SLOT, "no free slot"},
		{EMFILE, WP_CAUSE_SYSTEM, "ulimit -n"},
		{E2BIG, WP_CAUSE_SYSTEM, "does not know"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct wp_probe_result *r = finding->probe;

		find_in_child(refuse_with, &cases[i].err);
		assert_true(finding->err < 0);
		assert_int_equal(finding->err, -finding->cause.err);
		assert_int_equal(finding->cause.code, cases[i].code);
		assert_holds(finding->cause.text, cases[i].text);
		assert_int_equal(finding->features.caps.slots, 0);
		for (unsigned k = 0; k < WP_PROBE_PTRACE; k++) {
			assert_false(r[k].ok);
			assert_int_equal(r[k].err, cases[i].err);
			if (k != WP_PROBE_SIGTRAP || cases[i].err != E2BIG)
				assert_holds(r[k].advice, cases[i].text);
			assert_lacks(r[k].detail, "Argument list");
		}
	}
}

/* What EACCES means turns on the sysctl. */
TEST(distinguishes_paranoid_from_security_modules)
{
	const int err = EACCES;

	find_in_child(refuse_with, &err);
	assert_int_equal(finding->err, -EACCES);
	if (finding->features.paranoid > 2) {
		assert_int_equal(finding->cause.code,
		    WP_CAUSE_DENIED_PARANOID);
	} else {
		assert_int_equal(finding->cause.code, WP_CAUSE_SYSTEM);
		assert_holds(finding->cause.text, "SELinux");
	}
}

/* Debug registers planted by ptrace need no perf_event_open. */
TEST(ptrace_works_without_perf)
{
	const int err = EPERM;
	struct wp_probe_result r;

	need_breakpoints();
	wp_probe_fire(WP_PROBE_PTRACE, &r);
	find_in_child(refuse_with, &err);
	assert_int_equal(finding->probe[WP_PROBE_PTRACE].ok, r.ok);
}

static void
become_ordinary(const void *arg)
{
	(void)arg;
	if (geteuid() != 0)
		return;		/* an ordinary user already */
	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0 ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0)
		_exit(1);
}

TEST(ordinary_users_get_what_paranoid_says)
{
	const struct wp_probe_result *r = finding->probe;
	bool kernel;

	need_breakpoints();
	find_in_child(become_ordinary, NULL);
	assert_int_not_equal(finding->features.paranoid, INT_MIN);
	if (finding->err != 0) {	/* Debian, Ubuntu: 3 and above */
		assert_int_equal(finding->cause.code,
		    WP_CAUSE_DENIED_PARANOID);
		assert_true(finding->features.paranoid > 2);
		assert_int_equal(r[WP_PROBE_WRITE].err, EACCES);
		return;
	}
	kernel = finding->features.paranoid < 2;
	assert_true(r[WP_PROBE_WRITE].ok);
	assert_int_equal(r[WP_PROBE_SIGTRAP].ok, finding->features.sigtrap);
	assert_int_equal(finding->features.kernel, kernel);
	assert_int_equal(finding->features.callchain, kernel);
	if (!kernel) {
		assert_int_equal(r[WP_PROBE_KERNEL].err, EACCES);
		assert_holds(r[WP_PROBE_KERNEL].advice, "--user-only");
	}
	assert_false(r[WP_PROBE_BPF].ok);
	assert_int_equal(r[WP_PROBE_BPF].err, EPERM);
	assert_holds(r[WP_PROBE_BPF].advice, "CAP_BPF");
}

static int
share_memory(void **state)
{
	(void)state;
	finding = mmap(NULL, sizeof(*finding), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return finding == MAP_FAILED;
}

RUN_TESTS(.before_all = share_memory)
