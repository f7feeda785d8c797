/*
 * perfdata_fuzz: any bytes as a perf.data file.  Whatever can be read of it is
 * written again, and must then read the same.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "record/perfdata.h"

static int
memory_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("perfdata_fuzz", MFD_CLOEXEC);

	expect(fd >= 0);
	expect(pwrite(fd, data, size, 0) == (ssize_t)size);
	return fd;
}

static int
open_fd(int fd, struct ex_perfdata **d)
{
	const char *why = NULL;
	char path[64];
	int err;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = ex_perfdata_open(path, d, &why);
	expect((err == 0) == (*d != NULL));
	expect(err == 0 || why != NULL);
	return err;
}

static void
copy_build_id(void *writer, const char *path, const uint8_t *id, size_t len)
{
	int err = ex_perfwriter_build_id(writer, path, id, len);

	expect(err == 0 || err == -EINVAL);
}

/* Copy all that can be read; how many records that is. */
static size_t
copy(struct ex_perfdata *d, int fd)
{
	const struct ex_perf_event *events;
	size_t n = ex_perfdata_events(d, &events), records = 0;
	struct ex_perfwriter *w;
	struct ex_record r;
	int more;

	expect(n > 0);
	expect(ex_perfwriter_open(fd, events, n, &w) == 0);
	ex_perfdata_build_ids(d, copy_build_id, w);
	for (; (more = ex_perfdata_next(d, &r)) == 1; records++)
		expect(ex_perfwriter_record(w, r.bytes) == 0);
	expect(more == 0 || more == -EBADMSG);
	expect(ex_perfdata_next(d, &r) == more);
	expect(ex_perfwriter_close(w) == 0);
	return records;
}

/* The copy has the same events, and the same records in the same order. */
static void
compare(struct ex_perfdata *copied, const struct ex_perf_event *events,
    size_t n, size_t records)
{
	const struct ex_perf_event *others;
	struct ex_record r;
	uint64_t time = 0;
	size_t i;

	expect(ex_perfdata_events(copied, &others) == n);
	for (i = 0; i < n; i++) {
		expect(memcmp(&events[i].attr, &others[i].attr,
		    sizeof(events[i].attr)) == 0);
		expect(events[i].nids == others[i].nids);
		expect(memcmp(events[i].ids, others[i].ids,
		    events[i].nids * sizeof(uint64_t)) == 0);
	}
	for (; records > 0; records--) {
		expect(ex_perfdata_next(copied, &r) == 1);
		expect(r.time >= time);
		time = r.time;
	}
	expect(ex_perfdata_next(copied, &r) == 0);
	expect(ex_perfdata_skipped(copied) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ex_perf_event *events;
	int from = memory_file(data, size), to;
	struct ex_perfdata *d, *copied;
	size_t n, records;

	if (open_fd(from, &d) == 0) {
		n = ex_perfdata_events(d, &events);
		to = memory_file(NULL, 0);
		records = copy(d, dup(to));
		expect(open_fd(to, &copied) == 0);
		compare(copied, events, n, records);
		ex_perfdata_close(copied);
		ex_perfdata_close(d);
		(void)close(to);
	}
	(void)close(from);
	return 0;
}
