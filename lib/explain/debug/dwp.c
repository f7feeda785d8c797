/*
 * dwp: extracts units of split debug information from a package.
 *
 * Its sections are those of all units, one behind the other, but for the
 * strings, which they share.  An index (.debug_cu_index) says where a unit's
 * parts lie:
 *
 *	u32 version = 2, or u16 5 and u16 0; u32 columns, units, slots
 *	u64 id[slots]; u32 row[slots]		from 1; 0: no unit in this slot
 *	u32 section[columns]
 *	u32 offset[units][columns]; u32 size[units][columns]
 */
#include "debug/dwp.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "module/compressed.h"
#include "module/module_private.h"
#include "module/section.h"
#include "proc/regular_file.h"

#define HEADER 16		/* bytes of the index before the ids */
#define COLUMNS_MAX 8
#define ROOM_MAX (UINT64_C(1) << 36)	/* address space for the units of one
					   package */

/* The sections by their numbers in the index, for versions 2 and 5. */
static const char *const names[2][COLUMNS_MAX + 1] = {
	{NULL, ".debug_info.dwo", ".debug_types.dwo", ".debug_abbrev.dwo",
	    ".debug_line.dwo", ".debug_loc.dwo", ".debug_str_offsets.dwo",
	    ".debug_macinfo.dwo", ".debug_macro.dwo"},
	{NULL, ".debug_info.dwo", NULL, ".debug_abbrev.dwo",
	    ".debug_line.dwo", ".debug_loclists.dwo",
	    ".debug_str_offsets.dwo", ".debug_macro.dwo",
	    ".debug_rnglists.dwo"},
};

/* A unit as a file of its own, which libdw uses as long as the module
   exists. */
struct dwp_image {
	struct dwp_image *next;
	uint64_t id;
	struct ex_file_image file;
};

struct dwp {
	Elf *elf;		/* NULL if there is none */
	uint8_t *at;		/* all of it, in memory; NULL: none */
	size_t size;
	struct dwp_image *first;
	uint64_t room;		/* address space in use */
};

static void
package_release(void *arg)
{
	struct dwp *package = arg;

	for (struct dwp_image *i = package->first, *next; i != NULL; i = next) {
		next = i->next;
		(void)munmap(i->file.at, i->file.size);
		free(i);
	}
	(void)elf_end(package->elf);
	if (package->at != NULL)
		(void)munmap(package->at, package->size);
}

/* Map a file, without keeping its descriptor.  Only a shared mapping can be
   mapped again. */
static bool
map_file(struct dwp *package, const char *path)
{
	const int fd = wp_open_regular(path);
	struct stat st;
	void *at = MAP_FAILED;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0)
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd,
		    0);
	(void)close(fd);
	if (at == MAP_FAILED)
		return false;
	package->at = at;
	package->size = (size_t)st.st_size;
	return true;
}

static bool
open_file(struct dwp *package, const char *path)
{
	struct ex_compressed claim;
	Elf *elf;

	if (!map_file(package, path))
		return false;
	elf = elf_memory((char *)package->at, package->size);
	if (elf == NULL || elf_kind(elf) != ELF_K_ELF ||
	    gelf_getclass(elf) != ELFCLASS64 ||
	    !ex_compressed_plausible(elf, &claim)) {
		(void)elf_end(elf);
		return false;
	}
	package->elf = elf;
	return true;
}

/* The package of a module, searched once; NULL if there is none. */
static struct dwp *
package_of(struct ex_module *m)
{
	bool is_new;
	struct dwp *package = ex_module_cache(m, EX_CACHE_PACKAGE,
	    sizeof(*package), package_release, &is_new);
	char *path;

	if (package == NULL)
		return NULL;
	if (is_new) {
		if (asprintf(&path, "%s.dwp", m->host_path != NULL ?
		    m->host_path : m->path) < 0)
			return NULL;
		(void)open_file(package, path);
		free(path);
	}
	return package->elf != NULL ? package : NULL;
}

