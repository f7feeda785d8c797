/*
 * call_table: which of its arguments a system call has the kernel touch memory
 * by.  Sizes are those of x86-64's structures; a part is in the order of the
 * call's arguments, which are numbered from 0.
 */
#ifndef EX_CALL_TABLE_H
#define EX_CALL_TABLE_H

#include <stdint.h>

enum ex_call_way {
	EX_CALL_READS = 1,	/* the kernel reads it */
	EX_CALL_WRITES = 2,
};

enum ex_call_kind {
	EX_CALL_NO_PART,
	EX_CALL_FIXED,		/* size bytes */
	EX_CALL_COUNTED,	/* as many elements of size as argument len
				   says, a size_t */
	EX_CALL_COUNTED_INT,	/* the same, an int */
	EX_CALL_HEADED,		/* size bytes, and as many more as argument len
				   says, a size_t */
	EX_CALL_UPTO,		/* at most size, how many is not known */
	EX_CALL_POINTED,	/* argument len points to an int that says how
				   many bytes */
	EX_CALL_VECTOR,		/* an array of len struct iovec */
	EX_CALL_MESSAGE,	/* a struct msghdr */
	EX_CALL_MESSAGES,	/* an array of len struct mmsghdr */
	EX_CALL_POLL,		/* an array of len struct pollfd */
	EX_CALL_SET,		/* an fd_set of len descriptors */
	EX_CALL_IOCTL,		/* as argument len, the request, says */
};

struct ex_call_part {
	uint8_t kind;		/* enum ex_call_kind */
	uint8_t way;		/* enum ex_call_way; of vectors and messages
				   what becomes of the data */
	uint8_t at;		/* the argument that points to it */
	uint8_t len;		/* an argument, as the kind says */
	uint16_t size;		/* bytes, as the kind says */
};

enum { EX_CALL_PARTS = 5 };

struct ex_call_row {
	const char *name;	/* "read" */
	int number;		/* < 0: not of this processor */
	int8_t fd;		/* the argument that is one; < 0: none */
	int8_t flags;		/* fd is one only if this argument has
				   AT_EMPTY_PATH; < 0: always */
	struct ex_call_part part[EX_CALL_PARTS];
};

/* The row of a name, up to a dot, or of a number; NULL: none. */
const struct ex_call_row *ex_call_row(const char *name);
const struct ex_call_row *ex_call_row_number(int number);

#endif
