/*
 * files: the known modules, and where their files come from.
 *
 * A file is opened when its mapping is learnt: the process may be gone when it
 * is asked about.  No name may ever come from another file than the mapped one:
 * device and inode decide for a running process, the build id for a recording.
 */
#include "space/files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "module/memory_image.h"
#include "proc/proc.h"
#include "proc/regular_file.h"
#include "proc/roots.h"
#include "space/space.h"

/* The build id of a path, from the table of a recording. */
struct named_id {
	char *path;		/* malloc'd */
	uint8_t id[20];
	uint8_t len;
	bool unclear;		/* the table has two different ones */
};

struct ex_files {
	enum ex_source source;
	void *modules;		/* of search.h, by path and file id */
	void *build_ids;	/* of search.h, by path */
	bool unreported;  /* a rejected module may not have been reported */
	struct wp_roots roots;
};

static int
module_compare(const void *a, const void *b)
{
	const struct ex_module *x = a, *y = b;
	int order = memcmp(&x->id, &y->id, sizeof(x->id));

	return order != 0 ? order : strcmp(x->path, y->path);
}

static int
named_id_compare(const void *a, const void *b)
{
	return strcmp(((const struct named_id *)a)->path,
	    ((const struct named_id *)b)->path);
}

struct ex_files *
ex_files_new(enum ex_source source)
{
	struct ex_files *files = calloc(1, sizeof(*files));

	if (files != NULL)
		files->source = source;
	return files;
}

static void
module_free(void *m)
{
	ex_module_free(m);
}

static void
named_id_free(void *p)
{
	struct named_id *named = p;

	free(named->path);
	free(named);
}

void
ex_files_free(struct ex_files *files)
{
	if (files == NULL)
		return;
	tdestroy(files->modules, module_free);
	tdestroy(files->build_ids, named_id_free);
	wp_roots_free(&files->roots);
	free(files);
}

void
ex_files_build_id(struct ex_files *files, const char *path, const uint8_t *id,
    size_t len)
{
	struct named_id *named = calloc(1, sizeof(*named)), **found;

	if (named == NULL)
		return;
	if (len == 0 || len > sizeof(named->id) ||
	    (named->path = strdup(path)) == NULL) {
		free(named);
		return;
	}
	memcpy(named->id, id, len);
	named->len = (uint8_t)len;
	found = tsearch(named, &files->build_ids, named_id_compare);
	if (found != NULL && *found == named)
		return;
	if (found != NULL && ((*found)->len != len ||
	    memcmp((*found)->id, id, len) != 0))
		(*found)->unclear = true;
	named_id_free(named);
}

static const struct named_id *
named_id_find(const struct ex_files *files, const char *path)
{
	struct named_id key = {.path = (char *)(uintptr_t)path};
	struct named_id **found =
	    tfind(&key, &files->build_ids, named_id_compare);

	return found != NULL ? *found : NULL;
}

size_t
ex_files_find_id(const struct ex_files *files, const char *path,
    uint8_t id[20])
{
	const struct named_id *named = named_id_find(files, path);

	if (named == NULL || named->unclear)
		return 0;
	memcpy(id, named->id, named->len);
	return named->len;
}

/* The build id in the recording's table, unless the record had one.  Returns
   false if the table has two. */
static bool
id_of_table(const struct ex_files *files, const char *path,
    struct ex_file_id *id)
{
	const struct named_id *named = named_id_find(files, path);

	if (named == NULL || id->build_id_len > 0)
		return true;
	id->build_id_len = named->len;
	memcpy(id->build_id, named->id, named->len);
	return !named->unclear;
}

static void
id_of_record(struct ex_file_id *id, const struct ex_mmap *map)
{
	*id = (struct ex_file_id){
		.dev = makedev(map->maj, map->min), .ino = map->ino,
		.generation = map->ino_generation,
	};
	if (map->build_id == NULL || map->build_id_len > sizeof(id->build_id))
		return;
	id->build_id_len = map->build_id_len;
	memcpy(id->build_id, map->build_id, map->build_id_len);
}

