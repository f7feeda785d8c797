/* unpacked: the debug sections of an ELF file, unpacked in memory. */
#include "module/unpacked.h"

#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#define PAGE UINT64_C(4096)
#define STEP (UINT64_C(1) << 20)	/* bytes unpacked at a time */

enum { SECTIONS_MAX = 32, NAMES_SIZE = 1024 };

struct section {
	Elf_Scn *scn;		/* in the file */
	const char *name;
	uint64_t at;		/* its place in the image */
	uint64_t size;		/* bytes, as far as the file says */
	uint64_t done;		/* bytes that are there */
	bool packed;
	bool begun;		/* stream is to be ended */
	z_stream stream;
};

struct ex_unpacked {
	uint8_t *image;		/* mapped; readable, and writable as far as
				   something is there */
	uint64_t image_size;
	Elf *elf;		/* of the image */
	struct section section[SECTIONS_MAX];
	unsigned n;
	struct section *info;	/* .debug_info */
};

static uint64_t
page_up(uint64_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

/* Make a part of the image writable. */
static bool
room(struct ex_unpacked *u, uint64_t start, uint64_t end)
{
	start = start / PAGE * PAGE;
	return mprotect(u->image + start, page_up(end) - start,
	    PROT_READ | PROT_WRITE) == 0;
}

/* --- sections --- */

/* Whether it has what is asked of debug information here. */
static bool
is_read(const char *name)
{
	static const char *const unread[] = {
		".debug_loc", ".debug_loclists", ".debug_macinfo",
		".debug_macro", ".debug_pubnames", ".debug_pubtypes",
		".debug_gnu_pubnames", ".debug_gnu_pubtypes", ".debug_names",
	};

	for (size_t i = 0; i < sizeof(unread) / sizeof(unread[0]); i++) {
		if (strcmp(name, unread[i]) == 0)
			return false;
	}
	return strncmp(name, ".debug_", strlen(".debug_")) == 0;
}

/* Take a section over.  False: this file is not for us. */
static bool
add_section(struct ex_unpacked *u, Elf_Scn *scn, const char *name,
    const GElf_Shdr *sh)
{
	struct section *s = &u->section[u->n];
	GElf_Chdr ch;

	if (u->n == SECTIONS_MAX)
		return false;
	*s = (struct section){.scn = scn, .name = name, .size = sh->sh_size};
	if ((sh->sh_flags & SHF_COMPRESSED) != 0) {
		if (gelf_getchdr(scn, &ch) == NULL ||
		    ch.ch_type != ELFCOMPRESS_ZLIB || sh->sh_size > UINT_MAX)
			return false;
		s->packed = true;
		s->size = ch.ch_size;
	}
	if (strcmp(name, ".debug_info") == 0)
		u->info = s;
	u->n++;
	return true;
}

static bool
add_sections(struct ex_unpacked *u, Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		if (gelf_getshdr(scn, &sh) == NULL || (name = elf_strptr(elf,
		    names, sh.sh_name)) == NULL)
			return false;
		if (strcmp(name, ".gnu_debugaltlink") == 0 ||
		    strncmp(name, ".zdebug", strlen(".zdebug")) == 0)
			return false;
		if (sh.sh_type != SHT_NOBITS && is_read(name) &&
		    !add_section(u, scn, name, &sh))
			return false;
	}
	return u->info != NULL && u->info->packed;
}

/* --- unpacking --- */

static bool
section_begin(struct section *s)
{
	const Elf_Data *raw = elf_rawdata(s->scn, NULL);

	if (raw == NULL || raw->d_size <= sizeof(Elf64_Chdr))
		return false;
	s->stream.next_in = (Bytef *)raw->d_buf + sizeof(Elf64_Chdr);
	s->stream.avail_in = (uInt)(raw->d_size - sizeof(Elf64_Chdr));
	s->begun = inflateInit(&s->stream) == Z_OK;
	return s->begun;
}

static void
section_end(struct section *s)
{
	if (s->begun)
		(void)inflateEnd(&s->stream);
	s->begun = false;
}

/* Unpack up to this byte, of those that the file claims.  A section that is
   damaged, or is less than that, ends where it does. */
static void
section_upto(struct ex_unpacked *u, struct section *s, uint64_t end)
{
	int result = Z_OK;

	while (s->done < end && s->begun) {
		uint64_t n = s->size - s->done < STEP ? s->size - s->done :
		    STEP;

		if (!room(u, s->at + s->done, s->at + s->done + n))
			break;
		s->stream.next_out = u->image + s->at + s->done;
		s->stream.avail_out = (uInt)n;
		result = inflate(&s->stream, Z_NO_FLUSH);
		s->done += n - s->stream.avail_out;
		if (result != Z_OK || s->stream.avail_out > 0 ||
		    s->done == s->size)
			section_end(s);
	}
}

