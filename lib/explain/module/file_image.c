/* file_image: an ELF file in memory. */
#include "module/file_image.h"

#include <errno.h>
#include <gelf.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Make the section headers writable. */
static int
open_headers(const struct ex_file_image *file)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	Elf *elf = elf_memory((char *)file->at, file->size);
	size_t n = 0, size = 0, from;
	GElf_Ehdr eh;

	if (elf != NULL && gelf_getehdr(elf, &eh) != NULL &&
	    eh.e_shoff < file->size && elf_getshdrnum(elf, &n) == 0)
		size = gelf_fsize(elf, ELF_T_SHDR, n, EV_CURRENT);
	(void)elf_end(elf);
	if (size == 0)
		return 0;
	if (size > file->size - eh.e_shoff)
		size = file->size - eh.e_shoff;
	from = eh.e_shoff / page * page;
	return mprotect(file->at + from, eh.e_shoff + size - from,
	    PROT_READ | PROT_WRITE) != 0 ? -errno : 0;
}

int
ex_file_image_map(struct ex_file_image *file, int fd)
{
	struct stat st;
	void *at;
	int err;

	*file = (struct ex_file_image){0};
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < EI_NIDENT)
		return -ENOEXEC;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	*file = (struct ex_file_image){at, (size_t)st.st_size, st};
	if ((err = open_headers(file)) < 0)
		ex_file_image_unmap(file);
	return err;
}

void
ex_file_image_unmap(struct ex_file_image *file)
{
	if (file->at != NULL)
		(void)munmap(file->at, file->size);
	*file = (struct ex_file_image){0};
}
