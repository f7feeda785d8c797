/*
 * perfdata: perf.data files.
 *
 * Two shapes of file hold the same things.  File mode: a header that says
 * where events, records and features are.  Pipe mode: records only, of which
 * some (types from 64 on) describe events and features.
 *
 *	header | ids | events | records ... | feature table | features
 *	header | (event, feature)* records ...
 *
 * A reader maps the file, walks all records once when it is opened, and keeps
 * the time and place of each, sorted; a record is decoded again when it is
 * asked for.  Most of a record is a copy of the stack, of which little is
 * looked at: reading a file is waiting for pages and cache lines, unless they
 * are asked for early.
 */
#include "record/perfdata.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "record/cursor.h"
#include "base/array.h"

#define MAGIC 0x32454c4946524550ULL		/* "PERFILE2" */
#define MAGIC_SWAPPED 0x50455246494c4532ULL

#define AROUND (64U << 10)	/* bytes that the kernel maps at a fault; if
				   they are fewer, there are more faults */
#define HEAD_LINES 8		/* of a record: registers, and the stack's
				   top */
#define LINE 64

#define FEATURE_BITS 256
#define HOST_MAX 65		/* of a host's name, with its NUL */
#define RANK_IS "WATCHCTL_RANK="
#define BUILD_ID_MAX 20
#define ATTR_SIZE sizeof(struct perf_event_attr)

/* Bits of the header's flags that matter here. */
enum feature {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCKID = 23,
	FEATURE_CLOCK_DATA = 29,
};

/* Types of records that perf makes for itself. */
enum {
	USER_TYPES = 64,	/* the first of them */
	USER_ATTR = 64,
	USER_TRACING_DATA = 66,
	USER_BUILD_ID = 67,
	USER_FINISHED_ROUND = 68,
	USER_AUXTRACE = 71,
	USER_FEATURE = 80,
	USER_COMPRESSED = 81,
	USER_COMPRESSED2 = 83,
};

/* In misc of an entry of the build-id table: it gives the id's length. */
#define MISC_BUILD_ID_SIZE (1 << 15)

struct section {
	uint64_t offset;	/* in the file */
	uint64_t size;		/* bytes */
};

struct file_header {
	uint64_t magic;
	uint64_t size;		/* of the header; in pipe mode it ends here */
	uint64_t attr_size;	/* of an event in attrs, its section included */
	struct section attrs;	/* events: attribute, section of ids */
	struct section data;	/* records; size 0: until the end of the file */
	struct section event_types;	/* not used any more */
	uint64_t flags[FEATURE_BITS / 64];
};

#define PIPE_HEADER_SIZE offsetof(struct file_header, attr_size)

static_assert(sizeof(struct file_header) == 104, "header of a file");
static_assert(PIPE_HEADER_SIZE == 16, "header of a stream");
static_assert(sizeof(struct perf_event_attr) % 8 == 0, "alignment of ids");

/* One entry of the build-id table; pointers go into the file. */
struct build_id {
	const char *path;
	const uint8_t *id;
	size_t len;
};

/* A record: when, and where in the file. */
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
	size_t paged;		/* so much of it has been walked or will be
				   soon, and its pages are there */
	struct ex_formats *formats;
	struct ex_perf_event *events;	/* ids and names belong to them */
	size_t nevents, events_cap;
	uint64_t nids;		/* of all events */
	struct build_id *build_ids;
	size_t nbuild_ids, build_ids_cap;
	struct record_places untimed, timed;	/* the latter in time order, */
	bool disordered;	/* or not yet */
	size_t next;		/* record to give next: of both, in turn */
	bool damaged;		/* what follows the last place cannot be read */
	uint64_t skipped;
	char host[HOST_MAX];	/* "": not known */
	uint64_t wall, clock;	/* one instant, ns; wall 0: not known */
	bool ranked;
	unsigned rank;		/* if it is ranked */
	const char *why;	/* what to tell the user of a failure */
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

