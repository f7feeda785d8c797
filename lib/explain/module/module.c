/*
 * module: one ELF file: its contents, segments, build id, debug information.
 *
 * The file is mapped when the module is made, while the process that maps it is
 * still there, and parsed when something is asked of it.  libdwfl reads it from
 * that mapping, so that a file that has gone from disk is like any other; the
 * separate debug file is found by debug_file.c.  Compressed sections are only
 * read if the size that they claim is plausible (compressed.c).
 */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "module/debug_file.h"

#define PAGE 4096u	/* the smallest; segments are rounded to pages */

static void (*observe)(const char *path);
static const struct ex_module *observed;	/* last; NULL: none, or it was
						   freed */

struct ex_module *
ex_module_new(const char *path, const struct ex_file_id *id)
{
	struct ex_module *m = calloc(1, sizeof(*m));

	if (m == NULL || (m->path = strdup(path)) == NULL) {
		free(m);
		return NULL;
	}
	m->id = *id;
	return m;
}

void
ex_module_free(struct ex_module *m)
{
	struct ex_text *text;

	if (m == NULL)
		return;
	for (unsigned i = 0; i < EX_CACHES; i++) {
		if (m->cache[i].data != NULL)
			m->cache[i].release(m->cache[i].data);
		free(m->cache[i].data);
	}
	if (m->dwfl != NULL)
		dwfl_end(m->dwfl);
	ex_debug_file_close(m);
	ex_file_image_unmap(&m->image);
	while ((text = m->texts) != NULL) {
		m->texts = text->next;
		free(text);
	}
	if (m == observed)
		observed = NULL;
	free(m->segment);
	free(m->debug_path);
	free(m->host_path);
	free(m->problem);
	free(m->rejection);
	free(m->path);
	free(m);
}

void *
ex_module_cache(struct ex_module *m, enum ex_cached which, size_t size,
    void (*release)(void *), bool *is_new)
{
	struct ex_cache *cache = &m->cache[which];

	*is_new = cache->data == NULL;
	if (*is_new)
		cache->data = calloc(1, size);
	cache->release = release;
	return cache->data;
}

void
ex_module_fail(struct ex_module *m, const char *problem)
{
	free(m->problem);
	m->problem = strdup(problem);
}

/* Have the rejection reported. */
static void
report_later(struct ex_module *m)
{
	if (m->unreported != NULL)
		*m->unreported = true;
}

void
ex_module_no_memory(struct ex_module *m)
{
	static const char why[] = "its symbols take more memory than "
	    "--explain-memory allows";

	ex_module_fail(m, why);
	if (m->rejection == NULL)
		m->rejection = strdup(why);
	report_later(m);
}

void
ex_module_reject_debug(struct ex_module *m, const struct ex_compressed *claim)
{
	if (m->rejection != NULL)
		return;
	if ((claim->size == UINT64_MAX ? asprintf(&m->rejection,
	    "%" PRIu64 " compressed bytes do not say how many they become",
	    claim->stored) : asprintf(&m->rejection,
	    "%" PRIu64 " compressed bytes claim to become %" PRIu64,
	    claim->stored, claim->size)) < 0)
		m->rejection = NULL;
	report_later(m);
}

void
ex_module_map(struct ex_module *m, int fd)
{
	const int err = ex_file_image_map(&m->image, fd);

	if (err < 0)
		ex_module_fail(m, err == -ENOEXEC ? "not an ELF file" :
		    strerror(-err));
}

void
ex_module_copy(struct ex_module *m, const void *image, size_t size)
{
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED) {
		ex_module_fail(m, strerror(errno));
		return;
	}
	memcpy(copy, image, size);
	m->image.at = copy;
	m->image.size = size;
}

/* Why no process can run the image, or NULL.  This is checked before libdwfl
   sees it, which would also unpack archives and compressed files, and relocate
   object files in place. */
static const char *
elf_check(const uint8_t *image, size_t size)
{
	uint16_t type;

	if (size < EI_NIDENT + sizeof(type) ||
	    memcmp(image, ELFMAG, SELFMAG) != 0)
		return "not an ELF file";
	if ((image[EI_CLASS] != ELFCLASS32 && image[EI_CLASS] != ELFCLASS64) ||
	    image[EI_DATA] != ELFDATA2LSB || image[EI_VERSION] != EV_CURRENT)
		return "an ELF file of an unknown kind";
	memcpy(&type, image + EI_NIDENT, sizeof(type));
	if (type != ET_EXEC && type != ET_DYN)
		return "an ELF file, but no program or shared library";
	return NULL;
}

static bool
segment_of(const GElf_Phdr *ph, size_t image_size, struct ex_segment *out)
{
	if (ph->p_type != PT_LOAD || ph->p_memsz == 0 ||
	    ph->p_vaddr + ph->p_memsz < ph->p_vaddr)
		return false;
	*out = (struct ex_segment){
		.vaddr = ph->p_vaddr, .memsz = ph->p_memsz,
		.offset = ph->p_offset, .filesz = ph->p_filesz,
		.flags = ph->p_flags,
	};
	if (out->filesz > out->memsz)
		out->filesz = out->memsz;
	if (out->offset > image_size)
		out->offset = image_size;
	if (out->filesz > image_size - out->offset)
		out->filesz = image_size - out->offset;
	return true;
}

