/* perfdata_writer: perf.data files, written.  See perfdata.c. */
#include "record/perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "record/perfdata_layout.h"

#define BUFFER_SIZE (1 << 20)

/* Bytes that grow. */
struct blob {
	uint8_t *p;
	size_t len, room;
};

struct ex_perfwriter {
	int fd;
	int err;		/* the first -errno, or 0 */
	struct file_header header;
	bool has_clock;		/* records use clockid */
	clockid_t clockid;
	struct timespec wall, clock;	/* the same instant on both clocks */
	struct blob event_desc, build_ids;	/* features, as they grow */
	char host[HOST_MAX];	/* "" if not written */
	bool ranked;
	unsigned rank;
	uint64_t at;		/* file offset of the buffer */
	size_t used;		/* bytes of the buffer in use */
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

/* The file is written in pieces aligned to the buffer's size unless it has to
   be flushed.  For such pieces the kernel uses large folios, which are cheaper
   to read. */
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

/* A string, NUL-terminated and padded to a multiple of 8. */
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

/* Write the header, still without sizes, then the ids and the events. */
static void
write_head(struct ex_perfwriter *w, const struct ex_perf_event *events,
    size_t n)
{
	struct file_section ids = {sizeof(w->header), 0};
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
	/* from here on the file can be read in any case */
	(void)flush(w);
	(void)write_at(w, &w->header, sizeof(w->header), 0);
}

/* The names of the events; if one has none, perf makes up all of them. */
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

/* The sections of the features, with offsets relative to the first, and their
   contents. */
struct features {
	struct file_section where[10];
	unsigned n;
	struct blob contents;
};

/* Features have to be added in the order of their bits. */
static void
add_feature(struct ex_perfwriter *w, struct features *f, enum feature bit,
    const struct blob *b)
{
	w->header.flags[bit / 64] |= 1ULL << bit % 64;
	f->where[f->n++] = (struct file_section){f->contents.len, b->len};
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

/* The rank is recorded as a command line, since there is no feature for it. */
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

/* The resolution of the records' clock, and an instant on it and on the wall
   clock. */
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

	/* a size of 0 would mean that the recorder was killed */
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
