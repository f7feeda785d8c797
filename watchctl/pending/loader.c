/* loader: the modules that a process's dynamic loader has mapped, and its
   hook. */
#include "pending/loader.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "proc/proc.h"

enum {			/* limits, because what is read may be damaged */
	MODULES_MAX = 65536,
	DYNAMIC_MAX = 4096,
};

void
loader_find(pid_t pid, struct live_broker *live, struct loader *loader)
{
	loader->hook = live_broker_loader_hook(live, pid);
	if (wp_proc_auxv(pid, AT_ENTRY, &loader->entry) < 0)
		loader->entry = 0;
}

/* --- what a loader says to debuggers --- */

/* Offsets in words: these members are at the same ones in 32-bit programs,
   whose words have 4 bytes. */
enum { TYPE, VADDR = 2, MEMSZ = 5, HEADER = 8 };	/* Elf64_Phdr; its
							   last word is the
							   alignment */
enum { TAG, VALUE, ENTRY };			/* Elf64_Dyn */
enum { MODULES = 1, HOOK, STATE, DEBUG };	/* struct r_debug */
enum { BASE, NEXT = 3, MODULE };		/* struct link_map */
#define IS_WORD(type, member, n) (offsetof(type, member) == 8 * (n))
_Static_assert(IS_WORD(Elf64_Phdr, p_vaddr, VADDR) &&
    IS_WORD(Elf64_Phdr, p_memsz, MEMSZ) &&
    IS_WORD(struct r_debug, r_map, MODULES) &&
    IS_WORD(struct r_debug, r_brk, HOOK) &&
    IS_WORD(struct r_debug, r_state, STATE) &&
    IS_WORD(struct link_map, l_next, NEXT), "the order that they have");

/* The memory of a process. */
struct memory {
	pid_t pid;
	size_t word;		/* bytes in a word: 8 or 4 */
};

static struct memory
memory_of(pid_t pid)
{
	uint64_t size;

	return (struct memory){pid, wp_proc_auxv(pid, AT_PHENT, &size) == 0 &&
	    size == sizeof(Elf32_Phdr) ? sizeof(uint32_t) : sizeof(uint64_t)};
}

static bool
read_words(const struct memory *memory, uint64_t at, uint64_t *to, size_t n)
{
	uint64_t bytes[HEADER];
	const size_t word = memory->word;

	if (wp_proc_read(memory->pid, at, bytes, n * word) !=
	    (ssize_t)(n * word))
		return false;
	for (size_t i = 0; i < n; i++) {
		to[i] = 0;
		memcpy(&to[i], (const char *)bytes + i * word, word);
	}
	return true;
}

/* The size of a program header in words; those of 32-bit programs have the
   flags elsewhere. */
static size_t
header_words(const struct memory *memory)
{
	return memory->word == sizeof(uint64_t) ?
	    sizeof(Elf64_Phdr) / sizeof(uint64_t) :
	    sizeof(Elf32_Phdr) / sizeof(uint32_t);
}

/* Find a program header of this type, and the bias of its addresses. */
static bool
find_header(const struct memory *memory, uint32_t type, uint64_t found[HEADER],
    uint64_t *bias)
{
	uint64_t at, n, step, header[HEADER];
	bool is = false;

	*bias = 0;

	if (wp_proc_auxv(memory->pid, AT_PHDR, &at) < 0 ||
	    wp_proc_auxv(memory->pid, AT_PHENT, &step) < 0 ||
	    wp_proc_auxv(memory->pid, AT_PHNUM, &n) < 0)
		return false;
	for (uint64_t i = 0; i < n && i < PN_XNUM; i++) {
		if (!read_words(memory, at + i * step, header,
		    header_words(memory)))
			return false;
		if ((uint32_t)header[TYPE] == PT_PHDR)
			*bias = at - header[VADDR];
		if ((uint32_t)header[TYPE] == type) {
			memcpy(found, header, header_words(memory) *
			    sizeof(*header));
			is = true;
		}
	}
	return is;
}

/* The address of a program's segment of this type, or 0 if it has none. */
static uint64_t
find_segment(const struct memory *memory, uint32_t type, uint64_t *size)
{
	uint64_t found[HEADER], bias;

	if (!find_header(memory, type, found, &bias) || found[VADDR] == 0)
		return 0;
	*size = found[MEMSZ];
	return found[VADDR] + bias;
}

/* The dynamic section has room for a pointer, which the loader sets when it
   starts. */
static bool
find_debug(const struct memory *memory, uint64_t debug[DEBUG])
{
	uint64_t size = 0, entry[ENTRY];
	const uint64_t at = find_segment(memory, PT_DYNAMIC, &size);
	const uint64_t step = ENTRY * memory->word;

	for (uint64_t i = 0; at != 0 && i < DYNAMIC_MAX &&
	    (i + 1) * step <= size; i++) {
		if (!read_words(memory, at + i * step, entry, ENTRY) ||
		    entry[TAG] == DT_NULL)
			return false;
		if (entry[TAG] == DT_DEBUG)
			return entry[VALUE] != 0 && read_words(memory,
			    entry[VALUE], debug, DEBUG);
	}
	return false;
}

uint64_t
loader_hook_of(pid_t pid)
{
	const struct memory memory = memory_of(pid);
	uint64_t debug[DEBUG];

	return find_debug(&memory, debug) ? debug[HOOK] : 0;
}

bool
loader_is_needed(pid_t pid)
{
	const struct memory memory = memory_of(pid);
	uint64_t size;

	return find_segment(&memory, PT_INTERP, &size) != 0;
}

bool
loader_program_storage(pid_t pid, uint64_t base, uint64_t *distance)
{
	const struct memory memory = memory_of(pid);
	uint64_t found[HEADER], bias, align, first;

	if (!find_header(&memory, PT_TLS, found, &bias) || bias != base)
		return false;
	align = found[header_words(&memory) - 1];
	align = align == 0 ? 1 : align;
	if ((align & (align - 1)) != 0)
		return false;
	first = -found[VADDR] & (align - 1);
	*distance = ((found[MEMSZ] - first + align - 1) & -align) + first;
	return true;
}

uint64_t
loader_module(pid_t pid, uint64_t base)
{
	const struct memory memory = memory_of(pid);
	uint64_t debug[DEBUG], module[MODULE];
	uint64_t at = find_debug(&memory, debug) ? debug[MODULES] : 0;

	for (unsigned i = 0; i < MODULES_MAX && at != 0; i++) {
		if (!read_words(&memory, at, module, MODULE))
			return 0;
		if (module[BASE] == base)
			return at;
		at = module[NEXT];
	}
	return 0;
}

bool
loader_is_consistent(pid_t pid)
{
	const struct memory memory = memory_of(pid);
	uint64_t debug[DEBUG];

	return find_debug(&memory, debug) &&
	    (uint32_t)debug[STATE] == RT_CONSISTENT;
}

/* --- what is mapped --- */

static int
count(void *arg, const struct wp_proc_map *map)
{
	*(unsigned *)arg += map->ino != 0 && (map->prot & PROT_EXEC) != 0;
	return 0;
}

unsigned
loader_count(pid_t pid)
{
	unsigned n = 0;

	(void)wp_proc_maps(pid, count, &n);
	return n;
}
