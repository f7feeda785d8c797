/*
 * threads: every thread of this program, while it continues to create others.
 *
 * Overview.  Inherited events cover the threads that a covered thread creates,
 * so there must be an instant at which none is left out: every thread is
 * covered, or was created by one that was.  The threads are listed, covered,
 * and listed again:
 *
 *	list -> cover each -> each seen asleep -> list: is any new?
 *
 * A thread that is not in the first list was created later: by a covered
 * thread, and so it is covered, or by one that was yet to be covered.  If the
 * second list has no new thread, there is none of the latter kind.  None is
 * covered twice, because those in the first list were created when there was
 * nothing to inherit.
 *
 * A thread that is being created while its creator is covered inherits nothing,
 * and may appear in the list late.  But a thread that is seen asleep, not in
 * clone(2), is creating none: those that it created before are in the list, and
 * those that it creates later inherit.  Threads that do not sleep are held
 * still by the helper.
 *
 * The kernel may leave threads out of a list while others end.  But the number
 * of threads, which is in the directory's link count, is exact.  The list is
 * complete if it has that many, and all of them are still there after the
 * number was read: for then they were there when it was read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/libc.h"
#include "proc/proc.h"
#include "arming/helper.h"
#include "arming/threads.h"
#include "program/short_thread.h"

#define TASKS "/proc/self/task"

enum {
	TRIES = 3,		/* before the other threads are held */
	LOOKS = 3,		/* how often to check that a thread sleeps, */
	MOMENT_NS = 20000,	/* and how long to wait in between */
	LISTING = 4096,		/* bytes of the directory read at a time */
};

/* This also runs in the signal handler (lifeline.c): it uses little stack, and
   only functions that are async-signal-safe. */

/* A list of threads, in memory from mmap(2). */
struct list {
	pid_t *tid;
	size_t n, cap;
};

static int
list_add(struct list *list, pid_t tid)
{
	size_t size = list->cap * sizeof(*list->tid);
	void *at;

	if (list->n == list->cap) {
		at = size == 0 ? mmap(NULL, LISTING, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) :
		    mremap(list->tid, size, size * 2, MREMAP_MAYMOVE);
		if (at == MAP_FAILED)
			return -ENOMEM;
		list->tid = at;
		list->cap = (size == 0 ? LISTING : size * 2) /
		    sizeof(*list->tid);
	}
	list->tid[list->n++] = tid;
	return 0;
}

static void
list_free(struct list *list)
{
	if (list->cap > 0)
		(void)munmap(list->tid, list->cap * sizeof(*list->tid));
	*list = (struct list){0};
}

/* A directory entry of getdents64(2). */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t len;
	uint8_t type;
	char name[];
};

/* Add the threads named by n bytes of directory entries. */
static int
list_entries(struct list *list, const char *bytes, long n)
{
	const struct entry *entry;
	int err = 0;

	for (long at = 0; at < n && err == 0; at += entry->len) {
		entry = (const void *)(bytes + at);
		if (entry->name[0] != '.')
			err = list_add(list, atoi(entry->name));
	}
	return err;
}

