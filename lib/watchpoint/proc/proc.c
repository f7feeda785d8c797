/* proc: reads /proc/PID; for mappings see proc_maps.c. */
#include "proc/proc_private.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/array.h"

int
wp_proc_error(int err)
{
	return err == ENOENT ? -ESRCH : -err;
}

int
wp_proc_open(pid_t pid, const char *name, int flags)
{
	char path[PROC_PATH_MAX];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd >= 0 ? fd : wp_proc_error(errno);
}

/* Read all of a small file, and terminate it with a NUL.  Returns its
   length. */
static ssize_t
proc_slurp(pid_t pid, const char *name, char *to, size_t size)
{
	size_t have = 0;
	ssize_t n = 0;
	int err = 0, fd = wp_proc_open(pid, name, O_RDONLY);

	if (fd < 0)
		return fd;
	while (have < size - 1 &&
	    (n = read(fd, to + have, size - 1 - have)) > 0)
		have += (size_t)n;
	if (n < 0)
		err = wp_proc_error(errno);
	(void)close(fd);
	to[have] = '\0';
	return err != 0 ? err : (ssize_t)have;
}

FILE *
wp_proc_fopen(pid_t pid, const char *name, int *err)
{
	int fd = wp_proc_open(pid, name, O_RDONLY);
	FILE *f;

	if (fd < 0) {
		*err = fd;
		return NULL;
	}
	if ((f = fdopen(fd, "r")) == NULL) {
		(void)close(fd);
		*err = -ENOMEM;
	}
	return f;
}

/* The text after "\nkey:" and its tabs, or NULL. */
static const char *
status_field(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = text; (p = strchr(p, '\n')) != NULL; ) {
		p++;
		if (strncmp(p, key, len) == 0 && p[len] == ':') {
			p += len + 1;
			return p + strspn(p, "\t ");
		}
	}
	return NULL;
}

static unsigned long long
status_number(const char *text, const char *key, int base)
{
	const char *field = status_field(text, key);

	return field == NULL ? 0 : strtoull(field, NULL, base);
}

/* Older kernels have no such field; but a kernel thread has no memory. */
static bool
is_kernel_thread(const char *text, char state)
{
	const char *field = status_field(text, "Kthread");

	if (field != NULL)
		return *field == '1';
	return status_field(text, "VmSize") == NULL && state != 'Z' &&
	    state != 'X';
}

/* Return the last of the thread's ids, one for each PID namespace that it is
   in.  Older kernels do not list them. */
static pid_t
inner_id(const char *text)
{
	const char *field = status_field(text, "NSpid");
	size_t len = field == NULL ? 0 : strcspn(field, "\n");

	if (field == NULL)
		return (pid_t)status_number(text, "Pid", 10);
	while (len > 0 && field[len - 1] != '\t')
		len--;
	return atoi(field + len);
}

static void
status_parse(const char *text, struct wp_proc_status *out)
{
	const char *field;

	out->tgid = (pid_t)status_number(text, "Tgid", 10);
	out->threads = (unsigned)status_number(text, "Threads", 10);
	out->inner = inner_id(text);
	out->parent = (pid_t)status_number(text, "PPid", 10);
	out->tracer = (pid_t)status_number(text, "TracerPid", 10);
	out->uid = (uid_t)status_number(text, "Uid", 10);
	out->gid = (gid_t)status_number(text, "Gid", 10);
	out->blocked = status_number(text, "SigBlk", 16);
	out->ignored = status_number(text, "SigIgn", 16);
	out->caught = status_number(text, "SigCgt", 16);
	field = status_field(text, "Seccomp");
	out->seccomp = field == NULL ? -1 : atoi(field);
	field = status_field(text, "State");
	out->state = field == NULL ? '?' : *field;
	out->kernel_thread = is_kernel_thread(text, out->state);
}

/* *text gets the whole file, to be freed by the caller. */
static int
read_status(pid_t pid, char **text)
{
	size_t cap = 0;
	int err = 0;
	FILE *f = wp_proc_fopen(pid, "status", &err);

	if (f == NULL)
		return err;
	/* the file has no NUL, so getdelim reads all of it, even with many
	   groups */
	if (getdelim(text, &cap, '\0', f) <= 0)
		err = feof(f) ? -ESRCH : wp_proc_error(errno);
	else if (status_field(*text, "Tgid") == NULL)
		err = -ESRCH;
	(void)fclose(f);
	return err;
}

