/*
 * module_private: what the files that make answers of a module share of it:
 * space.c, module.c, symbol.c, line.c, plt.c, the unwinder, the decoder.
 *
 * Three kinds of address: the process's; "vaddr", the module's own, as in its
 * program headers; and libdw's, which differs from vaddr by a bias that each
 * accessor here gives along.
 */
#ifndef EX_MODULE_PRIVATE_H
#define EX_MODULE_PRIVATE_H

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "module/claims.h"
#include "module/module.h"
#include "module/range.h"

/* Which file lies behind a path.  Another file at the same path, and the same
   file written anew, is another module. */
struct ex_file_id {
	uint64_t dev, ino;	/* 0: not known, or none */
	uint64_t generation;	/* of the inode; 0: not known */
	int64_t mtime, mtime_ns;
	uint64_t size;		/* bytes */
	uint8_t build_id[20];	/* as a record names it */
	uint32_t build_id_len;	/* 0: none named; of this size, so that there is
				   no padding and memcmp may compare */
};

/* A PT_LOAD program header. */
struct ex_segment {
	uint64_t vaddr, memsz;		/* vaddr + memsz does not wrap */
	uint64_t offset, filesz;	/* within the file; filesz <= memsz */
	uint32_t flags;			/* PF_* */
};

/* A string that belongs to a module. */
struct ex_text {
	struct ex_text *next;
	char s[];
};

struct ex_module {
	char *path;		/* as the process sees it; malloc'd */
	struct ex_file_id id;

	uint8_t *image;		/* the file's bytes, mapped; NULL: not open */
	size_t image_size;
	char *problem;		/* why it cannot be used, or only in part;
				   NULL: nothing; malloc'd */
	char *host_path;	/* where the search for a separate debug file
				   begins; NULL: at path; malloc'd */
	char *debug_path;	/* directories of debug files, as debug_file.c
				   takes them; NULL: the usual; malloc'd */
	char *disbelief;	/* why debug information that there is is not
				   used, in words; NULL: it is; malloc'd */
	bool told;		/* somebody has been told why */
	bool *news;		/* set when there is something to tell; NULL:
				   nobody asks */
	Dwfl_Callbacks callbacks;

	bool opened;		/* ex_module_open has been here; what follows
				   is set by it */
	Dwfl *dwfl;		/* holds the one module below; NULL: unusable */
	Dwfl_Module *dwfl_module;
	Elf *elf;		/* the main file; belongs to dwfl */
	uint64_t bias;		/* libdwfl's address less vaddr */
	struct ex_segment *segment;	/* in the file's order */
	unsigned nsegments;
	char build_id[129];	/* lower-case hex; "": none */

	struct ex_text *texts;	/* strings of ex_module_text */
	struct ex_symbols *symbols;	/* symbol.c's; NULL: not asked yet */
	struct ex_lines *lines;	/* line.c's; NULL: not asked yet */
	struct ex_ranges *fdes;	/* fde.c's; NULL: not asked yet */
	struct ex_ranges *slots;	/* plt.c's; NULL: not asked yet */
	void *unwind;		/* unwind.c's rows by pc; NULL: none yet */
	void (*unwind_free)(void *);	/* frees them; NULL: nothing to free */
	void *types;		/* type.c's objects; NULL: none yet */
	void (*types_free)(void *);	/* frees them; NULL: nothing to free */
	struct ex_package *package;	/* package.c's; NULL: not asked yet */
	void *jumps;		/* jumps.c's; NULL: not asked yet */
	void (*jumps_free)(void *);	/* frees them; NULL: nothing to free */
	void *insn;		/* sweep.c's places by pc; NULL: none yet */
	void (*insn_free)(void *);	/* frees them; NULL: nothing to free */
};

/* A new module without contents; NULL: out of memory. */
struct ex_module *ex_module_new(const char *path, const struct ex_file_id *);
void ex_module_free(struct ex_module *);

/* Give it its contents: an open file (which stays the caller's), or a copy of
   an image in memory.  On failure the problem is set. */
void ex_module_map(struct ex_module *, int fd);
void ex_module_copy(struct ex_module *, const void *image, size_t size);

/* Say why the module cannot be used. */
void ex_module_fail(struct ex_module *, const char *problem);

/* Say that debug information is not used for what it claims. */
void ex_module_disbelieve(struct ex_module *, const struct ex_claim *);

/* Parse the file unless that is done.  False: unusable, see problem.  Every
   function below calls it. */
bool ex_module_open(struct ex_module *);

/* The main ELF file; its addresses are vaddrs.  NULL: unusable. */
Elf *ex_module_elf(struct ex_module *);

/* Debug information: of the file, or of its separate debug file.  *bias is what
   to add to a vaddr to get libdw's address.  NULL: none. */
Dwarf *ex_module_dwarf(struct ex_module *, uint64_t *bias);

/* Call frame information: .eh_frame, or .debug_frame.  *bias as above.
   NULL: none. */
Dwarf_CFI *ex_module_cfi(struct ex_module *, bool debug_frame, uint64_t *bias);

/* Room for a string of len bytes and its NUL, all zero, that lives as long as
   the module.  NULL: out of memory. */
char *ex_module_text(struct ex_module *, size_t len);

/* The segment whose memory holds vaddr, or NULL. */
const struct ex_segment *ex_module_segment(struct ex_module *, uint64_t vaddr);

/*
 * Where the module lies in a process, from one of its mappings: *base is what
 * to add to a vaddr.  False when no segment has that part of the file.
 */
bool ex_module_base(struct ex_module *, uint64_t start, uint64_t pgoff,
    uint64_t *base);

/* Names for code that a process made itself; NULL: it is not known for what there
   could be any.  It belongs to the process. */
struct ex_jit *ex_process_jit(const struct ex_process *);

/* Free what symbol.c, line.c and package.c keep; NULL is fine. */
void ex_symbols_free(struct ex_symbols *);
void ex_lines_free(struct ex_lines *);
void ex_package_free(struct ex_package *);

/* The next file that libdw opens and that is not there is this one instead; -1:
   none.  It stays the caller's (open.c). */
void ex_open_instead(int fd);

#endif
