/*
 * terminal: runs a program whose standard error is a terminal.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "command.h"
#include "test.h"

static inline bool
terminal_take(int slave)
{
	return dup2(slave, STDERR_FILENO) >= 0;
}

/* As run(), on a terminal with this many columns; 0: unknown. */
static inline void
run_on_terminal(struct outcome *o, unsigned short columns,
    const char *const argv[])
{
	const struct winsize size = {.ws_row = 24, .ws_col = columns};
	char *text = NULL, bytes[4096];
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct running r;
	int master, slave;
	ssize_t n;

	assert_non_null(f);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	start_prepared(&r, argv, terminal_take, slave);
	(void)close(slave);
	/* EIO when all have closed it */
	while ((n = read(master, bytes, sizeof(bytes))) > 0)
		(void)fwrite(bytes, 1, (size_t)n, f);
	(void)close(master);
	assert_int_equal(fclose(f), 0);
	finish(&r, o);
	test_frees(text, free);
	o->err = text;
}

#endif
