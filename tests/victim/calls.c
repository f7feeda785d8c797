/*
 * calls: a victim that has the kernel touch its memory.
 *
 *	calls CALL[,CALL...] [N]
 *
 * Says "pid PID area ADDRESS" (where the kernel's accesses will begin), waits
 * for a line on stdin, makes each system call N times, by the C library where
 * that makes the same one, says "done N", and ends, with status 7, at the next
 * line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "line.h"

static _Alignas(4096) volatile char memory[65536];
#define area ((void *)(uintptr_t)&memory[4096])

static void *place;		/* what is said */
static int file, directory;	/* this program, and its directory */
static int ends[2], tty[2];	/* a socket pair; a pipe that holds bytes */

#define MUST(what)	((what) < 0 ? (perror(#what), abort()) : (void)0)

static void
do_read(void)
{
	MUST(lseek(file, 0, SEEK_SET));
	MUST(read(file, area, 64));
}

/* Fewer bytes than asked for. */
static void
do_short_read(void)
{
	MUST(write(tty[1], "abc", 3));
	MUST(read(tty[0], area, 64));
}

static void
do_pread64(void)
{
	MUST(pread(file, area, 64, 0));
}

static void
do_byte(void)
{
	MUST(read(file, area, 1));
}

/* Of two parts the second is in the area. */
static void
do_readv(void)
{
	char before[8];
	struct iovec iov[2] = {{before, sizeof(before)}, {area, 16}};

	MUST(readv(file, iov, 2));
}

/* Both are, the later bytes first. */
static void
do_readv_apart(void)
{
	struct iovec iov[2] = {{(char *)area + 4, 4}, {area, 4}};

	MUST(readv(file, iov, 2));
}

static void
do_preadv(void)
{
	struct iovec iov = {area, 16};

	MUST(preadv(file, &iov, 1, 0));
}

static void
do_recvfrom(void)
{
	MUST(send(ends[1], "12345678", 8, 0));
	MUST(recv(ends[0], area, 32, 0));
}

static void
do_recvmsg(void)
{
	struct iovec iov = {area, 16};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	MUST(send(ends[1], "12345678", 8, 0));
	MUST(recvmsg(ends[0], &message, 0));
}

static void
do_recvmmsg(void)
{
	char other[8];
	struct iovec iov[2] = {{other, sizeof(other)}, {area, 24}};
	struct mmsghdr message[2] = {
		{.msg_hdr = {.msg_iov = &iov[0], .msg_iovlen = 1}},
		{.msg_hdr = {.msg_iov = &iov[1], .msg_iovlen = 1}},
	};

	MUST(send(ends[1], "12345678", 8, 0));
	MUST(send(ends[1], "12345678", 8, 0));
	MUST(recvmmsg(ends[0], message, 2, 0, NULL));
}

static void
do_getrandom(void)
{
	MUST(getrandom(area, 8, 0));
}

static void
do_fstat(void)
{
	MUST(syscall(SYS_fstat, file, area));
}

static void
do_stat(void)
{
	MUST(syscall(SYS_stat, "/", area));
}

static void
do_newfstatat(void)
{
	MUST(fstat(file, area));
}

static void
do_statx(void)
{
	MUST(statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, area));
}

static void
do_getdents64(void)
{
	MUST(lseek(directory, 0, SEEK_SET));
	MUST(syscall(SYS_getdents64, directory, area, 4096));
}

static void
do_clock_gettime(void)
{
	MUST(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, area));
}

static void
do_gettimeofday(void)
{
	MUST(syscall(SYS_gettimeofday, area, NULL));
}

static void
do_wait4(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(3);
	MUST(waitpid(child, area, 0));
}

static void
do_waitid(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(3);
	MUST(waitid(P_PID, (id_t)child, area, WEXITED));
}

static void
do_uname(void)
{
	MUST(uname(area));
}

static void
do_sysinfo(void)
{
	MUST(sysinfo(area));
}

static void
do_getrusage(void)
{
	MUST(getrusage(RUSAGE_SELF, area));
}

static void
do_poll(void)
{
	struct pollfd *p = area;

	p->fd = ends[0];
	p->events = POLLOUT;
	MUST(poll(p, 1, -1));
}

static void
do_select(void)
{
	fd_set *set = area;

	FD_ZERO(set);
	FD_SET(ends[0], set);
	MUST(syscall(SYS_select, ends[0] + 1, NULL, set, NULL, NULL));
}

static void
do_epoll_wait(void)
{
	struct epoll_event event = {.events = EPOLLOUT};
	int epoll = epoll_create1(0);

	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
	MUST(epoll_wait(epoll, area, 4, -1));
	(void)close(epoll);
}

static void
close_two(const int *fd)
{
	(void)close(fd[0]);
	(void)close(fd[1]);
}

static void
do_pipe(void)
{
	MUST(syscall(SYS_pipe, area));
	close_two(area);
}

static void
do_pipe2(void)
{
	MUST(pipe2(area, O_CLOEXEC));
	close_two(area);
}

static void
do_socketpair(void)
{
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, area));
	close_two(area);
}

