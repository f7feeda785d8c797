/*
 * libdw_open: the files that libdw opens by itself.
 *
 * Debug information names other files: of split units (DW_AT_dwo_name), and
 * what it shares with others (.gnu_debugaltlink).  libdw opens them whatever
 * they are, and cannot be told to ask first.  So its calls of open(2) go to
 * libdw_interpose.c: only regular files are opened, and of these only those
 * that may be unpacked.  Images in memory are opened too: libdw gets a number
 * that is no descriptor, and elf_begin(3) knows which image it stands for.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "module/compressed.h"
#include "module/module_private.h"
#include "proc/regular_file.h"

/* No descriptor is as high: closing it does nothing. */
#define STAND_IN INT_MAX

/* The image in memory that is opened in place of a file, and that for which
   STAND_IN stands. */
static const struct ex_file_image *instead, *opened;

int
ex_stand_in(const struct ex_file_image *image)
{
	opened = image;
	return STAND_IN;
}

void
ex_open_instead(const struct ex_file_image *image)
{
	instead = image;
}

Elf *
elf_begin(int fd, Elf_Cmd command, Elf *reference)
{
	static Elf *(*next)(int, Elf_Cmd, Elf *);

	if (fd == STAND_IN)
		return elf_memory((char *)opened->at, opened->size);
	if (next == NULL) {
		void *symbol = dlsym(RTLD_NEXT, "elf_begin");

		memcpy(&next, &symbol, sizeof(next));
	}
	return next(fd, command, reference);
}

int
ex_libdw_open(const char *path)
{
	int fd = wp_open_regular(path);
	struct ex_compressed claim;
	Elf *elf;

	if (fd < 0 && instead != NULL)
		return ex_stand_in(instead);
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
