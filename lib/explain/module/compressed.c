/* compressed: the sizes that an ELF file claims for its compressed sections. */
#include "module/compressed.h"

#include <string.h>
#include <unistd.h>

#include "module/section.h"

/*
 * Debug information shrinks to a third or a fifth of its size, its tables of
 * addresses sometimes to a fortieth.  What zlib unpacks may be a thousand times
 * as long as its input, and what xz unpacks seven thousand times.
 */
#define RATIO_MAX UINT64_C(64)
#define SMALL (UINT64_C(16) << 20)	/* bytes that anything may become */
#define FILE_MAX_ (UINT64_C(4) << 30)	/* and those of a file together */

enum {
	XZ_HEADER = 12,		/* bytes of a stream's header */
	ZDEBUG_HEADER = 12,	/* "ZLIB", and the size, the high byte first */
};

/*
 * The sizes of xz streams.  They consist of LZMA2 chunks, each of which has its
 * own length and that of its content; the decoder refuses others.
 */

/* The length of a block, from its header to the end of its chunks; 0: it is
   damaged. */
static size_t
xz_block(const uint8_t *block, size_t len, uint64_t *size)
{
	size_t at = (block[0] + 1u) * 4;

	while (at < len) {
		const uint8_t *chunk = block + at, kind = chunk[0];
		size_t packed, header = kind < 0x80 ? 3 : 5u + (kind >= 0xc0);

		if (kind == 0)
			return at + 1;
		if ((kind > 2 && kind < 0x80) || len - at < header)
			return 0;
		packed = (kind < 0x80 ? chunk[1] * 256u + chunk[2] :
		    chunk[3] * 256u + chunk[4]) + 1;
		*size += kind < 0x80 ? packed : ((kind & 0x1fu) << 16) +
		    chunk[1] * 256u + chunk[2] + 1;
		at += header + packed;
	}
	return 0;
}

/* The unpacked size of an xz stream; UINT64_MAX: it is not one. */
static uint64_t
xz_size(const uint8_t *bytes, size_t len)
{
	static const uint8_t magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};
	static const uint8_t checks[] = {0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32,
	    32, 32, 64, 64, 64};
	size_t at = XZ_HEADER, block;
	uint64_t size = 0;

	if (len <= XZ_HEADER || memcmp(bytes, magic, sizeof(magic)) != 0)
		return UINT64_MAX;
	while (at < len && bytes[at] != 0) {
		if ((block = xz_block(bytes + at, len - at, &size)) == 0)
			return UINT64_MAX;
		at = (at + block + 3) / 4 * 4 + checks[bytes[7] & 15];
	}
	return size;
}

/* "ZLIB", then the size. */
static bool
zdebug_claim(Elf_Scn *scn, struct ex_compressed *claim)
{
	const Elf_Data *data = elf_rawdata(scn, NULL);
	const uint8_t *bytes = data == NULL ? NULL : data->d_buf;

	if (bytes == NULL || data->d_size < ZDEBUG_HEADER ||
	    memcmp(bytes, "ZLIB", 4) != 0)
		return false;
	claim->stored = data->d_size;
	claim->size = 0;
	for (unsigned i = 4; i < ZDEBUG_HEADER; i++)
		claim->size = claim->size << 8 | bytes[i];
	return true;
}

static bool
xz_claim(Elf_Scn *scn, struct ex_compressed *claim)
{
	const Elf_Data *data = elf_rawdata(scn, NULL);

	if (data == NULL || data->d_buf == NULL)
		return false;
	claim->stored = data->d_size;
	claim->size = xz_size(data->d_buf, data->d_size);
	return true;
}

static bool
begins_with(const char *name, const char *text)
{
	return name != NULL && strncmp(name, text, strlen(text)) == 0;
}

static bool
is_xz(const char *name)
{
	return name != NULL && strcmp(name, ".gnu_debugdata") == 0;
}

/* The sizes that a section claims.  False: no program would unpack it. */
static bool
claim_of(Elf_Scn *scn, const GElf_Shdr *sh, const char *name,
    struct ex_compressed *claim)
{
	GElf_Chdr ch;

	if (sh->sh_type == SHT_NOBITS)
		return false;
	if ((sh->sh_flags & SHF_COMPRESSED) != 0) {
		if (gelf_getchdr(scn, &ch) == NULL)
			return false;
		*claim = (struct ex_compressed){sh->sh_size, ch.ch_size};
		return true;
	}
	if (begins_with(name, ".zdebug"))
		return zdebug_claim(scn, claim);
	return is_xz(name) && xz_claim(scn, claim);
}

/* The size to which a file may be unpacked: a part of the memory that there
   is. */
static uint64_t
file_max(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page =
	    sysconf(_SC_PAGESIZE);
	uint64_t quarter = pages <= 0 || page <= 0 ? FILE_MAX_ :
	    (uint64_t)pages / 4 * (uint64_t)page;

	return quarter < FILE_MAX_ ? quarter : FILE_MAX_;
}

bool
ex_compressed_plausible(Elf *elf, struct ex_compressed *claim)
{
	struct ex_compressed all = {0}, one;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;

	while ((scn = ex_section_next(elf, scn, &sh, &name)) != NULL) {
		if (!claim_of(scn, &sh, name, &one))
			continue;
		*claim = one;
		if (one.size > SMALL && one.size / RATIO_MAX > one.stored)
			return false;
		all.stored += one.stored;
		all.size += one.size < FILE_MAX_ ? one.size : FILE_MAX_;
		*claim = all;
		if (all.size > SMALL && all.size > file_max())
			return false;
	}
	return true;
}

void
ex_compressed_hide(Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;

	while ((scn = ex_section_next(elf, scn, &sh, &name)) != NULL) {
		if ((sh.sh_flags & SHF_COMPRESSED) == 0 &&
		    !begins_with(name, ".debug") &&
		    !begins_with(name, ".zdebug") && !is_xz(name))
			continue;
		sh.sh_name = 0;
		sh.sh_type = SHT_NOBITS;
		sh.sh_flags = 0;
		sh.sh_size = 0;
		(void)gelf_update_shdr(scn, &sh);
	}
}
