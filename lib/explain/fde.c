/*
 * fde: the binary search table of .eh_frame_hdr.
 *
 *	u8 version = 1, u8 encodings of: eh_frame_ptr, fde_count, table
 *	eh_frame_ptr, fde_count, { s32 start, s32 entry } table[]
 *
 * Every linker writes the table in one encoding: 4 bytes, signed, relative to
 * the section's start.  Another one counts as no table.
 */
#include "fde.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "module_private.h"

#define HEADER 12	/* bytes before the table: both pointers take 4 */

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

/* How many entries the table at base has; 0: it is not of the usual form. */
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

/* Whether the nearest entry below reaches so far. */
static bool
has_entry(struct ex_module *m, uint64_t vaddr)
{
	uint64_t bias;
	Dwarf_CFI *cfi = ex_module_cfi(m, false, &bias);
	Dwarf_Frame *frame;

	if (cfi == NULL || dwarf_cfi_addrframe(cfi, vaddr + bias, &frame) != 0)
		return false;
	free(frame);
	return true;
}

bool
ex_fde_start(struct ex_module *m, uint64_t vaddr, uint64_t *start)
{
	Elf *elf = ex_module_elf(m);
	uint64_t low = 0, high;
	GElf_Phdr ph;

	if (elf == NULL || !find_phdr(elf, &ph) || ph.p_memsz < HEADER)
		return false;
	high = table_size(m, &ph);
	while (low < high) {
		uint64_t mid = low + (high - low) / 2, at;

		if (!table_start(m, ph.p_vaddr, mid, &at))
			return false;
		if (at <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && table_start(m, ph.p_vaddr, low - 1, start) &&
	    has_entry(m, vaddr);
}
