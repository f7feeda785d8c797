/* unpacked: the debug sections of an ELF file, unpacked in memory. */
#include "debug/unpacked.h"

#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "base/array.h"
#include "debug/unpacked_private.h"
#include "module/section.h"

#define LARGE (UINT64_C(1) << 21)	/* bytes of a huge page */
uint64_t
ex_unpacked_page_up(uint64_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

bool
ex_unpacked_room(struct ex_unpacked *u, uint64_t start, uint64_t end)
{
	start = start / PAGE * PAGE;
	end = ex_unpacked_page_up(end);
	return mprotect(u->image + start, end - start,
	    PROT_READ | PROT_WRITE) == 0;
}

bool
ex_unpacked_room_large(struct ex_unpacked *u, uint64_t start, uint64_t end)
{
	const uint64_t before = ((uintptr_t)u->image + start) % LARGE;
	const uint64_t behind = (LARGE - ((uintptr_t)u->image + end) % LARGE) %
	    LARGE;

	if (end - start >= STEP) {
		start -= before < start ? before : start;
		end += behind < u->image_size - end ? behind :
		    u->image_size - end;
		(void)madvise(u->image + ex_unpacked_page_up(start),
		    (end - start) / PAGE * PAGE, MADV_HUGEPAGE);
	}
	return ex_unpacked_room(u, start, end);
}

/* --- sections --- */

/* Whether the section is used here. */
static bool
is_read(const char *name)
{
	static const char *const unread[] = {
		".debug_macinfo", ".debug_macro", ".debug_pubnames",
		".debug_pubtypes", ".debug_gnu_pubnames",
		".debug_gnu_pubtypes",
	};

	for (size_t i = 0; i < sizeof(unread) / sizeof(unread[0]); i++) {
		if (strcmp(name, unread[i]) == 0)
			return false;
	}
	return strncmp(name, ".debug_", strlen(".debug_")) == 0;
}

/* Location lists, which are rarely needed. */
static bool
is_late(const char *name)
{
	return strcmp(name, ".debug_loc") == 0 ||
	    strcmp(name, ".debug_loclists") == 0;
}

/* Add a section.  Returns false if the file cannot be handled here. */
static bool
add_section(struct ex_unpacked *u, Elf_Scn *scn, const char *name,
    const GElf_Shdr *sh)
{
	struct unpacked_section *s = &u->section[u->n];
	GElf_Chdr ch;

	if (u->n == SECTIONS_MAX)
		return false;
	*s = (struct unpacked_section){
		.scn = scn, .name = name, .size = sh->sh_size,
		.late = is_late(name),
	};
	if ((sh->sh_flags & SHF_COMPRESSED) != 0) {
		if (gelf_getchdr(scn, &ch) == NULL ||
		    ch.ch_type != ELFCOMPRESS_ZLIB || sh->sh_size > UINT_MAX)
			return false;
		s->packed = true;
		s->size = ch.ch_size;
		if (s->size >= UINT_MAX)
			return false;
	}
	if (strcmp(name, ".debug_info") == 0)
		u->info.section = s;
	u->n++;
	return true;
}

static bool
add_sections(struct ex_unpacked *u, Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;

	while ((scn = ex_section_next(elf, scn, &sh, &name)) != NULL) {
		if (name == NULL || strcmp(name, ".gnu_debugaltlink") == 0 ||
		    strncmp(name, ".zdebug", strlen(".zdebug")) == 0)
			return false;
		if (sh.sh_type != SHT_NOBITS && is_read(name) &&
		    !add_section(u, scn, name, &sh))
			return false;
	}
	return u->info.section != NULL && u->info.section->packed;
}

/* --- unpacking a whole section --- */

const uint8_t *
ex_unpacked_stream_of(const struct unpacked_section *s, size_t *size)
{
	const Elf_Data *raw = elf_rawdata(s->scn, NULL);
	const uint8_t *header;

	if (raw == NULL || raw->d_size < sizeof(Elf64_Chdr) + ZLIB_HEADER)
		return NULL;
	header = (const uint8_t *)raw->d_buf + sizeof(Elf64_Chdr);
	*size = raw->d_size - sizeof(Elf64_Chdr) - ZLIB_HEADER;
	/* window of the usual size, and no preset dictionary */
	return (header[0] & 15) == Z_DEFLATED && header[0] >> 4 <= 7 &&
	    (header[1] & 32) == 0 && (header[0] * 256 + header[1]) % 31 == 0 ?
	    header + ZLIB_HEADER : NULL;
}

/* A section that is damaged, or shorter than claimed, is treated as missing. */
static bool
section_unpack(struct ex_unpacked *u, const struct unpacked_section *s)
{
	size_t size;
	const uint8_t *packed = ex_unpacked_stream_of(s, &size);

	return packed != NULL && ex_unpacked_room_large(u, s->at, s->at +
	    s->size) && libdeflate_deflate_decompress(u->inflater, packed, size,
	    u->image + s->at, s->size, NULL) == LIBDEFLATE_SUCCESS;
}

/* Copy a section that is not compressed. */
static bool
section_copy(struct ex_unpacked *u, const struct unpacked_section *s)
{
	const Elf_Data *raw = elf_rawdata(s->scn, NULL);

	if (s->size == 0)
		return true;
	if (raw == NULL || raw->d_size < s->size ||
	    !ex_unpacked_room(u, s->at, s->at + s->size))
		return false;
	memcpy(u->image + s->at, raw->d_buf, s->size);
	return true;
}

bool
ex_unpacked_map_bytes(struct ex_unpacked *u, const struct unpacked_section *s,
    const struct ex_index *index, const struct ex_index_bytes *b)
{
	return mmap(u->image + s->at + b->at, b->len, PROT_READ,
	    MAP_PRIVATE | MAP_FIXED, index->fd, (off_t)b->file) != MAP_FAILED;
}

/* Take a section from an index.  Returns false unless the index has all of
   it. */
static bool
section_take(struct ex_unpacked *u, const struct unpacked_section *s,
    const struct ex_index *index)
{
	const struct ex_index_bytes *b = index->bytes.at;

	for (size_t i = 0; i < index->bytes.n; i++, b++) {
		if (strcmp(b->name, s->name) == 0 && b->size == s->size &&
		    b->len == s->size)
			return ex_unpacked_map_bytes(u, s, index, b);
	}
	return false;
}

static bool
section_fill(struct ex_unpacked *u, const struct unpacked_section *s)
{
	return s->packed ? section_unpack(u, s) : section_copy(u, s);
}

bool
ex_unpacked_locations(struct ex_unpacked *u)
{
	bool there = true;

	for (unsigned i = 0; i < u->n; i++) {
		struct unpacked_section *s = &u->section[i];

		if (!s->late)
			continue;
		if (!s->asked && !s->there)
			s->there = section_fill(u, s);
		s->asked = true;
		there = there && s->there;
	}
	return there;
}

/* --- the image --- */

static bool
map_image(struct ex_unpacked *u)
{
	uint64_t at = ex_unpacked_page_up(sizeof(Elf64_Ehdr) +
	    (u->n + 2) * sizeof(Elf64_Shdr) + NAMES_SIZE);
	void *image;

	for (unsigned i = 0; i < u->n; i++) {
		u->section[i].at = at;
		at += ex_unpacked_page_up(u->section[i].size);
	}
	image = mmap(NULL, at, PROT_READ,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image == MAP_FAILED)
		return false;
	u->image = image;
	u->image_size = at;
	return ex_unpacked_room(u, 0, u->section[0].at);
}

/* Write the headers and the section names. */
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
		const struct unpacked_section *s = &u->section[i];
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
make(struct ex_unpacked *u, Elf *elf, const struct ex_index *index)
{
	if (gelf_getclass(elf) != ELFCLASS64 || !add_sections(u, elf) ||
	    !map_image(u) || !write_headers(u, elf) ||
	    !ex_unpacked_info_begin(u, index) ||
	    (u->inflater = libdeflate_alloc_decompressor()) == NULL)
		return false;
	for (unsigned i = 0; i < u->n; i++) {
		struct unpacked_section *s = &u->section[i];

		if (s == u->info.section)
			continue;
		s->there = (s->packed && section_take(u, s, index)) ||
		    (!s->late && section_fill(u, s));
		if (!s->there && !s->late)
			hide_section(u, i);
	}
	u->elf = elf_memory((char *)u->image, u->image_size);
	return u->elf != NULL;
}

struct ex_unpacked *
ex_unpacked_new(Elf *elf, const struct ex_index *index)
{
	struct ex_unpacked *u = calloc(1, sizeof(*u));

	if (u != NULL && !make(u, elf, index)) {
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
	libdeflate_free_decompressor(u->inflater);
	ex_unpacked_stream_end(&u->info.fill);
	ex_unpacked_stream_end(&u->info.pass);
	for (size_t i = 0; i < u->info.nwindows; i++)
		free(u->info.window[i]);
	free(u->info.window);
	free(u->info.seen);
	free(u->info.there);
	free(u->info.point);
	free(u->info.used);
	if (u->image != NULL)
		(void)munmap(u->image, u->image_size);
	free(u);
}

Elf *
ex_unpacked_elf(struct ex_unpacked *u)
{
	return u->elf;
}

/* The section ends where the stream did, but not before this place. */
static void
end_at(struct info *info, struct stream *s, uint64_t at)
{
	ex_unpacked_stream_end(s);
	info->end = s->pos > at ? s->pos : at;
}

/* Make room for the next bytes after those that are still examined. */
static void
shift_seen(struct info *info, uint64_t at)
{
	const uint64_t pos = info->pass.pos;
	uint64_t from = pos - info->seen_at > EX_INDEX_WINDOW ?
	    pos - EX_INDEX_WINDOW : info->seen_at;

	if (at < from)
		from = at;
	memmove(info->seen, info->seen + (from - info->seen_at), pos - from);
	info->seen_at = from;
}

/* Unpack a stream, without keeping it, up to the end of the bytes to be
   examined.  Returns false if it is damaged or there is no memory. */
static bool
pass(struct info *info, uint64_t at, uint64_t end)
{
	const struct ex_index_point *p = ex_unpacked_point_upto(info, at);
	struct stream *s = &info->pass;

	if (info->seen == NULL && (info->seen = malloc(SEEN_SIZE)) == NULL)
		return false;
	if (at < info->seen_at || !s->begun ||
	    (p != NULL && s->pos < p->at)) {
		if (!ex_unpacked_stream_begin(info, s, p))
			return false;
		info->seen_at = s->pos;
	}
	while (s->pos < end) {
		const uint64_t left = info->section->size - s->pos;
		const uint64_t next = s->pos + (left < AHEAD ? left : AHEAD);

		if (next - info->seen_at > SEEN_SIZE)
			shift_seen(info, at);
		if (!ex_unpacked_stream_upto(info, s, next, info->seen +
		    (s->pos - info->seen_at), info->seen_at))
			return s->pos >= end;
	}
	return true;
}

const uint8_t *
ex_unpacked_peek(struct ex_unpacked *u, uint64_t at, size_t *len)
{
	struct info *info = &u->info;
	const uint64_t end = info->end > at && info->end - at < *len ?
	    info->end : at + *len;

	*len = 0;
	if (at >= info->end)
		return NULL;
	if (ex_unpacked_is_there(info, at / PAGE) &&
	    ex_unpacked_run_end(info, at / PAGE * PAGE, end) == end) {
		*len = end - at;
		return u->image + info->section->at + at;
	}
	if (!pass(info, at, end))
		end_at(info, &info->pass, at);
	if (at >= info->end)
		return NULL;
	*len = (info->end < end ? info->end : end) - at;
	return info->seen + (at - info->seen_at);
}

uint64_t
ex_unpacked_info(struct ex_unpacked *u, uint64_t from, uint64_t upto)
{
	struct info *info = &u->info;
	const uint64_t end = upto < info->end ? upto : info->end;
	uint64_t at = from / PAGE * PAGE, next;

	for (; at < end; at = next) {
		if (ex_unpacked_is_there(info, at / PAGE)) {
			next = ex_unpacked_run_end(info, at, end);
			continue;
		}
		next = ex_unpacked_run_end(info, at,
		    ex_unpacked_page_up(end) < info->end ?
		    ex_unpacked_page_up(end) : info->end);
		if (!ex_unpacked_unpack(u, at, next)) {
			end_at(info, &info->fill, at);
			return info->end;
		}
		ex_unpacked_set_there(info, at, next);
	}
	return end;
}

void
ex_unpacked_head(struct ex_unpacked *u, uint64_t at, const uint8_t *bytes,
    size_t len)
{
	const struct unpacked_section *s = u->info.section;

	for (size_t i = 0; i < len && at + i < s->size; i++) {
		const uint64_t page = (at + i) / PAGE;

		if (ex_unpacked_is_there(&u->info, page))
			continue;
		if ((i == 0 || (at + i) % PAGE == 0) &&
		    !ex_unpacked_info_room(u, at + i, at + i + 1))
			return;
		u->image[s->at + at + i] = bytes[i];
	}
}

bool
ex_unpacked_use(struct ex_unpacked *u, uint64_t from, uint64_t end)
{
	const uint64_t at = from / PAGE * PAGE;

	end = ex_unpacked_page_up(end) < u->info.section->size ?
	    ex_unpacked_page_up(end) : u->info.section->size;
	return ex_unpacked_info(u, at, end) == end &&
	    ex_unpacked_add_used(&u->info, at, end - at);
}

static bool
keep_bytes(const struct ex_unpacked *u, const struct unpacked_section *s,
    uint64_t at, uint64_t len, struct ex_index *index)
{
	struct ex_index_bytes b = {
		.size = s->size, .at = at, .len = len,
		.file = (uintptr_t)(u->image + s->at + at),
	};

	(void)snprintf(b.name, sizeof(b.name), "%s", s->name);
	return strcmp(b.name, s->name) == 0 &&
	    ex_index_add(&index->bytes, &b, sizeof(b));
}

void
ex_unpacked_keep(const struct ex_unpacked *u, struct ex_index *index)
{
	const struct info *info = &u->info;
	uint64_t all = 0;

	for (unsigned i = 0; i < u->n; i++) {
		const struct unpacked_section *s = &u->section[i];

		if (s != info->section && s->there && s->packed &&
		    s->size > 0 && s->size <= KEPT_MAX - all &&
		    keep_bytes(u, s, 0, s->size, index))
			all += s->size;
	}
	for (size_t i = 0; i < info->nused; i++)
		(void)keep_bytes(u, info->section, info->used[i].at,
		    info->used[i].len, index);
	for (size_t i = 0; i < info->npoints; i++)
		(void)ex_index_add(&index->points, &info->point[i],
		    sizeof(info->point[i]));
}
