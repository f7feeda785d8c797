/* memory_image: ELF files read from the memory of processes. */
#include "module/memory_image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "proc/proc.h"

#define PAGE 4096u
#define VDSO_MAX (64 * 1024)
#define IMAGE_MAX ((uint64_t)1 << 28)	/* bytes copied at most */
#define PHDRS_MAX 64

/* The vDSO of this process, which ends with its section headers. */
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
	/* below 4 GiB it is the vDSO of a 32-bit program */
	own = own_vdso(size);
	if (own == NULL || *size != len || (pid > 0 && start >> 32 == 0)) {
		free(image);
		return NULL;
	}
	memcpy(image, own, len);
	return image;
}

/* A file that is being put together, with the headers of 64-bit files. */
struct assembly {
	pid_t pid;
	bool narrow;		/* it is of a 32-bit program */
	uint64_t base;		/* where vaddr 0 lies */
	unsigned nph;
	Elf64_Phdr ph[PHDRS_MAX];
	uint8_t *image;
	uint64_t size;
};

static bool
read_all(pid_t pid, uint64_t addr, void *to, size_t len)
{
	return len == 0 || wp_proc_read(pid, addr, to, len) == (ssize_t)len;
}

/* Convert the fields that are used. */
static bool
narrow_headers(struct assembly *a, uint64_t header, const Elf32_Ehdr *eh)
{
	Elf32_Phdr ph[PHDRS_MAX];

	a->nph = eh->e_phnum;
	if (eh->e_phentsize != sizeof(ph[0]) || a->nph > PHDRS_MAX ||
	    !read_all(a->pid, header + eh->e_phoff, ph,
	    a->nph * sizeof(ph[0])))
		return false;
	for (unsigned i = 0; i < a->nph; i++)
		a->ph[i] = (Elf64_Phdr){
			.p_type = ph[i].p_type, .p_offset = ph[i].p_offset,
			.p_vaddr = ph[i].p_vaddr, .p_filesz = ph[i].p_filesz,
		};
	return true;
}

static bool
wide_headers(struct assembly *a, uint64_t header, const Elf64_Ehdr *eh)
{
	a->nph = eh->e_phnum;
	return eh->e_phentsize == sizeof(a->ph[0]) && a->nph <= PHDRS_MAX &&
	    read_all(a->pid, header + eh->e_phoff, a->ph,
	    a->nph * sizeof(a->ph[0]));
}

static bool
read_headers(struct assembly *a, uint64_t header)
{
	union {
		uint8_t ident[EI_NIDENT];
		Elf32_Ehdr narrow;
		Elf64_Ehdr wide;
	} eh;

	/* reading more than the smaller header does no harm, as the file goes
	   on behind it */
	if (!read_all(a->pid, header, &eh, sizeof(eh)) ||
	    memcmp(eh.ident, ELFMAG, SELFMAG) != 0)
		return false;
	a->narrow = eh.ident[EI_CLASS] == ELFCLASS32;
	return a->narrow ? narrow_headers(a, header, &eh.narrow) :
	    eh.ident[EI_CLASS] == ELFCLASS64 &&
	    wide_headers(a, header, &eh.wide);
}

static bool
assembly_headers(struct assembly *a, uint64_t header)
{
	const Elf64_Phdr *first = NULL;

	if (!read_headers(a, header))
		return false;
	for (const Elf64_Phdr *ph = a->ph; ph < a->ph + a->nph; ph++) {
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
	    a->size < sizeof(Elf64_Ehdr) || a->size > IMAGE_MAX)
		return false;
	a->base = header - first->p_vaddr;
	return true;
}

/* Whether the value of this tag in a dynamic section is an address. */
static bool
is_address(uint64_t tag)
{
	switch (tag) {
	case DT_SYMTAB:
	case DT_STRTAB:
	case DT_HASH:
	case DT_GNU_HASH:
	case DT_VERSYM:
	case DT_VERDEF:
	case DT_VERNEED:
	case DT_REL:
	case DT_RELA:
	case DT_JMPREL:
	case DT_PLTGOT:
		return true;
	default:
		return false;
	}
}

/* Undo what the loader did: it replaced addresses in the dynamic section by
   those in the process. */
static void
assembly_unrelocate(struct assembly *a, const Elf64_Phdr *dynamic)
{
	const size_t word = a->narrow ? sizeof(uint32_t) : sizeof(uint64_t);

	if (a->base == 0 || dynamic->p_offset > a->size ||
	    dynamic->p_filesz > a->size - dynamic->p_offset)
		return;
	for (uint64_t i = 0; i < dynamic->p_filesz / (2 * word); i++) {
		uint8_t *at = a->image + dynamic->p_offset + i * 2 * word;
		uint64_t tag = 0, value = 0;

		memcpy(&tag, at, word);
		memcpy(&value, at + word, word);
		if (!is_address(tag) || value < a->base)
			continue;
		value -= a->base;
		memcpy(at + word, &value, word);
	}
}

/* The file has no section headers. */
static void
assembly_unsection(struct assembly *a)
{
	Elf32_Ehdr narrow;
	Elf64_Ehdr wide;

	if (a->narrow) {
		memcpy(&narrow, a->image, sizeof(narrow));
		narrow.e_shoff = 0;
		narrow.e_shnum = narrow.e_shstrndx = 0;
		memcpy(a->image, &narrow, sizeof(narrow));
		return;
	}
	memcpy(&wide, a->image, sizeof(wide));
	wide.e_shoff = 0;
	wide.e_shnum = wide.e_shstrndx = 0;
	memcpy(a->image, &wide, sizeof(wide));
}

static void
assembly_contents(struct assembly *a)
{
	for (const Elf64_Phdr *ph = a->ph; ph < a->ph + a->nph; ph++) {
		/* what cannot be read stays zero */
		if (ph->p_type == PT_LOAD)
			(void)wp_proc_read(a->pid, a->base + ph->p_vaddr,
			    a->image + ph->p_offset, ph->p_filesz);
	}
	for (const Elf64_Phdr *ph = a->ph; ph < a->ph + a->nph; ph++) {
		if (ph->p_type == PT_DYNAMIC)
			assembly_unrelocate(a, ph);
	}
	assembly_unsection(a);
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
