/*
 * plt: names for stubs of the procedure linkage table.
 *
 * A stub jumps through a slot of the global offset table, and a relocation says
 * whose address goes into that slot.  The stub's code says which slot: there
 * are too many layouts (lazy or not, with or without endbr64, three linkers) to
 * go by the order of the stubs.
 */
#include "module/plt.h"

#include <string.h>

#include "module/module_private.h"
#include "module/range.h"
#include "module/section.h"

#define STUB_MAX 32	/* bytes; most are of 8 or 16 */

/* A stub's slot in the table: jmp *slot(%rip).  got: see ex_plt_base. */
static bool
slot_x86_64(const uint8_t *code, size_t len, uint64_t vaddr, uint64_t got,
    uint64_t *slot)
{
	(void)got;
	for (size_t i = 0; i + 6 <= len; i++) {
		int32_t offset;

		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		memcpy(&offset, code + i + 2, sizeof(offset));
		*slot = vaddr + i + 6 + (uint64_t)(int64_t)offset;
		return true;
	}
	return false;
}

/* jmp *slot, or jmp *offset(%ebx) in code that can lie anywhere. */
static bool
slot_i386(const uint8_t *code, size_t len, uint64_t vaddr, uint64_t got,
    uint64_t *slot)
{
	(void)vaddr;
	for (size_t i = 0; i + 6 <= len; i++) {
		uint32_t offset;

		if (code[i] != 0xff ||
		    (code[i + 1] != 0x25 && code[i + 1] != 0xa3))
			continue;
		memcpy(&offset, code + i + 2, sizeof(offset));
		*slot = code[i + 1] == 0x25 ? offset : (uint32_t)(got + offset);
		return true;
	}
	return false;
}

/* adrp x16, page; ldr x17, [x16, offset]; maybe after bti c. */
static bool
slot_aarch64(const uint8_t *code, size_t len, uint64_t vaddr, uint64_t got,
    uint64_t *slot)
{
	(void)got;
	for (size_t i = 0; i + 8 <= len; i += 4) {
		uint32_t adrp, ldr, page;

		memcpy(&adrp, code + i, sizeof(adrp));
		memcpy(&ldr, code + i + 4, sizeof(ldr));
		if ((adrp & 0x9f00001f) != 0x90000010 ||
		    (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		page = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
		*slot = ((vaddr + i) & ~(uint64_t)0xfff) +
		    ((uint64_t)(int64_t)(int32_t)(page << 11) << 1) +
		    (ldr >> 10 & 0xfff) * 8;
		return true;
	}
	return false;
}

static const struct plt_machine {
	uint16_t machine;
	uint32_t jump_slot, glob_dat, irelative;	/* relocation types */
	uint32_t relocs;	/* the type of their sections */
	uint64_t word;		/* bytes of a slot */
	uint64_t stub;		/* bytes, where a section does not say */
	bool (*slot)(const uint8_t *code, size_t len, uint64_t vaddr,
	    uint64_t got, uint64_t *slot);
} machines[] = {
	{EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE,
	    SHT_RELA, 8, 16, slot_x86_64},
	{EM_386, R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE,
	    SHT_REL, 4, 16, slot_i386},
	{EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT,
	    R_AARCH64_IRELATIVE, SHT_RELA, 8, 16, slot_aarch64},
};

/* The name that a relocation gives to its slot; NULL: none. */
static const char *
slot_name(Elf *elf, const struct plt_machine *machine, uint64_t info,
    Elf_Data *symbols, const GElf_Shdr *symsh)
{
	uint64_t type = GELF_R_TYPE(info);
	uint64_t which = GELF_R_SYM(info);
	const char *name;
	GElf_Sym sym;

	if (type == machine->irelative)
		return "";
	if ((type != machine->jump_slot && type != machine->glob_dat) ||
	    symbols == NULL || which > INT32_MAX ||
	    gelf_getsym(symbols, (int)which, &sym) == NULL ||
	    (name = elf_strptr(elf, symsh->sh_link, sym.st_name)) == NULL ||
	    name[0] == '\0')
		return NULL;
	return name;
}

/* Get the i-th relocation of a section, with an addend or without one. */
static bool
reloc_at(const struct plt_machine *machine, Elf_Data *relocs, int i,
    GElf_Rel *out)
{
	GElf_Rela rela;

	if (machine->relocs == SHT_REL)
		return gelf_getrel(relocs, i, out) != NULL;
	if (gelf_getrela(relocs, i, &rela) == NULL)
		return false;
	*out = (GElf_Rel){.r_offset = rela.r_offset, .r_info = rela.r_info};
	return true;
}

/* Add the names that a section of relocations gives to slots. */
static bool
add_slots(Elf *elf, const struct plt_machine *machine, Elf_Scn *scn,
    const GElf_Shdr *sh, struct ex_ranges *slots)
{
	Elf_Data *relocs = elf_getdata(scn, NULL);
	Elf_Scn *symscn = elf_getscn(elf, sh->sh_link);
	Elf_Data *symbols = elf_getdata(symscn, NULL);
	GElf_Shdr symsh;
	GElf_Rel reloc;

	if (relocs == NULL)
		return true;
	if (gelf_getshdr(symscn, &symsh) == NULL)
		symbols = NULL;
	for (int i = 0; reloc_at(machine, relocs, i, &reloc); i++) {
		const char *name = slot_name(elf, machine, reloc.r_info,
		    symbols, &symsh);

		if (name != NULL && !ex_ranges_add(slots, reloc.r_offset,
		    reloc.r_offset + machine->word, (uintptr_t)name))
			return false;
	}
	return true;
}

/* Go through one section of stubs.  False: fn wants no more. */
static bool
section_each(struct ex_module *m, const struct plt_machine *machine,
    const GElf_Shdr *sh, const struct ex_ranges *slots,
    bool (*fn)(void *, uint64_t, uint64_t, const char *), void *arg)
{
	uint64_t step = sh->sh_entsize, got = 0, n;

	(void)ex_plt_base(m, &got);
	if (step < 8 || step > STUB_MAX)
		step = machine->stub;
	n = sh->sh_size / step;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t vaddr = sh->sh_addr + i * step, slot;
		const struct ex_range *found;
		uint8_t code[STUB_MAX];
		size_t len = ex_module_bytes(m, vaddr, code, step);

		if (len < step)
			break;
		if (machine->slot(code, len, vaddr, got, &slot) &&
		    (found = ex_ranges_find(slots, slot)) != NULL &&
		    *(const char *)(uintptr_t)found->what != '\0' &&
		    !fn(arg, vaddr, step,
		    (const char *)(uintptr_t)found->what))
			return false;
	}
	return true;
}

static const struct plt_machine *
machine_of(Elf *elf)
{
	GElf_Ehdr eh;

	if (gelf_getehdr(elf, &eh) == NULL)
		return NULL;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		if (machines[i].machine == eh.e_machine)
			return &machines[i];
	}
	return NULL;
}