/* The id of a live file is its present state, so that a file rewritten in place
   counts as another one. */
static void
id_of_file(struct ex_file_id *id, int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return;
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	id->generation = 0;	/* not all records have it */
	id->mtime = st.st_mtim.tv_sec;
	id->mtime_ns = st.st_mtim.tv_nsec;
	id->size = (uint64_t)st.st_size;
}

/* The module with this path and id, or a new one.  NULL if there is no
   memory. */
static struct ex_module *
files_intern(struct ex_files *files, const char *path,
    const struct ex_file_id *id, bool *is_new)
{
	struct ex_module *m = ex_module_new(path, id), **found;

	if (m == NULL)
		return NULL;
	found = tsearch(m, &files->modules, module_compare);
	*is_new = found != NULL && *found == m;
	if (!*is_new)
		ex_module_free(m);
	else
		m->unreported = &files->unreported;
	return found != NULL ? *found : NULL;
}

/* Set *arg to a module whose rejection has not been reported. */
static void
find_unreported(const void *node, VISIT visit, void *arg)
{
	struct ex_module *m = *(struct ex_module *const *)node, **found = arg;

	if ((visit == postorder || visit == leaf) && m->rejection != NULL &&
	    !m->reported)
		*found = m;
}

struct ex_module *
ex_files_rejected_debug(struct ex_files *files)
{
	struct ex_module *m = NULL;

	if (!files->unreported)
		return NULL;
	twalk_r(files->modules, find_unreported, &m);
	if (m != NULL)
		m->reported = true;
	files->unreported = m != NULL;
	return m;
}

/* Open a file that a running process has mapped. */
static int
open_live(pid_t pid, int root, const struct ex_mmap *map, const char *path,
    const char **problem)
{
	int fd = wp_proc_open_mapped(pid, root, map->start,
	    map->start + map->len, path, map->maj, map->min, map->ino);

	switch (fd < 0 ? -fd : 0) {
	case 0:
		break;
	case ESTALE:
		*problem = "replaced on disk since it was mapped";
		break;
	case ESRCH:
	case ENOENT:
		*problem = "gone from disk since it was mapped";
		break;
	case EPERM:
	case EACCES:
		*problem = "gone from disk since it was mapped, or not "
		    "readable, and only root may open the mapping itself";
		break;
	case EMFILE:
		*problem = "too many open files; raise the limit (ulimit -n)";
		break;
	default:
		*problem = strerror(-fd);
		break;
	}
	return fd;
}

/* Open a file of a recording.  Unless a build id will be checked when it is
   parsed, it must be the same file on the same machine. */
static int
open_recorded(const struct ex_mmap *map, const char *path, bool has_build_id,
    const char **problem)
{
	int fd = wp_open_regular(path);
	struct stat st;

	if (fd < 0) {
		*problem = fd == -ENOENT ? "not on this machine" :
		    fd == -ESTALE ? "not an ELF file" : strerror(-fd);
		return fd;
	}
	if (has_build_id || map->ino == 0)
		return fd;
	/* on some file systems maps has another device than stat(2) */
	if (fstat(fd, &st) == 0 && st.st_ino == map->ino &&
	    (major(st.st_dev) == 0 || st.st_dev == makedev(map->maj, map->min)))
		return fd;
	(void)close(fd);
	*problem = "another file than the one recorded, by its inode, "
	    "and the recording has no build id of it";
	return -1;
}

/* Separate debug files of a process with another root are searched there first,
   then in our own root. */
static void
module_set_root(struct ex_module *m, int root)
{
	if (root < 0)
		return;
	if (asprintf(&m->host_path, "/proc/self/fd/%d%s", root, m->path) < 0)
		m->host_path = NULL;
	if (asprintf(&m->debug_path, ":.debug:/proc/self/fd/%d/usr/lib/debug:"
	    "/usr/lib/debug", root) < 0)
		m->debug_path = NULL;
}

