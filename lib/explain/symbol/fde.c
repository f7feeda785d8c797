/*
 * fde: unwind entries.
 *
 * The binary search table of .eh_frame_hdr:
 *
 *	u8 version = 1, u8 encodings of: eh_frame_ptr, fde_count, table
 *	eh_frame_ptr, fde_count, { s32 start, s32 entry } table[]
 *
 * Every linker writes the table in one encoding: 4 bytes, signed, relative to
 * the section's start.  Another one counts as no table.
 */
#include "symbol/fde.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "module/module_private.h"
#include "module/range.h"
#include "module/section.h"

enum {
	HEADER = 12,		/* bytes before the table, whose two pointers
				   take 4 each */
	ROWS_MAX = 4096,	/* rows of an entry that are searched */
};

static bool
find_phdr(Elf *elf, GElf_Phdr *out)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, out) != NULL &&
		    out->p_type == PT_GNU_EH_FRAME)
			return true;
	}
	return false;
}

/* The number of entries in the table, or 0 if it does not have the usual
   form. */
static uint64_t
table_size(struct ex_module *m, const GElf_Phdr *ph)
{
	uint8_t head[HEADER];
	uint32_t count;

	if (ex_module_bytes(m, ph->p_vaddr, head, sizeof(head)) !=
	    sizeof(head) || head[0] != 1 ||
	    (head[1] & 0x0f) != DW_EH_PE_sdata4 ||
	    head[2] != DW_EH_PE_udata4 ||
	    head[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return 0;
	memcpy(&count, head + 8, sizeof(count));
	return count <= (ph->p_memsz - HEADER) / 8 ? count : 0;
}

static bool
table_start(struct ex_module *m, uint64_t base, uint64_t i, uint64_t *start)
{
	int32_t offset;

	if (ex_module_bytes(m, base + HEADER + i * 8, &offset,
	    sizeof(offset)) != sizeof(offset))
		return false;
	*start = base + (uint64_t)(int64_t)offset;
	return true;
}

/* Whether the entry found extends to vaddr; *end is set to the end of its
   row. */
static bool
has_entry(struct ex_module *m, uint64_t vaddr, uint64_t *end)
{
	uint64_t bias;
	Dwarf_CFI *cfi = ex_module_eh_frame(m, &bias);
	Dwarf_Frame *frame;

	if (cfi == NULL || dwarf_cfi_addrframe(cfi, vaddr + bias, &frame) != 0)
		return false;
	(void)dwarf_frame_info(frame, NULL, end, NULL);
	*end -= bias;
	free(frame);
	return true;
}

/* The last entry has no successor, so it ends where its last row does. */
static uint64_t
last_end(struct ex_module *m, uint64_t row)
{
	uint64_t end = row;

	for (unsigned i = 0; i < ROWS_MAX; i++) {
		if (!has_entry(m, row, &end))
			return row;
		if (end <= row)
			break;
		row = end;
	}
	return UINT64_MAX;
}

static bool
table_find(struct ex_module *m, const GElf_Phdr *ph, uint64_t vaddr,
    uint64_t *start, uint64_t *end)
{
	const uint64_t n = table_size(m, ph);
	uint64_t low = 0, high = n, row;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2, at;

		if (!table_start(m, ph->p_vaddr, mid, &at))
			return false;
		if (at <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || !table_start(m, ph->p_vaddr, low - 1, start) ||
	    !has_entry(m, vaddr, &row))
		return false;
	if (low == n || !table_start(m, ph->p_vaddr, low, end))
		*end = last_end(m, row);
	return true;
}

/* --- without a table --- */

/* .eh_frame, and the CIE used last. */
struct frames {
	const unsigned char *ident;
	Elf_Data *data;
	uint64_t vaddr;
	uint64_t cie;		/* offset; UINT64_MAX: none yet */
	uint8_t encoding;	/* of the addresses in its FDEs */
};

static bool
find_frames(Elf *elf, struct frames *f)
{
	GElf_Shdr sh;
	Elf_Scn *scn = ex_section_find(elf, ".eh_frame", &sh);

	if (scn == NULL)
		return false;
	f->ident = (const unsigned char *)elf_getident(elf, NULL);
	f->data = elf_rawdata(scn, NULL);
	f->vaddr = sh.sh_addr;
	return f->ident != NULL && f->data != NULL && f->data->d_buf != NULL;
}

/* Read an encoded address or a length of 4 or 8 bytes. */
static bool
take(const uint8_t **at, const uint8_t *end, uint8_t format, uint64_t *value)
{
	size_t size;
	int32_t narrow;

	switch (format) {
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		size = sizeof(narrow);
		break;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		size = sizeof(*value);
		break;
	default:
		return false;
	}
	if ((size_t)(end - *at) < size)
		return false;
	memcpy(&narrow, *at, sizeof(narrow));
	memcpy(value, *at, size);
	if (format == DW_EH_PE_sdata4)
		*value = (uint64_t)(int64_t)narrow;
	else if (format == DW_EH_PE_udata4)
		*value = (uint32_t)narrow;
	*at += size;
	return true;
}

/* The address encoding of a CIE with augmentation "zR", "zPLR", and so on. */
static uint8_t
encoding_of(const Dwarf_CIE *cie)
{
	const uint8_t *at = cie->augmentation_data, *end;
	uint64_t personality;
	uint8_t byte;

	if (cie->augmentation[0] != 'z' || at == NULL)
		return DW_EH_PE_absptr;
	end = at + cie->augmentation_data_size;
	for (const char *c = cie->augmentation + 1; *c != '\0'; c++) {
		if (*c == 'S' || *c == 'B')
			continue;
		if (at == end)
			break;
		byte = *at++;
		if (*c == 'R')
			return byte;
		if (*c == 'P' && !take(&at, end, byte & 0x0f, &personality))
			break;
	}
	return DW_EH_PE_absptr;
}

static bool
read_encoding(struct frames *f, uint64_t offset)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (offset == f->cie)
		return true;
	if (dwarf_next_cfi(f->ident, f->data, true, offset, &next, &entry) !=
	    0 || !dwarf_cfi_cie_p(&entry))
		return false;
	f->cie = offset;
	f->encoding = encoding_of(&entry.cie);
	if ((f->encoding & 0x0f) == DW_EH_PE_absptr &&
	    f->ident[EI_CLASS] == ELFCLASS32)
		f->encoding |= DW_EH_PE_udata4;
	return true;
}

static void
add_frame(struct frames *f, const Dwarf_FDE *fde, struct ex_ranges *ranges)
{
	const uint8_t *at = fde->start;
	uint64_t start, len;

	if (!read_encoding(f, fde->CIE_pointer) ||
	    (f->encoding & DW_EH_PE_indirect) != 0 ||
	    !take(&at, fde->end, f->encoding & 0x0f, &start) ||
	    !take(&at, fde->end, f->encoding & 0x07, &len))
		return;
	if ((f->encoding & 0x70) == DW_EH_PE_pcrel)
		start += f->vaddr +
		    (uint64_t)(fde->start - (const uint8_t *)f->data->d_buf);
	else if ((f->encoding & 0x70) != 0)
		return;
	if (len <= UINT64_MAX - start)
		(void)ex_ranges_add(ranges, start, start + len, 0);
}

/* All entries of .eh_frame, read once. */
static const struct ex_ranges *
frames_of(struct ex_module *m, Elf *elf)
{
	Dwarf_CFI_Entry entry;
	struct frames f = { .cie = UINT64_MAX };
	Dwarf_Off offset = 0, next;
	bool is_new;
	struct ex_ranges *fdes = ex_module_cache(m, EX_CACHE_FDES,
	    sizeof(*fdes), ex_ranges_release, &is_new);

	if (fdes == NULL || !is_new || !find_frames(elf, &f))
		return fdes;
	for (;; offset = next) {
		int rc = dwarf_next_cfi(f.ident, f.data, true, offset, &next,
		    &entry);

		if (rc > 0 || next <= offset)
			break;
		if (rc == 0 && !dwarf_cfi_cie_p(&entry))
			add_frame(&f, &entry.fde, fdes);
	}
	ex_ranges_sort(fdes);
	return fdes;
}

bool
ex_fde_find(struct ex_module *m, uint64_t vaddr, uint64_t *start,
    uint64_t *end)
{
	Elf *elf = ex_module_elf(m);
	const struct ex_ranges *frames;
	const struct ex_range *found;
	GElf_Phdr ph;

	if (elf == NULL)
		return false;
	if (find_phdr(elf, &ph) && ph.p_memsz >= HEADER)
		return table_find(m, &ph, vaddr, start, end);
	frames = frames_of(m, elf);
	found = frames != NULL ? ex_ranges_find(frames, vaddr) : NULL;
	if (found == NULL)
		return false;
	*start = found->start;
	*end = found->end;
	return true;
}

void
ex_fde_each(struct ex_module *m, void (*fn)(void *, uint64_t), void *arg)
{
	Elf *elf = ex_module_elf(m);
	const struct ex_ranges *frames;
	GElf_Phdr ph;
	uint64_t start, n;

	if (elf == NULL)
		return;
	if (find_phdr(elf, &ph) && ph.p_memsz >= HEADER) {
		n = table_size(m, &ph);
		for (uint64_t i = 0; i < n &&
		    table_start(m, ph.p_vaddr, i, &start); i++)
			fn(arg, start);
		return;
	}
	frames = frames_of(m, elf);
	for (size_t i = 0; frames != NULL && i < frames->n; i++)
		fn(arg, frames->at[i].start);
}
