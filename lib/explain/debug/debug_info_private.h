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
	uint64_t abbrevs;	/* offset of its abbreviation table */
	size_t header;		/* bytes */
};

struct debug_info {
	struct ex_module *module;
	Dwarf *dwarf;		/* NULL: there is none */
	uint64_t bias;		/* what to add to a vaddr */
	struct ex_unpacked *unpacked;	/* NULL: libdwfl has opened it */
	Elf *elf;		/* of the separate file; NULL: it was not
				   opened */

	Elf_Data *info;		/* .debug_info as libdw has it; NULL: unknown */
	struct unit_start *at;	/* the known units, in order */
	size_t n, cap;
	uint64_t next;		/* the offset after them */
	bool ordered;		/* each one's abbreviations follow those of the
				   previous one */
	bool counted;		/* the line tables were counted, */
	bool as_many_lines;	/* and there are as many as abbreviation tables
				   for units */
	bool passed;		/* .debug_info was searched once */
	bool searched;		/* the following members are set */
	struct ex_aranges aranges;
	struct ex_gdb_index gdb;
	struct ex_debug_names names;
	bool names_whole;	/* they list all functions of all units */
	bool looked;		/* both were looked for */
	struct ex_abbrevs abbrevs;
	bool abbrevs_good;

	struct stat st;		/* of the file; st_ino 0: not known */
	uint64_t info_size;	/* of the unpacked .debug_info */
	struct ex_index known;	/* from an earlier run */
	struct ex_index found;	/* collected for later runs */
	struct ex_ranges code;	/* what: the unit's offset; complete if
				   known.all_code */
	bool news;		/* `found' has something new */
};

/* Note that there is something to keep. */
void ex_debug_info_note(struct debug_info *);

/* A section that is not compressed; NULL: there is none. */
Elf_Data *ex_debug_info_section_header(Elf *elf, const char *wanted);

/* The same, from libdw. */
Elf_Data *ex_debug_info_section(Dwarf *dwarf, const char *wanted);

/* Whether libdw reads only the requested parts of units, and their headers. */
bool ex_debug_info_reads_in_part(const struct debug_info *);

/* Learn of the next unit.  False: there is none. */
bool ex_debug_info_learn(struct debug_info *);

/* The last unit that begins at or before an offset; NULL: none. */
const struct unit_start *ex_debug_info_unit_upto(struct debug_info *,
    uint64_t offset);

/* A module's debug information; NULL: none. */
struct debug_info *ex_debug_info_of(struct ex_module *);

/* The offset after the unit. */
uint64_t ex_debug_info_unit_end(const struct debug_info *,
    const struct unit_start *);

#endif
