/*
 * debug_file: the separate file that holds a module's debug information.
 *
 * Where it is looked for is a list, as elsewhere: "" is the directory of the
 * module's file, a relative name is a directory in that, and an absolute one
 * has files by build id, and the module's directory once more below it.
 */
#include "module/debug_file.h"

#include <elfutils/libdwelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "module/compressed.h"
#include "proc/regular_file.h"

#define PLACES_USUAL ":.debug:/usr/lib/debug"
#define CHECKED_MAX ((off_t)1 << 30)	/* bytes, if its checksum decides */

enum { ID_MAX = 64 };			/* bytes of a build id */

struct wanted {
	struct ex_module *module;
	const void *id;		/* build id */
	ssize_t id_len;		/* <= 0: none, and the sum decides */
	bool has_crc;
	uint32_t crc;
	char **found;		/* its path, malloc'd */
};

/* The checksum of a debug link is the CRC of zlib. */
static bool
has_sum(int fd, uint32_t want)
{
	static uint8_t bytes[65536];
	uLong crc = 0;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0 &&
	    at < CHECKED_MAX) {
		crc = crc32(crc, bytes, (uInt)n);
		at += n;
	}
	return n == 0 && crc == want;
}

static bool
has_id(Elf *elf, const struct wanted *w)
{
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &id);

	return len == w->id_len && memcmp(id, w->id, (size_t)len) == 0;
}

/* Whether an open file is the wanted one, and may be read. */
static bool
is_wanted(const struct wanted *w, int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	struct ex_compressed claim;
	bool is;

	is = elf != NULL && elf_kind(elf) == ELF_K_ELF &&
	    (w->id_len > 0 ? has_id(elf, w) : w->has_crc && has_sum(fd,
	    w->crc));
	if (is && !ex_compressed_plausible(elf, &claim)) {
		ex_module_reject_debug(w->module, &claim);
		is = false;
	}
	(void)elf_end(elf);
	return is;
}

/* Whether it is the module's own file, which has the same build id. */
static bool
is_own(const struct ex_module *m, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == m->image.st.st_dev &&
	    st.st_ino == m->image.st.st_ino;
}

/* Open the file with this name if it is the wanted one.  A descriptor, or
   -1. */
__attribute__((format(printf, 2, 3)))
static int
try(const struct wanted *w, const char *format, ...)
{
	char *path = NULL;
	va_list ap;
	int fd;

	va_start(ap, format);
	if (vasprintf(&path, format, ap) < 0)
		path = NULL;
	va_end(ap);
	fd = path == NULL ? -1 : wp_open_regular(path);
	if (fd >= 0 && (is_own(w->module, fd) || !is_wanted(w, fd))) {
		(void)close(fd);
		fd = -1;
	}
	if (fd >= 0)
		*w->found = path;
	else
		free(path);
	return fd < 0 ? -1 : fd;
}

static bool
put_id(const struct wanted *w, char hex[2 * ID_MAX + 1])
{
	for (ssize_t i = 0; i < w->id_len && i < ID_MAX; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x",
		    ((const uint8_t *)w->id)[i]);
	return w->id_len >= 2 && w->id_len <= ID_MAX;
}

/* Look in a place's tree of build ids. */
static int
try_id(const struct wanted *w, const char *place)
{
	char hex[2 * ID_MAX + 1];

	if (*place != '/' || !put_id(w, hex))
		return -1;
	return try(w, "%s/.build-id/%.2s/%s.debug", place, hex, hex + 2);
}

/* Look by name below an absolute place, in a copy of the module's directory or
   of the end of its path. */
static int
try_below(const struct wanted *w, const char *place, const char *dir, int len,
    const char *name)
{
	int fd = -1;

	while (fd < 0 && len > 0) {
		const char *next = memchr(dir + 1, '/', (size_t)len - 1);

		fd = try(w, "%s%.*s/%s", place, len, dir, name);
		if (next == NULL)
			break;
		len -= (int)(next - dir);
		dir = next;
	}
	return fd;
}

/* Look in one place by name. */
static int
try_name(const struct wanted *w, const char *place, const char *name)
{
	const struct ex_module *m = w->module;
	const char *path = m->host_path != NULL ? m->host_path : m->path;
	const char *end = strrchr(path, '/'), *own = strrchr(m->path, '/');

	if (end == NULL || own == NULL)
		return -1;
	if (*place == '/')
		return try_below(w, place, m->path, (int)(own - m->path), name);
	return *place == '\0' ?
	    try(w, "%.*s/%s", (int)(end - path), path, name) :
	    try(w, "%.*s/%s/%s", (int)(end - path), path, place, name);
}

/* Look by each name that it may have: that of the link, or else the usual
   ones. */
