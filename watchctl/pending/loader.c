/* loader: what a process's dynamic loader has mapped, and where it stops for
   that. */
#include "pending/loader.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "os/proc.h"

enum {			/* what is read may be damaged */
	MODULES_MAX = 65536,
	DYNAMIC_MAX = 4096,
};

void
loader_find(pid_t pid, struct live_box *live, struct loader *loader)
{
	loader->hook = live_box_loader_hook(live, pid);
	if (wp_proc_auxv(pid, AT_ENTRY, &loader->entry) < 0)
		loader->entry = 0;
}

/* --- what a loader says to debuggers --- */

static bool
read_all(pid_t pid, uint64_t addr, void *to, size_t size)
{
	return wp_proc_read(pid, addr, to, size) == (ssize_t)size;
}

/* Where a program's table of a kind is, in its memory; 0: it has none. */
static uint64_t
find_segment(pid_t pid, uint32_t type, uint64_t *size)
{
	uint64_t at, n, found = 0, bias = 0;
	Elf64_Phdr header;

	if (wp_proc_auxv(pid, AT_PHDR, &at) < 0 ||
	    wp_proc_auxv(pid, AT_PHNUM, &n) < 0)
		return 0;
	for (uint64_t i = 0; i < n && i < PN_XNUM; i++) {
		if (!read_all(pid, at + i * sizeof(header), &header,
		    sizeof(header)))
			return 0;
		if (header.p_type == PT_PHDR)
			bias = at - header.p_vaddr;
		if (header.p_type == type) {
			found = header.p_vaddr;
			*size = header.p_memsz;
		}
	}
	return found == 0 ? 0 : found + bias;
}

/* The dynamic table has room for a pointer, which the loader sets as it
   begins. */
static bool
find_debug(pid_t pid, struct r_debug *debug)
{
	uint64_t size = 0;
	const uint64_t at = find_segment(pid, PT_DYNAMIC, &size);
	Elf64_Dyn entry = {.d_tag = DT_NULL};

	for (uint64_t i = 0; at != 0 && i < DYNAMIC_MAX &&
	    (i + 1) * sizeof(entry) <= size; i++) {
		if (!read_all(pid, at + i * sizeof(entry), &entry,
		    sizeof(entry)) || entry.d_tag == DT_NULL)
			return false;
		if (entry.d_tag == DT_DEBUG)
			return entry.d_un.d_ptr != 0 && read_all(pid,
			    entry.d_un.d_ptr, debug, sizeof(*debug));
	}
	return false;
}

uint64_t
loader_hook_of(pid_t pid)
{
	struct r_debug debug;

	return find_debug(pid, &debug) ? debug.r_brk : 0;
}

bool
loader_is_needed(pid_t pid)
{
	uint64_t size;

	return find_segment(pid, PT_INTERP, &size) != 0;
}

uint64_t
loader_module(pid_t pid, uint64_t base)
{
	struct link_map module = {.l_next = NULL};
	struct r_debug debug;
	uint64_t at = find_debug(pid, &debug) ? (uint64_t)debug.r_map : 0;

	for (unsigned i = 0; i < MODULES_MAX && at != 0; i++) {
		if (!read_all(pid, at, &module, sizeof(module)))
			return 0;
		if (module.l_addr == base)
			return at;
		at = (uint64_t)module.l_next;
	}
	return 0;
}

bool
loader_is_consistent(pid_t pid)
{
	struct r_debug debug;

	return find_debug(pid, &debug) && debug.r_state == RT_CONSISTENT;
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
