/* exec_monitor: a program's own execve(2), and that of another. */
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/pidfd.h>

#include "child.h"
#include "live.h"
#include "processes/exec_monitor.h"

static struct shared {
	struct wp_channel channel;
	volatile bool go;
} *shared;

static void
become_a_program_and_another(void *unused)
{
	(void)unused;
	await(shared->go);
	(void)execl("/bin/sh", "sh", "-c", "read go; exec sleep 100",
	    (char *)NULL);
}

static bool
is_now(pid_t pid, const char *name)
{
	char path[64], comm[32] = "";
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if ((f = fopen(path, "r")) != NULL) {
		(void)fscanf(f, "%31s", comm);
		(void)fclose(f);
	}
	return strcmp(comm, name) == 0;
}

/* The execve(2) that makes a command what it is may come after the monitor has
   begun. */
TEST(a_programs_own_start_is_no_other_program)
{
	struct exec_monitor monitor;
	int go[2];
	pid_t pid;

	shared = shared_memory(sizeof(*shared));
	assert_int_equal(pipe(go), 0);
	assert_int_equal(dup2(go[0], STDIN_FILENO), STDIN_FILENO);
	pid = child_start(become_a_program_and_another, NULL);
	exec_monitor_begin(&monitor, &shared->channel, pid, pidfd_open(pid, 0));
	shared->go = true;
	await(is_now(pid, "sh"));
	exec_monitor_enable(&monitor);
	nap_us(100000);
	assert_false(atomic_load(&monitor.executed));
	assert_int_equal(write(go[1], "\n", 1), 1);
	await(atomic_load(&monitor.executed));
	assert_false(exec_monitor_ended(&monitor));
	child_kill(pid);
	await(exec_monitor_ended(&monitor));
	(void)close(monitor.pidfd);
	exec_monitor_end(&monitor);
}

static bool
is_loaded(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	return handle != NULL && dlclose(handle) == 0;
}

/* An image of a container need not have libgcc_s.so.1, and what loads it, such
   as cancelling a thread, aborts there. */
TEST(it_ends_without_the_compilers_library)
{
	const bool loaded = is_loaded("libgcc_s.so.1");
	struct exec_monitor monitor;
	pid_t pid;
	int pidfd;

	shared = shared_memory(sizeof(*shared));
	pid = child_start(become_a_program_and_another, NULL);
	pidfd = pidfd_open(pid, 0);
	exec_monitor_begin(&monitor, &shared->channel, pid, pidfd);
	assert_false(exec_monitor_ended(&monitor));
	exec_monitor_end(&monitor);
	(void)close(pidfd);
	assert_int_equal(is_loaded("libgcc_s.so.1"), loaded);
	child_kill(pid);
}

RUN_LIVE_TESTS(.after_each = children_end)