static int
try_names(const struct wanted *w, const char *place, const char *link)
{
	const char *own = ex_module_name(w->module);
	char *name = NULL;
	int fd;

	if (link != NULL)
		return strchr(link, '/') != NULL || *link == '\0' ? -1 :
		    try_name(w, place, link);
	if (asprintf(&name, "%s.debug", own) < 0)
		return -1;
	fd = try_name(w, place, name);
	free(name);
	return fd < 0 && *place != '\0' ? try_name(w, place, own) : fd;
}

/* Look in all places; by name only if asked for. */
static int
search(const struct wanted *w, const char *link, bool by_name)
{
	const char *list = w->module->debug_path;
	char *places = strdup(list != NULL ? list : PLACES_USUAL);
	char *rest = places, *place;
	int fd = -1;

	while (fd < 0 && (place = strsep(&rest, ":")) != NULL)
		fd = try_id(w, place);
	free(places);
	places = rest = by_name ?
	    strdup(list != NULL ? list : PLACES_USUAL) : NULL;
	while (fd < 0 && (place = strsep(&rest, ":")) != NULL)
		fd = try_names(w, place, link);
	free(places);
	return fd;
}

static int (*fetch)(const char *build_id);

void
ex_module_fetcher(int (*fn)(const char *build_id))
{
	fetch = fn;
}

/* Ask servers, which know files by build id. */
static int
download(const struct wanted *w)
{
	char hex[2 * ID_MAX + 1];
	int fd;

	if (fetch == NULL || !put_id(w, hex) || (fd = fetch(hex)) < 0)
		return -1;
	if (is_wanted(w, fd) && asprintf(w->found, "%s.debug", hex) > 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* Look by a path: in the module's root, or relative to the directory of the
   file that holds the debug information. */
static int
try_path(const struct wanted *w, const char *name)
{
	const struct ex_module *m = w->module;
	const char *host = m->host_path != NULL ? m->host_path : m->path;
	const char *from = m->debug_file.path != NULL ? m->debug_file.path :
	    host;
	const char *end = strrchr(from, '/');
	const size_t len = strlen(host), own = strlen(m->path);

	if (*name == '/')
		return try(w, "%.*s%s", len > own ? (int)(len - own) : 0, host,
		    name);
	return end == NULL || *name == '\0' ? -1 :
	    try(w, "%.*s/%s", (int)(end - from), from, name);
}

/* Give libdwfl an image in place of a descriptor; -1: there is none. */
static int
give(const struct ex_file_image *image)
{
	return image->at != NULL ? ex_stand_in(image) : -1;
}

/* Look for the file that debug information shares with others.  Wherever it is,
   it has this build id. */
static int
find_shared(struct wanted *w, Dwfl_Module *module)
{
	struct ex_file_image *image = &w->module->debug_file.shared;
	const char *name;
	Dwarf_Addr bias;
	int fd;

	w->id_len = dwelf_dwarf_gnu_debugaltlink(
	    dwfl_module_getdwarf(module, &bias), &name, &w->id);
	if (w->id_len <= 0)
		return -1;
	fd = search(w, NULL, false);
	if (fd < 0)
		fd = try_path(w, name);
	if (fd < 0)
		return -1;
	if (image->at == NULL)
		(void)ex_file_image_map(image, fd);
	(void)close(fd);
	return give(image);
}

/* Look for the file, once. */
static void
find(struct ex_module *m)
{
	struct wanted w = {.module = m, .found = &m->debug_file.path};
	const char *link = dwelf_elf_gnu_debuglink(m->elf, &w.crc);
	int fd;

	w.has_crc = link != NULL;
	w.id_len = dwelf_elf_gnu_build_id(m->elf, &w.id);
	fd = search(&w, link, true);
	if (fd < 0)
		fd = download(&w);
	m->debug_file.found = true;
	if (fd < 0)
		return;
	if (ex_file_image_map(&m->debug_file.own, fd) == 0)
		(void)ex_file_image_map(&m->debug_file.libdwfl, fd);
	(void)close(fd);
}

const struct ex_file_image *
ex_debug_file(struct ex_module *m)
{
	if (!m->debug_file.found)
		find(m);
	return m->debug_file.own.at != NULL ? &m->debug_file.own : NULL;
}

int
ex_debug_file_find(Dwfl_Module *module, void **data, const char *name,
    Dwarf_Addr base, const char *file, const char *link, GElf_Word crc,
    char **found)
{
	struct ex_module *m = *data;
	struct wanted w = {.module = m, .found = found};
	GElf_Word own;

	(void)name;
	(void)base;
	(void)file;
	(void)crc;
	if (link != dwelf_elf_gnu_debuglink(m->elf, &own))
		return find_shared(&w, module);
	if (ex_debug_file(m) != NULL && m->debug_file.path != NULL)
		*found = strdup(m->debug_file.path);
	return give(&m->debug_file.libdwfl);
}

void
ex_debug_file_close(struct ex_module *m)
{
	ex_file_image_unmap(&m->debug_file.own);
	ex_file_image_unmap(&m->debug_file.libdwfl);
	ex_file_image_unmap(&m->debug_file.shared);
	free(m->debug_file.path);
}
