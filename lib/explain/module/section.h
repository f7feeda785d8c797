/*
 * section: iterates over the sections of ELF files.
 */
#ifndef EX_SECTION_H
#define EX_SECTION_H

#include <gelf.h>
#include <stdint.h>

/* The section after scn (NULL: the first), its header, and its name, NULL if it
   cannot be read.  Result NULL: there is no more. */
Elf_Scn *ex_section_next(Elf *, Elf_Scn *, GElf_Shdr *, const char **name);

/* The first section with this name that has contents in the file; NULL: there
   is none. */
Elf_Scn *ex_section_find(Elf *, const char *name, GElf_Shdr *);

/* As ex_section_next, for loaded sections of this type.  Damaged files may have
   many sections at one place: the total size returned is limited to *budget
   bytes. */
Elf_Scn *ex_section_loaded(Elf *, Elf_Scn *, uint32_t type, GElf_Shdr *,
    const char **name, uint64_t *budget);

#endif
