/*
 * spawn: the C library's functions that execute a program in a child, noted as
 * such while they do (making.c).  Between its making and the program nothing
 * but the C library runs in that child, and nothing of the program's is
 * written.
 *
 * In the shared library these have the C library's names, too (Makefile), and
 * come before those if it is preloaded; such a name has no version, so that it
 * is found in the place of one that has.
 */
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>

#include "handler/watches.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED __typeof__(posix_spawn) next_posix_spawn;
EXPORTED __typeof__(posix_spawnp) next_posix_spawnp;
EXPORTED __typeof__(system) next_system;
EXPORTED __typeof__(popen) next_popen;

/* The function that comes behind ours.  It was there when the program was
   linked. */
#define NEXT(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

static struct wp_making_now
begin(void)
{
	return wp_making_begin(atomic_load(&wp_state.channel),
	    WP_MAKES_PROGRAM);
}

int
next_posix_spawn(pid_t *restrict pid, const char *restrict path,
    const posix_spawn_file_actions_t *restrict actions,
    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
    char *const env[restrict])
{
	const struct wp_making_now making = begin();
	int err = NEXT(posix_spawn)(pid, path, actions, attr, argv, env);

	wp_making_end(making);
	return err;
}

int
next_posix_spawnp(pid_t *restrict pid, const char *restrict file,
    const posix_spawn_file_actions_t *restrict actions,
    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
    char *const env[restrict])
{
	const struct wp_making_now making = begin();
	int err = NEXT(posix_spawnp)(pid, file, actions, attr, argv, env);

	wp_making_end(making);
	return err;
}

int
next_system(const char *command)
{
	const struct wp_making_now making = begin();
	int status = NEXT(system)(command);

	wp_making_end(making);
	return status;
}

FILE *
next_popen(const char *command, const char *mode)
{
	const struct wp_making_now making = begin();
	FILE *file = NEXT(popen)(command, mode);

	wp_making_end(making);
	return file;
}
