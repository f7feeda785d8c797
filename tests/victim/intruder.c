/*
 * intruder: debug information that has taken over the process that reads it.
 *
 * It is preloaded before libdw.  Its file's name says what it does when the
 * debug information of the victim `counter' is first asked for:
 *
 *	crash, hang, sleep, memory
 *	slow	continues after a second
 *	asks	asks for files, without end
 *	naps	the same, with a pause between two questions
 *	reports	sends a report that never ends
 *	floods	asks without end, and reads no answer
 *	babbles	prints lines to standard error, without end
 *	try	tries everything that must not work, and crashes if any of it
 *		does, or if something that has to work does not
 *
 * With `once' in the name it does so only in the first process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "broker/message.h"

static int
is(const char *what)
{
	Dl_info own;

	return dladdr((const void *)(uintptr_t)is, &own) != 0 &&
	    strstr(own.dli_fname, what) != NULL;
}

static void
must_fail(long result)
{
	if (result >= 0)
		abort();
}

static long pages;		/* of memory, as seen before the sandbox */

static void
must_not_map(int protection, int flags)
{
	if (mmap(NULL, 64 << 20, protection, flags, -1, 0) != MAP_FAILED)
		abort();
}

/* Memory that no limit counts, and code. */
static void
try_memory(void)
{
	const int usual = PROT_READ | PROT_WRITE;
	void *page = mmap(NULL, 4096, usual, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	    0);

	if (page == MAP_FAILED)
		abort();
	must_fail(syscall(SYS_memfd_create, "intruder", 0));
	must_fail(syscall(SYS_shmget, IPC_PRIVATE, 64 << 20, 0600));
	must_not_map(usual, MAP_SHARED | MAP_ANONYMOUS);
	must_not_map(PROT_READ, MAP_SHARED | MAP_ANONYMOUS);
	must_not_map(usual, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN);
	must_not_map(usual | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
	must_fail(mprotect(page, 4096, PROT_READ));
	must_fail(mprotect(page, 4096, PROT_READ | PROT_EXEC));
	must_fail(syscall(SYS_write, 1, "", 1));
	must_fail(syscall(SYS_pwrite64, BROKER_SHARED, "", 1, 0));
	/* the kernel's tables for what is only read may take 1 GB */
	if (mmap(NULL, (size_t)1 << 39, PROT_READ, MAP_PRIVATE |
	    MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
		abort();
}

static void
try_all(void)
{
	static const char *const none[] = {NULL};
	const pid_t parent = getppid();
	char byte;

	must_fail(syscall(SYS_open, "/etc/passwd", O_RDONLY));
	must_fail(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY));
	must_fail(syscall(SYS_openat, AT_FDCWD, "/tmp/intruder",
	    O_WRONLY | O_CREAT, 0600));
	must_fail(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	must_fail(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0));
	must_fail(syscall(SYS_ptrace, PTRACE_SEIZE, parent, 0, 0));
	must_fail(syscall(SYS_process_vm_readv, parent, &byte, 0, &byte, 0, 0));
	must_fail(syscall(SYS_kill, parent, 0));
	must_fail(syscall(SYS_kill, -1, 0));
	must_fail(syscall(SYS_tgkill, parent, parent, 0));
	must_fail(syscall(SYS_pidfd_open, parent, 0));
	must_fail(syscall(SYS_execve, "/bin/true", none, none));
	must_fail(syscall(SYS_fork));
	must_fail(syscall(SYS_vfork));
	must_fail(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	must_fail(syscall(SYS_setuid, 0));
	must_fail(syscall(SYS_prlimit64, 0, RLIMIT_DATA, 0, 0));
	must_fail(syscall(SYS_ftruncate, 4, 0));
	must_fail(syscall(SYS_unlink, "/tmp/intruder"));
	try_memory();
	if (sysconf(_SC_PHYS_PAGES) != pages)
		abort();
}

/* Without end, and without looking at what comes. */
static void
send_messages(uint32_t what)
{
	static struct broker_message message;
	struct iovec part = {&message, 0};
	const struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1};

	message.what = what;
	for (unsigned i = 0;; i++) {
		(void)snprintf(message.text, sizeof(message.text), "/%u", i);
		part.iov_len = offsetof(struct broker_message, text) +
		    strlen(message.text) + 1;
		(void)sendmsg(BROKER_SOCKET, &whole, MSG_NOSIGNAL);
	}
}

/* The same, but wait for what comes each time. */
static void
report_without_end(void)
{
	struct broker_message message = {.what = BROKER_REPORT, .err = 1};
	char answer[sizeof(message)];
	struct iovec part = {&message, offsetof(struct broker_message, text) +
	    1}, other = {answer, sizeof(answer)};
	const struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1};
	struct msghdr all = {.msg_iov = &other, .msg_iovlen = 1};

	while (sendmsg(BROKER_SOCKET, &whole, MSG_NOSIGNAL) > 0 &&
	    recvmsg(BROKER_SOCKET, &all, 0) > 0)
		;
}

static int done;

/* While files may be made. */
static __attribute__((constructor)) void
begin(void)
{
	char path[4096];
	Dl_info own;

	pages = sysconf(_SC_PHYS_PAGES);
	if (!is("once") || strcmp(program_invocation_short_name,
	    "watchctl-explain") != 0 ||
	    dladdr((const void *)(uintptr_t)is, &own) == 0 ||
	    snprintf(path, sizeof(path), "%s.was", own.dli_fname) < 0)
		return;
	/* not by open(2), which is the explainer's own */
	done = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT |
	    O_EXCL, 0600) < 0;
}

static void
intrude(void)
{
	static const struct timespec nap = {.tv_nsec = 50000000};
	const time_t began = time(NULL);

	if (done++ > 0)
		return;
	if (is("crash"))
		abort();
	while (is("hang"))
		;
	while (is("slow") && time(NULL) < began + 2)
		;
	while (is("asks"))
		(void)open("/nonexistent", O_RDONLY);
	while (is("naps")) {
		(void)open("/nonexistent", O_RDONLY);
		syscall(SYS_futex, &done, 0, done, &nap, NULL, 0);
	}
	if (is("reports"))
		report_without_end();
	if (is("floods"))
		send_messages(BROKER_OPEN);
	if (is("babbles"))
		send_messages(BROKER_SAY);
	while (is("sleep"))
		syscall(SYS_futex, &done, 0, done, NULL, NULL, 0);
	while (is("memory"))
		if (mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		    MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			abort();
	if (is("try"))
		try_all();
}

const char *dwfl_module_info(void *module, void ***, uint64_t *, uint64_t *,
    uint64_t *, uint64_t *, const char **, const char **);

static int
is_counter(void *module)
{
	return strcmp(dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL,
	    NULL, NULL), "counter") == 0;
}

void *
dwfl_module_getdwarf(void *module, uint64_t *bias)
{
	void *(*next)(void *, uint64_t *);
	void *symbol = dlsym(RTLD_NEXT, "dwfl_module_getdwarf");

	memcpy(&next, &symbol, sizeof(next));
	if (!is("symbols") && !is("every") && is_counter(module))
		intrude();
	return next(module, bias);
}

int
dwfl_module_getsymtab(void *module)
{
	int (*next)(void *);
	void *symbol = dlsym(RTLD_NEXT, "dwfl_module_getsymtab");

	memcpy(&next, &symbol, sizeof(next));
	if (is("every") || (is("symbols") && is_counter(module)))
		intrude();
	return next(module);
}
