/*
 * syscall_rows: how the rows of a table of system calls are written.  NUMBER is
 * the table's.
 */
#ifndef EX_SYSCALL_ROWS_H
#define EX_SYSCALL_ROWS_H

#include "hit/syscall_table.h"

#define R	EX_SYSCALL_READS
#define W	EX_SYSCALL_WRITES

/* Parts: of a structure, of a buffer with its length, of a string. */
#define IN(at, size)		{EX_SYSCALL_FIXED, R, at, 0, size}
#define OUT(at, size)		{EX_SYSCALL_FIXED, W, at, 0, size}
#define BOTH(at, size)		{EX_SYSCALL_FIXED, R | W, at, 0, size}
#define IN_N(at, n, size)	{EX_SYSCALL_COUNTED, R, at, n, size}
#define OUT_N(at, n, size)	{EX_SYSCALL_COUNTED, W, at, n, size}
#define IN_INT(at, n, size)	{EX_SYSCALL_COUNTED_INT, R, at, n, size}
#define OUT_INT(at, n, size)	{EX_SYSCALL_COUNTED_INT, W, at, n, size}
#define STRING(at)		{EX_SYSCALL_UPTO, R, at, 0, 4096}
#define OUT_UPTO(at, size)	{EX_SYSCALL_UPTO, W, at, 0, size}
#define BOTH_UPTO(at, size)	{EX_SYSCALL_UPTO, R | W, at, 0, size}
#define IN_MESSAGE(at, n)	{EX_SYSCALL_HEADED, R, at, n, 8}
#define OUT_MESSAGE(at, n)	{EX_SYSCALL_HEADED, W, at, n, 8}
#define OUT_POINTED(at, n)	{EX_SYSCALL_POINTED, W, at, n, 128}
#define IOV(way, at, n)		{EX_SYSCALL_VECTOR, way, at, n, 0}
#define SET(at)			{EX_SYSCALL_SET, R | W, at, 0, 0}
#define POLL(at, n)		{EX_SYSCALL_POLL, R | W, at, n, 8}

/* A call without a descriptor, with one as its first argument, and with one
   there if the flags say that there is no path. */
#define CALL(name, ...)							\
	{#name, NUMBER(name), -1, -1, {__VA_ARGS__}}
#define CALL_FD(name, ...)						\
	{#name, NUMBER(name), 0, -1, {__VA_ARGS__}}
#define CALL_AT(name, flags, ...)					\
	{#name, NUMBER(name), 0, flags, {__VA_ARGS__}}

#endif
