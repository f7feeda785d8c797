/*
 * spawn: replaces the functions of the C library that execute a program in a
 * child, and records that they run (created_processes.c).  Until the program
 * begins, only the C library runs in that child, and it writes nothing of the
 * parent's data.
 *
 * In the shared library these have the C library's names, too (Makefile), and
 * come before those if it is preloaded; such a name has no version, so that it
 * is found in the place of one that has.
 */
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>

#include "handler/watches.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED __typeof__(posix_spawn) next_posix_spawn;
EXPORTED __typeof__(posix_spawnp) next_posix_spawnp;
EXPORTED __typeof__(system) next_system;
EXPORTED __typeof__(popen) next_popen;

/* glibc has these from 2.39 on; they return a descriptor. */
EXPORTED __typeof__(posix_spawn) next_pidfd_spawn, next_pidfd_spawnp;

/* The C library's function of this name; NULL: this C library does not have
   it. */
#define NEXT(name) \
	((__typeof__(&next_##name))(uintptr_t)dlsym(RTLD_NEXT, #name))

static struct wp_creation
begin(void)
{
	return wp_creation_begin(atomic_load(&wp_state.channel),
	    WP_MAKES_PROGRAM);
}

/* If the C library has no such function, fail as it does on a kernel that is
   too old for it. */
static int
spawn(__typeof__(&posix_spawn) next, int *made, const char *path,
    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
    char *const argv[], char *const env[])
{
	struct wp_creation making;
	int err;

	if (next == NULL)
		return ENOSYS;
	making = begin();
	err = next(made, path, actions, attr, argv, env);
	wp_creation_end(making);
	return err;
}

#define SPAWN(name)							\
	int								\
	next_##name(int *restrict made, const char *restrict path,	\
	    const posix_spawn_file_actions_t *restrict actions,		\
	    const posix_spawnattr_t *restrict attr,			\
	    char *const argv[restrict], char *const env[restrict])	\
	{								\
		return spawn(NEXT(name), made, path, actions, attr,	\
		    argv, env);						\
	}
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
SPAWN(pidfd_spawn)
SPAWN(pidfd_spawnp)

int
next_system(const char *command)
{
	const struct wp_creation making = begin();
	int status = NEXT(system)(command);

	wp_creation_end(making);
	return status;
}

FILE *
next_popen(const char *command, const char *mode)
{
	const struct wp_creation making = begin();
	FILE *file = NEXT(popen)(command, mode);

	wp_creation_end(making);
	return file;
}
