/* synthetic_records: the state before the watch, as records. */
#include "processes/synthetic_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "os/attr.h"
#include "os/clock.h"
#include "attach/synth.h"
#include "processes/synthetic_format.h"

static int
keep(void *arg, const struct perf_event_header *header)
{
	struct synthetic_records *e = arg;

	if (!ex_array_room(&e->bytes, e->len, header->size, &e->cap, 1,
	    SIZE_MAX))
		return -ENOMEM;
	memcpy(e->bytes + e->len, header, header->size);
	e->len += header->size;
	return 0;
}

int
synthetic_records_take(struct synthetic_records *e, pid_t pid)
{
	if (e->formats == NULL && (e->formats = synthetic_format_new()) == NULL)
		return -ENOMEM;
	e->time = wp_clock_ns();
	return wp_synth_process(pid, keep, e);
}

void
synthetic_records_executed(struct synthetic_records *e, size_t at)
{
	struct perf_event_header header;

	if (e->len - at < sizeof(header))
		return;
	memcpy(&header, e->bytes + at, sizeof(header));
	header.misc |= PERF_RECORD_MISC_COMM_EXEC;
	if (header.type == PERF_RECORD_COMM)
		memcpy(e->bytes + at, &header, sizeof(header));
}

void
synthetic_records_shared(struct synthetic_records *e, pid_t pid)
{
	struct wp_mmap2_record map;

	for (size_t at = 0; at < e->len; at += map.header.size) {
		memcpy(&map.header, e->bytes + at, sizeof(map.header));
		if (map.header.type != PERF_RECORD_MMAP2)
			continue;
		memcpy(&map, e->bytes + at, sizeof(map));
		if ((pid_t)map.pid != pid)
			continue;
		map.flags = MAP_SHARED;
		memcpy(e->bytes + at, &map, sizeof(map));
	}
}

void
synthetic_records_each(const struct synthetic_records *e,
    void (*fn)(void *arg, const struct ex_record *), void *arg)
{
	struct ex_record record;

	for (size_t at = 0; at < e->len; at += record.size) {
		if (ex_record_decode(e->formats, e->bytes + at, e->len - at,
		    &record) <= 0)
			return;
		fn(arg, &record);
	}
}

void
synthetic_records_free(struct synthetic_records *e)
{
	ex_formats_free(e->formats);
	free(e->bytes);
	*e = (struct synthetic_records){0};
}