static void
do_getsockname(void)
{
	socklen_t size = 128;

	MUST(getsockname(ends[0], area, &size));
}

static void
do_accept4(void)
{
	struct sockaddr address = {.sa_family = AF_UNIX};
	socklen_t size = sizeof(address);
	int there = socket(AF_UNIX, SOCK_STREAM, 0);
	int here = socket(AF_UNIX, SOCK_STREAM, 0);
	char name[128];
	socklen_t length = sizeof(name);

	MUST(bind(there, &address, sizeof(sa_family_t)));
	MUST(listen(there, 1));
	MUST(getsockname(there, (struct sockaddr *)name, &length));
	MUST(connect(here, (struct sockaddr *)name, length));
	MUST(accept4(there, area, &size, 0));
	(void)close(here);
	(void)close(there);
}

static void
do_getsockopt(void)
{
	socklen_t size = 4;

	MUST(getsockopt(ends[0], SOL_SOCKET, SO_TYPE, area, &size));
}

static void
do_ioctl(void)
{
	MUST(ioctl(tty[0], FIONREAD, area));
}

/* It has a size in its number. */
static void
do_ioctl_sized(void)
{
	int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	MUST(terminal);
	MUST(ioctl(terminal, TIOCGPTN, area));
	(void)close(terminal);
}

static void
do_futex(void)
{
	static uint32_t word;

	MUST(syscall(SYS_futex, &word, FUTEX_WAKE_OP, 1, 1, area,
	    FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0)));
}

static void *
end_of_thread(void *unused)
{
	(void)syscall(SYS_set_tid_address, area);
	(void)syscall(SYS_exit, 0);
	return unused;
}

/* The thread's end shows in the area, and nowhere else. */
static void
do_exit(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	*(volatile int *)area = 1;
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, end_of_thread, NULL) != 0)
		abort();
	while (*(volatile int *)area != 0)
		(void)usleep(1000);
}

static void
do_rt_sigaction(void)
{
	MUST(syscall(SYS_rt_sigaction, SIGUSR2, NULL, area, 8));
}

static void
do_rt_sigprocmask(void)
{
	MUST(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, area, 8));
}

static void
do_sigaltstack(void)
{
	MUST(sigaltstack(NULL, area));
}

static void
handler(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	place = info;
}

/* On a stack of its own its frame is at the same place each time. */
static void
before_signal(void)
{
	const stack_t stack = {.ss_sp = area, .ss_size = 32768};
	struct sigaction action = {.sa_sigaction = handler,
	    .sa_flags = SA_SIGINFO | SA_ONSTACK};

	MUST(sigaltstack(&stack, NULL));
	MUST(sigaction(SIGUSR1, &action, NULL));
	(void)raise(SIGUSR1);
}

static void
do_signal(void)
{
	(void)raise(SIGUSR1);
}

static void
do_io_getevents(void)
{
	static char to[512];
	struct iocb block = {.aio_fildes = (uint32_t)file,
	    .aio_lio_opcode = IOCB_CMD_PREAD, .aio_buf = (uintptr_t)to,
	    .aio_nbytes = sizeof(to)}, *blocks = &block;
	aio_context_t context = 0;

	MUST(syscall(SYS_io_setup, 1, &context));
	MUST(syscall(SYS_io_submit, context, 1, &blocks));
	MUST(syscall(SYS_io_getevents, context, 1, 2, area, NULL));
	(void)syscall(SYS_io_destroy, context);
}

static void
do_nanosleep(void)
{
	const struct itimerval often = {{0, 10000}, {0, 10000}}, never = {0};
	struct sigaction action = {.sa_sigaction = handler};

	MUST(sigaction(SIGALRM, &action, NULL));
	MUST(setitimer(ITIMER_REAL, &often, NULL));
	(void)syscall(SYS_nanosleep, &(struct timespec){100, 0}, area);
	MUST(setitimer(ITIMER_REAL, &never, NULL));
}

static void
do_prctl(void)
{
	MUST(prctl(PR_GET_NAME, area));
}

static void
do_getcwd(void)
{
	MUST(syscall(SYS_getcwd, area, 4096));
}

static void
do_readlink(void)
{
	MUST(syscall(SYS_readlink, "/proc/self/exe", area, 100));
}

static void
do_process_vm_readv(void)
{
	static char from[24];
	const struct iovec there = {from, 24}, here = {area, 24};

	MUST(process_vm_readv(getpid(), &here, 1, &there, 1, 0));
}

static int
end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

static void
do_clone(void)
{
	static _Alignas(16) char stack[16384];
	pid_t child = clone(end_at_once, stack + sizeof(stack),
	    CLONE_PARENT_SETTID | SIGCHLD, NULL, area, NULL, NULL);

	MUST(child);
	MUST(waitpid(child, NULL, 0));
}

/* A message's type comes before its text. */
static void
do_msgrcv(void)
{
	struct { long type; char text[16]; } message = {1, "a message"};
	int queue = msgget(IPC_PRIVATE, 0600);

	MUST(queue);
	MUST(msgsnd(queue, &message, sizeof(message.text), 0));
	MUST(msgrcv(queue, (char *)area - 8, sizeof(message.text), 0, 0));
	MUST(msgctl(queue, IPC_RMID, NULL));
}

