/*
 * lifeline: what the program does when the helper and its tracing process are
 * both killed, and async's events with them.
 *
 * Overview.  There is a pipe, whose writing end the helper holds and its
 * tracing processes with it; the program has the reading end.  When the last of
 * them dies the kernel sends the program the signal of events (O_ASYNC).  Our
 * handler then opens the events here, as without a helper: hits are reported in
 * plain lines.  Accesses in between are lost, and threads created later are not
 * watched; a line says so.
 *
 *	program		pipe; WP_ASK_LIFELINE; close its writing end
 *	helper		holds the writing end, forks the tracing process
 *	(both die)
 *	program		signal -> wp_state.look_after -> open the events
 *
 * The signal may be merged with another, or come while the handler runs.  So
 * after each signal of events the pipe is looked at.
 *
 * In the handler.  This takes the table's lock there.  A thread that has it has
 * all signals blocked, so it is never this one; and it does not wait for this
 * one, which has no watch in use when it gets here.  Events are opened by a
 * short thread, on a stack of its own.  Everything that is called under look()
 * is async-signal-safe, or is where cancellation is disabled.
 *
 * Not done where the program has installed a seccomp filter since, which might
 * end it for opening an event; nor if the signal is one that ends a program
 * which has taken our handler away.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/trap.h"
#include "arming/delivery.h"
#include "arming/helper.h"
#include "arming/lifeline.h"
#include "program/table.h"
#include "os/libc.h"

static struct {
	_Atomic int fd;			/* the reading end, or -1 */
	dev_t dev;			/* identifies the pipe, with ino */
	ino_t ino;
	long filters;			/* seccomp filters when it was opened */
	const struct wp_delivery *delivery;	/* the delivery that is
						   replaced here */
	int (*take_over)(struct wp_watch *);
} line = {.fd = -1};

/* The number of seccomp filters of this thread, or -1 if not known.  Called
   with the table locked. */
static long
count_filters(void)
{
	static char text[4096];
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *field;

	if (fd >= 0)
		(void)close(fd);
	if (n < 0)
		return -1;
	text[n] = '\0';
	if ((field = strstr(text, "\nSeccomp_filters:\t")) != NULL)
		return strtol(strchr(field, '\t'), NULL, 10);
	/* kernels before 5.9 do not count them */
	return strstr(text, "\nSeccomp:\t0") != NULL ? 0 : -1;
}

/* Whether the descriptor still refers to the pipe. */
static bool
is_there(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == line.dev &&
	    st.st_ino == line.ino;
}

static void
drop(void)
{
	int fd = atomic_exchange(&line.fd, -1);

	atomic_store(&wp_state.look_after, NULL);
	if (is_there(fd))
		(void)close(fd);
}

/* Whether the helper of this process has died while hits are still wanted.
   Checked before any system call, because a seccomp filter may forbid it. */
static bool
is_helper_missed(void)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	return channel != NULL && atomic_load(&channel->off) == 0 &&
	    !wp_channel_has_helper(channel);
}

/* Whether all processes that held the other end have died.  read(2) would be a
   cancellation point. */
static bool
is_cut(void)
{
	const int fd = atomic_load(&line.fd);
	char byte;

	return is_helper_missed() && is_there(fd) &&
	    syscall(SYS_read, fd, &byte, 1) == 0;
}

static bool
is_lost(const struct wp_watch *w)
{
	return atomic_load(&w->serial) != 0 &&
	    w->delivery == line.delivery && w->narmed == 0;
}

static void
say_why(const struct wp_watch *w, int err)
{
	char text[160] = " is no longer watched: the helper and its tracing "
	    "process have ended, and ";
	const char *reason = err == 0 ? "the program has a seccomp filter that "
	    "may refuse to let it watch itself" : wp_libc_why(-err);

	(void)strncat(text, reason != NULL ? reason : "its events are refused",
	    sizeof(text) - strlen(text) - 1);
	wp_fallback_warning(w, text);
}

/* Arm in this process what the dead helper had armed. */
static void
replace(void)
{
	const long filters = count_filters();
	const bool may = filters >= 0 && filters == line.filters;
	bool any = false;

	drop();
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		struct wp_watch *w = &wp_state.watch[i];
		int err;

		if (!is_lost(w))
			continue;
		if ((err = may ? line.take_over(w) : 0) < 0 || !may)
			say_why(w, err);
		else
			any = true;
	}
	if (any)
		wp_fallback_line("the helper and its tracing process have "
		    "ended: accesses made in the meantime may be missing; from "
		    "here on hits are reported in plain lines, but threads "
		    "created later are not watched");
}

/* The handler calls this at its end. */
static void
look(void)
{
	if (!is_cut())
		return;
	wp_watches_lock();
	if (is_cut())
		replace();
	wp_watches_unlock();
}

static bool
set_signal(int fd, int sig)
{
	const struct f_owner_ex owner = {F_OWNER_PID, getpid()};

	return fcntl(fd, F_SETOWN_EX, &owner) == 0 &&
	    fcntl(fd, F_SETSIG, sig) == 0 &&
	    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
}

static bool
hand_over(int fd)
{
	struct wp_request *request = wp_helper_request(WP_ASK_LIFELINE);

	if (request == NULL)
		return false;
	request->fd = fd;
	return wp_helper_ask(NULL) == 0;
}

static bool
keep(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	line.dev = st.st_dev;
	line.ino = st.st_ino;
	line.filters = count_filters();
	atomic_store(&line.fd, fd);
	atomic_store(&wp_state.look_after, look);
	return true;
}

void
wp_lifeline_open(int sig, const struct wp_delivery *delivery,
    int (*take_over)(struct wp_watch *))
{
	int end[2];

	if (atomic_load(&line.fd) >= 0 || !wp_chain_ignored(sig) ||
	    wp_helper_request(WP_ASK_LIFELINE) == NULL ||
	    pipe2(end, O_CLOEXEC) != 0)
		return;
	line.delivery = delivery;
	line.take_over = take_over;
	end[0] = wp_descriptor_high(end[0]);
	end[1] = wp_descriptor_high(end[1]);
	if (!hand_over(end[1]) || !set_signal(end[0], sig) || !keep(end[0]))
		(void)close(end[0]);
	(void)close(end[1]);
}

void
wp_lifeline_forked(void)
{
	drop();
}