/* The contents of a section, or NULL. */
static const uint8_t *
section(Elf *elf, const char *wanted, size_t *size)
{
	GElf_Shdr sh;
	Elf_Scn *scn = ex_section_find(elf, wanted, &sh);
	const Elf_Data *data = scn != NULL &&
	    (sh.sh_flags & SHF_COMPRESSED) == 0 ? elf_rawdata(scn, NULL) : NULL;

	*size = data != NULL ? data->d_size : 0;
	return data != NULL ? data->d_buf : NULL;
}

/* A part of a unit. */
struct dwp_part {
	const char *name;	/* name of its section */
	const uint8_t *bytes;
	size_t size;
};

struct dwp_unit {
	struct dwp_part part[COLUMNS_MAX + 1];	/* including the strings */
	unsigned n;
};

static bool
add_part(struct dwp_unit *unit, Elf *elf, const char *name, uint32_t offset,
    uint32_t size)
{
	size_t all = 0;
	const uint8_t *bytes = section(elf, name, &all);

	if (bytes == NULL || offset > all || size > all - offset)
		return false;
	unit->part[unit->n++] = (struct dwp_part){name, bytes + offset, size};
	return true;
}

/* The row of an id in the index, from 1; 0 if it has none. */
static uint32_t
row_of(const uint8_t *ids, uint32_t slots, uint64_t id)
{
	uint64_t there;

	for (uint32_t i = 0; i < slots; i++) {
		memcpy(&there, ids + (size_t)i * 8, sizeof(there));
		if (there == id)
			return ex_u32(ids + (size_t)slots * 8 + (size_t)i * 4);
	}
	return 0;
}

/* Find the parts of a unit. */
static bool
find_unit(Elf *elf, uint64_t id, struct dwp_unit *unit)
{
	size_t size = 0, text = 0;
	const uint8_t *index = section(elf, ".debug_cu_index", &size);
	const uint8_t *table, *offsets, *sizes, *strings;
	uint32_t columns, units, slots, row;
	bool new;

	unit->n = 0;
	if (index == NULL || size < HEADER ||
	    (ex_u32(index) != 2 && ex_u32(index) != 5))
		return false;
	new = ex_u32(index) == 5;
	columns = ex_u32(index + 4);
	units = ex_u32(index + 8);
	slots = ex_u32(index + 12);
	if (columns == 0 || columns > COLUMNS_MAX ||
	    slots > (size - HEADER) / 12 ||
	    units > (size - HEADER - (size_t)slots * 12) / (8 * columns) ||
	    (size - HEADER - (size_t)slots * 12 - (size_t)units * 8 *
	    columns) < (size_t)columns * 4 ||
	    (row = row_of(index + HEADER, slots, id)) == 0 || row > units)
		return false;
	table = index + HEADER + (size_t)slots * 12;
	offsets = table + ((size_t)row * columns) * 4;
	sizes = offsets + (size_t)units * columns * 4;
	for (uint32_t i = 0; i < columns; i++) {
		const uint32_t which = ex_u32(table + i * 4);
		const char *name = which <= COLUMNS_MAX ?
		    names[new][which] : NULL;

		if (name != NULL && ex_u32(sizes + i * 4) != 0 && !add_part(
		    unit, elf, name, ex_u32(offsets + i * 4),
		    ex_u32(sizes + i * 4)))
			return false;
	}
	strings = section(elf, ".debug_str.dwo", &text);
	if (strings != NULL)
		unit->part[unit->n++] = (struct dwp_part){".debug_str.dwo",
		    strings, text};
	return true;
}

/* --- a file of one unit --- */

enum { SECTIONS_MAX = COLUMNS_MAX + 3, NAMES_SIZE = 512 };

/* The ELF header, the section headers, and their names. */
struct dwp_head {
	Elf64_Ehdr eh;
	Elf64_Shdr sh[SECTIONS_MAX];
	char names[NAMES_SIZE];
};

static size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* The offset of a part in the package. */
static uint64_t
place_of(const struct dwp_part *part, const struct dwp *package)
{
	return (uint64_t)(part->bytes - package->at);
}

