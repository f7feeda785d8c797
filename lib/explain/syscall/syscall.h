/*
 * syscall: the system call in which the kernel touched a watch, with the
 * meaning of its arguments: `write by read(2), 8 of 64 bytes, fd 3
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
	const char *work;	/* no call, but this: "signal delivery"; NULL:
				   not known, or a call */
	bool reads, writes;	/* what the kernel does with that memory;
				   neither: not known */
	bool may_read, may_write;	/* for explain.c: what the call does */
	bool has_bytes;		/* the call's buffer is known: */
	uint64_t buffer, bytes;	/* where in the process, and how long as asked
				   for; of vectors the part that was touched */
	uint64_t done;		/* as many of them were touched at most */
	bool bounded;		/* what was touched lies in the done bytes from
				   buffer on, whether has_bytes or not */
	unsigned each, from;	/* each != 0: the buffer has elements of each
				   bytes, of which those from from on are
				   written */
	bool has_fd;
	int fd;			/* has_fd */
	bool file_later;	/* file: it was looked up when the thread may
				   have gone on, and opened another */
	char file[256];		/* has_fd: what it is open on, as /proc shows
				   it ("/etc/hosts", "socket:[4711]"), the end
				   of it behind "..." if it is long; "": not
				   known (a recording, or closed by now) */
};

/* What is asked for. */
struct ex_syscall_sample {
	const struct ex_record *record;	/* taken in the kernel */
	const struct ex_stack *stack;	/* its backtrace; NULL: none */
	uint64_t addr, len;	/* the watched bytes that it is about */
	bool kernels;		/* these are the kernel's own: what the call was
				   given says nothing of them */
	enum wp_access access;	/* as of struct ex_watch */
	uint64_t reached;	/* as of ex_group_reached */
	struct ex_process *process;	/* its code may show the number; NULL:
				   no */
	int number;		/* of the call; < 0: not known */
	bool live;		/* the process may be asked, by /proc */
	bool stopped;		/* live: its thread is stopped behind the
				   call */
	bool returned;		/* the registers are from there, too; else they
				   are as of the call's entry */
};

/* Fills *out. */
void ex_syscall_explain(const struct ex_syscall_sample *,
    struct ex_syscall *out);

#endif
