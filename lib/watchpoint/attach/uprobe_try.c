/* uprobe_try: tries whether uprobes work, by one that a child hits. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/target.h"

static __attribute__((noinline)) void
tried(void)
{
	__asm__ volatile("");
}

/* A process that calls it at a word. */
static pid_t
start_child(const int words[2])
{
	const pid_t parent = getpid(), child = fork();
	char word;

	if (child != 0)
		return child < 0 ? -errno : child;
	(void)close(words[1]);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && read(words[0], &word, 1) == 1)
		tried();
	_exit(0);
}

static int
try_on(struct wp_target *target, pid_t child, int words,
    struct wp_cause *cause)
{
	const struct wp_region region = {
		.addr = (uintptr_t)tried, .len = 1, .access = WP_EXEC,
		.insn = true,
	};
	struct wp_perf_count count = {0};
	int err = wp_target_watch(target, &region, 1, cause);

	if (err == 0)
		err = wp_target_attach(target, child, 0, 1, cause);
	if (err < 0)
		return err;
	(void)!write(words, "", 1);
	(void)waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
	(void)wp_target_count(target, 0, &count);
	return count.value == 1 ? 0 : wp_cause_errno(cause, "a uprobe that was "
	    "hit", ENOMSG);
}

int
wp_target_try_uprobe(const struct wp_features *features,
    struct wp_cause *cause)
{
	const struct wp_options options = {
		.count = true, .bpf = true, .uprobes = true,
	};
	struct wp_features without = *features;
	struct wp_target *target;
	int words[2], err;
	pid_t child;

	without.caps.slots = 0;
	if ((err = wp_target_new(&target, &without, &options, cause)) < 0)
		return err;
	if (!wp_target_uprobes(target)) {
		wp_target_free(target);
		return wp_cause_set(cause, WP_CAUSE_NO_BPF, "uprobes take BPF "
		    "programs", "they are refused");
	}
	if (pipe2(words, O_CLOEXEC) < 0) {
		wp_target_free(target);
		return wp_cause_errno(cause, "making a pipe", errno);
	}
	child = start_child(words);
	err = child < 0 ? wp_cause_errno(cause, "making a process", -child) :
	    try_on(target, child, words[1], cause);
	(void)close(words[0]);
	(void)close(words[1]);
	if (child > 0) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
	wp_target_free(target);
	return err;
}
