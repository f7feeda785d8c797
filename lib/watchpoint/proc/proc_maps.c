/* proc_maps: the mappings of a process, by /proc/PID. */
#include "proc/proc_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The kernel writes a newline in a path as \012. */
static void
unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from != '\0'; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* Parse "start-end perms offset maj:min inode   path". */
static bool
map_parse(char *line, struct wp_proc_map *map)
{
	static const char gone[] = " (deleted)";
	unsigned long long start, end, offset, ino;
	char perms[5];
	int path = 0;
	size_t len;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end,
	    perms, &offset, &map->maj, &map->min, &ino, &path) < 7 || path == 0)
		return false;
	map->start = start;
	map->end = end;
	map->offset = offset;
	map->ino = ino;
	map->prot = (perms[0] == 'r' ? PROT_READ : 0u) |
	    (perms[1] == 'w' ? PROT_WRITE : 0u) |
	    (perms[2] == 'x' ? PROT_EXEC : 0u);
	map->shared = perms[3] == 's';
	line[strcspn(line, "\n")] = '\0';
	len = strnlen(line + path, sizeof(map->path) - 1);
	memcpy(map->path, line + path, len);
	map->path[len] = '\0';
	map->deleted = len > sizeof(gone) - 1 && ino != 0 &&
	    strcmp(map->path + len - (sizeof(gone) - 1), gone) == 0;
	if (map->deleted)
		map->path[len - (sizeof(gone) - 1)] = '\0';
	unescape(map->path);
	return true;
}

/* Call fn for each line of a thread's file until it returns nonzero.  *any is
   set if there was a line. */
static int
each_line_of(pid_t tid, const char *name, int (*fn)(void *, char *), void *arg,
    bool *any)
{
	char *line = NULL;
	size_t cap = 0;
	int result = 0;
	FILE *f = wp_proc_fopen(tid, name, &result);

	*any = false;
	if (f == NULL)
		return result;
	while (result == 0 && getline(&line, &cap, f) > 0) {
		*any = true;
		result = fn(arg, line);
	}
	if (result == 0 && !feof(f))
		result = wp_proc_error(errno);
	free(line);
	(void)fclose(f);
	return result;
}

/* The same for a process; if a thread ends before its file is open, try
   another. */
static int
each_line(pid_t pid, const char *name, int (*fn)(void *, char *), void *arg)
{
	pid_t tid = wp_proc_living(pid), next;
	bool any;
	int result = each_line_of(tid, name, fn, arg, &any);

	if (!any && (next = wp_proc_living(pid)) != tid)
		result = each_line_of(next, name, fn, arg, &any);
	return result;
}

struct each_map {
	int (*fn)(void *, const struct wp_proc_map *);
	void *arg;
};

static int
map_line(void *arg, char *line)
{
	const struct each_map *each = arg;
	struct wp_proc_map map;

	return map_parse(line, &map) ? each->fn(each->arg, &map) : 0;
}

int
wp_proc_maps(pid_t pid, int (*fn)(void *, const struct wp_proc_map *),
    void *arg)
{
	return each_line(pid, "maps", map_line, &(struct each_map){fn, arg});
}

struct bytes {
	uint64_t from, to;
};

/* Extend the bytes covered, mapping by mapping. */
static int
cover(void *arg, const struct wp_proc_map *map)
{
	struct bytes *bytes = arg;

	if (map->start <= bytes->from && bytes->from < map->end)
		bytes->from = map->end;
	return bytes->from >= bytes->to;
}

int
wp_proc_covers(pid_t pid, uint64_t *at, uint64_t len)
{
	struct bytes bytes = {*at, *at + len};
	const int got = wp_proc_maps(pid, cover, &bytes);

	*at = bytes.from;
	return got;
}

static int
note_shared(void *arg, const struct wp_proc_map *map)
{
	const struct bytes *bytes = arg;

	return map->shared && map->start < bytes->to &&
	    bytes->from < map->end;
}

bool
wp_proc_shares(pid_t pid, uint64_t addr, uint64_t len)
{
	struct bytes bytes = {addr, addr + len};

	return wp_proc_maps(pid, note_shared, &bytes) != 0;
}

/* Looks for the mapping that contains some bytes. */
struct around {
	struct bytes bytes, mapping;
};