int
wp_proc_status(pid_t pid, struct wp_proc_status *out)
{
	char *text = NULL;
	const int err = read_status(pid, &text);

	if (err == 0) {
		memset(out, 0, sizeof(*out));
		status_parse(text, out);
		(void)wp_proc_comm(out->tgid, pid, out->comm);
	}
	free(text);
	return err;
}

int
wp_proc_peak(pid_t tid, uint64_t *kb)
{
	char *text = NULL;
	const int err = read_status(tid, &text);

	if (err == 0)
		*kb = status_number(text, "VmPeak", 10);
	free(text);
	return err;
}

bool
wp_proc_has_memory(pid_t tid)
{
	char text[32];

	return proc_slurp(tid, "statm", text, sizeof(text)) > 0 &&
	    strtoull(text, NULL, 10) > 0;
}

int
wp_proc_ran(pid_t tid, uint64_t *ns)
{
	char text[128];
	const ssize_t n = proc_slurp(tid, "schedstat", text, sizeof(text));

	return n < 0 ? (int)n : sscanf(text, "%" SCNu64, ns) == 1 ? 0 : -EPROTO;
}

int
wp_proc_setting(const char *name)
{
	char path[PROC_PATH_MAX], text[32] = "", *end;
	ssize_t n;
	long value;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return INT_MIN;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	value = strtol(text, &end, 10);
	return n <= 0 || end == text ? INT_MIN : (int)value;
}

bool
wp_proc_mounted(void)
{
	return access("/proc/self/status", F_OK) == 0;
}

bool
wp_proc_is_ours(void)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 &&
	    atoi(self) == getpid();
}

int
wp_proc_check(struct wp_cause *cause)
{
	if (wp_proc_is_ours())
		return 0;
	return wp_cause_set(cause, wp_proc_mounted() ? WP_CAUSE_OTHER_PROC :
	    WP_CAUSE_NO_PROC);
}

bool
wp_proc_hides(pid_t pid)
{
	char path[PROC_PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return wp_proc_mounted() && access(path, F_OK) != 0 &&
	    (kill(pid, 0) == 0 || errno == EPERM);
}

pid_t
wp_proc_tracer(pid_t tid)
{
	char text[1024];	/* the field is one of the first lines */

	return proc_slurp(tid, "status", text, sizeof(text)) < 0 ? 0 :
	    (pid_t)status_number(text, "TracerPid", 10);
}

/* Return what follows the second field of stat, the name.  A name may contain
   anything, but no bracket follows it.  NULL if this is not a stat file. */
static const char *
after_name(const char *stat)
{
	const char *end = strrchr(stat, ')');

	return end == NULL ? NULL : end + 1;
}

/* Field 3 or a later one of stat.  Returns false if it is missing. */
static bool
stat_field(const char *stat, int field, uint64_t *value)
{
	const char *at = after_name(stat);

	for (int i = 2; at != NULL && i < field; i++)
		if ((at = strchr(at, ' ')) != NULL)
			at++;
	if (at != NULL)
		*value = strtoull(at, NULL, 10);
	return at != NULL;
}

/* PF_EXITING and PF_FORKNOEXEC of include/linux/sched.h. */
enum { EXITING = 4, FORKNOEXEC = 0x40 };

/* Returns false if the thread no longer exists. */
static bool
task_flags(pid_t tid, uint64_t *flags)
{
	char text[1024];

	return proc_slurp(tid, "stat", text, sizeof(text)) >= 0 &&
	    stat_field(text, 9, flags);
}

bool
wp_proc_exiting(pid_t tid)
{
	uint64_t flags;

	return !task_flags(tid, &flags) || (flags & EXITING) != 0;
}

/* The status of a process that has been waited for, as waitpid(2) returned it.
   Kernels since 6.15 keep it. */
static bool
status_of_gone(int pidfd, int *status)
{
	struct {
		uint64_t mask, cgroup;
		uint32_t ids[11];
		int32_t status;
	} info = {.mask = 8};	/* PIDFD_INFO_EXIT */

	if (ioctl(pidfd, _IOWR(0xff, 11, info), &info) != 0 ||
	    (info.mask & 8) == 0)
		return false;
	*status = info.status;
	return true;
}

static bool
status_of_zombie(pid_t pid, int *status)
{
	char text[1024];
	uint64_t code;

	if (proc_slurp(pid, "stat", text, sizeof(text)) < 0 ||
	    !stat_field(text, 52, &code))
		return false;
	*status = (int)code;
	return true;
}

int
wp_proc_killed(pid_t pid, int pidfd)
{
	int status;

	if (!status_of_gone(pidfd, &status) &&
	    !status_of_zombie(pid, &status) &&
	    !status_of_gone(pidfd, &status))
		return 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

bool
wp_proc_unexecuted(pid_t pid, uint64_t *start)
{
	const uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t flags, ticks;
	char text[1024];

	if (proc_slurp(pid, "stat", text, sizeof(text)) < 0 ||
	    !stat_field(text, 9, &flags) || !stat_field(text, 22, &ticks))
		return false;
	*start = ticks * tick;
	return strchr("ZX", after_name(text)[1]) == NULL &&
	    (flags & FORKNOEXEC) != 0;
}

int
wp_proc_has_executed(pid_t pid)
{
	uint64_t flags;

	return task_flags(pid, &flags) ? (flags & FORKNOEXEC) == 0 : -ESRCH;
}

/* The file of the thread; that of the process is the sum of all threads. */
int
wp_proc_caught_open(pid_t pid)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "task/%d/stat", pid);
	return wp_proc_open(pid, name, O_RDONLY);
}

