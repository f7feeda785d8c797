/*
 * libdw_open: the files that libdw opens by itself.
 *
 * Debug information names other files: of split units (DW_AT_dwo_name), and
 * what it shares with others (.gnu_debugaltlink).  libdw opens them whatever
 * they are, and there is no way to have it ask.  So its open(2) is
 * libdw_interpose.c's: of what is there only regular files are opened, and only
 * those that may be unpacked.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "module/compressed.h"
#include "module/module_private.h"
#include "proc/regular_file.h"

/* What is opened where nothing is. */
static int instead = -1;

void
ex_open_instead(int fd)
{
	instead = fd;
}

int
ex_libdw_open(const char *path)
{
	int fd = wp_open_regular(path);
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