static int
note_own(void *arg, const struct wp_proc_map *map)
{
	struct around *around = arg;

	if (map->end < around->bytes.to)
		return 0;
	if (!map->shared && map->start <= around->bytes.from)
		around->mapping = (struct bytes){map->start, map->end};
	return 1;
}

void
wp_proc_own(pid_t pid, uint64_t addr, uint64_t len, uint64_t *start,
    uint64_t *end)
{
	struct around around = {.bytes = {addr, addr + len}};

	(void)wp_proc_maps(pid, note_own, &around);
	*start = around.mapping.from;
	*end = around.mapping.to;
}

/* Looks for the mapping of a file's first page, given another mapping of it. */
struct first_page {
	uint64_t start;		/* start of the given mapping */
	struct wp_proc_map last;  /* the last mapping of a first page so far */
	bool found;		/* it belongs to the given mapping */
};

static int
find_first_page(void *arg, const struct wp_proc_map *map)
{
	struct first_page *s = arg;

	if (map->ino != 0 && map->offset == 0)
		s->last = *map;
	if (map->start != s->start)
		return map->start > s->start;
	s->found = s->last.ino != 0 && map->ino == s->last.ino &&
	    map->maj == s->last.maj && map->min == s->last.min;
	return 1;
}

int
wp_proc_first_page(pid_t pid, uint64_t start, uint64_t *first)
{
	struct first_page search = {.start = start};
	const int err = wp_proc_maps(pid, find_first_page, &search);

	*first = search.last.start;
	return err < 0 ? err : search.found ? 0 : -ENOENT;
}

/* Whether a list of two-letter flags contains this one. */
static bool
has_flag(const char *flags, const char *flag)
{
	const char *at = strstr(flags, flag);

	return at != NULL && at[-1] == ' ' && strchr(" \n", at[2]) != NULL;
}

/* Parse one of the lines that follow a mapping's first.  Returns whether it is
   the last one. */
static bool
usage_parse(const char *line, struct wp_proc_usage *usage)
{
	unsigned long long kb = 0;
	char name[32];

	if (sscanf(line, "%31[^:]: %llu kB", name, &kb) < 1)
		return false;
	if (strcmp(name, "VmFlags") == 0) {
		usage->io = has_flag(line, "io") || has_flag(line, "pf");
		usage->no_dump = has_flag(line, "dd");
		usage->huge = has_flag(line, "ht");
		return true;
	}
	if (strcmp(name, "Rss") == 0 || strcmp(name, "Swap") == 0)
		usage->present += kb << 10;
	if (strcmp(name, "Anonymous") == 0 || strcmp(name, "Swap") == 0)
		usage->own += kb << 10;
	return false;
}

struct each_usage {
	int (*fn)(void *, const struct wp_proc_map *,
	    const struct wp_proc_usage *);
	void *arg;
	struct wp_proc_map map;
	struct wp_proc_usage usage;
};

static int
usage_line(void *arg, char *line)
{
	struct each_usage *each = arg;

	if (map_parse(line, &each->map))
		each->usage = (struct wp_proc_usage){0};
	else if (usage_parse(line, &each->usage))
		return each->fn(each->arg, &each->map, &each->usage);
	return 0;
}

int
wp_proc_smaps(pid_t pid, int (*fn)(void *, const struct wp_proc_map *,
    const struct wp_proc_usage *), void *arg)
{
	struct each_usage each = {.fn = fn, .arg = arg};

	return each_line(pid, "smaps", usage_line, &each);
}

int
wp_proc_pagemap(pid_t pid)
{
	return wp_proc_open(wp_proc_living(pid), "pagemap", O_RDONLY);
}

/* Bits 62 and 63 of an entry; see Documentation/admin-guide/mm/pagemap.rst. */
static bool
is_used(uint64_t entry)
{
	return entry >> 62 != 0;
}

bool
wp_proc_pages(int pagemap, uint64_t *start, uint64_t *end)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t entry[4096];

	while (*start < *end) {
		uint64_t want = (*end - *start) / page;
		ssize_t got = pread(pagemap, entry,
		    want < 4096 ? want * sizeof(*entry) : sizeof(entry),
		    (off_t)(*start / page * sizeof(*entry)));
		size_t n = got > 0 ? (size_t)got / sizeof(*entry) : 0, i = 0, k;

		if (n == 0)
			return true;	/* not known, so they may be used */
		while (i < n && !is_used(entry[i]))
			i++;
		for (k = i; k < n && is_used(entry[k]); k++)
			;
		*start += i * page;
		if (k > i) {
			*end = *start + (k - i) * page;
			return true;
		}
	}
	return false;
}

