/* signal_check: checks a program from outside. */
#include "watch/signal_check.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc.h"

enum {
	SAMPLES = 10,		/* of a thread, taken 1 ms apart */
	LIBC_SIGNAL = 33,	/* libc's own, which programs cannot block */
};

static const char *
name_of(int sig)
{
	return sig == SIGTRAP ? "SIGTRAP" : "the signal of the hits";
}

/* Whether a thread blocks the signal for longer than a moment, and not because
   it holds the library's lock.  libc blocks all signals while it creates a
   thread, which some programs do most of the time. */
static bool
is_blocking(const struct wp_channel *channel, pid_t tid, int sig,
    struct wp_proc_status *status)
{
	bool blocks = true;

	for (unsigned i = 0; blocks && i < SAMPLES; i++) {
		uint32_t locks = atomic_load(&channel->locks);

		if (i > 0)
			(void)usleep(1000);
		blocks = wp_proc_status(tid, status) == 0 &&
		    status->tgid == atomic_load(&channel->program) &&
		    wp_proc_signal_in(status->blocked, sig) &&
		    !wp_proc_signal_in(status->blocked, LIBC_SIGNAL) &&
		    atomic_load(&channel->locks) == locks &&
		    atomic_load(&channel->unlocks) == locks;
	}
	return blocks;
}

/* Find a thread that blocks the signal, and describe it. */
static bool
find_blocking(const struct wp_channel *channel, int sig, char *why,
    size_t size)
{
	const pid_t program = atomic_load(&channel->program);
	struct wp_proc_status status;
	pid_t *tids = NULL;
	size_t cap = 0;
	int n = wp_proc_threads(program, &tids, &cap);
	bool found = false;

	for (int i = 0; i < n && !found; i++) {
		found = is_blocking(channel, tids[i], sig, &status);
		if (found)
			(void)snprintf(why, size, "thread %d (%s) blocks %s: "
			    "accesses made while it does are reported "
			    "late, several as one, or never", tids[i],
			    status.comm, name_of(sig));
	}
	free(tids);
	return found;
}

bool
signal_check_blocked(const struct wp_channel *channel, int sig, bool threads,
    char *why, size_t size)
{
	const pid_t program = atomic_load(&channel->program);
	struct wp_proc_status status;

	if (wp_proc_status(program, &status) < 0)
		return false;
	if (wp_proc_signal_in(status.caught, sig))
		return threads && find_blocking(channel, sig, why, size);
	(void)snprintf(why, size, wp_proc_signal_in(status.ignored, sig) ?
	    "process %d ignores %s: accesses are counted, but not reported" :
	    "process %d no longer catches %s: an access will end it", program,
	    name_of(sig));
	return true;
}

static int
is_file(void *arg, const struct wp_proc_map *map)
{
	const struct stat *st = arg;

	return map->ino == st->st_ino && map->shared;
}

/* A program that is exiting has unmapped its memory, perhaps long before it
   ends. */
bool
signal_check_has(pid_t program, int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ||
	    wp_proc_maps(program, is_file, &st) != 0 ||
	    wp_proc_exiting(program);
}
