/*
 * helper: the process that explains this program's hits: starting it or joining
 * an existing one, sending it requests and descriptors, and the final messages.
 *
 * Nothing here allocates.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/libc.h"
#include "program/detached.h"
#include "program/trusted.h"
#include "arming/delivery.h"
#include "arming/helper.h"
#include "program/table.h"

/* Where watchctl is installed; the Makefile sets it. */
#ifndef WP_HELPER_PATH
#define WP_HELPER_PATH "/usr/local/bin/watchctl"
#endif

enum {
	PATIENCE = 10,		/* seconds for a helper to start serving */
	LAST_WAIT = 500,	/* ms at exit for hits still being reported */
};

static bool unread;		/* the events of a watch could not be read */

/* Set in a process that fork(2) made.  root: the first channel of the program,
   or of the command that it belongs to; NULL if there is none or its helper
   does not serve this process.  channel: the parent's channel, until the child
   drops it. */
static struct {
	struct wp_channel *root;
	struct wp_channel *channel;
	pid_t parent;
} family;

/* The result of the one attempt to get a helper.  Protected by the table's
   lock. */
static struct {
	bool tried;
	int err;
	struct wp_cause cause;
} attempt;

const char *
wp_setting(const char *name)
{
	return secure_getenv(name);
}

/* The channel of a helper that is alive, or NULL. */
static struct wp_channel *
living(void)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	return channel != NULL && wp_channel_alive(channel) ? channel : NULL;
}

static uint32_t
stack_wanted(void)
{
	const char *text = wp_setting("WATCHPOINT_STACK");
	char *end = NULL;
	unsigned long n = text == NULL ? 0 : strtoul(text, &end, 10);

	if (end == NULL || end == text || *end != '\0')
		return WP_STACK_USUAL;
	return n < WP_STACK_MAX ? (uint32_t)n : WP_STACK_MAX;
}