/* Add complete lines of executable mappings to the hash.  Returns the bytes
   consumed. */
static size_t
code_hash(const char *text, size_t len, uint64_t *hash)
{
	const char *line = text, *end;

	while ((end = memchr(line, '\n', (size_t)(text + len - line))) !=
	    NULL) {
		const char *perms = memchr(line, ' ', (size_t)(end - line));
		bool code = perms != NULL && end - perms > 3 && perms[3] == 'x';

		for (; code && line < end; line++)	/* FNV-1a */
			*hash = (*hash ^ (unsigned char)*line) *
			    1099511628211u;
		line = end + 1;
	}
	return (size_t)(line - text);
}

int
wp_proc_code(pid_t pid, uint64_t *code)
{
	char text[4 * PATH_MAX];
	size_t have = 0, taken;
	ssize_t n;
	int fd = wp_proc_open(wp_proc_living(pid), "maps", O_RDONLY);

	if (fd < 0)
		return fd;
	*code = 14695981039346656037u;
	while ((n = read(fd, text + have, sizeof(text) - have)) > 0) {
		have += (size_t)n;
		taken = code_hash(text, have, code);
		memmove(text, text + taken, have - taken);
		have -= taken;
	}
	n = n < 0 ? wp_proc_error(errno) : 0;
	(void)close(fd);
	return (int)n;
}

/* Whether an open file is the one that a mapping names.  On some file systems
   maps has another device than stat(2), but never another inode. */
static bool
same_file(int fd, unsigned maj, unsigned min, uint64_t ino)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	if (ino == 0)
		return true;
	return st.st_ino == ino && ((maj == 0 && min == 0) ||
	    major(st.st_dev) == 0 ||
	    (major(st.st_dev) == maj && minor(st.st_dev) == min));
}

int
wp_proc_open_same(int dir, const char *path, unsigned maj, unsigned min,
    uint64_t ino)
{
	char link[PROC_PATH_MAX];
	int fd, place = openat(dir, path, O_PATH | O_CLOEXEC);

	if (place < 0)
		return -errno;
	if (same_file(place, maj, min, ino)) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		fd = fd >= 0 ? fd : -errno;
	} else {
		fd = -ESTALE;
	}
	(void)close(place);
	return fd;
}

int
wp_proc_open_mapped(pid_t pid, int root, uint64_t start, uint64_t end,
    const char *path, unsigned maj, unsigned min, uint64_t ino)
{
	char name[PROC_PATH_MAX];
	int fd, err = 0;

	if (path[0] == '/') {
		fd = wp_proc_open_same(root < 0 ? AT_FDCWD : root, root < 0 ?
		    path : path + strspn(path, "/"), maj, min, ino);
		if (fd >= 0)
			return fd;
		err = fd;
	}
	(void)snprintf(name, sizeof(name), "/proc/%d/map_files/%llx-%llx",
	    wp_proc_living(pid), (unsigned long long)start,
	    (unsigned long long)end);
	fd = wp_proc_open_same(AT_FDCWD, name, maj, min, ino);
	return fd < 0 && err == -ESTALE ? err : fd == -ENOENT ? -ESRCH : fd;
}

/* Looks for the mapping that contains an address. */
struct code_file {
	uint64_t addr;
	struct wp_proc_map map;
};

static int
take_code(void *arg, const struct wp_proc_map *map)
{
	struct code_file *code = arg;

	if (code->addr < map->start || code->addr >= map->end)
		return 0;
	code->map = *map;
	return 1;
}

int
wp_proc_open_code(pid_t pid, uint64_t addr, uint64_t *offset)
{
	struct code_file code = {.addr = addr};
	const struct wp_proc_map *map = &code.map;
	const int got = wp_proc_maps(pid, take_code, &code);
	int root, fd;

	if (got < 0)
		return got;
	if (got == 0 || map->ino == 0 || map->shared || map->path[0] != '/' ||
	    (map->prot & PROT_EXEC) == 0)
		return -ENOEXEC;
	*offset = map->offset + (addr - map->start);
	root = wp_proc_root(pid);
	fd = wp_proc_open_mapped(pid, root, map->start, map->end,
	    map->deleted ? "" : map->path, map->maj, map->min, map->ino);
	if (root >= 0)
		(void)close(root);
	return fd;
}