static void
do_msgctl(void)
{
	int queue = msgget(IPC_PRIVATE, 0600);

	MUST(queue);
	MUST(msgctl(queue, IPC_STAT, area));
	MUST(msgctl(queue, IPC_RMID, NULL));
}

/* The child has its id written into its own memory. */
static void
do_thread_start(void)
{
	long child = syscall(SYS_clone, CLONE_CHILD_SETTID | SIGCHLD, NULL,
	    NULL, area, NULL);

	if (child == 0)
		_exit(0);
	MUST(child);
	MUST(waitpid((pid_t)child, NULL, 0));
}

static void
do_write(void)
{
	MUST(write(tty[1], area, 16));
	MUST(read(tty[0], (char *)area + 4096, 16));
}

static void
do_sendto(void)
{
	MUST(send(ends[0], area, 16, 0));
	MUST(recv(ends[1], (char *)area + 4096, 16, 0));
}

static void
do_writev(void)
{
	const struct iovec iov = {area, 16};

	MUST(writev(tty[1], &iov, 1));
	MUST(read(tty[0], (char *)area + 4096, 16));
}

static void
do_execve(void)
{
	char *const argv[] = {"nobody", NULL};

	(void)execve(area, argv, argv + 1);
}

static void *
read_beside(void *unused)
{
	for (int i = 0; i < 25; i++)
		MUST(pread(file, area, 64, 0));
	return unused;
}

/* Four threads, 25 times each. */
static void
do_threads(void)
{
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, read_beside, NULL) != 0)
			abort();
	for (int i = 0; i < 4; i++)
		(void)pthread_join(thread[i], NULL);
}

/* Somebody else's store. */
static __attribute__((noinline)) void
store_again(void)
{
	*(volatile uint64_t *)area = *(uint64_t *)((char *)area + 64);
}

static __attribute__((noinline)) void
fill(void)
{
	MUST(pread(file, area, 64, 0));
}

/* The same value is stored twice, first by the kernel, then by a function. */
static void
do_blame(void)
{
	memcpy((char *)area + 64, "\177ELF\2\1\1", 8);
	fill();
	store_again();
}

/* The function that makes any call. */
static void
do_by_number(void)
{
	MUST(syscall(SYS_getrandom, area, 5, 0));
	MUST(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, area));
}

static const struct act {
	const char *name;
	void (*call)(void);
	void (*before)(void);	/* may set place; NULL: nothing to do */
} acts[] = {
#define ACT(name)	{#name, do_##name, NULL}
	ACT(read), ACT(short_read), ACT(byte), ACT(pread64), ACT(readv),
	ACT(readv_apart), ACT(preadv), ACT(recvfrom), ACT(recvmsg),
	ACT(recvmmsg), ACT(getrandom), ACT(fstat), ACT(stat), ACT(newfstatat),
	ACT(statx), ACT(getdents64), ACT(clock_gettime), ACT(gettimeofday),
	ACT(wait4), ACT(waitid), ACT(uname), ACT(sysinfo), ACT(getrusage),
	ACT(poll), ACT(select), ACT(epoll_wait), ACT(pipe), ACT(pipe2),
	ACT(socketpair), ACT(getsockname), ACT(accept4), ACT(getsockopt),
	ACT(ioctl), ACT(ioctl_sized), ACT(msgrcv), ACT(msgctl),
	ACT(futex), ACT(exit), ACT(rt_sigaction),
	ACT(rt_sigprocmask), ACT(sigaltstack), ACT(io_getevents),
	ACT(nanosleep), ACT(prctl), ACT(getcwd), ACT(readlink),
	ACT(process_vm_readv), ACT(clone), ACT(thread_start), ACT(write),
	ACT(sendto), ACT(writev), ACT(execve), ACT(threads), ACT(blame),
	ACT(by_number),
	{"signal", do_signal, before_signal},
};

static const struct act *
find(const char *name)
{
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(name, acts[i].name) == 0)
			return &acts[i];
	fprintf(stderr, "no call %s\n", name);
	exit(2);
}

/* In the order of a list; call: make it, else only prepare. */
static void
each(const char *list, int n, int call)
{
	char *names = strdup(list);

	for (char *name = strtok(names, ","); name != NULL;
	    name = strtok(NULL, ",")) {
		const struct act *act = find(name);

		if (!call && act->before != NULL)
			act->before();
		for (int i = 0; call && i < n; i++)
			act->call();
	}
	free(names);
}

int
main(int argc, char **argv)
{
	const char *list = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 1;

	place = area;
	MUST(file = open("/proc/self/exe", O_RDONLY));
	MUST(directory = open("/", O_RDONLY | O_DIRECTORY));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	MUST(pipe(tty));
	each(list, n, 0);
	printf("pid %d area %p\n", (int)getpid(), place);
	fflush(stdout);
	if (!await_line())
		return 0;
	each(list, n, 1);
	printf("done %d\n", n);
	fflush(stdout);
	return await_line() ? 7 : 0;
}
