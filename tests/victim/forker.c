/*
 * forker: a program that watches itself, by macros, around fork(2).
 *
 *	forker ACT
 *
 * `other` is left to whoever runs it.  Writes both variables in a child and
 * then itself, in a block or not.  Ends with status 7; 1, if its counts of
 * strays are not what they should be.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watchpoint.h"

#define OWN __attribute__((noinline, noclone))

volatile long state, other;

OWN static void
write_both(void)
{
	other++;
	state++;
}

static void
expect_strays(uint64_t n)
{
	if (wp_stray_count() != n || wp_stray_missed() != 0)
		_exit(1);
}

static void
in_child(void (*body)(void))
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		body();
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		_exit(1);
}

/* Its parent's block. */
static void
in_block_of_parent(void)
{
	write_both();
	expect_strays(0);
}

static void
in_own_block(void)
{
	WP_FREEZE(state)
		write_both();
	write_both();
	expect_strays(1);
}

static void
fork_frozen(void)
{
	WP_FREEZE(state) {
		in_child(in_block_of_parent);
		write_both();
	}
	write_both();
	expect_strays(1);
}

static void
fork_permitted(void)
{
	WP_FREEZE(state)
		WP_PERMIT(state) {
			in_child(in_block_of_parent);
			write_both();
		}
	expect_strays(0);
}

static void
fork_watched(void)
{
	(void)WP_WATCH(state);
	in_child(in_block_of_parent);
	write_both();
	(void)WP_UNWATCH(state);
	write_both();
	expect_strays(0);
}

static void
fork_and_freeze(void)
{
	in_child(in_own_block);
	in_own_block();
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} acts[] = {
		{"frozen", fork_frozen}, {"permitted", fork_permitted},
		{"watched", fork_watched}, {"freezes", fork_and_freeze},
	};

	for (size_t i = 0; argc > 1 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(argv[1], acts[i].name) == 0)
			acts[i].run();
	return 7;
}
