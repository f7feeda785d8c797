/*
 * detached: a process that the program which starts it cannot notice.
 *
 *	program --clone--> intermediate --clone--> grandchild --execve--> helper
 *
 * A child whose exit signal is 0 is passed over by wait(2), unless it is asked
 * for with __WCLONE, and by SIGCHLD.  execve(2) would make it an ordinary one.
 * So it is the intermediate's child that executes the helper.  When the
 * intermediate has ended, init(1) adopts that; until then the program must not
 * be a subreaper, or it would get it.
 *
 * Both begin in the program's memory, on a stack of their own, while the maker
 * waits (as with vfork(2)): nothing is copied, and results go back in memory.
 */
#include "program/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program/copies.h"
#include "os/libc.h"

enum {
	STACK = 32 * 1024,	/* bytes of each stack */
	PROGRAM = WP_DETACHED_FD + 1,	/* the descriptor of the program,
					   closed by execve(2) */
};

/* Shared by the processes created on the way. */
struct way {
	const struct wp_detached *what;
	char *stack;			/* two of them */
	pid_t pid;			/* of the grandchild */
	int err;		/* errno value, or 0 once it is started */
};

/* CLONE_UNTRACED, because whoever traces the program did not ask for this
   child. */
static pid_t
begin(int (*fn)(void *), char *stack, struct way *way)
{
	return wp_libc_clone(fn, stack + STACK,
	    CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, way);
}

/* The child runs in the program's memory, where none of its handlers may be
   called; and what the program ignores, its helper should not.  The struct is
   the kernel's, with no flags and no mask. */
static void
default_signals(void)
{
	const struct { uint64_t handler, flags, restorer, mask; } none = {0};
	const uint64_t mask = 0;

	for (int sig = 1; sig < _NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, &none, NULL, sizeof(mask));
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL,
	    sizeof(mask));
}

/* Set up descriptors: 0 and 1 are /dev/null, and so is 2 if it was closed; 3 is
   fd; 4 is the program until execve(2), if a descriptor was given.  All others
   are closed. */
static bool
descriptors(int fd, int program)
{
	bool says = fcntl(2, F_SETFD, 0) == 0;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* move them out of the way first */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, PROGRAM + 1);
	null = fcntl(null, F_DUPFD_CLOEXEC, PROGRAM + 1);
	if (program != 0)
		program = fcntl(program, F_DUPFD_CLOEXEC, PROGRAM + 1);
	return fd >= 0 && null >= 0 && program >= 0 && dup2(null, 0) == 0 &&
	    dup2(null, 1) == 1 && (says || dup2(null, 2) == 2) &&
	    dup2(fd, WP_DETACHED_FD) == WP_DETACHED_FD &&
	    dup3(program != 0 ? program : null, PROGRAM, O_CLOEXEC) ==
	    PROGRAM &&
	    syscall(SYS_close_range, PROGRAM + 1, UINT32_MAX, 0) == 0;
}

static void
execute(const struct wp_detached *what)
{
	if (what->program != 0)
		(void)syscall(SYS_execveat, PROGRAM, "", what->argv, what->env,
		    AT_EMPTY_PATH);
	else
		(void)execve(what->path, what->argv, what->env);
}

static int
grandchild(void *arg)
{
	struct way *way = arg;
	const struct wp_detached *what = way->what;

	(void)setsid();
	if (descriptors(what->fd, what->program)) {
		default_signals();
		execute(what);
	}
	way->err = errno;
	return 127;
}

static int
intermediate(void *arg)
{
	struct way *way = arg;

	way->pid = begin(grandchild, way->stack, way);
	if (way->pid < 0)
		way->err = errno;
	else if (way->err != 0)
		(void)waitpid(way->pid, NULL, __WCLONE);
	return 0;
}

static void
go(struct way *way)
{
	pid_t pid = begin(intermediate, way->stack + STACK, way);

	if (pid < 0)
		way->err = errno;
	else
		(void)waitpid(pid, NULL, __WCLONE);
}

int
wp_detached_start(const struct wp_detached *what, pid_t *pid)
{
	struct way way = {.what = what};
	int subreaper = 0;

	way.stack = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (way.stack == MAP_FAILED)
		return -errno;
	(void)prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
	if (subreaper != 0)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0);
	wp_copies_making(true);
	go(&way);
	wp_copies_making(false);
	if (subreaper != 0)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)munmap(way.stack, 2 * STACK);
	*pid = way.pid;
	return -way.err;
}
