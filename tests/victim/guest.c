/*
 * guest: a victim that a library is put into, and that reports what it notices
 * of it.
 *
 *	guest ACT ...
 *
 * A constructor stores once.  Each store is followed by a line on stderr.  Ends
 * with status 7.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noclone))

extern char **environ;

volatile long state;
volatile char text[16];

OWN void
note(const char *what)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "mark %s\n", what);

	if (write(2, line, (size_t)n) != n)
		abort();
}

OWN static void
store(void)
{
	state++;
	note("stored");
}

static __attribute__((constructor)) void
prepare(void)
{
	state = 42;
	note("prepared");
}

static void
tell_environment(void)
{
	static const char *const names[] = {
		"LD_PRELOAD", "WATCHPOINT_WATCH", "WATCHPOINT_CHANNEL",
	};

	for (int i = 0; i < 3; i++)
		printf("%s=%s\n", names[i], getenv(names[i]) == NULL ? "" :
		    getenv(names[i]));
}

/* The auxiliary vector, found as runtimes find it that have no getauxval(3):
   behind the kernel's list of variables.  The program's own variables
   differ. */
static void
tell_auxiliary(void)
{
	char **at = environ;
	const ElfW(auxv_t) *entry;
	unsigned found = 0, wrong = 0;

	while (*at != NULL)
		at++;
	entry = (const void *)(at + 1);
	for (; entry->a_type != AT_NULL; entry++) {
		if (entry->a_type == AT_IGNORE)
			continue;
		found++;
		wrong += entry->a_un.a_val != getauxval(entry->a_type);
	}
	printf("auxiliary vector: %u entries, %u wrong\n", found, wrong);
	for (at = environ; *at != NULL; at++)
		if (strncmp(*at, "LD_PRELOAD=", 11) == 0 ||
		    strncmp(*at, "WATCHPOINT_", 11) == 0)
			printf("%s\n", *at);
}

/* What a child gets. */
static void
tell_inherited(void)
{
	(void)fflush(stdout);
	if (system("echo \"child:$LD_PRELOAD$WATCHPOINT_WATCH"
	    "$WATCHPOINT_CHANNEL\"") != 0)
		abort();
}

static void
tell_descriptors(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	printf("descriptor %d\n", fd);
	(void)close(fd);
}

static void
tell_children(void)
{
	pid_t pid = waitpid(-1, NULL, WNOHANG);

	printf("children: %s\n", pid < 0 && errno == ECHILD ? "none" : "some");
}

static void *
store_in_thread(void *unused)
{
	store();
	return unused;
}

static void
make_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, store_in_thread, NULL) != 0)
		abort();
	(void)pthread_join(thread, NULL);
}

static void
have_filled(void)
{
	int fds[2];

	if (pipe(fds) != 0 || write(fds[1], "12345678", 8) != 8 ||
	    read(fds[0], (void *)(unsigned long)&text, 8) != 8)
		abort();
}

static void
go_deaf(void)
{
	sigset_t set;

	(void)sigfillset(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void
close_all(void)
{
	closefrom(3);
}

/* A hundred stores in a second or more. */
static void
take_time(void)
{
	for (int i = 0; i < 100; i++) {
		state++;
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
}

static void
wait_for_line(void)
{
	printf("waiting\n");
	(void)fflush(stdout);
	while (getchar() != '\n')
		;
}

static void
wait_for_ever(void)
{
	printf("waiting\n");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

static void
die(void)
{
	(void)kill(getpid(), SIGKILL);
}

static void
crash(void)
{
	state++;
	(void)raise(SIGSEGV);
}

static void
leave(void)
{
	state++;
	_exit(3);
}

static void
become_another(void)
{
	(void)execl("/bin/true", "true", (char *)NULL);
	abort();
}

static void *
outlive(void *unused)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
	note("outlived");
	_exit(7);
	return unused;
}

/* The first thread ends before the program does: it has nothing mapped any
   more, as a program that takes its time to end. */
static void
end_first(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, outlive, NULL) != 0)
		abort();
	pthread_exit(NULL);
}

/* So much is mapped that to end takes some tenths of a second. */
static void
end_slowly(void)
{
	const size_t size = 64 << 20;
	int fd = memfd_create("much", 0);

	if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
		abort();
	for (int i = 0; i < 100; i++)
		if (mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd,
		    0) == MAP_FAILED)
			abort();
	(void)close(fd);
}

