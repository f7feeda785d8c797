/*
 * copies: watches a word of its own with the libwatchpoint that is linked into
 * it, while a preloaded one watches another.  Exits with 7 if its handler got
 * each store of its word, and nothing else.
 */
#include <stdint.h>
#include <string.h>
#include <watchpoint.h>

enum { THEIRS = 3, OURS = 5 };

long state, own;
static volatile int calls, others;

static void
on_hit(const struct wp_hit *hit, void *unused)
{
	(void)unused;
	calls++;
	others += hit->addr != &own;
}

static __attribute__((noinline)) void
store_state(void)
{
	*(volatile long *)&state += 1;
}

static __attribute__((noinline)) void
store_own(void)
{
	*(volatile long *)&own += 1;
}

int
main(void)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = &own, .len = sizeof(own),
		.handler = on_hit,
	};
	struct wp_watch *watch;

	if (wp_open(&attr, &watch) < 0)
		return 1;
	for (int i = 0; i < THEIRS; i++)
		store_state();
	for (int i = 0; i < OURS; i++)
		store_own();
	wp_close(watch);
	for (int i = 0; i < THEIRS; i++)
		store_state();
	return calls == OURS && others == 0 ? 7 : 3;
}
