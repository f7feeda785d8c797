/* loader: where a starting program stops to have its libraries mapped. */
#include "run/loader.h"

#include <elf.h>
#include <sys/mman.h>

#include "os/proc.h"

void
loader_find(pid_t pid, struct live_box *live, struct loader *loader)
{
	loader->hook = live_box_loader_hook(live, pid);
	if (wp_proc_auxv(pid, AT_ENTRY, &loader->entry) < 0)
		loader->entry = 0;
}

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