/* The module's slots, by the name that each is for; NULL: out of memory. */
static const struct ex_ranges *
slots_of(struct ex_module *m, const struct plt_machine *machine)
{
	uint64_t budget = m->image.size;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;
	bool is_new;
	struct ex_ranges *slots = ex_module_cache(m, EX_CACHE_PLT,
	    sizeof(*slots), ex_ranges_release, &is_new);

	if (slots == NULL || !is_new)
		return slots;
	while ((scn = ex_section_loaded(m->elf, scn, machine->relocs, &sh,
	    &name, &budget)) != NULL) {
		if (!add_slots(m->elf, machine, scn, &sh, slots))
			break;
	}
	ex_ranges_sort(slots);
	return slots;
}

void
ex_plt_each(struct ex_module *m,
    bool (*fn)(void *, uint64_t, uint64_t, const char *), void *arg)
{
	Elf *elf = ex_module_elf(m);
	const struct plt_machine *machine = elf != NULL ? machine_of(elf) :
	    NULL;
	const struct ex_ranges *slots;
	uint64_t budget = m->image.size;
	Elf_Scn *scn = NULL;
	bool more = true;
	const char *name;
	GElf_Shdr sh;

	if (machine == NULL || (slots = slots_of(m, machine)) == NULL)
		return;
	while (more && (scn = ex_section_loaded(elf, scn, SHT_PROGBITS, &sh,
	    &name, &budget)) != NULL) {
		if (name != NULL && strncmp(name, ".plt", 4) == 0)
			more = section_each(m, machine, &sh, slots, fn, arg);
	}
}

bool
ex_plt_base(struct ex_module *m, uint64_t *got)
{
	Elf *elf = ex_module_elf(m);
	uint64_t budget = m->image.size;
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	const char *name;
	GElf_Shdr sh;
	GElf_Dyn dyn;

	if (elf == NULL || (scn = ex_section_loaded(elf, scn, SHT_DYNAMIC, &sh,
	    &name, &budget)) == NULL || (data = elf_getdata(scn, NULL)) == NULL)
		return false;
	for (int i = 0; gelf_getdyn(data, i, &dyn) != NULL; i++)
		if (dyn.d_tag == DT_PLTGOT) {
			*got = dyn.d_un.d_ptr;
			return true;
		}
	return false;
}

const char *
ex_plt_slot(struct ex_module *m, uint64_t slot)
{
	Elf *elf = ex_module_elf(m);
	const struct plt_machine *machine = elf != NULL ? machine_of(elf) :
	    NULL;
	const struct ex_ranges *slots =
	    machine != NULL ? slots_of(m, machine) : NULL;
	const struct ex_range *found =
	    slots != NULL ? ex_ranges_find(slots, slot) : NULL;

	return found != NULL && found->start == slot ?
	    (const char *)(uintptr_t)found->what : NULL;
}