static bool
segments_read(struct ex_module *m)
{
	size_t n;

	if (elf_getphdrnum(m->elf, &n) != 0 ||
	    (m->segment = calloc(n + 1, sizeof(*m->segment))) == NULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(m->elf, (int)i, &ph) != NULL &&
		    segment_of(&ph, m->image.size, &m->segment[m->nsegments]))
			m->nsegments++;
	}
	return m->nsegments > 0;
}

static void
build_id_read(struct ex_module *m)
{
	static const char hex[] = "0123456789abcdef";
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(m->elf, &id);

	if (len <= 0 || (size_t)len > (sizeof(m->build_id) - 1) / 2)
		return;
	for (ssize_t i = 0; i < len; i++) {
		uint8_t byte = ((const uint8_t *)id)[i];

		m->build_id[2 * i] = hex[byte >> 4];
		m->build_id[2 * i + 1] = hex[byte & 15];
	}
}

/* Whether the file is the one that was recorded.  A record has room for 20
   bytes and may fill up a shorter id with zeros. */
static bool
build_id_matches(const struct ex_module *m)
{
	const uint8_t *want = m->id.build_id;
	size_t n = m->id.build_id_len;
	const void *id;
	ssize_t len;

	if (n == 0)
		return true;
	len = dwelf_elf_gnu_build_id(m->elf, &id);
	if (len <= 0 || (size_t)len > n || memcmp(id, want, (size_t)len) != 0)
		return false;
	for (size_t i = (size_t)len; i < n; i++) {
		if (want[i] != 0)
			return false;
	}
	return true;
}

/* Whether libelf accepts the image: if not, libdwfl's function for images
   crashes (elfutils 0.188). */
static bool
elf_opens(const struct ex_module *m)
{
	Elf *elf = elf_memory((char *)m->image.at, m->image.size);
	GElf_Ehdr eh;
	bool opens = elf != NULL && elf_kind(elf) == ELF_K_ELF &&
	    gelf_getehdr(elf, &eh) != NULL;

	(void)elf_end(elf);
	return opens;
}

static bool
dwfl_open(struct ex_module *m)
{
	/* libdwfl looks for nothing by itself */
	static char none[] = "", *nowhere = none;
	const char *host_path = m->host_path != NULL ? m->host_path : m->path;
	struct ex_compressed claim;
	void **userdata;

	m->callbacks = (Dwfl_Callbacks){
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = ex_debug_file_find,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &nowhere,
	};
	ex_libdw_interpose();
	if ((m->dwfl = dwfl_begin(&m->callbacks)) == NULL || !elf_opens(m))
		return false;
	dwfl_report_begin(m->dwfl);
	m->dwfl_module = dwfl_report_offline_memory(m->dwfl,
	    ex_module_name(m), host_path, (char *)m->image.at, m->image.size);
	if (dwfl_report_end(m->dwfl, NULL, NULL) != 0 ||
	    m->dwfl_module == NULL)
		return false;
	(void)dwfl_module_info(m->dwfl_module, &userdata, NULL, NULL, NULL,
	    NULL, NULL, NULL);
	*userdata = m;
	m->elf = dwfl_module_getelf(m->dwfl_module, &m->bias);
	if (m->elf != NULL && !ex_compressed_plausible(m->elf, &claim)) {
		ex_module_reject_debug(m, &claim);
		ex_compressed_hide(m->elf);
	}
	return m->elf != NULL;
}

static const char *
module_parse(struct ex_module *m)
{
	const char *wrong = elf_check(m->image.at, m->image.size);

	if (wrong != NULL)
		return wrong;
	if (!dwfl_open(m) || !segments_read(m))
		return "a damaged ELF file";
	if (!build_id_matches(m))
		return "another file than the one recorded: "
		    "its build id differs";
	build_id_read(m);
	return NULL;
}

/* Paths of modules that are not to be read. */
static struct {
	char **at;
	size_t n, cap;
} aside;

bool
ex_module_leave_aside(const char *path)
{
	char *copy = strdup(path);

	if (copy == NULL || !EX_ARRAY_ROOM(&aside, at, SIZE_MAX)) {
		free(copy);
		return false;
	}
	aside.at[aside.n++] = copy;
	return true;
}

static bool
is_aside(const struct ex_module *m)
{
	for (size_t i = 0; i < aside.n; i++)
		if (*aside.at[i] == '\0' || strcmp(aside.at[i], m->path) == 0)
			return true;
	return false;
}

void
ex_module_observe(void (*fn)(const char *path))
{
	observe = fn;
}

static void
observe_module(const struct ex_module *m)
{
	if (observe != NULL && m != observed)
		observe(m->path);
	observed = m;
}