static bool
begin_head(struct dwp_head *head, Elf *elf, unsigned parts)
{
	GElf_Ehdr eh;

	*head = (struct dwp_head){.names = ""};
	if (gelf_getehdr(elf, &eh) == NULL)
		return false;
	eh.e_type = ET_REL;
	eh.e_entry = eh.e_phoff = 0;
	eh.e_phnum = 0;
	eh.e_shoff = offsetof(struct dwp_head, sh);
	eh.e_shentsize = sizeof(head->sh[0]);
	eh.e_shnum = (uint16_t)(parts + 2);
	eh.e_shstrndx = 1;
	head->eh = eh;
	head->sh[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
	    .sh_offset = offsetof(struct dwp_head, names),
	    .sh_size = NAMES_SIZE, .sh_addralign = 1};
	return true;
}

/* Each part has the same offset within its page as in the package, whose pages
   are mapped there.  Returns the size of the file. */
static uint64_t
place_parts(struct dwp_head *head, const struct dwp *package,
    const struct dwp_unit *unit)
{
	const uint64_t page = page_size();
	uint64_t at = page;
	size_t used = 1;

	for (unsigned i = 0; i < unit->n; i++) {
		const struct dwp_part *part = &unit->part[i];
		const uint64_t before = place_of(part, package) % page;

		head->sh[i + 2] = (Elf64_Shdr){.sh_name = (uint32_t)used,
		    .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXCLUDE,
		    .sh_offset = at + before, .sh_size = part->size,
		    .sh_addralign = 1};
		used += (size_t)snprintf(head->names + used,
		    sizeof(head->names) - used, "%s", part->name) + 1;
		at += (before + part->size + page - 1) / page * page;
	}
	return at;
}

/* Only the headers are copied. */
static bool
fill(const struct dwp *package, const struct dwp_head *head,
    const struct dwp_unit *unit, uint8_t *image)
{
	const uint64_t page = page_size();

	for (unsigned i = 0; i < unit->n; i++) {
		const uint64_t at = head->sh[i + 2].sh_offset;
		const uint64_t from = place_of(&unit->part[i], package);

		/* from a length of 0 it is mapped again, not moved */
		if (mremap(package->at + from / page * page, 0, at % page +
		    unit->part[i].size, MREMAP_MAYMOVE | MREMAP_FIXED,
		    image + at / page * page) == MAP_FAILED)
			return false;
	}
	memcpy(image, head, sizeof(*head));
	return true;
}

static bool
map_unit(struct dwp *package, const struct dwp_unit *unit,
    struct ex_file_image *file)
{
	_Static_assert(sizeof(struct dwp_head) <= 4096, "a page");
	struct dwp_head head;
	void *at;

	if (!begin_head(&head, package->elf, unit->n))
		return false;
	file->size = place_parts(&head, package, unit);
	if (file->size > ROOM_MAX - package->room ||
	    (at = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED)
		return false;
	file->at = at;
	if (fill(package, &head, unit, at))
		return true;
	(void)munmap(at, file->size);
	return false;
}

static struct dwp_image *
image_of(struct dwp *package, uint64_t id)
{
	struct dwp_image *image = package->first;
	struct dwp_unit unit;

	while (image != NULL && image->id != id)
		image = image->next;
	if (image != NULL || !find_unit(package->elf, id, &unit) ||
	    (image = calloc(1, sizeof(*image))) == NULL)
		return image;
	if (!map_unit(package, &unit, &image->file)) {
		free(image);
		return NULL;
	}
	image->id = id;
	image->next = package->first;
	package->first = image;
	package->room += image->file.size;
	return image;
}

const struct ex_file_image *
ex_dwp_unit(struct ex_module *m, uint64_t id)
{
	struct dwp *package = package_of(m);
	struct dwp_image *image = package != NULL ? image_of(package, id) :
	    NULL;

	return image != NULL ? &image->file : NULL;
}