/* Variables that concern this program only, and are not passed on. */
static bool
is_private(const char *variable)
{
	static const char *const names[] = {
		"LD_PRELOAD=", "LD_AUDIT=", "WATCHPOINT_WATCH=",
		"WATCHPOINT_CHANNEL=", "WATCHPOINT_FAMILY=",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Whether the program has privileges that its caller lacks, like a set-user-ID
   program.  It then ignores what the caller has set up. */
static bool
is_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* The helper's environment, in *size bytes of mapped memory, or NULL. */
static char **
environment(size_t *size)
{
	size_t n = 0;
	char **env;

	while (!is_privileged() && environ != NULL && environ[n] != NULL)
		n++;
	*size = (n + 1) * sizeof(*env);
	env = mmap(NULL, *size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (env == MAP_FAILED)
		return NULL;
	for (size_t i = 0, to = 0; i < n; i++)
		if (!is_private(environ[i]))
			env[to++] = environ[i];
	return env;
}

/* Finds bin/watchctl beside the directory that this library was loaded from. */
static bool
path_beside(char path[PATH_MAX])
{
	const char *end;
	Dl_info info;
	int n;

	if (dladdr(&wp_state, &info) == 0 || info.dli_fname == NULL ||
	    (end = strrchr(info.dli_fname, '/')) == NULL)
		return false;
	n = snprintf(path, PATH_MAX, "%.*s/../bin/watchctl",
	    (int)(end - info.dli_fname), info.dli_fname);
	return n > 0 && n < PATH_MAX;
}

/* Start the helper from its built-in path, provided that only root can have put
   it there. */
static int
start_trusted(struct wp_detached *what, pid_t *pid, struct wp_cause *cause)
{
	int err, fd = wp_trusted_open(WP_HELPER_PATH);

	what->path = WP_HELPER_PATH;
	if (fd >= 0)
		fd = what->program = wp_descriptor_high(fd);
	err = fd < 0 ? fd : wp_detached_start(what, pid);
	if (fd >= 0)
		(void)close(fd);
	if (err < 0) {
		(void)wp_cause_set(cause, WP_CAUSE_HELPER_PRIVILEGED,
		    what->path, fd == -EPERM ?
		    "others than root may have put it there" :
		    wp_libc_why(-err));
		cause->err = -err;
	}
	return err;
}

/* Start the helper that WATCHPOINT_HELPER names, or else the first of the
   places where it may be installed. */
static int
start_first(struct wp_detached *what, pid_t *pid, struct wp_cause *cause)
{
	static char beside[PATH_MAX];
	const char *path = wp_setting("WATCHPOINT_HELPER");
	int err;

	if (is_privileged())
		return start_trusted(what, pid, cause);
	if (path != NULL && *path == '\0')
		return wp_cause_set(cause, WP_CAUSE_HELPER_OFF);
	what->path = path != NULL ? path : WP_HELPER_PATH;
	err = wp_detached_start(what, pid);
	if (err == -ENOENT && path == NULL && path_beside(beside)) {
		what->path = beside;
		if ((err = wp_detached_start(what, pid)) == -ENOENT)
			what->path = WP_HELPER_PATH;
	}
	if (err < 0) {
		(void)wp_cause_set(cause, WP_CAUSE_HELPER_EXEC, what->path,
		    wp_libc_why(-err));
		cause->err = -err;
	}
	return err;
}

/* Where Yama restricts ptrace(2) to descendants, a program has to name the
   process that may read its memory. */
static void
permit(pid_t helper)
{
	(void)prctl(PR_SET_PTRACER, (unsigned long)helper, 0, 0, 0);
}

static bool
has_ended(int pidfd)
{
	struct pollfd poll_end = {.fd = pidfd, .events = POLLIN};

	return poll(&poll_end, 1, 0) > 0;
}

/* Returns a pidfd; -1 if the kernel has none; -ESRCH if the process has ended
   and been reaped, by init(1) for example. */
static int
process_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd >= 0 ? wp_descriptor_high(fd) : errno == ESRCH ? -ESRCH : -1;
}

/* Wait until the process serves the channel.  Returns 0, -EPIPE if it ended
   before, or -ETIMEDOUT. */
static int
await_served(struct wp_channel *channel, int pidfd)
{
	int err = pidfd == -ESRCH ? -EPIPE : -ETIMEDOUT;

	for (unsigned i = 0; err == -ETIMEDOUT && i < 10 * PATIENCE; i++)
		if ((err = wp_channel_await(channel, 100)) == -ETIMEDOUT &&
		    has_ended(pidfd))
			err = -EPIPE;
	return err;
}

/* Wait until the new helper serves the channel; if it does not, end it. */
static int
await(struct wp_channel *channel, const char *path, pid_t pid,
    struct wp_cause *cause)
{
	int pidfd = process_open(pid);
	int err = await_served(channel, pidfd);

	if (err == -ETIMEDOUT)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	if (pidfd >= 0)
		(void)close(pidfd);
	if (err < 0) {
		(void)wp_cause_set(cause, WP_CAUSE_HELPER_SILENT, path,
		    err == -EPIPE ? "it ended at once" : "it does not answer");
		cause->err = -err;
	}
	return err;
}

/* Start a helper for the channel behind fd. */
static int
start_own(struct wp_channel *channel, int fd, struct wp_cause *cause)
{
	static const char *const argv[] = {"watchctl", "helper", NULL};
	struct wp_detached what = {
		.argv = (char *const *)(uintptr_t)argv, .fd = fd,
	};
	size_t size;
	char **env;
	pid_t pid = 0;
	int err;

	if ((env = environment(&size)) == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	what.env = env;
	if ((err = start_first(&what, &pid, cause)) == 0) {
		permit(pid);
		err = await(channel, what.path, pid, cause);
	}
	(void)munmap(env, size);
	return err;
}

/* Whether the parent's helper serves the channel behind fd as well.  If it does
   not, that is reported to a user that relies on it. */
static bool
is_adopted(int fd)
{
	struct wp_channel *root = family.root;

	if (root == NULL)
		return false;
	permit(root->helper_pid);
	if (wp_channel_be_adopted(root, fd, family.parent) == 0)
		return true;
	wp_helper_unfollowed();
	family.root = NULL;
	wp_channel_set_root(NULL);
	return false;
}

static int
start_on(int fd, struct wp_cause *cause)
{
	struct wp_channel *channel;
	int err;

	if ((err = wp_channel_map(fd, &channel)) < 0)
		return wp_cause_errno(cause, "memory to share with a helper",
		    -err);
	(void)wp_channel_join(channel);
	err = is_adopted(fd) ? 0 : start_own(channel, fd, cause);
	if (err == 0)
		atomic_store(&wp_state.channel, channel);
	else
		wp_channel_unmap(channel);
	return err;
}

static int
start(struct wp_cause *cause)
{
	int err, fd = wp_channel_make(stack_wanted());

	if (fd < 0)
		return wp_cause_errno(cause, "memory to share with a helper",
		    -fd);
	fd = wp_descriptor_high(fd);
	err = start_on(fd, cause);
	(void)close(fd);
	return err;
}

/* Join the channel at this path.  The process that made it, which pidfd refers
   to, may end before it serves. */
static int
join_made(const char *path, int pidfd, struct wp_cause *cause)
{
	struct wp_channel *channel;
	int err, fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return wp_cause_errno(cause, path, errno);
	err = wp_channel_map(fd, &channel);
	(void)close(fd);
	if (err < 0)
		return wp_cause_errno(cause, path, -err);
	if ((err = wp_channel_join(channel)) == 0)
		err = await_served(channel, pidfd);
	if (err < 0) {
		wp_channel_unmap(channel);
		return wp_cause_errno(cause, path, -err);
	}
	permit(channel->helper_pid);
	atomic_store(&wp_state.channel, channel);
	return 0;
}

/* The path names a descriptor in /proc of the process that made it. */
static int
join(const char *path, struct wp_cause *cause)
{
	pid_t maker = 0;
	int pidfd, err;

	if (sscanf(path, "/proc/%d/", &maker) != 1)
		return join_made(path, -1, cause);
	pidfd = process_open(maker);
	err = join_made(path, pidfd, cause);
	if (err == -EPIPE || (err < 0 && (pidfd == -ESRCH ||
	    has_ended(pidfd))))
		err = wp_cause_set(cause, WP_CAUSE_HELPER_DIED);
	if (pidfd >= 0)
		(void)close(pidfd);
	return err;
}

int
wp_helper_join(struct wp_cause *cause)
{
	const char *path = wp_setting("WATCHPOINT_CHANNEL");

	if (atomic_load(&wp_state.channel) != NULL)
		return 0;
	if (path == NULL)
		return wp_cause_errno(cause, "WATCHPOINT_CHANNEL", ENOENT);
	return join(path, cause);
}

/* Find the channel of the command that this program is part of, if there is
   one.  Its helper serves this program too. */
static void
find_family(void)
{
	const char *path = wp_setting("WATCHPOINT_FAMILY");
	struct wp_channel *root;
	int fd, err;

	if (family.root != NULL || path == NULL ||
	    (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return;
	err = wp_channel_map(fd, &root);
	(void)close(fd);
	if (err < 0)
		return;
	if (wp_channel_await(root, PATIENCE * 1000) < 0) {
		wp_channel_unmap(root);
		return;
	}
	family.root = root;
	wp_channel_set_root(root);
}

int
wp_helper_start(struct wp_cause *cause)
{
	if (atomic_load(&wp_state.channel) != NULL)
		return living() != NULL ? 0 :
		    wp_cause_set(cause, WP_CAUSE_HELPER_DIED);
	if (!attempt.tried) {
		attempt.tried = true;
		attempt.err = wp_helper_join(&attempt.cause);
		if (attempt.err < 0)
			find_family();
		if (attempt.err < 0)
			attempt.err = start(&attempt.cause);
	}
	if (attempt.err < 0 && cause != NULL)
		*cause = attempt.cause;
	return attempt.err;
}

void
wp_helper_forked(void)
{
	struct wp_channel *channel = atomic_exchange(&wp_state.channel, NULL);

	attempt.tried = false;
	if (channel == NULL)
		return;
	family.parent = atomic_load(&channel->program);
	family.channel = channel;
	if (family.root == NULL)
		family.root = channel;
	wp_channel_set_root(family.root);
}

/* A child that a hit's handler has forked keeps the mapping, because the cell
   of that hit is still in use. */
void
wp_helper_part(void)
{
	if (family.channel != NULL && family.channel != family.root &&
	    !wp_trap_inside())
		wp_channel_unmap(family.channel);
	family.channel = NULL;
}

void
wp_helper_unfollowed(void)
{
	if (family.root != NULL)
		(void)atomic_fetch_add(&family.root->children, 1);
}

int
wp_helper_armed(const struct wp_cause *cause)
{
	struct wp_request *request = wp_helper_request(WP_ASK_ARMED);
	int answer;

	if (request == NULL)
		return -EPIPE;
	if (cause != NULL)
		memcpy(request->text, cause->text, sizeof(cause->text));
	answer = wp_helper_ask(NULL);
	wp_state.kept = answer > 0;
	return answer;
}

struct wp_request *
wp_helper_request(uint32_t what)
{
	struct wp_channel *channel = living();
	struct wp_request *request;

	if (channel == NULL)
		return NULL;
	request = &channel->request;
	memset((char *)request + sizeof(request->state), 0,
	    sizeof(*request) - sizeof(request->state));
	request->what = what;
	return request;
}

int
wp_helper_ask(struct wp_cause *cause)
{
	struct wp_channel *channel = living();
	int result = channel == NULL ? -EPIPE : wp_channel_ask(channel);

	if (result == -EPIPE)
		return wp_cause_set(cause, WP_CAUSE_HELPER_DIED);
	if (result < 0 && cause != NULL) {
		(void)wp_cause_errno(cause, "the helper", -result);
		if (channel->request.cause[0] != '\0')
			(void)snprintf(cause->text, sizeof(cause->text), "%.*s",
			    (int)sizeof(channel->request.cause) - 1,
			    channel->request.cause);
	}
	return result;
}

/* Whether each access that the events count makes a hit. */
static bool
is_exact(const struct wp_watch *w)
{
	return w->attr.period <= 1 && !w->inexact;
}

/* What the events had counted for other watches before they were reused. */
static uint64_t
counted_before(const struct wp_watch *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->narmed; i++)
		sum += w->armed[i].before;
	return sum;
}

static void
describe(struct wp_channel_watch *words, const struct wp_watch *w)
{
	memcpy(words->what.label, w->label, sizeof(w->label));
	words->what.addr = w->region.addr;
	words->what.len = w->region.len;
	words->what.serial = atomic_load(&w->serial);
	words->what.access = (uint8_t)w->region.access;
	words->what.nslots = (uint8_t)w->nslots;
	words->what.index = (uint16_t)wp_watch_index(w);
	words->stray = (w->attr.flags & WP_STRAY) != 0;
	words->signal = (uint32_t)w->delivery->signal();
	words->kernel = w->kernel && !w->delivery->by_tracer;
	words->exact = is_exact(w);
	words->before = counted_before(w);
	atomic_store(&words->hits, wp_accounted(w) + words->before);
	for (size_t i = 0; i < sizeof(words->fd) / sizeof(words->fd[0]); i++)
		words->fd[i] = i < w->narmed ? w->armed[i].fd : -1;
}

/* The helper reads the new place of a watch that has only moved with its next
   hit. */
void
wp_helper_describe(struct wp_watch *w)
{
	struct wp_channel *channel = living();
	uint32_t serial = atomic_load(&w->serial), before;
	struct wp_channel_watch *words;

	if (channel == NULL)
		return;
	words = wp_watch_words(w, channel);
	before = atomic_exchange(&words->serial, 0);
	if (serial != before) {
		atomic_store(&words->undelivered, 0);
		atomic_store(&words->suppressed, atomic_load(&w->suppressed));
	}
	if (serial != 0) {
		describe(words, w);
		atomic_store(&words->serial, serial);
	}
	/* the helper looks at the words often enough by itself, and waking it
	   takes longer than opening an event */
	if (serial != before)
		(void)atomic_fetch_add(&channel->bell, 1);
}

uint32_t
wp_helper_gaps(void)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	return channel == NULL ? 0 : atomic_load(&channel->gaps);
}

/* Only these words, because handlers are counting in the others. */
void
wp_helper_moved(const struct wp_watch *w)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	struct wp_channel_watch *words;

	if (channel == NULL)
		return;
	words = wp_watch_words(w, channel);
	if (atomic_load(&words->serial) != atomic_load(&w->serial))
		return;
	words->what.addr = w->region.addr;
	words->what.len = w->region.len;
	memcpy(words->what.label, w->label, sizeof(w->label));
}

/* Pass a message to the helper, or print it if there is none. */
static void
warn(struct wp_channel *channel, const struct wp_cause *cause)
{
	char line[sizeof(cause->text) + 16];

	if (channel == NULL) {
		(void)snprintf(line, sizeof(line), "watchpoint: %s\n",
		    cause->text);
		wp_fallback_line(line);
		return;
	}
	(void)snprintf(channel->warning, sizeof(channel->warning), "%.*s",
	    (int)sizeof(channel->warning) - 1, cause->text);
	(void)atomic_fetch_add(&channel->warned, 1);
}

/* The number of accesses that reached no handler.  Other threads may be just
   reporting some; they get the *ms that are left. */
static uint64_t
undelivered(const struct wp_watch *w, uint64_t count, unsigned *ms)
{
	uint64_t seen;

	while ((seen = wp_accounted(w)) < count && *ms > 0) {
		wp_clock_sleep(1000000);
		--*ms;
	}
	return seen < count ? count - seen : 0;
}

void
wp_helper_look(const struct wp_watch *w, unsigned *ms)
{
	struct wp_channel *channel = living();
	struct wp_cause cause;
	uint64_t count, missed;
	int err = w->delivery->count(w, &count);

	unread = unread || err == -EBADF;
	if (err == -EBADF && !wp_state.kept) {
		(void)wp_cause_set(&cause, WP_CAUSE_EVENTS_CLOSED, w->label);
		warn(channel, &cause);
	}
	if (err == -EPIPE && w->narmed == 0) {
		(void)wp_cause_set(&cause, WP_CAUSE_HELPER_GONE, w->label);
		warn(NULL, &cause);
	}
	if (err < 0 || !is_exact(w) ||
	    (missed = undelivered(w, count, ms)) == 0)
		return;
	if (channel != NULL) {
		(void)atomic_fetch_add(&channel->undelivered, missed);
		(void)atomic_fetch_add(
		    &wp_watch_words(w, channel)->undelivered, missed);
		return;
	}
	(void)wp_cause_set(&cause, WP_CAUSE_MISSED, (unsigned long long)missed,
	    missed == 1 ? "" : "es", w->label);
	warn(NULL, &cause);
}

/* Check all open watches, which remain open. */
static void
look_at_all(unsigned ms)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&wp_state.watch[i].serial) != 0)
			wp_helper_look(&wp_state.watch[i], &ms);
}

/* The signals are checked before the lock is taken, as it blocks them. */
static __attribute__((destructor)) void
at_exit(void)
{
	struct wp_channel *channel;
	struct wp_cause cause;
	bool taken;

	if (atomic_load(&wp_state.nopen) == 0)
		return;
	taken = wp_trap_check(&cause) > 0;
	wp_watches_lock();
	channel = living();
	if (taken)
		warn(channel, &cause);
	look_at_all(taken ? 0 : LAST_WAIT);
	if (channel != NULL) {
		atomic_store(&channel->goodbye, !(unread && wp_state.kept));
		wp_channel_ring(channel);
	}
	wp_watches_unlock();
}

void
wp_watch_publish(struct wp_watch *w, uint32_t serial)
{
	atomic_store(&w->serial, serial);
	wp_helper_describe(w);
}
