/*
 * perfdata: perf.data files, read; perfdata_writer.c writes them.
 *
 * Two shapes of file hold the same things.  File mode: a header that says
 * where events, records and features are.  Pipe mode: records only, of which
 * some (types from 64 on) describe events and features.
 *
 *	header | ids | events | records ... | feature table | features
 *	header | (event, feature)* records ...
 *
 * The file is mapped.  All records are walked once when it is opened, and the
 * time and place of each is kept, sorted; a record is decoded again when it is
 * asked for.  Most of a record is a copy of the stack, of which little is
 * looked at: reading a file is waiting for pages and cache lines, unless they
 * are asked for early.
 */
#include "record/perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "record/cursor.h"
#include "record/perfdata_layout.h"

#define MAGIC_SWAPPED 0x50455246494c4532ULL

#define AROUND (64U << 10)	/* bytes that the kernel maps at a page
				   fault; if they are fewer, there are more
				   faults */
#define HEAD_LINES 8		/* lines of a record: registers and the top
				   of the stack */
#define LINE 64

/* An entry of the build-id table; pointers are into the file. */
struct build_id {
	const char *path;
	const uint8_t *id;
	size_t len;
};

/* The time of a record, and its offset in the file. */
struct record_place {
	uint64_t time;
	uint64_t offset;
};

struct record_places {
	struct record_place *at;
	size_t n, cap;
};

struct ex_perfdata {
	const uint8_t *map;
	size_t size;		/* of the file */
	size_t paged;		/* pages up to here are mapped, and have been
				   or will soon be walked */
	struct ex_formats *formats;
	struct ex_perf_event *events;	/* with ids and names allocated */
	size_t nevents, events_cap;
	uint64_t nids;		/* of all events */
	struct build_id *build_ids;
	size_t nbuild_ids, build_ids_cap;
	struct record_places untimed, timed;	/* timed: sorted by time, */
	bool disordered;	/* unless this is set */
	size_t next;  /* index of the next record: untimed first, then timed */
	bool damaged;	/* the file cannot be read after the last record */
	uint64_t skipped;
	char host[HOST_MAX];	/* "" if not known */
	uint64_t wall, clock;	/* the same instant on both clocks, ns; wall
				   0: not known */
	bool ranked;
	unsigned rank;		/* if it is ranked */
	const char *why;	/* description of a failure */
};

static int
fail(struct ex_perfdata *d, int err, const char *why)
{
	d->why = why;
	return err;
}

static int
no_memory(struct ex_perfdata *d)
{
	return fail(d, -ENOMEM, "there is not enough memory for it");
}

/* A part of the file; the cursor is bad if the file has no such part. */
static struct cursor
part(const struct ex_perfdata *d, uint64_t offset, uint64_t size)
{
	struct cursor c = {d->map, d->size, false};

	(void)take(&c, offset, 1);
	if (size > c.left)
		cursor_fail(&c);
	else
		c.left = size;
	return c;
}

/*
 * Events and features.
 */

/* Read an attribute of any version's size, at most the rest of the section. */
static bool
take_attr(struct cursor *c, struct perf_event_attr *attr)
{
	struct cursor peek = *c;
	const uint8_t *p;
	uint32_t size;

	(void)take32(&peek);
	size = take32(&peek);
	if (size == 0)
		size = PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0)
		return false;
	p = take(c, size, 1);
	if (p == NULL)
		return false;
	memset(attr, 0, sizeof(*attr));
	memcpy(attr, p, size < sizeof(*attr) ? size : sizeof(*attr));
	attr->size = sizeof(*attr);
	return true;
}

/* Add an event with all ids in the cursor. */
static int
add_event(struct ex_perfdata *d, const struct perf_event_attr *attr,
    struct cursor *c)
{
	size_t i, nids = c->left / sizeof(uint64_t);
	uint64_t *ids;
	int result;