int
wp_proc_caught(int fd, uint64_t *caught)
{
	char text[1024];
	const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return wp_proc_error(errno);
	text[n] = '\0';
	return stat_field(text, 34, caught) ? 0 : -ESRCH;
}

int
wp_proc_cpu(pid_t pid, pid_t tid)
{
	char name[32], text[1024];
	uint64_t cpu;

	(void)snprintf(name, sizeof(name), "task/%d/stat", tid);
	return proc_slurp(pid, name, text, sizeof(text)) < 0 ||
	    !stat_field(text, 39, &cpu) ? -1 : (int)cpu;
}

/* List the numbers among the names in a directory. */
static int
list_ids(const char *path, pid_t **ids, size_t *cap)
{
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	if ((dir = opendir(path)) == NULL)
		return wp_proc_error(errno);
	while ((entry = readdir(dir)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (wp_array_room(ids, n, cap, sizeof(**ids)) < 0) {
			(void)closedir(dir);
			return -ENOMEM;
		}
		(*ids)[n++] = (pid_t)atoi(entry->d_name);
	}
	(void)closedir(dir);
	return n == 0 ? -ESRCH : (int)n;
}

int
wp_proc_threads(pid_t pid, pid_t **tids, size_t *cap)
{
	char path[PROC_PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return list_ids(path, tids, cap);
}

/* Each thread is a directory there, which adds a link to those of "." and the
   parent. */
int
wp_proc_count_threads(pid_t pid)
{
	char path[PROC_PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &st) == 0 ? (int)st.st_nlink - 2 : 0;
}

bool
wp_proc_has_threads(pid_t pid)
{
	return wp_proc_count_threads(pid) > 1;
}

int
wp_proc_processes(pid_t **pids, size_t *cap)
{
	return list_ids("/proc", pids, cap);
}

/* A thread that is ending has no memory any more some time before it is a
   zombie. */
pid_t
wp_proc_living(pid_t pid)
{
	pid_t *tids = NULL, living = pid;
	size_t cap = 0;
	int n;

	if (!wp_proc_exiting(pid))
		return pid;
	n = wp_proc_threads(pid, &tids, &cap);
	for (int i = 0; tids != NULL && i < n && living == pid; i++)
		if (tids[i] != pid && !wp_proc_exiting(tids[i]))
			living = tids[i];
	free(tids);
	return living;
}

ssize_t
wp_proc_text(pid_t pid, const char *name, char *to, size_t size)
{
	return proc_slurp(wp_proc_living(pid), name, to, size);
}

int
wp_proc_exe(pid_t pid, char path[PATH_MAX])
{
	char link[PROC_PATH_MAX], to[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", wp_proc_living(pid));
	n = readlink(link, to, sizeof(to) - 1);
	if (n < 0)
		return wp_proc_error(errno);
	memcpy(path, to, (size_t)n);
	path[n] = '\0';
	return 0;
}

int
wp_proc_executes(pid_t pid, dev_t dev, ino_t ino)
{
	char path[PROC_PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", wp_proc_living(pid));
	if (stat(path, &st) != 0)
		return wp_proc_error(errno);
	return st.st_dev == dev && st.st_ino == ino;
}

/* Identifies the program by its file and, as it may execute the same file
   again, by the place that the kernel chose for its random bytes. */
int
wp_proc_program(pid_t pid, uint64_t *program)
{
	char path[PROC_PATH_MAX];
	uint64_t random = 0;
	struct stat st;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", wp_proc_living(pid));
	if (stat(path, &st) != 0)
		return wp_proc_error(errno);
	if ((err = wp_proc_auxv(pid, AT_RANDOM, &random)) < 0)
		return err;
	*program = ((uint64_t)st.st_dev * 1099511628211u ^ st.st_ino) *
	    1099511628211u ^ random;
	return 0;
}

int
wp_proc_comm(pid_t pid, pid_t tid, char comm[64])
{
	char name[32];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "task/%d/comm", tid);
	n = proc_slurp(pid, name, comm, 64);
	if (n < 0) {
		comm[0] = '\0';
		return (int)n;
	}
	if (n > 0 && comm[n - 1] == '\n')
		comm[n - 1] = '\0';
	return 0;
}

/* A number of the auxiliary vector: 4 bytes in a 32-bit process. */
static uint64_t
auxv_number(const char *at, size_t word)
{
	uint64_t number = 0;

	memcpy(&number, at, word);
	return number;
}

/* A type is small, and the first value is not 0, so the upper half shows the
   width. */
static size_t
auxv_word(const char *text)
{
	return auxv_number(text, sizeof(uint64_t)) > UINT32_MAX ?
	    sizeof(uint32_t) : sizeof(uint64_t);
}

bool
wp_proc_is_narrow(pid_t pid)
{
	char text[4096 + 1] = {0};

	return proc_slurp(wp_proc_living(pid), "auxv", text, sizeof(text)) > 0 &&
	    auxv_word(text) == sizeof(uint32_t);
}

int
wp_proc_auxv(pid_t pid, uint64_t type, uint64_t *value)
{
	char text[4096 + 1] = {0};
	ssize_t n = proc_slurp(wp_proc_living(pid), "auxv", text, sizeof(text));
	const size_t word = auxv_word(text);

	if (n < 0)
		return (int)n;
	for (size_t i = 0; i + 2 * word <= (size_t)n; i += 2 * word)
		if (auxv_number(text + i, word) == type) {
			*value = auxv_number(text + i + word, word);
			return 0;
		}
	return -ENOENT;
}

int
wp_proc_fd(pid_t pid, pid_t tid, int fd, char *name, size_t size)
{
	char path[PROC_PATH_MAX];
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", pid, tid,
	    fd);
	len = readlink(path, name, size);
	if (len < 0) {	/* this thread has ended */
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		len = readlink(path, name, size);
	}
	if (len < 0)
		return -errno;
	if ((size_t)len >= size)
		return -ENAMETOOLONG;
	name[len] = '\0';
	return 0;
}

int
wp_proc_root(pid_t pid)
{
	return wp_proc_open(wp_proc_living(pid), "root", O_PATH | O_DIRECTORY);
}

bool
wp_proc_has_our_pids(pid_t pid)
{
	char name[PROC_PATH_MAX];
	struct stat ours, its;

	(void)snprintf(name, sizeof(name), "/proc/%d/ns/pid",
	    wp_proc_living(pid));
	return stat("/proc/self/ns/pid", &ours) == 0 && stat(name, &its) == 0 &&
	    ours.st_ino == its.st_ino && ours.st_dev == its.st_dev;
}

ssize_t
wp_proc_read(pid_t pid, uint64_t addr, void *to, size_t len)
{
	struct iovec local = {to, len};
	struct iovec remote = {(void *)(uintptr_t)addr, len};
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	int fd, err;

	if (n > 0 || len == 0)
		return n;
	if ((fd = wp_proc_open(wp_proc_living(pid), "mem", O_RDONLY)) < 0)
		return fd;
	n = pread(fd, to, len, (off_t)addr);
	err = errno;
	(void)close(fd);
	return n > 0 ? n : n == 0 ? -EFAULT : -err;
}

size_t
wp_proc_read_words(pid_t pid, const uint64_t *addr, uint64_t *to, size_t n)
{
	const struct iovec local = {to, n * sizeof(*to)};
	struct iovec remote[WP_PROC_WORDS];
	ssize_t got;

	for (size_t i = 0; i < n && i < WP_PROC_WORDS; i++)
		remote[i] = (struct iovec){(void *)(uintptr_t)addr[i],
		    sizeof(*to)};
	got = process_vm_readv(pid, &local, 1, remote,
	    n < WP_PROC_WORDS ? n : WP_PROC_WORDS, 0);
	return got > 0 ? (size_t)got / sizeof(*to) : 0;
}