bool
ex_module_open(struct ex_module *m)
{
	const char *wrong;

	observe_module(m);
	if (m->opened)
		return m->dwfl != NULL;
	m->opened = true;
	if (m->image.at == NULL)
		return false;
	if ((wrong = is_aside(m) ? "skipped: reading it ended the process that "
	    "explains" : module_parse(m)) == NULL)
		return true;
	ex_module_fail(m, wrong);
	m->nsegments = 0;
	m->elf = NULL;
	m->dwfl_module = NULL;
	if (m->dwfl != NULL)
		dwfl_end(m->dwfl);
	m->dwfl = NULL;
	return false;
}

Elf *
ex_module_elf(struct ex_module *m)
{
	return ex_module_open(m) ? m->elf : NULL;
}

static __attribute__((noreturn)) void (*memory_handler)(void);

void
ex_module_memory_handler(__attribute__((noreturn)) void (*fn)(void))
{
	memory_handler = fn;
}

void
ex_module_memory_handle(Dwarf *dwarf)
{
	if (memory_handler != NULL)
		(void)dwarf_new_oom_handler(dwarf, memory_handler);
}

Dwarf_CFI *
ex_module_eh_frame(struct ex_module *m, uint64_t *bias)
{
	Dwarf_Addr cfi_bias;
	Dwarf_CFI *cfi;

	if (!ex_module_open(m))
		return NULL;
	cfi = dwfl_module_eh_cfi(m->dwfl_module, &cfi_bias);
	if (cfi != NULL)
		*bias = m->bias - cfi_bias;
	return cfi;
}

char *
ex_module_text(struct ex_module *m, size_t len)
{
	struct ex_text *text = calloc(1, sizeof(*text) + len + 1);

	if (text == NULL)
		return NULL;
	text->next = m->texts;
	m->texts = text;
	return text->s;
}

const struct ex_segment *
ex_module_segment(struct ex_module *m, uint64_t vaddr)
{
	if (!ex_module_open(m))
		return NULL;
	for (unsigned i = 0; i < m->nsegments; i++) {
		const struct ex_segment *s = &m->segment[i];

		if (vaddr - s->vaddr < s->memsz)
			return s;
	}
	return NULL;
}

bool
ex_module_is_constant(struct ex_module *m, uint64_t vaddr)
{
	const struct ex_segment *segment = ex_module_segment(m, vaddr);
	GElf_Phdr header;
	size_t n;

	if (segment == NULL || (segment->flags & PF_W) == 0)
		return segment != NULL;
	if (elf_getphdrnum(m->elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n && i < INT_MAX; i++)
		if (gelf_getphdr(m->elf, (int)i, &header) != NULL &&
		    header.p_type == PT_GNU_RELRO &&
		    vaddr - header.p_vaddr < header.p_memsz)
			return true;
	return false;
}

/*
 * How well a segment explains an executable mapping that begins at pgoff; 0:
 * not at all.  Neighbouring segments may share a page of the file, which is
 * then mapped twice.
 */
static unsigned
segment_fits(const struct ex_segment *s, uint64_t pgoff)
{
	uint64_t first = s->offset & ~(uint64_t)(PAGE - 1);

	if (s->filesz == 0 || pgoff < first ||
	    pgoff - first >= s->offset - first + s->filesz)
		return 0;
	return 1 + 2u * (first == pgoff) + 4u * ((s->flags & PF_X) != 0);
}

bool
ex_module_base(struct ex_module *m, uint64_t start, uint64_t pgoff,
    uint64_t *base)
{
	const struct ex_segment *best = NULL;
	unsigned fit = 0;

	if (!ex_module_open(m))
		return false;
	for (unsigned i = 0; i < m->nsegments; i++) {
		unsigned fits = segment_fits(&m->segment[i], pgoff);

		if (fits > fit) {
			fit = fits;
			best = &m->segment[i];
		}
	}
	if (best == NULL)
		return false;
	*base = start - (best->vaddr + (pgoff - best->offset));
	return true;
}

const char *
ex_module_path(const struct ex_module *m)
{
	return m->path;
}

const char *
ex_module_name(const struct ex_module *m)
{
	const char *slash = strrchr(m->path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : m->path;
}

const char *
ex_module_build_id(const struct ex_module *m)
{
	/* parsing changes nothing that a caller could see */
	return ex_module_open((struct ex_module *)(uintptr_t)m) ?
	    m->build_id : "";
}

bool
ex_module_is_narrow(struct ex_module *m)
{
	return ex_module_open(m) && gelf_getclass(m->elf) == ELFCLASS32;
}

const char *
ex_module_problem(const struct ex_module *m)
{
	(void)ex_module_open((struct ex_module *)(uintptr_t)m);
	return m->problem;
}

size_t
ex_module_bytes(struct ex_module *m, uint64_t vaddr, void *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const struct ex_segment *s =
		    ex_module_segment(m, vaddr + done);
		uint64_t skip, n;

		if (s == NULL || (skip = vaddr + done - s->vaddr) >= s->filesz)
			break;
		n = s->filesz - skip;
		if (n > len - done)
			n = len - done;
		memcpy((uint8_t *)to + done, m->image.at + s->offset + skip, n);
		done += n;
	}
	return done;
}