/* What is not packed. */
static bool
section_copy(struct ex_unpacked *u, struct section *s)
{
	const Elf_Data *raw = elf_rawdata(s->scn, NULL);

	if (s->size == 0)
		return true;
	if (raw == NULL || raw->d_size < s->size ||
	    !room(u, s->at, s->at + s->size))
		return false;
	memcpy(u->image + s->at, raw->d_buf, s->size);
	s->done = s->size;
	return true;
}

/* One that is not there as a whole is not there. */
static bool
section_fill(struct ex_unpacked *u, struct section *s)
{
	if (!s->packed)
		return section_copy(u, s);
	if (!section_begin(s))
		return false;
	if (s != u->info)
		section_upto(u, s, s->size);
	return s == u->info || s->done == s->size;
}

/* --- the image --- */

static bool
map_image(struct ex_unpacked *u)
{
	uint64_t at = page_up(sizeof(Elf64_Ehdr) +
	    (u->n + 2) * sizeof(Elf64_Shdr) + NAMES_SIZE);
	void *image;

	for (unsigned i = 0; i < u->n; i++) {
		u->section[i].at = at;
		at += page_up(u->section[i].size);
	}
	image = mmap(NULL, at, PROT_READ,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image == MAP_FAILED)
		return false;
	u->image = image;
	u->image_size = at;
	return room(u, 0, u->section[0].at);
}

/* Headers, and the names of the sections. */
static bool
write_headers(struct ex_unpacked *u, Elf *elf)
{
	Elf64_Shdr *sh = (Elf64_Shdr *)(u->image + sizeof(Elf64_Ehdr));
	const uint64_t names = sizeof(Elf64_Ehdr) + (u->n + 2) * sizeof(*sh);
	size_t used = 1;
	GElf_Ehdr eh;

	if (gelf_getehdr(elf, &eh) == NULL)
		return false;
	eh.e_entry = eh.e_phoff = 0;
	eh.e_phnum = 0;
	eh.e_shoff = sizeof(eh);
	eh.e_shentsize = sizeof(*sh);
	eh.e_shnum = (uint16_t)(u->n + 2);
	eh.e_shstrndx = 1;
	memcpy(u->image, &eh, sizeof(eh));
	sh[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = names,
	    .sh_size = NAMES_SIZE, .sh_addralign = 1};
	for (unsigned i = 0; i < u->n; i++) {
		const struct section *s = &u->section[i];
		size_t len = strlen(s->name) + 1;

		if (len > NAMES_SIZE - used)
			return false;
		memcpy(u->image + names + used, s->name, len);
		sh[i + 2] = (Elf64_Shdr){.sh_name = (uint32_t)used,
		    .sh_type = SHT_PROGBITS, .sh_offset = s->at,
		    .sh_size = s->size, .sh_addralign = 1};
		used += len;
	}
	return true;
}

static void
hide_section(struct ex_unpacked *u, unsigned i)
{
	Elf64_Shdr *sh = (Elf64_Shdr *)(u->image + sizeof(Elf64_Ehdr));

	sh[i + 2].sh_type = SHT_NOBITS;
}

static bool
make(struct ex_unpacked *u, Elf *elf)
{
	if (gelf_getclass(elf) != ELFCLASS64 || !add_sections(u, elf) ||
	    !map_image(u) || !write_headers(u, elf))
		return false;
	for (unsigned i = 0; i < u->n; i++) {
		if (!section_fill(u, &u->section[i]))
			hide_section(u, i);
	}
	u->elf = elf_memory((char *)u->image, u->image_size);
	return u->elf != NULL;
}

struct ex_unpacked *
ex_unpacked_new(Elf *elf)
{
	struct ex_unpacked *u = calloc(1, sizeof(*u));

	if (u != NULL && !make(u, elf)) {
		ex_unpacked_free(u);
		u = NULL;
	}
	return u;
}

void
ex_unpacked_free(struct ex_unpacked *u)
{
	if (u == NULL)
		return;
	(void)elf_end(u->elf);
	for (unsigned i = 0; i < u->n; i++)
		section_end(&u->section[i]);
	if (u->image != NULL)
		(void)munmap(u->image, u->image_size);
	free(u);
}

Elf *
ex_unpacked_elf(struct ex_unpacked *u)
{
	return u->elf;
}

uint64_t
ex_unpacked_info(struct ex_unpacked *u, uint64_t upto)
{
	section_upto(u, u->info, upto < u->info->size ? upto : u->info->size);
	return u->info->done;
}
