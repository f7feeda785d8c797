/*
 * pidfd_spawn: a library with the functions of that name that glibc has from
 * 2.39 on, for tests on older ones: they make processes as that does, by
 * clone(2), and not by the posix_spawn(3) that others can see.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <unistd.h>

struct program {
	const char *path;
	char *const *argv, *const *env;
};

static int
execute(void *arg)
{
	const struct program *program = arg;

	(void)execve(program->path, program->argv, program->env);
	_exit(127);
}

int
pidfd_spawn(int *pidfd, const char *path,
    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
    char *const argv[], char *const env[])
{
	static _Alignas(16) char stack[65536];
	struct program program = {path, argv, env};

	(void)actions;
	(void)attr;
	return clone(execute, stack + sizeof(stack), CLONE_VM | CLONE_VFORK |
	    CLONE_PIDFD | SIGCHLD, &program, pidfd) < 0 ? errno : 0;
}

int
pidfd_spawnp(int *pidfd, const char *file,
    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
    char *const argv[], char *const env[])
{
	return pidfd_spawn(pidfd, file, actions, attr, argv, env);
}
