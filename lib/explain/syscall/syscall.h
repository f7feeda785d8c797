/*
 * syscall: describes the system call in which the kernel touched a watch, with
 * the meaning of its arguments: `write by read(2), 8 of 64 bytes, fd 3
 * (/etc/hosts)`.
 *
 * A sample in the kernel holds the user's registers as of the call's entry but
 * not its number; the name is that of the kernel's function for it in the
 * callchain.  What the arguments point to is looked up in the sample's copy of
 * the stack, which is as old as the access; elsewhere only while the thread
 * is stopped.
 */
#ifndef EX_SYSCALL_H
#define EX_SYSCALL_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/stack.h"
#include "record/record.h"
#include "watchpoint.h"

struct ex_syscall {
	const char *name;	/* "read"; NULL: not known, or none */
	const char *work;	/* the kernel's work without a call: "signal
				   delivery"; NULL: not known, or a call */
	bool reads, writes;	/* what the kernel does with that memory;
				   neither: not known */
	bool may_read, may_write;	/* for explain.c: what the call can
					   do */
	bool has_bytes;		/* the call's buffer is known: */
	uint64_t buffer, bytes;	/* its address in the process, and its requested
				   length; of vectors the part that was
				   touched */
	uint64_t done;		/* an upper bound of the bytes touched */
	bool bounded;		/* the touched bytes are among the done bytes
				   from buffer on, whether has_bytes or not */
	unsigned each, from;	/* each != 0: the buffer has elements of `each'
				   bytes, of which those from `from' on are
				   written */
	bool has_fd;
	int fd;			/* has_fd */
	bool file_later;	/* file was looked up when the thread may have
				   continued and opened another one */
	char file[256];		/* has_fd: the open file, as shown in /proc
				   ("/etc/hosts", "socket:[4711]"), cut to "..."
				   and its end if it is long; "": not known (a
				   recording, or closed by now) */
};

/* The access to explain. */
struct ex_syscall_sample {
	const struct ex_record *record;	/* taken in the kernel */
	const struct ex_stack *stack;	/* its backtrace; NULL: none */
	uint64_t addr, len;	/* the watched bytes */
	bool kernels;		/* they are the kernel's own memory, so the
				   call's arguments do not describe them */
	enum wp_access access;	/* as of struct ex_watch */
	uint64_t reached;	/* as of ex_group_reached */
	struct ex_process *process;	/* to find the number in its code; NULL:
					   unknown */
	int number;		/* of the call; < 0: not known */
	bool live;		/* /proc of the process may be read */
	bool stopped;		/* live: its thread is stopped after the call */
	bool returned;		/* the registers are from there, too; else from
				   the call's entry */
};

/* Fills *out. */
void ex_syscall_explain(const struct ex_syscall_sample *,
    struct ex_syscall *out);

#endif
