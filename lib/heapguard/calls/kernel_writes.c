/*
 * kernel_writes: intercepts the functions of the C library by which the kernel
 * writes to a program's memory.
 *
 * A watch may not be permitted to see the kernel's writes.  The caller of such
 * a function is then reported if the kernel has written to watched bytes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guard/callers.h"
#include "guard/next.h"
#include "guard/watch.h"

/* With MSG_TRUNC the result may exceed the size of the buffer. */
static ssize_t
least(ssize_t got, size_t n)
{
	return got > 0 && (size_t)got > n ? (ssize_t)n : got;
}

/* x(result, name, parameters, arguments, how much was written to p) */
#define CALLS(x)							\
	x(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), got)	\
	x(ssize_t, __read_chk, (int fd, void *p, size_t n, size_t room),\
	    (fd, p, n, room), got)					\
	x(ssize_t, pread, (int fd, void *p, size_t n, off_t at),	\
	    (fd, p, n, at), got)					\
	x(ssize_t, pread64, (int fd, void *p, size_t n, off64_t at),	\
	    (fd, p, n, at), got)					\
	x(ssize_t, __pread_chk, (int fd, void *p, size_t n, off_t at,	\
	    size_t room), (fd, p, n, at, room), got)			\
	x(ssize_t, __pread64_chk, (int fd, void *p, size_t n,		\
	    off64_t at, size_t room), (fd, p, n, at, room), got)	\
	x(ssize_t, recv, (int fd, void *p, size_t n, int flags),	\
	    (fd, p, n, flags), least(got, n))				\
	x(ssize_t, __recv_chk, (int fd, void *p, size_t n, size_t room,	\
	    int flags), (fd, p, n, room, flags), least(got, n))		\
	x(ssize_t, recvfrom, (int fd, void *restrict p, size_t n,	\
	    int flags, __SOCKADDR_ARG from, socklen_t *restrict len),	\
	    (fd, p, n, flags, from, len), least(got, n))		\
	x(ssize_t, __recvfrom_chk, (int fd, void *restrict p, size_t n,	\
	    size_t room, int flags, __SOCKADDR_ARG from,		\
	    socklen_t *restrict len),					\
	    (fd, p, n, room, flags, from, len), least(got, n))		\
	x(ssize_t, getrandom, (void *p, size_t n, unsigned flags),	\
	    (p, n, flags), got)						\
	x(ssize_t, readlink, (const char *restrict path,		\
	    char *restrict p, size_t n), (path, p, n), got)		\
	x(ssize_t, __readlink_chk, (const char *restrict path,		\
	    char *restrict p, size_t n, size_t room),			\
	    (path, p, n, room), got)					\
	x(char *, getcwd, (char *p, size_t n), (p, n),			\
	    got == NULL || p == NULL ? 0 : (ssize_t)strlen(p) + 1)	\
	x(char *, __getcwd_chk, (char *p, size_t n, size_t room),	\
	    (p, n, room),						\
	    got == NULL || p == NULL ? 0 : (ssize_t)strlen(p) + 1)	\
	x(size_t, fread, (void *restrict p, size_t size, size_t n,	\
	    FILE *restrict file), (p, size, n, file),			\
	    (ssize_t)(got * size))					\
	x(size_t, __fread_chk, (void *restrict p, size_t room,		\
	    size_t size, size_t n, FILE *restrict file),		\
	    (p, room, size, n, file), (ssize_t)(got * size))

#define DECLARE(type, name, parameters, arguments, written)		\
	extern type name parameters;
CALLS(DECLARE)

enum {
#define NUMBER(type, name, parameters, arguments, written) AT_##name,
	CALLS(NUMBER)
	AT_readv, AT_recvmsg, ALL
};
static void *kept[ALL];

#define EXPORTED __attribute__((visibility("default")))
#define NEXT(name)							\
	((__typeof__(&(name)))(uintptr_t)hg_next_once(&kept[AT_##name], #name))

#define CALL(type, name, parameters, arguments, written)		\
	EXPORTED type							\
	name parameters							\
	{								\
		__typeof__(&(name)) next = NEXT(name);			\
		type got = next arguments;				\
									\
		hg_watch_written(p, written, HG_CALLER);		\
		return got;						\
	}
CALLS(CALL)

static void
look_at_all(const struct iovec *to, size_t n, ssize_t got,
    const struct hg_record *from)
{
	for (size_t i = 0; i < n && got > 0; i++) {
		const ssize_t len = (size_t)got < to[i].iov_len ? got :
		    (ssize_t)to[i].iov_len;

		hg_watch_written(to[i].iov_base, len, from);
		got -= len;
	}
}

EXPORTED ssize_t
readv(int fd, const struct iovec *to, int n)
{
	const ssize_t got = NEXT(readv)(fd, to, n);

	look_at_all(to, n > 0 ? (size_t)n : 0, got, HG_CALLER);
	return got;
}

EXPORTED ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
	const ssize_t got = NEXT(recvmsg)(fd, message, flags);

	if (got > 0)
		look_at_all(message->msg_iov, message->msg_iovlen, got,
		    HG_CALLER);
	return got;
}

/* Look them up in advance, because the child of a process with threads must not
   call the dynamic linker. */
static __attribute__((constructor)) void
find_all(void)
{
#define FIND(type, name, parameters, arguments, written) (void)NEXT(name);
	CALLS(FIND)
	(void)NEXT(readv);
	(void)NEXT(recvmsg);
}
