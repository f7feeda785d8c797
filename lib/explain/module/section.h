/*
 * section: the sections of ELF files.
 */
#ifndef EX_SECTION_H
#define EX_SECTION_H

#include <gelf.h>
#include <stdint.h>

/* The section behind scn (NULL: the first), its header, and its name; NULL: it
   has none that can be read.  Result NULL: there is no other. */
Elf_Scn *ex_section_next(Elf *, Elf_Scn *, GElf_Shdr *, const char **name);

/* The first of this name that has contents in the file; NULL: there is none. */
Elf_Scn *ex_section_find(Elf *, const char *name, GElf_Shdr *);

/* As ex_section_next, of this type, and loaded.  Damaged files may have many
   sections at one place: all that are asked for are of *budget bytes at
   most. */
Elf_Scn *ex_section_loaded(Elf *, Elf_Scn *, uint32_t type, GElf_Shdr *,
    const char **name, uint64_t *budget);

#endif
