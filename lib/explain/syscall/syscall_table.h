/*
 * syscall_table: lists the arguments through which system calls have the kernel
 * touch memory.  Sizes are those of x86-64's structures, in the table of 32-bit
 * programs (narrow) those of i386's; parts are in the order of the call's
 * arguments, which are numbered from 0.
 */
#ifndef EX_SYSCALL_TABLE_H
#define EX_SYSCALL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ex_syscall_way {
	EX_SYSCALL_READS = 1,	/* the kernel reads it */
	EX_SYSCALL_WRITES = 2,
};

enum ex_syscall_kind {
	EX_SYSCALL_NO_PART,
	EX_SYSCALL_FIXED,		/* size bytes */
	EX_SYSCALL_COUNTED,	/* argument len, a size_t, is the number of
				   elements of size bytes */
	EX_SYSCALL_COUNTED_INT,	/* the same, an int */
	EX_SYSCALL_HEADED,		/* size bytes, plus as many as argument
					   len, a size_t, says */
	EX_SYSCALL_UPTO,		/* at most size bytes; how many is not
					   known */
	EX_SYSCALL_POINTED,	/* argument len points to an int, the number of
				   bytes */
	EX_SYSCALL_VECTOR,		/* an array of len struct iovec */
	EX_SYSCALL_MESSAGE,	/* a struct msghdr */
	EX_SYSCALL_MESSAGES,	/* an array of len struct mmsghdr */
	EX_SYSCALL_POLL,		/* an array of len struct pollfd */
	EX_SYSCALL_SET,		/* an fd_set of len descriptors */
	EX_SYSCALL_IOCTL,		/* as argument len, the request, says */
};

struct ex_syscall_part {
	uint8_t kind;		/* enum ex_syscall_kind */
	uint8_t way;		/* enum ex_syscall_way; for vectors and messages
				   that of the data */
	uint8_t at;		/* the argument that points to it */
	uint8_t len;		/* another argument; its meaning depends on the
				   kind */
	uint16_t size;		/* bytes, as the kind says */
};

enum { EX_SYSCALL_PARTS = 5 };

struct ex_syscall_row {
	const char *name;	/* "read" */
	int number;		/* < 0: not of this processor */
	int8_t fd;		/* the argument that is a descriptor; < 0:
				   none */
	int8_t flags;		/* fd is a descriptor only if this argument has
				   AT_EMPTY_PATH; < 0: always */
	struct ex_syscall_part part[EX_SYSCALL_PARTS];
	bool old;		/* its times have 4 bytes; another call has the
				   same name */
};

/* The row of a name, up to a dot, or of a number; NULL: none. */
const struct ex_syscall_row *ex_syscall_row(const char *name, bool narrow);
const struct ex_syscall_row *ex_syscall_row_number(int number, bool narrow);

/* The table of 32-bit programs, which has *n rows. */
const struct ex_syscall_row *ex_syscall_rows_narrow(size_t *n);

#endif