/* In a child, which reports. */
static void
fork_and_store(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		store();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		abort();
}

/* In children and grandchildren, many at a time. */
static void
fork_and_store_often(void)
{
	for (int i = 0; i < 20; i++)
		if (fork() == 0) {
			store();
			if (fork() == 0)
				store();
			store();
			while (wait(NULL) > 0)
				;
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void *
fork_in(void *unused)
{
	fork_and_store();
	return unused;
}

static void
fork_in_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fork_in, NULL) != 0 ||
	    pthread_join(thread, NULL) != 0)
		abort();
}

static void
fork_and_execute(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		store();
		(void)execl("/proc/self/exe", "guest", "store", NULL);
		_exit(1);
	}
	if (waitpid(pid, NULL, 0) != pid)
		abort();
}

static void
fork_and_die(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		store();
		store();
		(void)raise(SIGKILL);
	}
	if (waitpid(pid, NULL, 0) != pid)
		abort();
}

/* In a child that the program does not wait for. */
static void
fork_and_outlive(void)
{
	pid_t parent = getpid();

	if (fork() != 0)
		return;
	store();
	while (getppid() == parent)
		(void)usleep(1000);
	store();
	_exit(0);
}

/* Children that store when a line comes, and a program that does when they have
   ended well. */
static void
fork_and_wait(void)
{
	int fds[2], status;
	char c;

	if (pipe(fds) != 0)
		abort();
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			(void)close(fds[1]);
			store();
			(void)!write(STDOUT_FILENO, "waiting\n", 8);
			(void)!read(fds[0], &c, 1);
			store();
			_exit(0);
		}
	wait_for_line();
	(void)close(fds[1]);
	for (int i = 0; i < 2; i++)
		if (wait(&status) < 0 || status != 0)
			abort();
	store();
	note("survived");
}

/* --- children that no handler of pthread_atfork(3) hears of --- */

static void
await_child(pid_t pid)
{
	if (pid < 0 || waitpid(pid, NULL, __WALL) != pid)
		abort();
}

/* It says nothing: it has the program's memory. */
static void
vfork_and_store(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		state++;
		_exit(0);
	}
	await_child(pid);
}

static void
vfork_and_execute(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		state++;
		(void)execl("/bin/true", "true", NULL);
		_exit(1);
	}
	await_child(pid);
}

static void
fork_by_call(void)
{
	pid_t pid = (pid_t)syscall(SYS_fork);

	if (pid == 0) {
		state++;
		_exit(0);
	}
	await_child(pid);
}

static int
store_in_clone(void *unused)
{
	(void)unused;
	state++;
	return 0;
}

static void
clone_and_store(void)
{
	static _Alignas(64) char stack[16384];

	await_child(clone(store_in_clone, stack + sizeof(stack), CLONE_VM,
	    NULL));
}

static void
spawn(void)
{
	static char *const argv[] = {"true", NULL};
	pid_t pid, none;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0 ||
	    posix_spawnp(&none, "no-such-program", NULL, NULL, argv,
	    environ) == 0)
		abort();
	await_child(pid);
	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) != 0)
		abort();
	await_child(pid);
}

