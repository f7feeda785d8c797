/* sandbox: gives up every privilege that explaining does not need. */
#include "explainer/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __has_feature		/* a feature test of clang's */
#define __has_feature(feature) 0
#endif

enum { NOBODY = 65534 };

#define STACK_MAX (UINT64_C(1) << 26)	/* bytes, if there is no limit */
#define ROOM_MAX (UINT64_C(1) << 38)	/* address space: the kernel's page
					   tables for it are not limited, and
					   may take 1/512 of it */

/* System calls permitted with any arguments. */
static const int allowed[] = {
	/* memory */
	SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(mremap), SCMP_SYS(munmap),
	/* given descriptors: libelf maps or reads them */
	SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(lseek), SCMP_SYS(pread64),
	SCMP_SYS(read),
	/* questions and answers */
	SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
	/* for relative paths of source files */
	SCMP_SYS(getcwd),
	/* the size of the machine's memory limits what a compressed section may
	   claim, and qsort(3) asks for it; if the call is refused, glibc uses
	   uninitialized memory as the answer */
	SCMP_SYS(sysinfo),
	/* locks, time, and random numbers for malloc(3) and tables */
	SCMP_SYS(clock_gettime), SCMP_SYS(futex), SCMP_SYS(getrandom),
	/* the end */
	SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
};

/* Memory counted by RLIMIT_DATA, and mappings of given files.  That limit does
   not count shared anonymous memory, memory that grows down, or memory that was
   written and made read-only, so none of these is permitted.  Nothing new can
   be executed. */
static int
allow_memory(scmp_filter_ctx filter)
{
	static const scmp_datum_t kinds = MAP_SHARED | MAP_PRIVATE |
	    MAP_GROWSDOWN, both = PROT_READ | PROT_WRITE;
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
	    SCMP_A2(SCMP_CMP_MASKED_EQ, ~both, 0),
	    SCMP_A3(SCMP_CMP_MASKED_EQ, kinds, MAP_PRIVATE));

	if (err == 0)	/* the journal */
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap),
		    2, SCMP_A2(SCMP_CMP_EQ, PROT_READ),
		    SCMP_A3(SCMP_CMP_MASKED_EQ, kinds | MAP_ANONYMOUS,
		    MAP_SHARED));
	if (err == 0)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
		    SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_EQ, both));
	return err;
}

/* System calls of which only some uses are permitted. */
static int
allow_some(scmp_filter_ctx filter)
{
	static const int asks[] = {F_GETFD, F_GETFL};
	/* used by fstat(3); it can only find out whether a path exists */
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
	    SCMP_SYS(newfstatat), 1, SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
		if (err == 0)
			err = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
			    SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ,
			    (scmp_datum_t)asks[i]));
	return err == 0 ? allow_memory(filter) : err;
}

/* Returns 0 or -errno; -ENOSYS if the kernel has no filters. */
static int
filter_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err;

	if (filter == NULL)
		return -ENOMEM;
	err = allow_some(filter);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (err == 0)
			err = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
			    allowed[i], 0);
	if (err == 0 && seccomp_load(filter) != 0)
		err = -ENOSYS;
	seccomp_release(filter);
	return err;
}

/* Give up root's user, unless the user namespace does not map nobody. */
static int
change_user(void)
{
	if (geteuid() != 0)
		return 0;
	(void)setgroups(0, NULL);
	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 && errno != EINVAL &&
	    errno != EPERM)
		return -errno;
	if (setresuid(NOBODY, NOBODY, NOBODY) != 0 && errno != EINVAL &&
	    errno != EPERM)
		return -errno;
	return 0;
}

static int
drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) != 0 ? -errno : 0;
}

/* Lower a limit; it is never raised. */
static void
limit(int what, size_t bytes)
{
	struct rlimit limits;

	if (getrlimit((__rlimit_resource_t)what, &limits) == 0 &&
	    limits.rlim_max < bytes)
		bytes = limits.rlim_max;
	limits.rlim_cur = limits.rlim_max = bytes;
	(void)setrlimit((__rlimit_resource_t)what, &limits);
}

static void
limit_memory(size_t bytes)
{
	struct rlimit stack;

	limit(RLIMIT_DATA, bytes);
	limit(RLIMIT_AS, ROOM_MAX);
	if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur > STACK_MAX)
		limit(RLIMIT_STACK, STACK_MAX);
}

/* The standard descriptors become /dev/null, except stderr for sanitizers. */
static int
close_others(int keep)
{
	const int last = __has_feature(address_sanitizer) ? STDOUT_FILENO :
	    STDERR_FILENO;
	const int null = openat(AT_FDCWD, "/dev/null", O_RDWR);

	if (null < 0)
		return -errno;
	for (int fd = STDIN_FILENO; fd <= last; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	return syscall(SYS_close_range, keep, ~0u, 0) != 0 ? -errno : 0;
}

int
sandbox_enter(int keep, size_t memory)
{
	int err;

	/* the terminal's signals are for watchctl, which decides when to end */
	(void)setsid();
	if ((err = close_others(keep)) < 0 || (err = change_user()) < 0 ||
	    (err = drop_capabilities()) < 0)
		return err;
	limit(RLIMIT_CORE, 0);
	if (!__has_feature(address_sanitizer))
		limit_memory(memory);
	/* after the change of user, which resets these */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	/* the runtime of a sanitizer makes any system call */
	return __has_feature(address_sanitizer) ? 0 : filter_calls();
}
