/* symbol_version: see symbol_version.h. */
#include "symbol/symbol_version.h"

#include <gelf.h>
#include <string.h>

#include "base/array.h"
#include "module/module_private.h"
#include "module/section.h"

enum { HIDDEN = 0x8000 };	/* not the default version of its name */

static struct ex_old_symbol *
find(const struct ex_old_symbols *old, uint64_t value, const char *name,
    size_t len)
{
	size_t i = old->n == 0 ? 0 : EX_ARRAY_UPTO(old->at, old->n, value,
	    value);

	for (; i > 0 && old->at[i - 1].value == value; i--)
		if (strncmp(old->at[i - 1].name, name, len) == 0 &&
		    old->at[i - 1].name[len] == '\0')
			return &old->at[i - 1];
	return NULL;
}

static void
remove_symbol(struct ex_old_symbols *old, uint64_t value, const char *name)
{
	struct ex_old_symbol *symbol;

	while (*name != '\0' &&
	    (symbol = find(old, value, name, strlen(name))) != NULL)
		symbol->name = "";
}

/* The versions that a library defines; programs have only those that they
   need, of symbols that they copy. */
static bool
defines_versions(Elf *elf, uint64_t *budget)
{
	const char *name;
	GElf_Shdr sh;

	return ex_section_loaded(elf, NULL, SHT_GNU_verdef, &sh, &name,
	    budget) != NULL;
}

/* Add the symbols whose version is not the default one; or remove those that
   are also another's default one.  False: no memory. */
static bool
each_version(struct ex_old_symbols *old, Elf *elf, Elf_Data *versions,
    const GElf_Shdr *sh, bool add)
{
	Elf_Scn *scn = elf_getscn(elf, sh->sh_link);
	Elf_Data *symbols = scn == NULL ? NULL : elf_getdata(scn, NULL);
	GElf_Shdr of;
	GElf_Versym version;
	GElf_Sym sym;

	if (symbols == NULL || gelf_getshdr(scn, &of) == NULL)
		return true;
	for (int i = 0; gelf_getversym(versions, i, &version) != NULL &&
	    gelf_getsym(symbols, i, &sym) != NULL; i++) {
		const char *name;

		if (((version & HIDDEN) != 0) != add ||
		    sym.st_shndx == SHN_UNDEF ||
		    (name = elf_strptr(elf, of.sh_link, sym.st_name)) == NULL)
			continue;
		if (!add)
			remove_symbol(old, sym.st_value, name);
		else if (!EX_ARRAY_ROOM(old, at, SIZE_MAX))
			return false;
		else
			old->at[old->n++] = (struct ex_old_symbol){
				sym.st_value, name,
			};
	}
	return true;
}

static bool
each_table(struct ex_module *m, struct ex_old_symbols *old, Elf *elf, bool add)
{
	uint64_t budget = m->image.size;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;

	while ((scn = ex_section_loaded(elf, scn, SHT_GNU_versym, &sh, &name,
	    &budget)) != NULL) {
		Elf_Data *data = elf_getdata(scn, NULL);

		if (data != NULL && !each_version(old, elf, data, &sh, add))
			return false;
	}
	return true;
}

bool
ex_old_symbols_read(struct ex_module *m, struct ex_old_symbols *old)
{
	Elf *elf = ex_module_elf(m);
	uint64_t budget = m->image.size;

	*old = (struct ex_old_symbols){NULL, 0, 0};
	if (elf == NULL || !defines_versions(elf, &budget))
		return true;
	return each_table(m, old, elf, true) && (old->n == 0 ||
	    (EX_ARRAY_SORT(old->at, old->n, value) &&
	    each_table(m, old, elf, false)));
}

bool
ex_old_symbols_have(const struct ex_old_symbols *old, uint64_t value,
    const char *name, size_t len)
{
	return find(old, value, name, len) != NULL;
}