/* Fill a new module from its open file, or else from the process's memory. */
static void
module_fill(struct ex_module *m, int fd, pid_t pid, const struct ex_mmap *map)
{
	size_t size;
	void *image;

	if (fd >= 0) {
		ex_module_map(m, fd);
	} else if (pid > 0 &&
	    (image = ex_image_of_file(pid, map->start, &size)) != NULL) {
		ex_module_copy(m, image, size);
		free(image);
	}
}

static struct ex_module *
files_open(struct ex_files *files, pid_t pid, int root,
    const struct ex_mmap *map, const char *path)
{
	bool live = files->source == EX_LIVE, is_new;
	const char *problem = NULL;
	struct ex_file_id id;
	struct ex_module *m;
	int fd = -1;

	id_of_record(&id, map);
	if (live) {
		fd = open_live(pid, root, map, path, &problem);
		if (fd >= 0)
			id_of_file(&id, fd);
	} else if (id_of_table(files, path, &id)) {
		fd = open_recorded(map, path, id.build_id_len > 0, &problem);
	} else {
		problem = "recorded with two different build ids";
	}
	m = files_intern(files, path, &id, &is_new);
	if (m != NULL && is_new) {
		module_set_root(m, root);
		if (problem != NULL)
			ex_module_fail(m, problem);
		module_fill(m, fd, live ? pid : 0, map);
	}
	if (fd >= 0)
		(void)close(fd);
	return m;
}

/* The vDSO is not a file.  It is read from the memory of a running process; for
   a recording ours is used if the build id matches. */
static struct ex_module *
files_vdso(struct ex_files *files, pid_t pid, const struct ex_mmap *map)
{
	struct ex_file_id id = {0};
	struct ex_module *m;
	void *image = NULL;
	size_t size = 0;
	bool is_new;

	if (files->source == EX_LIVE) {
		image = ex_image_of_vdso(pid, map->start, map->len, &size);
	} else {
		id_of_record(&id, map);
		id.dev = id.ino = id.generation = 0;
		if (id_of_table(files, map->path, &id) && id.build_id_len > 0)
			image = ex_image_of_vdso(0, 0, map->len, &size);
	}
	/* 32-bit and 64-bit programs have different ones */
	id.size = size;
	if (image != NULL && size > EI_CLASS)
		id.ino = ((const uint8_t *)image)[EI_CLASS];
	m = files_intern(files, map->path, &id, &is_new);
	if (m != NULL && is_new && image != NULL)
		ex_module_copy(m, image, size);
	else if (m != NULL && is_new)
		ex_module_fail(m, "not known to be that of this kernel");
	free(image);
	return m;
}

struct ex_module *
ex_files_module(struct ex_files *files, pid_t pid, int root,
    const struct ex_mmap *map)
{
	static const char gone[] = " (deleted)";
	const size_t ngone = sizeof(gone) - 1;
	size_t len = strlen(map->path);
	struct ex_module *m;
	char *path;

	if (strcmp(map->path, "[vdso]") == 0)
		return files_vdso(files, pid, map);
	/* "//anon", "[heap]", shared memory and the like */
	if (map->path[0] != '/' || map->path[1] == '/' ||
	    strncmp(map->path, "/anon_hugepage", 14) == 0 ||
	    strncmp(map->path, "/SYSV", 5) == 0 ||
	    strncmp(map->path, "/dev/zero", 9) == 0)
		return NULL;
	if (len > ngone && strcmp(map->path + len - ngone, gone) == 0)
		len -= ngone;
	if ((path = strndup(map->path, len)) == NULL)
		return NULL;
	m = files_open(files, pid, root, map, path);
	free(path);
	return m;
}

int
ex_files_root(struct ex_files *files, pid_t pid, int *root)
{
	return wp_roots_find(&files->roots, pid, root);
}