	/* sections may overlap, but must not be used to exhaust memory */
	d->nids += nids;
	if (d->nids > d->size / sizeof(uint64_t))
		return fail(d, -EBADMSG, "its events' ids are damaged");
	if (!ex_array_room(&d->events, d->nevents, 1, &d->events_cap,
	    sizeof(*d->events), SIZE_MAX))
		return no_memory(d);
	ids = calloc(nids + 1, sizeof(*ids));
	if (ids == NULL)
		return no_memory(d);
	for (i = 0; i < nids; i++)
		ids[i] = take64(c);
	result = ex_formats_add(d->formats, attr, ids, nids);
	if (result < 0) {
		free(ids);
		if (result == -ENOTSUP)
			return fail(d, result, "it has fields that are not "
			    "known here: it is from a newer system");
		if (result == -EINVAL)
			return fail(d, -EBADMSG, "the records of its events "
			    "cannot be distinguished");
		return no_memory(d);
	}
	d->events[d->nevents++] = (struct ex_perf_event){
		.attr = *attr, .ids = ids, .nids = nids};
	return 0;
}

/* Read the length and the characters of a header string.  NULL if there is
   none. */
static char *
take_header_string(struct cursor *c)
{
	uint32_t len = take32(c);
	const uint8_t *p = take(c, len, 1);

	return p != NULL ? strndup((const char *)p, len) : NULL;
}

static void
read_event_desc(struct ex_perfdata *d, struct cursor c)
{
	uint32_t i, n = take32(&c), attr_size = take32(&c);

	for (i = 0; i < n && i < d->nevents && !c.bad; i++) {
		uint32_t nids;
		char *name;

		(void)take(&c, attr_size, 1);
		nids = take32(&c);
		name = take_header_string(&c);
		(void)take(&c, nids, sizeof(uint64_t));
		if (d->events[i].name == NULL)
			d->events[i].name = name;
		else
			free(name);
	}
}

/* Read entries of the build-id table until one is invalid. */
static int
read_build_ids(struct ex_perfdata *d, struct cursor c)
{
	while (c.left > 0) {
		struct build_id b;
		struct cursor entry = c;
		uint16_t misc, size;
		const uint8_t *id;

		(void)take32(&entry);	/* type: some writers do not set it */
		misc = take16(&entry);
		size = take16(&entry);
		if (take(&c, size, 1) == NULL)
			return 0;
		entry.left = c.p > entry.p ? (size_t)(c.p - entry.p) : 0;
		(void)take32(&entry);	/* pid: the host or a guest */
		id = take(&entry, 1, 24);
		b.path = take_string(&entry);
		if (entry.bad)
			return 0;
		b.id = id;
		b.len = misc & MISC_BUILD_ID_SIZE ? id[20] : BUILD_ID_MAX;
		if (b.len == 0 || b.len > BUILD_ID_MAX)
			continue;
		if (!ex_array_room(&d->build_ids, d->nbuild_ids, 1,
		    &d->build_ids_cap, sizeof(*d->build_ids), SIZE_MAX))
			return no_memory(d);
		d->build_ids[d->nbuild_ids++] = b;
	}
	return 0;
}

static void
read_host(struct ex_perfdata *d, struct cursor c)
{
	char *host = take_header_string(&c);

	if (host != NULL)
		(void)snprintf(d->host, sizeof(d->host), "%s", host);
	free(host);
}

/* The same instant by the time of day and by the records' clock. */
static void
read_clock(struct ex_perfdata *d, struct cursor c)
{
	(void)take64(&c);	/* version and clock id */
	d->wall = take64(&c);
	d->clock = take64(&c);
	if (c.bad)
		d->wall = 0;
}

static void
read_rank(struct ex_perfdata *d, struct cursor c)
{
	char *text = take32(&c) == 0 ? NULL : take_header_string(&c);

	d->ranked = text != NULL &&
	    sscanf(text, RANK_IS "%9u", &d->rank) == 1;
	free(text);
}

