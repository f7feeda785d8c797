/* syscall_wrapper: functions of the C library that only make a system call. */
#include "syscall/syscall_wrapper.h"

#include <stdlib.h>
#include <string.h>

/* In order of strcmp(3).  Functions of one name make one call, whatever file
   they are in: syscall(2) itself is none of them. */
static const char *const calls[] = {
	"accept", "accept4", "access", "adjtimex", "bind", "capget", "capset",
	"chdir", "chmod", "chown", "chroot", "clock_adjtime", "clock_getres",
	"clock_gettime", "clock_nanosleep", "clock_settime", "connect",
	"copy_file_range", "creat", "epoll_create", "epoll_ctl", "epoll_pwait",
	"epoll_pwait2", "epoll_wait", "execve", "execveat", "fanotify_mark",
	"fchmodat", "fchownat", "fgetxattr", "flistxattr", "fremovexattr",
	"fsetxattr", "fstat", "fstat64", "fstatat", "fstatat64", "fstatfs",
	"fstatfs64", "futimesat", "getcwd", "getdents", "getdents64",
	"getgroups", "getitimer", "getpeername", "getrandom", "getresgid",
	"getresuid", "getrlimit", "getrlimit64", "getrusage", "getsockname",
	"getsockopt", "gettimeofday", "getxattr", "inotify_add_watch",
	"io_getevents", "io_setup", "io_submit", "io_uring_register",
	"io_uring_setup", "ioctl", "lchown", "lgetxattr", "link", "linkat",
	"listxattr", "llistxattr", "lremovexattr", "lsetxattr", "lstat",
	"lstat64", "memfd_create", "mincore", "mkdir", "mkdirat", "mknod",
	"mknodat", "mount", "mq_open", "mq_timedreceive", "mq_timedsend",
	"msgctl", "msgrcv", "msgsnd", "name_to_handle_at", "nanosleep",
	"newfstatat", "open", "open64", "open_by_handle_at", "openat",
	"openat2", "openat64", "pipe", "pipe2", "poll", "ppoll", "prctl",
	"pread", "pread64", "preadv", "preadv2", "preadv64", "preadv64v2",
	"prlimit", "prlimit64", "process_vm_readv", "process_vm_writev",
	"pselect", "ptrace", "pwrite", "pwrite64", "pwritev", "pwritev2",
	"pwritev64", "pwritev64v2", "read", "readahead", "readlink",
	"readlinkat", "readv", "recv", "recvfrom", "recvmmsg", "recvmsg",
	"removexattr", "rename", "renameat", "renameat2", "rmdir",
	"rt_sigpending", "rt_sigprocmask", "rt_sigtimedwait",
	"sched_getaffinity", "sched_getattr", "sched_getparam",
	"sched_setaffinity", "select", "semctl", "semop", "semtimedop", "send",
	"sendfile", "sendfile64", "sendmmsg", "sendmsg", "sendto", "setgroups",
	"setitimer", "setrlimit", "setrlimit64", "setsockopt", "settimeofday",
	"setxattr", "shmctl", "sigaction", "sigaltstack", "signalfd",
	"sigpending", "sigprocmask", "sigtimedwait", "sigwaitinfo",
	"socketpair", "splice", "stat", "stat64", "statfs", "statfs64",
	"statx", "symlink", "symlinkat", "sysinfo", "syslog", "time",
	"timer_create", "timer_gettime", "timer_settime", "timerfd_gettime",
	"timerfd_settime", "times", "truncate", "truncate64", "umount",
	"umount2", "uname", "unlink", "unlinkat", "utime", "utimensat",
	"utimes", "vmsplice", "wait3", "wait4", "waitid", "waitpid", "write",
	"writev",
};

static int
compare(const void *name, const void *entry)
{
	return strcmp(name, *(const char *const *)entry);
}

/* What follows a prefix; the name itself when it has none. */
static const char *
without(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 ? name + len : name;
}

const char *
ex_syscall_of_wrapper(const char *function)
{
	const char *name = function + strspn(function, "_");
	const char *const *found;

	if (name != function) {
		name = without(name, "GI_");
		name += strspn(name, "_");
		name = without(name, "libc_");
	}
	found = bsearch(name, calls, sizeof(calls) / sizeof(calls[0]),
	    sizeof(calls[0]), compare);
	return found == NULL ? NULL : *found;
}
