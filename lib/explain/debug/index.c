/*
 * index: an index of a file of debug information, kept for later runs.
 *
 * A file: the header; five lists, one behind the other; windows; bytes of
 * sections, at pages, so that they can be mapped.  The sum is of header and
 * lists.
 */
#include "debug/index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"

#define PAGE UINT64_C(4096)
#define SIZE_MAX_ (UINT64_C(1) << 28)	/* bytes of an index */
#define LIST_MAX ((size_t)1 << 22)

enum { BYTES, POINTS, UNITS, SOUGHT, CODE, LISTS };

struct header {
	char magic[8];		/* includes the version */
	uint64_t sum;
	uint64_t size;		/* of the index */
	uint64_t of[8];		/* from fstat(2) of the file */
	uint64_t all_code;
	struct {
		uint64_t at, n;
	} list[LISTS];
};

static const char magic[8] = "wpindex1";
static const size_t element[LISTS] = {
	[BYTES] = sizeof(struct ex_index_bytes),
	[POINTS] = sizeof(struct ex_index_point),
	[UNITS] = sizeof(struct ex_index_unit),
	[SOUGHT] = sizeof(struct ex_index_sought),
	[CODE] = sizeof(struct ex_index_code),
};
static const struct ex_index_store *store;
static bool noted;

void
ex_index_store(const struct ex_index_store *it)
{
	store = it;
}

void
ex_index_note(void)
{
	noted = store != NULL;
}

bool
ex_index_noted(void)
{
	return noted;
}

static struct ex_index_list *
list(const struct ex_index *index, unsigned which)
{
	const struct ex_index_list *const lists[LISTS] = {
		[BYTES] = &index->bytes, [POINTS] = &index->points,
		[UNITS] = &index->units, [SOUGHT] = &index->sought,
		[CODE] = &index->code,
	};

	return (struct ex_index_list *)(uintptr_t)lists[which];
}