/* Read a feature.  If it is damaged, it counts as missing.  Returns 0 or
   -ENOMEM. */
static int
read_feature(struct ex_perfdata *d, uint64_t feature, struct cursor c)
{
	switch (feature) {
	case FEATURE_BUILD_ID:
		return read_build_ids(d, c);
	case FEATURE_HOSTNAME:
		read_host(d, c);
		return 0;
	case FEATURE_CLOCK_DATA:
		read_clock(d, c);
		return 0;
	case FEATURE_CMDLINE:
		read_rank(d, c);
		return 0;
	case FEATURE_EVENT_DESC:
		read_event_desc(d, c);
		return 0;
	default:
		return 0;
	}
}

/*
 * The walk over all records.
 */

/*
 * Read a record made by perf itself.  *extra is set to the number of bytes that
 * follow it and are not part of its size.
 */
static int
read_user_record(struct ex_perfdata *d, const struct ex_record *r,
    uint64_t *extra)
{
	const size_t header = sizeof(struct perf_event_header);
	struct cursor c = {r->bytes + header, r->size - header, false};
	struct perf_event_attr attr;
	uint64_t feature;

	switch (r->type) {
	case USER_ATTR:
		if (!take_attr(&c, &attr))
			return fail(d, -EBADMSG, "its events are damaged");
		return add_event(d, &attr, &c);
	case USER_FEATURE:
		feature = take64(&c);
		return read_feature(d, feature, c);
	case USER_BUILD_ID:
		return read_build_ids(d,
		    (struct cursor){r->bytes, r->size, false});
	case USER_TRACING_DATA:
		*extra = ((uint64_t)take32(&c) + 7) & ~(uint64_t)7;
		return 0;
	case USER_AUXTRACE:
		*extra = take64(&c);
		return 0;
	case USER_COMPRESSED:
	case USER_COMPRESSED2:
		return fail(d, -ENOTSUP,
		    "it is compressed: record without -z");
	default:
		return 0;
	}
}

static int
add_place(struct ex_perfdata *d, uint64_t time, const uint8_t *record)
{
	struct record_places *places = time == 0 ? &d->untimed : &d->timed;

	if (!EX_ARRAY_ROOM(places, at, SIZE_MAX))
		return no_memory(d);
	d->disordered |= places->n > 0 && places->at[places->n - 1].time > time;
	places->at[places->n++] = (struct record_place){
		.time = time, .offset = (uint64_t)(record - d->map),
	};
	return 0;
}

/* Touch the pages after this offset, which are about to be walked, because
   pages that are not mapped cannot be prefetched.  At a fault the kernel maps
   several pages; to ask for more at once (MADV_POPULATE_READ) takes longer. */
static void
have_pages(struct ex_perfdata *d, size_t offset)
{
	const volatile uint8_t *map = d->map;

	for (; d->paged < d->size && d->paged <= offset + AROUND;
	    d->paged += AROUND)
		(void)map[d->paged];
}

/* Prefetch a record that may start at this offset and have this size: its first
   lines and its end.  (gcc removes calls of functions that do nothing else.) */
__attribute__((always_inline)) static inline void
prefetch(const struct ex_perfdata *d, uint64_t offset, size_t size)
{
	const uint8_t *record = d->map + offset;

	if (offset >= d->size || size > d->size - offset ||
	    size < HEAD_LINES * LINE)
		return;
	for (size_t i = 0; i < HEAD_LINES; i++)
		__builtin_prefetch(record + i * LINE);
	__builtin_prefetch(record + size - 1);
}