/* List the threads.  *number is set to how many there are after that. */
static int
list_threads(struct list *list, size_t *number)
{
	static _Alignas(struct entry) char bytes[LISTING];	/* protected
								   by the
								   table's
								   lock */
	struct stat st = {.st_nlink = 2};
	long n = 0;
	int err = 0, fd = open(TASKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	list->n = 0;
	while (err == 0 && (n = syscall(SYS_getdents64, fd, bytes,
	    sizeof(bytes))) > 0)
		err = list_entries(list, bytes, n);
	if (err == 0 && (n < 0 || fstat(fd, &st) != 0))
		err = -errno;
	(void)close(fd);
	*number = st.st_nlink - 2;
	return err;
}

/* Whether all threads of a list still exist. */
static bool
all_there(const struct list *list)
{
	pid_t pid = getpid();

	for (size_t i = 0; i < list->n; i++)
		if (syscall(SYS_tgkill, pid, list->tid[i], 0) != 0)
			return false;
	return true;
}

/* Whether a has all threads of b.  The kernel lists both in the order of
   creation. */
static bool
nobody_new(const struct list *a, const struct list *b)
{
	size_t i = 0;

	for (size_t k = 0; k < b->n; k++) {
		while (i < a->n && a->tid[i] != b->tid[k])
			i++;
		if (i == a->n)
			return false;
	}
	return true;
}

struct call {
	int (*fn)(void *arg, pid_t tid);
	void (*undo)(void *arg);
	void (*held)(void *arg);	/* may be NULL */
	void *arg;
};

/* A call of fn for each thread of a list. */
struct calls {
	const struct call *call;
	const struct list *list;
};

static int
call_each(void *arg)
{
	const struct calls *calls = arg;
	const struct list *list = calls->list;
	int err = 0;

	for (size_t i = 0; i < list->n && err == 0; i++)
		if ((err = calls->call->fn(calls->call->arg, list->tid[i])) ==
		    -ESRCH)
			err = 0;
	return err;
}

static int
call_all(const struct call *call, const struct list *list)
{
	struct calls calls = {call, list};

	return wp_short_thread(call_each, &calls);
}

/* The file that shows which system call a thread is in. */
static void
path_of(char path[64], pid_t tid)
{
	char digits[12], *at = &digits[sizeof(digits) - 1];

	*at = '\0';
	do
		*--at = (char)('0' + tid % 10);
	while ((tid /= 10) > 0);
	(void)stpcpy(stpcpy(stpcpy(path, TASKS "/"), at), "/syscall");
}

/* Whether a thread sleeps, other than in a call that creates a thread, or has
   ended.  Its file has the number of the system call, -1 for none, or
   "running". */
static bool
is_idle(pid_t tid)
{
	char path[64], text[32] = "";
	long call;
	int fd;

	path_of(path, tid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return errno == ENOENT;
	if (read(fd, text, sizeof(text) - 1) < 0 && errno == ESRCH)
		(void)strcpy(text, "-1");
	(void)close(fd);
	if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
		return false;
	call = strtol(text, NULL, 10);
	return call != SYS_clone && call != SYS_clone3
#ifdef SYS_fork
	    && call != SYS_fork && call != SYS_vfork
#endif
	    ;
}

/* Whether every other thread has been seen idle. */
static bool
all_idle(const struct list *list)
{
	pid_t self = wp_libc_tid();

	for (size_t i = 0; i < list->n; i++)
		for (unsigned looks = 1; list->tid[i] != self &&
		    !is_idle(list->tid[i]); looks++) {
			if (looks == LOOKS)
				return false;
			wp_clock_sleep(MOMENT_NS);
		}
	return true;
}

/* The results of an attempt other than -errno. */
enum { EXACT, UNSETTLED, BUSY };

static int
attempt(const struct call *call, struct list *before, struct list *after)
{
	size_t number = 0;
	int err;

	if ((err = list_threads(before, &number)) < 0 ||
	    (err = call_all(call, before)) < 0)
		return err;
	if (!all_idle(before))
		return BUSY;
	if ((err = list_threads(after, &number)) < 0)
		return err;
	return number == after->n && all_there(after) &&
	    nobody_new(before, after) ? EXACT : UNSETTLED;
}

/* Make the calls while all other threads are held.  Returns 1 if they cannot be
   held. */
static int
attempt_held(const struct call *call, struct list *list)
{
	struct wp_request *request = wp_helper_request(WP_ASK_HOLD);
	size_t number = 0;
	int err;

	if (request == NULL)
		return 1;
	request->tid = wp_libc_tid();
	if (wp_helper_ask(NULL) < 0)
		return 1;
	call->undo(call->arg);
	if ((err = list_threads(list, &number)) == 0)
		err = call_all(call, list);
	if (err == 0 && call->held != NULL)
		call->held(call->arg);
	if (wp_helper_request(WP_ASK_GO) != NULL)
		(void)wp_helper_ask(NULL);
	return err;
}

static int
each_of_many(const struct call *call)
{
	struct list before = {0}, after = {0};
	int err = UNSETTLED;

	for (unsigned i = 0; i < TRIES && err == UNSETTLED; i++) {
		if (i > 0)
			call->undo(call->arg);
		err = attempt(call, &before, &after);
	}
	if (err > EXACT)
		err = attempt_held(call, &before);
	list_free(&before);
	list_free(&after);
	return err;
}

int
wp_threads_each(int (*fn)(void *arg, pid_t tid), void (*undo)(void *arg),
    void (*held)(void *arg), void *arg)
{
	const struct call call = {fn, undo, held, arg};
	struct stat st;
	bool counted = stat(TASKS, &st) == 0;
	int err;

	if (counted && st.st_nlink > 3 && wp_proc_is_ours())
		return each_of_many(&call);
	/* with one thread, nothing else can create another meanwhile */
	err = fn(arg, wp_libc_tid());
	if (err < 0)
		return err;
	return counted ? st.st_nlink > 3 : !wp_libc_alone();
}
