/*
 * call: the system call in which the kernel touched a watch, with what its
 * arguments say: `write by read(2), 8 of 64 bytes, fd 3 (/etc/hosts)`.
 *
 * A sample in the kernel holds the user's registers as of the call's entry but
 * not its number; the name is that of the kernel's function for it in the
 * callchain.
 */
#ifndef EX_CALL_H
#define EX_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "module.h"
#include "stack.h"

struct ex_call {
	const char *name;	/* "read"; NULL: not known, and nothing else */
	bool has_bytes;		/* the call's buffer is known: */
	uint64_t buffer, bytes;	/* where in the process, and how long as asked
				   for; of vectors the part that was touched */
	bool has_fd;
	int fd;			/* has_fd */
	char file[256];		/* has_fd: what it is open on, as /proc shows
				   it ("/etc/hosts", "socket:[4711]"); "": not
				   known (a recording, or closed by now) */
};

/* The call of a kernel sample with this backtrace, which touched addr.  Fills
   *out.  Live processes' /proc is asked when live. */
void ex_call_explain(struct ex_process *, const struct ex_sample *,
    const struct ex_stack *, uint64_t addr, bool live, struct ex_call *out);

#endif