/* Learn from all records, and list them. */
static int
read_records(struct ex_perfdata *d, struct cursor c)
{
	while (c.left > 0) {
		struct ex_record r;
		uint64_t extra = 0;
		int err = 0, result;

		have_pages(d, (size_t)(c.p - d->map));
		result = ex_record_decode(d->formats, c.p, c.left, &r);
		if (result == -EBADMSG)
			break;
		/* most records have the size of the previous one */
		prefetch(d, (uint64_t)(c.p - d->map) + 4U * r.size, r.size);
		if (r.type >= USER_TYPES)
			err = read_user_record(d, &r, &extra);
		else if (result == 1)
			err = add_place(d, r.time, c.p);
		else
			d->skipped++;
		if (err < 0)
			return err;
		(void)take(&c, r.size, 1);
		(void)take(&c, extra, 1);
		if (c.bad)
			break;
	}
	if (c.left > 0 || c.bad)
		d->damaged = true;
	return 0;
}

/*
 * The file.
 */

static int
read_attrs(struct ex_perfdata *d, const struct file_header *h)
{
	struct cursor c = part(d, h->attrs.offset, h->attrs.size);

	if (c.bad || h->attr_size < PERF_ATTR_SIZE_VER0 +
	    sizeof(struct file_section))
		return fail(d, -EBADMSG, "its events are damaged");
	while (c.left >= h->attr_size) {
		struct cursor one = {c.p,
		    h->attr_size - sizeof(struct file_section), false};
		struct perf_event_attr attr;
		struct file_section where;
		struct cursor ids;
		int err;

		(void)take(&c, one.left, 1);
		where.offset = take64(&c);
		where.size = take64(&c);
		ids = part(d, where.offset, where.size);
		if (!take_attr(&one, &attr) || ids.bad)
			return fail(d, -EBADMSG, "its events are damaged");
		err = add_event(d, &attr, &ids);
		if (err < 0)
			return err;
	}
	return 0;
}

/* The features: a table of sections, one for each bit set. */
static int
read_features(struct ex_perfdata *d, const struct file_header *h,
    uint64_t offset)
{
	struct cursor c = part(d, offset, d->size - offset);
	unsigned bit;

	for (bit = 0; bit < FEATURE_BITS; bit++) {
		struct file_section where;
		struct cursor feature;
		int err;

		if (!(h->flags[bit / 64] >> bit % 64 & 1))
			continue;
		where.offset = take64(&c);
		where.size = take64(&c);
		feature = part(d, where.offset, where.size);
		err = read_feature(d, bit, feature);
		if (err < 0)
			return err;
	}
	return 0;
}

static int
read_file(struct ex_perfdata *d)
{
	struct cursor data, c = part(d, 0, d->size);
	const uint8_t *p = take(&c, 1, sizeof(struct file_header));
	struct file_header h;
	int err;

	if (p == NULL)
		return fail(d, -EBADMSG, "its header is cut short");
	memcpy(&h, p, sizeof(h));
	if (h.size < sizeof(h))
		return fail(d, -EBADMSG, "its header is damaged");
	err = read_attrs(d, &h);
	if (err < 0)
		return err;
	data = part(d, h.data.offset, 0);
	if (data.bad)
		return fail(d, -EBADMSG, "its records are missing");
	data.left = d->size - h.data.offset;
	/* size 0: the recorder was killed before it wrote the size */
	if (h.data.size > data.left || h.data.size == 0) {
		d->damaged = true;
	} else {
		err = read_features(d, &h, h.data.offset + h.data.size);
		if (err < 0)
			return err;
		data.left = h.data.size;
	}
	return read_records(d, data);
}

static int
read_all(struct ex_perfdata *d)
{
	struct cursor c = part(d, 0, d->size);
	uint64_t magic = take64(&c), size = take64(&c);
	int err;

	if (magic == MAGIC_SWAPPED)
		return fail(d, -ENOTSUP,
		    "it is from a machine of another byte order");
	if (magic != MAGIC || c.bad)
		return fail(d, -EINVAL, "it is not a perf.data file");
	err = size == PIPE_HEADER_SIZE ? read_records(d, c) : read_file(d);
	if (err < 0)
		return err;
	if (d->nevents == 0)
		return fail(d, -EBADMSG, "it names no events");
	if (d->disordered && !EX_ARRAY_SORT(d->timed.at, d->timed.n, time))
		return no_memory(d);
	return 0;
}

