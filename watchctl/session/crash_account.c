/*
 * crash_account: the account of a run that watchctl does not survive.
 *
 * Signal safety: nothing is allocated, and only write(2), getpid(2) and
 * _exit(2) are called.
 */
#include "session/crash_account.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"

#ifndef __has_feature		/* a feature test of clang's */
#define __has_feature(feature) 0
#endif

enum { STACK = 64 * 1024 };

static struct {
	bool on;		/* the account has not been written yet */
	const struct session *session;	/* NULL if nothing is counted */
	pid_t pid;			/* of watchctl itself */
} words;

/* A text under construction. */
struct account_text {
	char bytes[512];
	size_t len;
};

static void
put(struct account_text *text, const char *s)
{
	while (*s != '\0' && text->len < sizeof(text->bytes))
		text->bytes[text->len++] = *s++;
}

static void
put_number(struct account_text *text, uint64_t n)
{
	char digits[21];
	unsigned at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	put(text, digits + at);
}

/* Hits that were delivered, not only counted by the kernel. */
static uint64_t
taken(const struct session *s)
{
	return s->samples - s->joined - s->dropped;
}

static void
put_part(struct account_text *text, uint64_t n, const char *what)
{
	put(text, ", ");
	put_number(text, n);
	put(text, what);
}

/* The account in the form of session_end.  What had not been written is
   lost. */
static void
put_account(struct account_text *text, const struct session *s)
{
	const uint64_t hits = taken(s) + s->lost;
	const uint64_t accounted = s->written + s->rejected + s->unchanged +
	    s->thinned;

	put(text, "watchctl: ");
	if (s->options->count) {
		put(text, "hits were counted, and their number is lost\n");
		return;
	}
	put_number(text, hits);
	put(text, hits == 1 ? " hit, " : " hits, ");
	put_number(text, s->written);
	put(text, " reported, ");
	put_number(text, hits > accounted ? hits - accounted : 0);
	put(text, " lost");
	if (s->options->condition.root != NULL)
		put_part(text, s->rejected, " rejected");
	if (s->options->changed)
		put_part(text, s->unchanged, " unchanged");
	if (options_thin(s->options))
		put_part(text, s->thinned, " skipped");
	put(text, "\n");
}

static _Noreturn void
speak(const char *why)
{
	struct account_text text = {.len = 0};

	if (words.on && words.session != NULL)
		put_account(&text, words.session);
	words.on = false;
	put(&text, "watchctl: ");
	put(&text, why);
	put(&text, ": what came after that is not known; start it again\n");
	(void)!write(STDERR_FILENO, text.bytes, text.len);
	_exit(STATUS_OWN_FAILURE);
}

/* In a child process the signal is only raised again. */
static void
on_signal(int sig)
{
	(void)sig;
	if (words.pid == getpid())
		speak("ran out of memory, or failed otherwise");
}

void
crash_account_install(void)
{
	static char stack[STACK];
	static const int fatal[] = {
		SIGBUS, SIGSEGV, SIGABRT, SIGILL, SIGFPE,
	};
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = SA_ONSTACK | (int)SA_RESETHAND | SA_NODEFER,
	};
	/* sanitizers report the other signals better */
	const size_t n = __has_feature(address_sanitizer) ? 1 :
	    sizeof(fatal) / sizeof(fatal[0]);

	words.pid = getpid();
	(void)sigaltstack(&alternate, NULL);
	for (size_t i = 0; i < n; i++)
		(void)sigaction(fatal[i], &action, NULL);
}

void
crash_account_begin(const struct session *s)
{
	words.session = s;
	words.on = true;
}

void
crash_account_end(void)
{
	words.on = false;
}
