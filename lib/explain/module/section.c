/* section: the sections of ELF files. */
#include "module/section.h"

#include <string.h>

Elf_Scn *
ex_section_next(Elf *elf, Elf_Scn *scn, GElf_Shdr *sh, const char **name)
{
	size_t names;

	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		if (gelf_getshdr(scn, sh) == NULL)
			continue;
		*name = elf_getshdrstrndx(elf, &names) == 0 ?
		    elf_strptr(elf, names, sh->sh_name) : NULL;
		return scn;
	}
	return NULL;
}

Elf_Scn *
ex_section_find(Elf *elf, const char *name, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;
	const char *its;

	while ((scn = ex_section_next(elf, scn, sh, &its)) != NULL)
		if (sh->sh_type != SHT_NOBITS && its != NULL &&
		    strcmp(its, name) == 0)
			return scn;
	return NULL;
}

Elf_Scn *
ex_section_loaded(Elf *elf, Elf_Scn *scn, uint32_t type, GElf_Shdr *sh,
    const char **name, uint64_t *budget)
{
	while ((scn = ex_section_next(elf, scn, sh, name)) != NULL) {
		if (sh->sh_type != type || (sh->sh_flags & SHF_ALLOC) == 0)
			continue;
		if (sh->sh_size > *budget)
			return NULL;
		*budget -= sh->sh_size;
		return scn;
	}
	return NULL;
}
