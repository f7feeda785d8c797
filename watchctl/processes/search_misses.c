/* search_misses: sets of files that were searched in vain. */
#include "processes/search_misses.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/array.h"
#include "proc/proc.h"

enum { SETS_MAX = 1024 };

/* Identifies a file, and its version. */
struct file_version {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec written, changed;
};

/* Add a file, if it still exists at its path. */
static int
add_file(void *arg, const struct wp_proc_map *map)
{
	struct buffer *set = arg;
	struct file_version file;
	struct stat st;

	if (map->ino == 0 || (map->prot & PROT_EXEC) == 0)
		return 0;
	if (stat(map->path, &st) != 0 || st.st_ino != map->ino ||
	    st.st_dev != makedev(map->maj, map->min)) {
		buffer_free(set);
		return 1;
	}
	memset(&file, 0, sizeof(file));
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	file.size = st.st_size;
	file.written = st.st_mtim;
	file.changed = st.st_ctim;
	buffer_put(set, (const char *)&file, sizeof(file));
	return 0;
}

struct buffer
search_misses_set(pid_t pid, bool early)
{
	struct buffer set = {0};

	buffer_put(&set, early ? "e" : "l", 1);
	if (wp_proc_maps(pid, add_file, &set) != 0 || set.failed)
		buffer_free(&set);
	return set;
}

bool
search_misses_has(const struct search_misses *absent, const struct buffer *set)
{
	for (size_t i = 0; i < absent->n && set->len > 0; i++)
		if (absent->set[i].len == set->len &&
		    memcmp(absent->set[i].bytes, set->bytes, set->len) == 0)
			return true;
	return false;
}

/* If there is no room or memory, the next process is searched again. */
void
search_misses_add(struct search_misses *absent, const struct buffer *set)
{
	struct buffer copy = {0};

	if (set->len == 0 || absent->n >= SETS_MAX ||
	    search_misses_has(absent, set) || WP_ARRAY_ROOM(absent, set) < 0)
		return;
	buffer_put(&copy, set->bytes, set->len);
	if (copy.failed)
		buffer_free(&copy);
	else
		absent->set[absent->n++] = copy;
}

void
search_misses_free(struct search_misses *absent)
{
	while (absent->n > 0)
		buffer_free(&absent->set[--absent->n]);
	free(absent->set);
	*absent = (struct search_misses){0};
}
