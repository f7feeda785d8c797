/* synth: records of what existed before the watch. */
#include "attach/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/attr.h"
#include "proc/proc.h"

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char rest[64 + sizeof(struct wp_trailer)];	/* the name, then the
							   trailer */
};

struct mmap2_record {
	struct wp_mmap2_record mmap2;
	/* the path, then the trailer */
	char rest[PATH_MAX + 16 + sizeof(struct wp_trailer)];
};

struct mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	char rest[64 + sizeof(struct wp_trailer)];	/* the path, then the
							   trailer */
};

struct synth {
	pid_t pid;
	int (*fn)(void *, const struct perf_event_header *);
	void *arg;
};

/* Put a name, padded with NULs to a multiple of 8 bytes, and the trailer, and
   set the size of the record. */
static void
finish(struct perf_event_header *header, char *rest, const char *name,
    size_t max, uint32_t pid, uint32_t tid)
{
	const struct wp_trailer trailer = {.pid = pid, .tid = tid};
	size_t len = strnlen(name, max - 1);
	size_t padded = (len + 8) & ~(size_t)7;

	memset(rest, 0, padded);
	memcpy(rest, name, len);
	memcpy(rest + padded, &trailer, sizeof(trailer));
	header->size = (uint16_t)(rest + padded + sizeof(trailer) -
	    (char *)header);
}

static int
synth_comm(const struct synth *synth, pid_t tid)
{
	struct comm_record record = {
		.header = {.type = PERF_RECORD_COMM},
		.pid = (uint32_t)synth->pid, .tid = (uint32_t)tid,
	};
	char comm[64];

	if (wp_proc_comm(synth->pid, tid, comm) < 0)
		return 0;
	finish(&record.header, record.rest, comm, sizeof(comm), record.pid,
	    record.tid);
	return synth->fn(synth->arg, &record.header);
}

static int
synth_map(void *arg, const struct wp_proc_map *map)
{
	const struct synth *synth = arg;
	struct mmap2_record record = {.mmap2 = {
		.header = {
			.type = PERF_RECORD_MMAP2,
			.misc = PERF_RECORD_MISC_USER,
		},
		.pid = (uint32_t)synth->pid, .tid = (uint32_t)synth->pid,
		.addr = map->start, .len = map->end - map->start,
		.pgoff = map->offset, .maj = map->maj, .min = map->min,
		.ino = map->ino, .prot = map->prot,
		.flags = map->shared ? MAP_SHARED : MAP_PRIVATE,
	}};
	struct perf_event_header *header = &record.mmap2.header;

	if ((map->prot & PROT_EXEC) == 0)
		header->misc |= PERF_RECORD_MISC_MMAP_DATA;
	finish(header, record.rest,
	    map->path[0] != '\0' ? map->path : "//anon", sizeof(map->path),
	    record.mmap2.pid, record.mmap2.tid);
	return synth->fn(synth->arg, header);
}

int
wp_synth_process(pid_t pid,
    int (*fn)(void *arg, const struct perf_event_header *), void *arg)
{
	const struct synth synth = {pid, fn, arg};
	pid_t *tids = NULL;
	size_t cap = 0;
	int result = 0, n = wp_proc_threads(pid, &tids, &cap);

	for (int i = 0; i < n && result == 0; i++)
		result = synth_comm(&synth, tids[i]);
	free(tids);
	if (n < 0 || result != 0)
		return n < 0 ? n : result;
	return wp_proc_maps(pid, synth_map, (void *)(uintptr_t)&synth);
}

/* Find the start and end of the kernel's code.  0 if hidden or not known. */
static void
kernel_text(uint64_t *start, uint64_t *end)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long addr;
	char line[512], name[256], type;

	*start = *end = 0;
	if (f == NULL)
		return;
	while ((*start == 0 || *end == 0) &&
	    fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%llx %c %255s", &addr, &type, name) != 3)
			continue;
		/* addresses are hidden; but per-CPU symbols may start at 0 */
		if (addr == 0 && type != 'A' && type != 'a')
			break;
		if (strcmp(name, "_text") == 0)
			*start = addr;
		else if (strcmp(name, "_etext") == 0)
			*end = addr;
	}
	(void)fclose(f);
}

int
wp_synth_kernel(int (*fn)(void *arg, const struct perf_event_header *),
    void *arg)
{
	struct mmap_record record = {
		.header = {
			.type = PERF_RECORD_MMAP,
			.misc = PERF_RECORD_MISC_KERNEL,
		},
		.pid = UINT32_MAX,
	};
	uint64_t end;

	kernel_text(&record.addr, &end);
	if (record.addr == 0 || end <= record.addr)
		return 0;
	record.len = end - record.addr;
	record.pgoff = record.addr;	/* perf expects the symbol's address
					   here */
	finish(&record.header, record.rest, "[kernel.kallsyms]_text", 64,
	    record.pid, record.tid);
	return fn(arg, &record.header);
}