/* A part of the file; it is bad when the file has no such part. */
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

/* An attribute, of whatever size its version has; at most all that is left. */
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

/* Add an event whose ids are all that the cursor has. */
static int
add_event(struct ex_perfdata *d, const struct perf_event_attr *attr,
    struct cursor *c)
{
	size_t i, nids = c->left / sizeof(uint64_t);
	uint64_t *ids;
	int result;

	/* sections may lie on top of each other, but not to fill memory */
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

/* The length and the characters of a header string; NULL: none. */
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

/* Entries of the build-id table, until one that is none. */
static int
read_build_ids(struct ex_perfdata *d, struct cursor c)
{
	while (c.left > 0) {
		struct build_id b;
		struct cursor entry = c;
		uint16_t misc, size;
		const uint8_t *id;

		(void)take32(&entry);	/* type: not set by all writers */
		misc = take16(&entry);
		size = take16(&entry);
		if (take(&c, size, 1) == NULL)
			return 0;
		entry.left = c.p > entry.p ? (size_t)(c.p - entry.p) : 0;
		(void)take32(&entry);	/* pid: this machine, or a guest */
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

/* One instant by the time of day and by the records' clock. */
static void
read_clock(struct ex_perfdata *d, struct cursor c)
{
	(void)take64(&c);	/* version, clock */
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

/* A feature: what is damaged in it is only missing.  0 or -ENOMEM. */
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
 * A record of perf's own.  *extra is set to the bytes that follow the record
 * without being counted in its size.
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

/* Have the pages behind an offset in the file, which are about to be walked:
   what is not there is not prefetched.  The kernel maps more at a fault than
   one page; to ask it for many at once (MADV_POPULATE_READ) takes longer. */
static void
have_pages(struct ex_perfdata *d, size_t offset)
{
	const volatile uint8_t *map = d->map;

	for (; d->paged < d->size && d->paged <= offset + AROUND;
	    d->paged += AROUND)
		(void)map[d->paged];
}

/* Ask for what will be looked at of a record that may begin at an offset, and
   be of this size: its first lines and its end.  (gcc removes calls of
   functions that do nothing else.) */
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

/* Learn from all records in c, and where they are. */
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
		/* most are as large as the one before */
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
	    sizeof(struct section))
		return fail(d, -EBADMSG, "its events are damaged");
	while (c.left >= h->attr_size) {
		struct cursor one = {c.p, h->attr_size - sizeof(struct section),
		    false};
		struct perf_event_attr attr;
		struct section where;
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

/* The features: a table of sections, one for each bit that is set. */
static int
read_features(struct ex_perfdata *d, const struct file_header *h,
    uint64_t offset)
{
	struct cursor c = part(d, offset, d->size - offset);
	unsigned bit;

	for (bit = 0; bit < FEATURE_BITS; bit++) {
		struct section where;
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
	/* size 0: a recorder that was killed has not recorded how much it
	   wrote */
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

/* Record i of all that the file has; NULL: there are not so many. */
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
	/* it could be read before events were named that now contradict it */
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

/*
 * The writer.
 */

#define BUFFER_SIZE (1 << 20)

/* Bytes that grow. */
struct blob {
	uint8_t *p;
	size_t len, room;
};

struct ex_perfwriter {
	int fd;
	int err;		/* the first -errno; 0: none */
	struct file_header header;
	bool has_clock;		/* records use clockid */
	clockid_t clockid;
	struct timespec wall, clock;	/* one instant on both clocks */
	struct blob event_desc, build_ids;	/* features, as they grow */
	char host[HOST_MAX];	/* "": not to be named */
	bool ranked;
	unsigned rank;
	uint64_t at;		/* file offset of the buffer's start */
	size_t used;		/* of the buffer */
	uint8_t buffer[BUFFER_SIZE];
};

static void
free_writer(struct ex_perfwriter *w)
{
	free(w->event_desc.p);
	free(w->build_ids.p);
	free(w);
}

static int
keep(struct ex_perfwriter *w, int err)
{
	if (w->err == 0)
		w->err = err;
	return w->err;
}

static int
write_at(struct ex_perfwriter *w, const void *bytes, size_t n, uint64_t at)
{
	const uint8_t *p = bytes;

	while (n > 0 && w->err == 0) {
		ssize_t done = pwrite(w->fd, p, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return keep(w, done < 0 ? -errno : -EIO);
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return w->err;
}

static int
flush(struct ex_perfwriter *w)
{
	(void)write_at(w, w->buffer, w->used, w->at);
	w->at += w->used;
	w->used = 0;
	return w->err;
}

/* Where the next byte goes in the file. */
static uint64_t
position(const struct ex_perfwriter *w)
{
	return w->at + w->used;
}

/* The file is written in pieces that begin and end at multiples of the buffer's
   size, as far as nobody wants it flushed: of such pieces the kernel keeps many
   pages as one, which makes reading them cheaper. */
static int
append(struct ex_perfwriter *w, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n > 0) {
		const size_t end = BUFFER_SIZE - w->at % BUFFER_SIZE;
		const size_t part = n < end - w->used ? n : end - w->used;

		memcpy(w->buffer + w->used, p, part);
		w->used += part;
		p += part;
		n -= part;
		if (w->used == end)
			(void)flush(w);
	}
	return w->err;
}

static void
blob_put(struct ex_perfwriter *w, struct blob *b, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	if (!ex_array_room(&b->p, b->len, n, &b->room, 1, SIZE_MAX)) {
		(void)keep(w, -ENOMEM);
		return;
	}
	memcpy(b->p + b->len, bytes, n);
	b->len += n;
}

static void
blob_put32(struct ex_perfwriter *w, struct blob *b, uint32_t v)
{
	blob_put(w, b, &v, sizeof(v));
}

static void
blob_put64(struct ex_perfwriter *w, struct blob *b, uint64_t v)
{
	blob_put(w, b, &v, sizeof(v));
}

/* A string, its NUL, and more of them up to a multiple of 8. */
static void
blob_put_padded(struct ex_perfwriter *w, struct blob *b, const char *s)
{
	static const char nuls[sizeof(uint64_t)];
	size_t n = strlen(s);

	blob_put(w, b, s, n);
	blob_put(w, b, nuls, sizeof(nuls) - n % sizeof(nuls));
}

static void
blob_put_string(struct ex_perfwriter *w, struct blob *b, const char *s)
{
	blob_put32(w, b, (uint32_t)(strlen(s) / 8 * 8 + 8));
	blob_put_padded(w, b, s);
}

/* The header, with no sizes yet, then ids, then events. */
static void
write_head(struct ex_perfwriter *w, const struct ex_perf_event *events,
    size_t n)
{
	struct section ids = {sizeof(w->header), 0};
	size_t i;

	w->header.magic = MAGIC;
	w->header.size = sizeof(w->header);
	w->header.attr_size = ATTR_SIZE + sizeof(ids);
	(void)append(w, &w->header, sizeof(w->header));
	for (i = 0; i < n; i++)
		(void)append(w, events[i].ids,
		    events[i].nids * sizeof(*events[i].ids));
	w->header.attrs.offset = position(w);
	for (i = 0; i < n; i++) {
		struct perf_event_attr attr = events[i].attr;

		attr.size = ATTR_SIZE;
		ids.size = events[i].nids * sizeof(*events[i].ids);
		(void)append(w, &attr, sizeof(attr));
		(void)append(w, &ids, sizeof(ids));
		ids.offset += ids.size;
	}
	w->header.attrs.size = n * w->header.attr_size;
	w->header.data.offset = position(w);
	/* whatever happens from here on, the file can be read */
	(void)flush(w);
	(void)write_at(w, &w->header, sizeof(w->header), 0);
}

/* The events' names.  When one has none perf had better make up all. */
static void
describe_events(struct ex_perfwriter *w, const struct ex_perf_event *events,
    size_t n)
{
	struct blob *b = &w->event_desc;
	size_t i;

	for (i = 0; i < n; i++)
		if (events[i].name == NULL)
			return;
	blob_put32(w, b, (uint32_t)n);
	blob_put32(w, b, ATTR_SIZE);
	for (i = 0; i < n; i++) {
		const struct ex_perf_event *e = &events[i];
		struct perf_event_attr attr = e->attr;

		attr.size = ATTR_SIZE;
		blob_put(w, b, &attr, sizeof(attr));
		blob_put32(w, b, (uint32_t)e->nids);
		blob_put_string(w, b, e->name);
		blob_put(w, b, e->ids, e->nids * sizeof(*e->ids));
	}
}

static void
read_clocks(struct ex_perfwriter *w, const struct ex_perf_event *events,
    size_t n)
{
	size_t i;

	for (i = 0; i < n && !w->has_clock; i++) {
		w->clockid = events[i].attr.clockid;
		w->has_clock = events[i].attr.use_clockid &&
		    clock_gettime(w->clockid, &w->clock) == 0 &&
		    clock_gettime(CLOCK_REALTIME, &w->wall) == 0;
	}
}

static bool
is_seekable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_APPEND) &&
	    lseek(fd, 0, SEEK_CUR) >= 0;
}

int
ex_perfwriter_open(int fd, const struct ex_perf_event *events, size_t n,
    struct ex_perfwriter **out)
{
	struct ex_perfwriter *w;
	int err;

	*out = NULL;
	if (!is_seekable(fd))
		return -ESPIPE;
	w = malloc(sizeof(*w));
	if (w == NULL)
		return -ENOMEM;
	memset(w, 0, offsetof(struct ex_perfwriter, buffer));
	w->fd = fd;
	read_clocks(w, events, n);
	describe_events(w, events, n);
	write_head(w, events, n);
	if (w->err == 0) {
		*out = w;
		return 0;
	}
	err = w->err;
	free_writer(w);
	return err;
}

int
ex_perfwriter_record(struct ex_perfwriter *w, const void *record)
{
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	if (header.size < sizeof(header))
		return -EINVAL;
	return append(w, record, header.size);
}

int
ex_perfwriter_build_id(struct ex_perfwriter *w, const char *path,
    const uint8_t *id, size_t len)
{
	const int32_t this_machine = -1;
	bool kernel = strncmp(path, "[kernel", 7) == 0;
	size_t path_size = strlen(path) / 8 * 8 + 8;
	struct perf_event_header header = {
		.misc = MISC_BUILD_ID_SIZE | (kernel ? PERF_RECORD_MISC_KERNEL :
		    PERF_RECORD_MISC_USER),
	};
	uint8_t sized[24] = {0};

	if (len < 1 || len > BUILD_ID_MAX || path_size > PATH_MAX)
		return -EINVAL;
	memcpy(sized, id, len);
	sized[BUILD_ID_MAX] = (uint8_t)len;
	header.size = (uint16_t)(sizeof(header) + sizeof(this_machine) +
	    sizeof(sized) + path_size);
	blob_put(w, &w->build_ids, &header, sizeof(header));
	blob_put(w, &w->build_ids, &this_machine, sizeof(this_machine));
	blob_put(w, &w->build_ids, sized, sizeof(sized));
	blob_put_padded(w, &w->build_ids, path);
	return w->err;
}

/* The features' sections, with offsets from the first, and their contents. */
struct features {
	struct section where[10];
	unsigned n;
	struct blob contents;
};

/* Features are added in the order of their bits. */
static void
add_feature(struct ex_perfwriter *w, struct features *f, enum feature bit,
    const struct blob *b)
{
	w->header.flags[bit / 64] |= 1ULL << bit % 64;
	f->where[f->n++] = (struct section){f->contents.len, b->len};
	blob_put(w, &f->contents, b->p, b->len);
}

static void
add_string(struct ex_perfwriter *w, struct features *f, enum feature bit,
    const char *s)
{
	struct blob b = {0};

	blob_put_string(w, &b, s);
	add_feature(w, f, bit, &b);
	free(b.p);
}

static void
add_cpus(struct ex_perfwriter *w, struct features *f)
{
	struct blob b = {0};

	blob_put32(w, &b, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	blob_put32(w, &b, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	add_feature(w, f, FEATURE_NRCPUS, &b);
	free(b.p);
}

/* The rank, as a command line that sets it: there is no feature of its own. */
static void
add_rank(struct ex_perfwriter *w, struct features *f)
{
	struct blob b = {0};
	char text[32];

	(void)snprintf(text, sizeof(text), RANK_IS "%u", w->rank);
	blob_put32(w, &b, 1);
	blob_put_string(w, &b, text);
	add_feature(w, f, FEATURE_CMDLINE, &b);
	free(b.p);
}

static uint64_t
nanoseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/* Resolution of the records' clock; one instant on it and on the wall's. */
static void
add_clock(struct ex_perfwriter *w, struct features *f)
{
	struct timespec resolution = {0, 1};
	struct blob b = {0};

	(void)clock_getres(w->clockid, &resolution);
	blob_put64(w, &b, nanoseconds(&resolution));
	add_feature(w, f, FEATURE_CLOCKID, &b);
	b.len = 0;
	blob_put32(w, &b, 1);	/* version of this feature */
	blob_put32(w, &b, (uint32_t)w->clockid);
	blob_put64(w, &b, nanoseconds(&w->wall));
	blob_put64(w, &b, nanoseconds(&w->clock));
	add_feature(w, f, FEATURE_CLOCK_DATA, &b);
	free(b.p);
}

static void
write_features(struct ex_perfwriter *w)
{
	struct features f = {0};
	struct utsname u;
	uint64_t start;
	unsigned i;

	if (w->build_ids.len > 0)
		add_feature(w, &f, FEATURE_BUILD_ID, &w->build_ids);
	if (*w->host != '\0')
		add_string(w, &f, FEATURE_HOSTNAME, w->host);
	if (uname(&u) == 0) {
		add_string(w, &f, FEATURE_OSRELEASE, u.release);
		add_string(w, &f, FEATURE_ARCH, u.machine);
	}
	add_cpus(w, &f);
	if (w->ranked)
		add_rank(w, &f);
	if (w->event_desc.len > 0)
		add_feature(w, &f, FEATURE_EVENT_DESC, &w->event_desc);
	if (w->has_clock)
		add_clock(w, &f);
	start = position(w) + f.n * sizeof(f.where[0]);
	for (i = 0; i < f.n; i++)
		f.where[i].offset += start;
	(void)append(w, f.where, f.n * sizeof(f.where[0]));
	(void)append(w, f.contents.p, f.contents.len);
	free(f.contents.p);
}

void
ex_perfwriter_origin(struct ex_perfwriter *w, const char *host,
    const unsigned *rank)
{
	(void)snprintf(w->host, sizeof(w->host), "%s", host);
	w->ranked = rank != NULL;
	w->rank = rank != NULL ? *rank : 0;
}

int
ex_perfwriter_flush(struct ex_perfwriter *w)
{
	return flush(w);
}

int
ex_perfwriter_close(struct ex_perfwriter *w)
{
	static const struct perf_event_header round = {
		.type = USER_FINISHED_ROUND, .size = sizeof(round)};
	int err;

	/* no size at all would mean that the recorder was killed */
	if (position(w) == w->header.data.offset)
		(void)append(w, &round, sizeof(round));
	w->header.data.size = position(w) - w->header.data.offset;
	write_features(w);
	(void)flush(w);
	(void)write_at(w, &w->header, sizeof(w->header), 0);
	if (close(w->fd) < 0)
		(void)keep(w, -errno);
	err = w->err;
	free_writer(w);
	return err;
}
