/* shared_file: the physical memory that holds the bytes of a SPEC. */
#include "setup/shared_file.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/regular_file.h"
#include "spec/spec.h"
#include "util/complain.h"

static bool
is_shm(const struct spec *spec)
{
	return strncmp(spec->text, "shm:", 4) == 0;
}

static int
explain_missing(const struct spec *spec, int err)
{
	if (err == ENOENT && is_shm(spec))
		return complain("%s: there is no such shared memory: ls "
		    "/dev/shm shows which there is; what a program creates "
		    "later can be made before: truncate -s SIZE %s", spec->text,
		    spec->shared);
	if (err == ESTALE)
		return complain("%s: %s is not a regular file: give a file, or "
		    "one of /proc/PID/map_files", spec->text, spec->shared);
	return complain("%s: %s: %s; give a file that can be read", spec->text,
	    spec->shared, strerror(err));
}

/* The size that offsets of mappings of this file are multiples of. */
static uint64_t
unit_of(int fd)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC ?
	    (uint64_t)fs.f_bsize : page;
}

/* The physical address of the page at this offset of our own mapping; 0: it is
   not known. */
static uint64_t
find_page(const struct shared_file *f, uint64_t at)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t number = ((uintptr_t)f->map + at) / page;
	uint64_t entry;

	/* bit 63: present; bits 0-54: its number */
	if (pread(f->pagemap, &entry, sizeof(entry),
	    (off_t)(number * sizeof(entry))) != (ssize_t)sizeof(entry) ||
	    entry >> 63 == 0)
		return 0;
	return (entry & ((UINT64_C(1) << 55) - 1)) * page;
}

static int
find_self(void *arg, const struct wp_proc_map *map)
{
	struct shared_file *f = arg;

	if (map->start != (uintptr_t)f->map)
		return 0;
	f->maj = map->maj;
	f->min = map->min;
	f->ino = map->ino;
	return 1;
}

/* The first of its pages, by an index of phys. */
static uint64_t
first_page(const struct shared_file *f)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return f->spec->off / page * page;
}

/* The end of the pages that hold the watched bytes.  A length that is too large
   for the slots is limited here to some pages, and refused later. */
static uint64_t
end_of(const struct shared_file *f)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t end = f->spec->off + f->spec->len;
	const uint64_t most = first_page(f) + SHARED_PAGES * page;

	return end < most ? end : most;
}

static int
find_pages(struct shared_file *f)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint64_t at = first_page(f); at < end_of(f); at += page) {
		const uint64_t i = (at - first_page(f)) / page;

		if ((f->phys[i] = find_page(f, at - f->off)) == 0)
			return complain("%s: not permitted: which physical "
			    "memory is accessed, which proves what is mapped, "
			    "takes CAP_SYS_ADMIN: run as root (sudo), of the "
			    "machine and not of a container", f->spec->text);
	}
	return 0;
}

/* Have the pages in memory, and keep them there; nothing is read, since the
   file may become shorter. */
static int
map_file(struct shared_file *f)
{
	const uint64_t unit = unit_of(f->fd);
	const uint64_t end = end_of(f);

	f->off = f->spec->off / unit * unit;
	f->len = (end - f->off + unit - 1) / unit * unit;
	f->map = mmap(NULL, f->len, PROT_READ, MAP_SHARED, f->fd,
	    (off_t)f->off);
	if (f->map == MAP_FAILED) {
		f->len = 0;
		return complain("%s: mapping it: %s; give a file that can be "
		    "mapped shared", f->spec->text, strerror(errno));
	}
	/* what is forked here is no process that maps it */
	(void)madvise(f->map, f->len, MADV_DONTFORK);
	if (mlock(f->map, f->len) != 0)
		return complain("%s: its page cannot be had in memory: %s; see "
		    "ulimit -l", f->spec->text, strerror(errno));
	/* under a sanitizer, mlock(2) does nothing */
	(void)madvise(f->map, f->len, MADV_POPULATE_READ);
	if (wp_proc_maps(getpid(), find_self, f) != 1)
		return complain("%s: our own mapping cannot be found",
		    f->spec->text);
	if ((f->pagemap = wp_proc_pagemap(getpid())) < 0)
		return complain("%s: /proc/self/pagemap: %s", f->spec->text,
		    strerror(-f->pagemap));
	return find_pages(f);
}

int
shared_file_open(struct shared_file *f, const struct spec *spec)
{
	struct stat st;

	*f = (struct shared_file){.spec = spec, .pagemap = -1};
	if ((f->fd = wp_open_regular(spec->shared)) < 0)
		return explain_missing(spec, -f->fd);
	if (fstat(f->fd, &st) != 0)
		return explain_missing(spec, errno);
	if ((uint64_t)st.st_size < spec->off + spec->len)
		return complain("%s: this ends at byte %" PRIu64 ", and %s has "
		    "%" PRIu64 ": give a smaller offset or length", spec->text,
		    spec->off + spec->len, spec->shared, (uint64_t)st.st_size);
	return map_file(f);
}

void
shared_file_close(struct shared_file *f)
{
	if (f->spec == NULL)
		return;
	if (f->len > 0)
		(void)munmap(f->map, f->len);
	if (f->pagemap >= 0)
		(void)close(f->pagemap);
	if (f->fd >= 0)
		(void)close(f->fd);
}

bool
shared_file_in(const struct shared_file *f, const struct wp_proc_map *map,
    uint64_t *addr, bool *part)
{
	const uint64_t off = f->spec->off, end = off + f->spec->len;
	const uint64_t map_end = map->offset + (map->end - map->start);

	if (!map->shared || map->ino != f->ino || map->maj != f->maj ||
	    map->min != f->min || map->offset >= end || map_end <= off)
		return false;
	*part = map->offset > off || map_end < end;
	*addr = map->start + (off - map->offset);
	return !*part;
}

enum shared_access
shared_file_access(struct shared_file *f, uint64_t off, uint64_t phys)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t at = off / page * page, i = (at - first_page(f)) / page;
	uint64_t before, now;

	if (off < first_page(f) || i >= SHARED_PAGES || phys == 0)
		return SHARED_UNKNOWN;
	before = f->phys[i];
	f->phys[i] = now = find_page(f, at - f->off);
	if (before == 0 || before != now)
		return SHARED_UNKNOWN;
	return phys == now + off % page ? SHARED_SAME : SHARED_OTHER;
}

void
shared_file_learn(struct shared_file *f, uint64_t addr, uint64_t ino)
{
	if (addr == (uintptr_t)f->map)
		f->recorded = ino;
}

void
shared_file_refresh(struct shared_file *f)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint64_t at = first_page(f); at < end_of(f); at += page)
		if (find_page(f, at - f->off) == 0)
			(void)madvise(f->map, f->len, MADV_POPULATE_READ);
}

/* By a system call, since the file may have become shorter. */
ssize_t
shared_file_read(const struct shared_file *f, uint64_t off, void *to, size_t n)
{
	return wp_proc_read(getpid(), (uintptr_t)f->map + (off - f->off), to,
	    n);
}
