/*
 * libdw_open: what libdw opens by itself.
 *
 * Debug information names other files: of split units (DW_AT_dwo_name), and what
 * it shares with others (.gnu_debugaltlink).  libdw opens them whatever they are,
 * and there is no way to have it ask.  So its open(2) is this one: of what is
 * there only regular files are opened, and only those that may be unpacked.
 * Everybody else's is as it always is.
 */
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "module/compressed.h"
#include "module/module_private.h"
#include "os/proc.h"

/* The object that holds an address; NULL: unknown. */
static const void *
object_of(const void *addr)
{
	Dl_info info;

	return dladdr(addr, &info) != 0 ? info.dli_fbase : NULL;
}

/* Not where libdw is a part of this program. */
static bool
is_libdw(const void *caller)
{
	static const void *libdw, *own;

	if (libdw == NULL) {
		libdw = object_of((const void *)(uintptr_t)dwarf_begin_elf);
		own = object_of(&libdw);
	}
	return libdw != own && object_of(caller) == libdw;
}

/* What is opened where nothing is. */
static int instead = -1;

void
ex_open_instead(int fd)
{
	instead = fd;
}

static int
open_checked(const char *path)
{
	int fd = wp_proc_open_regular(path);
	struct ex_compressed claim;
	Elf *elf;

	if (fd < 0 && instead >= 0)
		fd = fcntl(instead, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf == NULL || ex_compressed_plausible(elf, &claim)) {
		(void)elf_end(elf);
		return fd;
	}
	(void)elf_end(elf);
	(void)close(fd);
	errno = EFBIG;
	return -1;
}

/* What calls it, not what calls that, is what is asked about. */
#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

int
open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_CREAT) == 0 &&
	    is_libdw(CALLER))
		return open_checked(path);
	if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *, int, ...) __attribute__((alias("open")));
