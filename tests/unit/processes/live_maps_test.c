/* live_maps: what a process maps, as long as it is the program that is
   meant. */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "proc/proc.h"
#include "processes/live_maps.h"
#include "space/space.h"

static volatile bool *go;

static void
become_another(void *unused)
{
	(void)unused;
	await(*go);
	(void)execl("/bin/sleep", "sleep", "100", (char *)NULL);
}

static bool
is_sleep(pid_t pid)
{
	char comm[64];

	return wp_proc_comm(pid, pid, comm) == 0 && strcmp(comm, "sleep") == 0;
}

static struct ex_module *
module_here(struct ex_space *space, pid_t pid)
{
	struct ex_process *process = ex_space_process(space, pid);
	uint64_t vaddr;

	return process == NULL ? NULL : ex_process_module(process,
	    (uintptr_t)become_another, &vaddr);
}

/* Its mappings would name what the program before it did. */
TEST(another_programs_mappings_are_not_learnt)
{
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct live_maps_origin origin;
	struct live_maps m;
	struct ex_module *module;
	pid_t pid;

	go = shared_memory(sizeof(*go));
	pid = child_start(become_another, NULL);
	live_maps_origin(pid, &origin);
	live_maps_begin(&m, space, pid, &origin);
	assert_int_equal(live_maps_look(&m), 0);
	assert_non_null(module = module_here(space, pid));
	*go = true;
	await(is_sleep(pid));
	assert_int_equal(live_maps_look(&m), -ESRCH);
	assert_ptr_equal(module_here(space, pid), module);
	child_kill(pid);
	assert_int_equal(live_maps_look(&m), -ESRCH);
	ex_space_free(space);
}

/* posix_spawn(3) returns before execve(2) is over. */
TEST(a_program_is_known_however_soon)
{
	char sleep[] = "/bin/sleep", *argv[] = {sleep, (char[]){"100"}, NULL};
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct live_maps_origin origin;
	struct live_maps m;
	pid_t pid;

	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(posix_spawn(&pid, sleep, NULL, NULL, argv,
		    NULL), 0);
		live_maps_origin(pid, &origin);
		assert_true(origin.known);
		live_maps_begin(&m, space, pid, &origin);
		await(is_sleep(pid));
		assert_int_equal(live_maps_look(&m), 0);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	ex_space_free(space);
}

RUN_TESTS(.after_each = children_end)
