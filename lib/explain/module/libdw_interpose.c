/*
 * libdw_interpose: defines open(2), which calls ex_libdw_open when libdw is the
 * caller, and the C library otherwise.
 */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "module/module_private.h"

/* The module that contains an address; NULL: unknown. */
static const void *
object_of(const void *addr)
{
	Dl_info info;

	return dladdr(addr, &info) != 0 ? info.dli_fbase : NULL;
}

static const void *libdw, *own;

void
ex_libdw_interpose(void)
{
	if (libdw == NULL) {
		libdw = object_of((const void *)(uintptr_t)dwarf_begin_elf);
		own = object_of(&libdw);
	}
}

/* Whether the caller is libdw.  False where libdw is linked statically. */
static bool
is_libdw(const void *caller)
{
	return libdw != own && object_of(caller) == libdw;
}

/* The address in the function that calls open(2). */
#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

int
open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_CREAT) == 0 &&
	    is_libdw(CALLER))
		return ex_libdw_open(path);
	if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *, int, ...) __attribute__((alias("open")));
