/*
 * module_private: shared by the files that look up things in a module.
 *
 * Three kinds of address: the process's; "vaddr", the module's own, as in its
 * program headers; and libdw's, which differs from vaddr by a bias that each
 * accessor here gives along.
 */
#ifndef EX_MODULE_PRIVATE_H
#define EX_MODULE_PRIVATE_H

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <sys/stat.h>

#include "module/compressed.h"
#include "module/file_image.h"
#include "module/module.h"

/* Identifies the file at a path.  Another file at the same path, or the same
   file written anew, is another module. */
struct ex_file_id {
	uint64_t dev, ino;	/* 0: not known, or none */
	uint64_t generation;	/* of the inode; 0: not known */
	int64_t mtime, mtime_ns;
	uint64_t size;		/* bytes */
	uint8_t build_id[20];	/* as a record names it */
	uint32_t build_id_len;	/* 0: none named; this type leaves no padding,
				   so memcmp can compare */
};

/* A PT_LOAD program header. */
struct ex_segment {
	uint64_t vaddr, memsz;		/* vaddr + memsz does not wrap */
	uint64_t offset, filesz;	/* within the file; filesz <= memsz */
	uint32_t flags;			/* PF_* */
};

/* A module's separate file of debug information, if it has one. */
struct ex_debug_file {
	bool found;		/* it was looked for; the following is set */
	char *path;		/* malloc'd */
	struct ex_file_image own, libdwfl;	/* twice, since libelf changes
						   what libdwfl reads */
	struct ex_file_image shared;	/* what it shares with others; libdwfl
					   reads it */
};

/* A string that belongs to a module. */
struct ex_text {
	struct ex_text *next;
	char s[];
};

/* What other files cache in a module, created on first use. */
enum ex_cached {
	EX_CACHE_DEBUG_INFO, EX_CACHE_SYMBOLS, EX_CACHE_LINES, EX_CACHE_FDES,
	EX_CACHE_PLT, EX_CACHE_PACKAGE, EX_CACHE_CFI, EX_CACHE_TYPES,
	EX_CACHE_OBJECTS, EX_CACHE_JUMPS, EX_CACHE_POINTERS, EX_CACHE_INSN,
	EX_CACHES,
};

struct ex_module {
	char *path;		/* as the process sees it; malloc'd */
	struct ex_file_id id;

	struct ex_file_image image;	/* of it; no st_ino: it is a copy of
					   memory */
	char *problem;		/* why it cannot be used, or only in part;
				   NULL: nothing; malloc'd */
	char *host_path;	/* where the search for a separate debug file
				   begins; NULL: at path; malloc'd */
	char *debug_path;	/* directories of debug files, as debug_file.c
				   takes them; NULL: the usual; malloc'd */
	struct ex_debug_file debug_file;
	char *rejection;	/* why existing debug information is not used,
				   in words; NULL: it is; malloc'd */
	bool reported;		/* the reason has been reported */
	bool *unreported;	/* set when there is something to report; may be
				   NULL */
	Dwfl_Callbacks callbacks;

	bool opened;		/* ex_module_open was called, which sets what
				   follows */
	Dwfl *dwfl;		/* holds the one module below; NULL: unusable */
	Dwfl_Module *dwfl_module;
	Elf *elf;		/* the main file; belongs to dwfl */
	uint64_t bias;		/* libdwfl's address minus vaddr */
	struct ex_segment *segment;	/* in the file's order */
	unsigned nsegments;
	char build_id[129];	/* lower-case hex; "": none */

	struct ex_text *texts;	/* strings of ex_module_text */
	struct ex_cache {
		void *data;		/* NULL: none yet */
		void (*release)(void *);	/* frees what data owns */
	} cache[EX_CACHES];
};

/* A new module without contents; NULL: out of memory. */
struct ex_module *ex_module_new(const char *path, const struct ex_file_id *);
void ex_module_free(struct ex_module *);

/* Set its contents: an open file (which remains the caller's), or a copy of an
   image in memory.  On failure the problem is set. */
void ex_module_map(struct ex_module *, int fd);
void ex_module_copy(struct ex_module *, const void *image, size_t size);

/* Set the reason why the module cannot be used. */
void ex_module_fail(struct ex_module *, const char *problem);

/* Have libdw call the function of ex_module_memory_handler. */
void ex_module_memory_handle(Dwarf *);

/* Reject debug information because of what it claims. */
void ex_module_reject_debug(struct ex_module *, const struct ex_compressed *);

/* Report that its symbols take more memory than may be used. */
void ex_module_no_memory(struct ex_module *);

/* Parse the file, once.  False: unusable, see problem.  Every function below
   calls it. */
bool ex_module_open(struct ex_module *);

/* The main ELF file; its addresses are vaddrs.  NULL: unusable. */
Elf *ex_module_elf(struct ex_module *);

/* Debug information: of the file, or of its separate debug file. *bias is what
   to add to a vaddr to get libdw's address.  NULL: none.  Of .debug_info only
   parts requested through debug_info.h are available. */
Dwarf *ex_module_dwarf(struct ex_module *, uint64_t *bias);

/* Call frame information of .eh_frame; that of .debug_frame is debug_info.h's.
   *bias as above.  NULL: none. */
Dwarf_CFI *ex_module_eh_frame(struct ex_module *, uint64_t *bias);

/* Room for a string of len bytes and its NUL, all zero, that lives as long as
   the module.  NULL: out of memory. */
char *ex_module_text(struct ex_module *, size_t len);

/* The segment whose memory holds vaddr, or NULL. */
const struct ex_segment *ex_module_segment(struct ex_module *, uint64_t vaddr);

/*
 * Determine from one of its mappings where the module is loaded: *base is what
 * to add to a vaddr.  False: no segment has that part of the file.
 */
bool ex_module_base(struct ex_module *, uint64_t start, uint64_t pgoff,
    uint64_t *base);

/*
 * A cache in a module: size bytes, zero at first. release frees what they own,
 * before they are freed with the module.  NULL: out of memory.
 */
void *ex_module_cache(struct ex_module *, enum ex_cached, size_t size,
    void (*release)(void *), bool *is_new);

/* Redirect libdw's open(2) to ours, if it is not already */
void ex_libdw_interpose(void);

/* open(2) for libdw, to read only.  A descriptor; or -1, and errno is set. */
int ex_libdw_open(const char *path);

/* What libdw may take for a descriptor of this file.  The file remains the
   caller's, and must last as long as libdw reads it (libdw_open.c). */
int ex_stand_in(const struct ex_file_image *);

/* Use this file, as above, in place of the next missing file that libdw opens;
   NULL: none. */
void ex_open_instead(const struct ex_file_image *);

#endif
