/*
 * stray: the stray accesses so far.
 *
 * Signal safety: all but wp_stray_handler and wp_stray_reset are
 * async-signal-safe.  Writers of the text take turns; one that would have to
 * wait leaves it as it is, for which of two accesses at the same time is the
 * last?
 */
#include <string.h>
#include <unistd.h>

#include "handler/trap.h"

/* Readers use text[current]; a writer fills the other one and then switches. */
static struct {
	char text[2][WP_REPLY_MAX];
	_Atomic unsigned current;
	_Atomic pid_t writer;	/* a pid, as a child inherits its parent's
				   value */
} last;

/* The program's handler for stray hits. */
static struct {
	wp_handler *_Atomic handler;
	void *_Atomic arg;
} called;

uint64_t
wp_stray_count(void)
{
	return atomic_load(&wp_state.strays);
}

const char *
wp_stray_text(void)
{
	return last.text[atomic_load(&last.current)];
}

static void
keep(const char *text)
{
	const pid_t pid = getpid();
	unsigned next;
	size_t len;

	if (atomic_exchange(&last.writer, pid) == pid)
		return;
	next = !atomic_load(&last.current);
	len = strnlen(text, WP_REPLY_MAX - 1);
	memcpy(last.text[next], text, len);
	last.text[next][len] = '\0';
	atomic_store(&last.current, next);
	atomic_store(&last.writer, 0);
}

void
wp_stray_note(const char *text)
{
	keep(text);
	(void)atomic_fetch_add(&wp_state.strays, 1);
}

void
wp_stray_reset(void)
{
	keep("");
	atomic_store(&wp_state.strays, 0);
	atomic_store(&wp_state.missed, 0);
}

/* A reader that finds the same handler before and after reading arg has that
   handler's arg. */
void
wp_stray_handler(wp_handler *handler, void *arg)
{
	atomic_store(&called.handler, NULL);
	atomic_store(&called.arg, arg);
	atomic_store(&called.handler, handler);
}

void
wp_stray_call(const struct wp_hit *hit)
{
	wp_handler *handler;
	void *arg;

	do {
		handler = atomic_load(&called.handler);
		arg = atomic_load(&called.arg);
	} while (handler != atomic_load(&called.handler));
	if (handler != NULL)
		handler(hit, arg);
}

bool
wp_stray_is_handled(void)
{
	return atomic_load(&called.handler) != NULL;
}
