/* copy_reloc: variables of libraries of which a program has its own copy. */
#include "type/copy_reloc.h"

#include "module/module_private.h"
#include "module/section.h"
#include "space/space.h"
#include "symbol/symbol.h"

struct copied {
	struct ex_module *program, *library;	/* library: the one being
						   searched */
	const char *name;
	uint64_t start;		/* start of the copy in the program */
	uint64_t off, len;	/* the bytes in question */
	struct ex_subobject *sub;
};

static bool
is_copy(Elf *elf, const GElf_Rela *rela)
{
	uint64_t type = GELF_R_TYPE(rela->r_info);
	GElf_Ehdr eh;

	return gelf_getehdr(elf, &eh) != NULL &&
	    ((eh.e_machine == EM_X86_64 && type == R_X86_64_COPY) ||
	    (eh.e_machine == EM_AARCH64 && type == R_AARCH64_COPY));
}

/* Whether a relocation section copies something to this address. */
static bool
copies_to(Elf *elf, Elf_Scn *scn, uint64_t vaddr)
{
	Elf_Data *relocs = elf_getdata(scn, NULL);
	GElf_Rela rela;

	if (relocs == NULL)
		return false;
	for (int i = 0; gelf_getrela(relocs, i, &rela) != NULL; i++) {
		if (rela.r_offset == vaddr && is_copy(elf, &rela))
			return true;
	}
	return false;
}

bool
ex_copy_reloc(struct ex_module *m, uint64_t vaddr)
{
	Elf *elf = ex_module_elf(m);
	uint64_t budget = m->image.size;
	struct ex_symbol symbol;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;

	if (elf == NULL || !ex_symbol_at(m, vaddr, &symbol) ||
	    !symbol.object || !symbol.global)
		return false;
	while ((scn = ex_section_loaded(elf, scn, SHT_RELA, &sh, &name,
	    &budget)) != NULL) {
		if (copies_to(elf, scn, symbol.value))
			return true;
	}
	return false;
}

/* Find the variable in the library; its address becomes that of the copy. */
static int
original(void *arg, const struct ex_symbol *symbol)
{
	const struct copied *c = arg;

	if (!symbol->object || !symbol->global ||
	    !ex_subobject_find(c->library, symbol->value + c->off, c->len,
	    c->sub))
		return 0;
	c->sub->vaddr += c->start - symbol->value;
	return 1;
}

static int
look_in(void *arg, struct ex_module *m, uint64_t base)
{
	struct copied *c = arg;

	(void)base;
	c->library = m;
	return m == c->program ? 0 : ex_symbol_find(m, c->name, original, c);
}

bool
ex_copy_reloc_find(struct ex_process *process, struct ex_module *m,
    uint64_t vaddr,
    uint64_t len, struct ex_subobject *sub)
{
	struct ex_symbol symbol;
	struct copied c = {.program = m, .len = len, .sub = sub};

	if (!ex_symbol_at(m, vaddr, &symbol))
		return false;
	c.name = symbol.name;
	c.start = symbol.value;
	c.off = vaddr - symbol.value;
	return ex_process_modules(process, look_in, &c) != 0;
}