static int
map_fd(struct ex_perfdata *d, int fd)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return fail(d, -errno, "it cannot be examined");
	if (S_ISDIR(st.st_mode))
		return fail(d, -EISDIR, "it is a directory");
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return fail(d, -EINVAL, "it is not a perf.data file");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return fail(d, -errno, "it cannot be mapped");
	d->map = map;
	d->size = (size_t)st.st_size;
	return 0;
}

static int
map_file(struct ex_perfdata *d, const char *path)
{
	/* O_NONBLOCK: do not wait for the writer of a FIFO */
	int err, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return fail(d, -errno, "it cannot be opened");
	err = map_fd(d, fd);
	(void)close(fd);
	return err;
}

int
ex_perfdata_open(const char *path, struct ex_perfdata **out, const char **why)
{
	struct ex_perfdata *d = calloc(1, sizeof(*d));
	int err;

	*out = NULL;
	*why = "there is not enough memory for it";
	if (d == NULL)
		return -ENOMEM;
	d->formats = ex_formats_new();
	err = d->formats != NULL ? map_file(d, path) : no_memory(d);
	if (err == 0)
		err = read_all(d);
	if (err < 0) {
		*why = d->why;
		ex_perfdata_close(d);
		return err;
	}
	*out = d;
	return 0;
}

void
ex_perfdata_close(struct ex_perfdata *d)
{
	size_t i;

	if (d == NULL)
		return;
	for (i = 0; i < d->nevents; i++) {
		free((void *)d->events[i].name);
		free((void *)d->events[i].ids);
	}
	free(d->events);
	free(d->untimed.at);
	free(d->timed.at);
	free(d->build_ids);
	ex_formats_free(d->formats);
	if (d->map != NULL)
		(void)munmap((void *)d->map, d->size);
	free(d);
}

size_t
ex_perfdata_events(const struct ex_perfdata *d,
    const struct ex_perf_event **events)
{
	*events = d->events;
	return d->nevents;
}

void
ex_perfdata_build_ids(const struct ex_perfdata *d,
    void (*fn)(void *arg, const char *path, const uint8_t *id, size_t len),
    void *arg)
{
	size_t i;

	for (i = 0; i < d->nbuild_ids; i++)
		fn(arg, d->build_ids[i].path, d->build_ids[i].id,
		    d->build_ids[i].len);
}

/* Record i of the file, or NULL. */
static const struct record_place *
place_of(const struct ex_perfdata *d, size_t i)
{
	if (i < d->untimed.n)
		return &d->untimed.at[i];
	i -= d->untimed.n;
	return i < d->timed.n ? &d->timed.at[i] : NULL;
}

int
ex_perfdata_next(struct ex_perfdata *d, struct ex_record *out)
{
	const struct record_place *place = place_of(d, d->next), *later;

	if (place == NULL)
		return d->damaged ? -EBADMSG : 0;
	d->next++;
	if (ex_record_decode(d->formats, d->map + place->offset,
	    d->size - place->offset, out) == 1) {
		if ((later = place_of(d, d->next + 1)) != NULL)
			prefetch(d, later->offset, out->size);
		return 1;
	}
	/* it was decoded before an event was known that contradicts it */
	d->damaged = true;
	d->next = d->untimed.n + d->timed.n;
	return -EBADMSG;
}

uint64_t
ex_perfdata_skipped(const struct ex_perfdata *d)
{
	return d->skipped;
}

const char *
ex_perfdata_host(const struct ex_perfdata *d)
{
	return d->host;
}

uint64_t
ex_perfdata_wall(const struct ex_perfdata *d, uint64_t time)
{
	return d->wall == 0 || time == 0 ? 0 : d->wall + (time - d->clock);
}

const unsigned *
ex_perfdata_rank(const struct ex_perfdata *d)
{
	return d->ranked ? &d->rank : NULL;
}