/* A function that not every C library has. */
static void
spawn_by(const char *name)
{
	static char *const argv[] = {"true", NULL};
	int pidfd = -1, err;
	__typeof__(posix_spawn) *call;

	call = (__typeof__(call))(uintptr_t)dlsym(RTLD_DEFAULT, name);
	err = call == NULL ? ENOSYS : call(&pidfd, "/bin/true", NULL, NULL,
	    argv, environ);
	if (err == 0 && waitid(P_PIDFD, (id_t)pidfd, &(siginfo_t){0},
	    WEXITED) != 0)
		abort();
	note(err == 0 ? "spawned" : err == ENOSYS ? "unknown" : "failed");
}

static void
spawn_pidfd(void)
{
	spawn_by("pidfd_spawn");
}

static void
spawnp_pidfd(void)
{
	spawn_by("pidfd_spawnp");
}

static void
run_commands(void)
{
	FILE *pipe = popen("true", "r");

	if (system("true; true") != 0 || pipe == NULL || pclose(pipe) != 0)
		abort();
}

static void *
return_at_once(void *unused)
{
	return unused;
}

/* The one that started it does not run meanwhile, so there is no room for all
   records of one processor. */
static void
make_threads_behind_back(void)
{
	const pid_t parent = getppid();
	pthread_t thread;
	cpu_set_t cpus;
	char path[64], line[512] = "";
	FILE *stat;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0 ||
	    kill(parent, SIGSTOP) != 0)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", parent);
	while (strstr(line, ") T ") == NULL)
		if ((stat = fopen(path, "re")) == NULL ||
		    fgets(line, sizeof(line), stat) == NULL ||
		    fclose(stat) != 0)
			abort();
	for (int i = 0; i < 2000; i++)
		if (pthread_create(&thread, NULL, return_at_once, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			abort();
	if (kill(parent, SIGCONT) != 0)
		abort();
}

/* Its own events are meant. */
static void
disable_events(void)
{
	(void)prctl(PR_TASK_PERF_EVENTS_DISABLE);
}

/* Whatever event it can get hold of. */
static void
disable_descriptors(void)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		(void)ioctl(atoi(entry->d_name), PERF_EVENT_IOC_DISABLE, 0);
}

/* What a child has, so that only it is not watched then. */
static void
disable_in_child(void)
{
	volatile unsigned spent = 0;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		disable_descriptors();
		while (spent < 1000000)
			spent++;
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		abort();
}

static const struct {
	const char *name;
	void (*run)(void);
} acts[] = {
	{"store", store}, {"environment", tell_environment},
	{"auxiliary", tell_auxiliary},
	{"inherited", tell_inherited}, {"descriptors", tell_descriptors},
	{"children", tell_children}, {"thread", make_thread},
	{"fill", have_filled}, {"deaf", go_deaf}, {"time", take_time},
	{"disable_events", disable_events},
	{"disable_in_child", disable_in_child},
	{"disable_descriptors", disable_descriptors}, {"fork", fork_and_store},
	{"forks", fork_and_store_often}, {"fork_in_thread", fork_in_thread},
	{"fork_and_execute", fork_and_execute}, {"fork_and_die", fork_and_die},
	{"outlive", fork_and_outlive}, {"forks_wait", fork_and_wait},
	{"vfork", vfork_and_store}, {"vfork_and_execute", vfork_and_execute},
	{"fork_by_call", fork_by_call}, {"clone", clone_and_store},
	{"spawn", spawn}, {"system", run_commands},
	{"pidfd_spawn", spawn_pidfd}, {"pidfd_spawnp", spawnp_pidfd},
	{"threads_behind_back", make_threads_behind_back},
	{"wait", wait_for_ever}, {"die", die}, {"crash", crash},
	{"leave", leave}, {"become_another", become_another},
	{"close_all", close_all}, {"end_first", end_first},
	{"end_slowly", end_slowly},
};

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(acts) / sizeof(acts[0]); k++)
			if (strcmp(argv[i], acts[k].name) == 0)
				acts[k].run();
	(void)fflush(stdout);
	return 7;
}
