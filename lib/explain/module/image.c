/* image: ELF files in memory. */
#include "module/image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "os/proc.h"

#define PAGE 4096u
#define VDSO_MAX (64 * 1024)
#define IMAGE_MAX ((uint64_t)1 << 28)	/* bytes copied at most */
#define PHDRS_MAX 64

/* Our own vDSO: its section headers are its end. */
static const void *
own_vdso(size_t *size)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr eh;

	if (image == NULL)
		return NULL;
	memcpy(&eh, image, sizeof(eh));
	*size = eh.e_shoff + (size_t)eh.e_shnum * eh.e_shentsize;
	*size = (*size + PAGE - 1) / PAGE * PAGE;
	return image;
}

void *
ex_image_of_vdso(pid_t pid, uint64_t start, uint64_t len, size_t *size)
{
	const void *own;
	void *image;

	if (len == 0 || len > VDSO_MAX || (image = malloc(len)) == NULL)
		return NULL;
	if (pid > 0 && wp_proc_read(pid, start, image, len) == (ssize_t)len) {
		*size = len;
		return image;
	}
	/* below 4 GiB it is that of a 32-bit program */
	own = own_vdso(size);
	if (own == NULL || *size != len || (pid > 0 && start >> 32 == 0)) {
		free(image);
		return NULL;
	}
	memcpy(image, own, len);
	return image;
}

/* A file being put together. */
struct assembly {
	pid_t pid;
	uint64_t base;		/* where vaddr 0 lies */
	Elf64_Ehdr eh;
	Elf64_Phdr ph[PHDRS_MAX];
	uint8_t *image;
	uint64_t size;
};

static bool
read_all(pid_t pid, uint64_t addr, void *to, size_t len)
{
	return len == 0 || wp_proc_read(pid, addr, to, len) == (ssize_t)len;
}

static bool
assembly_headers(struct assembly *a, uint64_t header)
{
	const Elf64_Phdr *first = NULL;

	if (!read_all(a->pid, header, &a->eh, sizeof(a->eh)) ||
	    memcmp(a->eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    a->eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    a->eh.e_phentsize != sizeof(a->ph[0]) ||
	    a->eh.e_phnum > PHDRS_MAX || !read_all(a->pid, header +
	    a->eh.e_phoff, a->ph,
	    a->eh.e_phnum * sizeof(a->ph[0])))
		return false;
	for (const Elf64_Phdr *ph = a->ph; ph < a->ph + a->eh.e_phnum; ph++) {
		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_offset > IMAGE_MAX || ph->p_filesz > IMAGE_MAX)
			return false;
		if (first == NULL)
			first = ph;
		if (ph->p_offset + ph->p_filesz > a->size)
			a->size = ph->p_offset + ph->p_filesz;
	}
	if (first == NULL || first->p_offset != 0 ||
	    a->size < sizeof(a->eh) || a->size > IMAGE_MAX)
		return false;
	a->base = header - first->p_vaddr;
	return true;
}

/* The loader has replaced addresses in the dynamic section by those in the
   process. */
static void
assembly_unrelocate(struct assembly *a, const Elf64_Phdr *dynamic)
{
	uint64_t n = dynamic->p_filesz / sizeof(Elf64_Dyn);

	if (a->base == 0 || dynamic->p_offset > a->size ||
	    dynamic->p_filesz > a->size - dynamic->p_offset)
		return;
	for (uint64_t i = 0; i < n; i++) {
		uint8_t *at = a->image + dynamic->p_offset +
		    i * sizeof(Elf64_Dyn);
		Elf64_Dyn dyn;

		memcpy(&dyn, at, sizeof(dyn));
		switch (dyn.d_tag) {
		case DT_SYMTAB:
		case DT_STRTAB:
		case DT_HASH:
		case DT_GNU_HASH:
		case DT_VERSYM:
		case DT_VERDEF:
		case DT_VERNEED:
		case DT_RELA:
		case DT_JMPREL:
		case DT_PLTGOT:
			if (dyn.d_un.d_ptr >= a->base)
				dyn.d_un.d_ptr -= a->base;
			memcpy(at, &dyn, sizeof(dyn));
			break;
		default:
			break;
		}
	}
}

static void
assembly_contents(struct assembly *a)
{
	for (const Elf64_Phdr *ph = a->ph; ph < a->ph + a->eh.e_phnum; ph++) {
		/* what cannot be read stays zero: it is better than nothing */
		if (ph->p_type == PT_LOAD)
			(void)wp_proc_read(a->pid, a->base + ph->p_vaddr,
			    a->image + ph->p_offset, ph->p_filesz);
	}
	for (const Elf64_Phdr *ph = a->ph; ph < a->ph + a->eh.e_phnum; ph++) {
		if (ph->p_type == PT_DYNAMIC)
			assembly_unrelocate(a, ph);
	}
	a->eh.e_shoff = 0;
	a->eh.e_shnum = a->eh.e_shstrndx = 0;
	memcpy(a->image, &a->eh, sizeof(a->eh));
}

void *
ex_image_of_file(pid_t pid, uint64_t start, size_t *size)
{
	struct assembly a = {.pid = pid};
	uint64_t header;

	if (wp_proc_first_page(pid, start, &header) < 0 ||
	    !assembly_headers(&a, header) ||
	    (a.image = calloc(1, a.size)) == NULL)
		return NULL;
	assembly_contents(&a);
	*size = a.size;
	return a.image;
}
