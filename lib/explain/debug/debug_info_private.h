/* debug_info_private: what the files that read debug information share. */
#ifndef EX_DEBUG_INFO_PRIVATE_H
#define EX_DEBUG_INFO_PRIVATE_H

#include <sys/stat.h>

#include "debug/debug_info.h"
#include "debug/aranges.h"
#include "debug/debug_names.h"
#include "debug/gdb_index.h"
#include "debug/index.h"
#include "module/module_private.h"
#include "debug/unpacked.h"

/* A unit of .debug_info. */
struct unit_start {
	uint64_t offset;
	uint64_t abbrevs;	/* where its table of abbreviations is */
	size_t header;		/* bytes */
};

struct debug_info {
	struct ex_module *module;
	Dwarf *dwarf;		/* NULL: there is none */
	uint64_t bias;		/* what to add to a vaddr */
	struct ex_unpacked *unpacked;	/* NULL: libdwfl has opened it */
	void *file;		/* the separate file that is unpacked; NULL:
				   none */
	size_t file_size;
	Elf *elf;		/* of it */

	Elf_Data *info;		/* .debug_info as libdw has it; NULL: unknown */
	struct unit_start *at;	/* the units that are known, in order */
	size_t n, cap;
	uint64_t next;		/* behind them */
	bool ordered;		/* each has abbreviations behind those of the
				   one before it */
	bool counted;		/* line tables were, */
	bool as_many_lines;	/* and are as many as tables of abbreviations
				   for units */
	bool passed;		/* .debug_info went by once, for a search */
	bool searched;		/* what follows is known */
	struct ex_aranges aranges;
	struct ex_gdb_index gdb;
	struct ex_debug_names names;
	bool names_whole;	/* they have all functions of all units */
	bool looked;		/* for both */
	struct ex_abbrevs abbrevs;
	bool abbrevs_good;

	struct stat st;		/* of the file that is read; st_ino 0: not
				   known */
	uint64_t info_size;	/* of .debug_info that is being unpacked */
	struct ex_index known;	/* from the last time */
	struct ex_index found;	/* for the next time, collected */
	struct ex_ranges code;	/* what: where the unit begins; all that there
				   is, if known.all_code */
	bool news;		/* there is something to keep */
};

/* Something is new. */
void ex_debug_info_note(struct debug_info *);

/* A section that is not packed; NULL: there is none. */
Elf_Data *ex_debug_info_section_header(Elf *elf, const char *wanted);

/* The same, as libdw has it. */
Elf_Data *ex_debug_info_section(Dwarf *dwarf, const char *wanted);

/* Whether libdw reads no more of units than somebody asks for, and their
   headers. */
bool ex_debug_info_reads_in_part(const struct debug_info *);

/* Learn of the next unit.  False: there is none. */
bool ex_debug_info_learn(struct debug_info *);

/* The last unit that begins at or before a place; NULL: none. */
const struct unit_start *ex_debug_info_unit_upto(struct debug_info *,
    uint64_t offset);

/* NULL: there is none. */
struct debug_info *ex_debug_info_of(struct ex_module *);

/* Where the one behind it begins. */
uint64_t ex_debug_info_unit_end(const struct debug_info *,
    const struct unit_start *);

#endif
