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
	STACK = 32 * 1024,	/* each */
	PROGRAM = WP_DETACHED_FD + 1,	/* a descriptor; closed by execve(2) */
};

/* What the processes on the way share. */
struct way {
	const struct wp_detached *what;
	char *stack;			/* two of them */
	pid_t pid;			/* the grandchild */
	int err;			/* an errno value; 0: it is started */
};

/* Not traced even if the program is: no caller asked for it. */
static pid_t
begin(int (*fn)(void *), char *stack, struct way *way)
{
	return wp_libc_clone(fn, stack + STACK,
	    CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, way);
}

/* No handler of the program's may run in its memory here, and what it ignores
   is not ignored by others.  The struct is the kernel's: no flags, no mask. */
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

/* 0 and 1 are /dev/null, 2 too if it was closed; 3 is fd; 4 is the program,
   until it is executed, if there is one to choose; no others. */
static bool
descriptors(int fd, int program)
{
	bool says = fcntl(2, F_SETFD, 0) == 0;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* out of the way of those that are to be */
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