static uint64_t
page_up(uint64_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

/* Different files differ in this, unless their owner forges it, who would only
   mislead himself. */
static void
describe(uint64_t of[8], const struct stat *st)
{
	const uint64_t is[8] = {
		st->st_dev, st->st_ino, (uint64_t)st->st_size,
		(uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
		(uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec,
	};

	memcpy(of, is, sizeof(is));
}

static uint64_t
sum_of(const struct header *h, const void *lists, size_t len)
{
	struct header copy = *h;
	uLong sum = adler32_z(0, NULL, 0);

	copy.sum = 0;
	sum = adler32_z(sum, (const Bytef *)&copy, sizeof(copy));
	return adler32_z(sum, lists, len);
}

/* --- reading --- */

/* Whether n elements of this size fit at this offset. */
static bool
is_inside(uint64_t size, uint64_t at, uint64_t n, size_t one)
{
	return at <= size && n <= (size - at) / one;
}

static bool
bytes_good(const struct ex_index *index)
{
	const struct ex_index_bytes *b = index->bytes.at;

	for (size_t i = 0; i < index->bytes.n; i++, b++) {
		if (memchr(b->name, '\0', sizeof(b->name)) == NULL ||
		    b->at % PAGE != 0 || b->file % PAGE != 0 || b->len == 0 ||
		    !is_inside(b->size, b->at, b->len, 1) ||
		    !is_inside(index->size, b->file, b->len, 1))
			return false;
	}
	return true;
}

static bool
points_good(const struct ex_index *index)
{
	const struct ex_index_point *p = index->points.at;

	for (size_t i = 0; i < index->points.n; i++, p++) {
		if (p->at < EX_INDEX_WINDOW || p->bits > 7 ||
		    (i > 0 && p->at <= p[-1].at) ||
		    !is_inside(index->size, p->window, EX_INDEX_WINDOW, 1))
			return false;
	}
	return true;
}

static bool
units_good(const struct ex_index *index)
{
	const struct ex_index_unit *u = index->units.at;

	for (size_t i = 0; i < index->units.n; i++, u++) {
		if (u->at != (i == 0 ? 0 : u[-1].end) || u->at >= u->end)
			return false;
	}
	return true;
}

static bool
sought_good(const struct ex_index *index)
{
	const struct ex_index_sought *s = index->sought.at;

	for (size_t i = 0; i < index->sought.n; i++, s++) {
		if (s->len > sizeof(s->bytes))
			return false;
	}
	return true;
}

/* Whether the mapped index belongs to the file, and is valid. */
static bool
take(struct ex_index *index, const struct stat *st)
{
	uint64_t of[8], end = sizeof(struct header);
	struct header h;

	if (index->size < sizeof(h))
		return false;
	memcpy(&h, index->image, sizeof(h));
	describe(of, st);
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 ||
	    h.size != index->size || memcmp(h.of, of, sizeof(of)) != 0)
		return false;
	for (unsigned i = 0; i < LISTS; i++) {
		if (h.list[i].at != end || h.list[i].n > LIST_MAX ||
		    !is_inside(index->size, end, h.list[i].n, element[i]))
			return false;
		list(index, i)->at = index->image + end;
		list(index, i)->n = h.list[i].n;
		end += h.list[i].n * element[i];
	}
	index->all_code = h.all_code != 0;
	return h.sum == sum_of(&h, index->image + sizeof(h),
	    end - sizeof(h)) && bytes_good(index) && points_good(index) &&
	    units_good(index) && sought_good(index);
}

static bool
map(struct ex_index *index)
{
	struct stat st;
	void *image;

	if (fstat(index->fd, &st) != 0 || st.st_size <= 0 ||
	    (uint64_t)st.st_size > SIZE_MAX_)
		return false;
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
	    index->fd, 0);
	if (image == MAP_FAILED)
		return false;
	index->image = image;
	index->size = (size_t)st.st_size;
	return true;
}

bool
ex_index_read(struct ex_index *index, const char *key, const struct stat *st)
{
	*index = (struct ex_index){.fd = -1};
	if (store == NULL || (index->fd = store->open(key)) < 0)
		return false;
	if (map(index) && take(index, st))
		return true;
	if (index->image == NULL)
		(void)close(index->fd);
	ex_index_free(index);
	return false;
}

void
ex_index_close(struct ex_index *index)
{
	if (index->image != NULL && index->fd >= 0)
		(void)close(index->fd);
	index->fd = -1;
}

void
ex_index_free(struct ex_index *index)
{
	for (unsigned i = 0; i < LISTS && index->image == NULL; i++)
		free(list(index, i)->at);
	if (index->image != NULL) {
		(void)munmap(index->image, index->size);
		ex_index_close(index);
	}
	*index = (struct ex_index){.fd = -1};
}

/* --- writing --- */

bool
ex_index_add(struct ex_index_list *to, const void *one, size_t size)
{
	if (!ex_array_room(&to->at, to->n, 1, &to->cap, size, LIST_MAX))
		return false;
	memcpy((uint8_t *)to->at + to->n++ * size, one, size);
	return true;
}

/* Copy the lists to their places in the file.  Returns its size. */
static uint64_t
lay_out(const struct ex_index *index, struct header *h, uint8_t *at)
{
	uint64_t end = sizeof(*h);

	for (unsigned i = 0; i < LISTS; i++) {
		const struct ex_index_list *l = list(index, i);

		h->list[i].at = end;
		h->list[i].n = l->n;
		if (l->n > 0)
			memcpy(at + end - sizeof(*h), l->at,
			    l->n * element[i]);
		end += l->n * element[i];
	}
	for (size_t i = 0; i < index->points.n; i++, end += EX_INDEX_WINDOW)
		((struct ex_index_point *)(at + h->list[POINTS].at -
		    sizeof(*h)))[i].window = end;
	end = page_up(end);
	for (size_t i = 0; i < index->bytes.n; i++) {
		struct ex_index_bytes *b = (struct ex_index_bytes *)(at +
		    h->list[BYTES].at - sizeof(*h)) + i;

		b->file = end;
		end += page_up(b->len);
	}
	return end;
}

static int
put_padding(uint64_t *at)
{
	static const uint8_t zeros[PAGE];
	const uint64_t n = page_up(*at) - *at;

	*at += n;
	return n > 0 ? store->put(zeros, n) : 0;
}

static int
put(uint64_t *at, const void *bytes, size_t len)
{
	*at += len;
	return store->put(bytes, len);
}

static int
put_all(const struct ex_index *index, const struct header *h,
    const uint8_t *lists, size_t len)
{
	const struct ex_index_point *p = index->points.at;
	const struct ex_index_bytes *b = index->bytes.at;
	uint64_t at = 0;
	int err = put(&at, h, sizeof(*h));

	if (err == 0 && len > 0)
		err = put(&at, lists, len);
	for (size_t i = 0; i < index->points.n && err == 0; i++)
		err = put(&at, (const void *)(uintptr_t)p[i].window,
		    EX_INDEX_WINDOW);
	for (size_t i = 0; i < index->bytes.n && err == 0; i++) {
		if ((err = put_padding(&at)) == 0)
			err = put(&at, (const void *)(uintptr_t)b[i].file,
			    b[i].len);
	}
	return err == 0 ? put_padding(&at) : err;
}

void
ex_index_write(const struct ex_index *index, const char *key,
    const struct stat *st)
{
	struct header h = {.all_code = index->all_code};
	size_t len = 0;
	uint8_t *lists;

	for (unsigned i = 0; i < LISTS; i++)
		len += list(index, i)->n * element[i];
	if (store == NULL || (lists = malloc(len + 1)) == NULL)
		return;
	memcpy(h.magic, magic, sizeof(magic));
	describe(h.of, st);
	h.size = page_up(lay_out(index, &h, lists));
	h.sum = sum_of(&h, lists, len);
	if (h.size <= SIZE_MAX_ && store->begin(key) == 0)
		(void)store->end(put_all(index, &h, lists, len) == 0);
	free(lists);
}
