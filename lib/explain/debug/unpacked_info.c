/* unpacked_info: .debug_info, unpacked as far as it is needed. */
#include "debug/unpacked_private.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"

/* --- unpacking .debug_info --- */

bool
ex_unpacked_is_there(const struct info *info, uint64_t page)
{
	return (info->there[page / 8] >> page % 8 & 1) != 0;
}

void
ex_unpacked_set_there(struct info *info, uint64_t start, uint64_t end)
{
	for (uint64_t page =
	    start / PAGE; page < ex_unpacked_page_up(end) / PAGE; page++)
		info->there[page / 8] |= (uint8_t)(1u << page % 8);
}

void
ex_unpacked_stream_end(struct stream *s)
{
	if (s->begun)
		(void)inflateEnd(&s->z);
	s->begun = false;
}

bool
ex_unpacked_stream_begin(const struct info *info, struct stream *s,
    const struct ex_index_point *p)
{
	const uint64_t packed = p != NULL ? p->packed : 0;
	z_stream *z = &s->z;

	ex_unpacked_stream_end(s);
	if (packed > info->packed_size ||
	    (packed == 0 && p != NULL && p->bits > 0))
		return false;
	*z = (z_stream){
		.next_in = (Bytef *)(uintptr_t)info->packed + packed,
		.avail_in = (uInt)(info->packed_size - packed),
	};
	s->pos = p != NULL ? p->at : 0;
	s->begun = inflateInit2(z, -MAX_WBITS) == Z_OK;
	if (!s->begun || p == NULL)
		return s->begun;
	return (p->bits == 0 || inflatePrime(z, (int)p->bits,
	    info->packed[packed - 1] >> (8 - p->bits)) == Z_OK) &&
	    inflateSetDictionary(z, (const Bytef *)(uintptr_t)p->window,
	    EX_INDEX_WINDOW) == Z_OK;
}

/* The bytes before this place, which the next ones may refer to; they are kept
   as long as info.  NULL if there is no memory. */
static const uint8_t *
window_before(struct info *info, const struct stream *s, const uint8_t *end)
{
	uint8_t *copy;

	if (s == &info->fill)
		return end - EX_INDEX_WINDOW;
	if (!ex_array_room(&info->window, info->nwindows, 1,
	    &info->windows_cap, sizeof(*info->window), POINTS_MAX) ||
	    (copy = malloc(EX_INDEX_WINDOW)) == NULL)
		return NULL;
	info->window[info->nwindows++] = copy;
	return memcpy(copy, end - EX_INDEX_WINDOW, EX_INDEX_WINDOW);
}

/* A stream is between two blocks, so it can be continued from here later.
   from: since where its output is in memory before the next byte. */
static void
note_point(struct info *info, const struct stream *s, uint64_t from)
{
	const uint64_t last = info->npoints > 0 ?
	    info->point[info->npoints - 1].at : 0;
	const z_stream *z = &s->z;
	const uint8_t *window;

	if (s->pos < last + BETWEEN || s->pos < from + EX_INDEX_WINDOW ||
	    info->npoints == POINTS_MAX ||
	    (window = window_before(info, s, z->next_out)) == NULL)
		return;
	info->point[info->npoints++] = (struct ex_index_point){
		.at = s->pos, .packed = info->packed_size - z->avail_in,
		.bits = (uint64_t)z->data_type & 7,
		.window = (uintptr_t)window,
	};
}

bool
ex_unpacked_stream_upto(struct info *info, struct stream *s, uint64_t end,
    uint8_t *to, uint64_t from)
{
	z_stream *z = &s->z;
	int result = Z_OK;

	z->next_out = to;
	z->avail_out = (uInt)(end - s->pos);
	while (result == Z_OK && z->avail_out > 0) {
		result = inflate(z, Z_BLOCK);
		s->pos = end - z->avail_out;
		/* after a block that is not the last one */
		if (result == Z_OK && (z->data_type & (128 | 64)) == 128)
			note_point(info, s, from);
	}
	return z->avail_out == 0;
}

/* Unpack bytes that are not needed. */
static bool
stream_skip(struct info *info, struct stream *s, uint64_t end)
{
	static uint8_t none[1 << 16];

	while (s->pos < end) {
		const uint64_t n = end - s->pos < sizeof(none) ?
		    end - s->pos : sizeof(none);

		if (!ex_unpacked_stream_upto(info, s, s->pos + n, none,
		    UINT64_MAX / 2))
			return false;
	}
	return true;
}

const struct ex_index_point *
ex_unpacked_point_upto(const struct info *info, uint64_t at)
{
	const size_t n = EX_ARRAY_UPTO(info->point, info->npoints, at, at);

	return n > 0 ? &info->point[n - 1] : NULL;
}

bool
ex_unpacked_info_room(struct ex_unpacked *u, uint64_t start, uint64_t end)
{
	struct info *info = &u->info;
	const uint64_t at = info->section->at, size = info->section->size;
	const uint64_t more = size - start < STEP ? size : start + STEP;

	if (start >= info->room && end <= info->room_end)
		return true;
	if (end - start >= STEP)
		return ex_unpacked_room_large(u, at + start, at + end);
	if (!ex_unpacked_room(u, at + start, at + more))
		return false;
	info->room = start;
	info->room_end = more;
	return true;
}

/* Whether the stream cannot be continued to a place, or this point is closer to
   it. */
static bool
is_elsewhere(const struct stream *s, const struct ex_index_point *p,
    uint64_t at)
{
	return !s->begun || s->pos > at || (p != NULL && s->pos < p->at);
}

bool
ex_unpacked_unpack(struct ex_unpacked *u, uint64_t start, uint64_t end)
{
	struct info *info = &u->info;
	const struct ex_index_point *p = ex_unpacked_point_upto(info, start);
	uint8_t *to = u->image + info->section->at + start;
	struct stream *s = &info->fill;

	if (is_elsewhere(s, p, start)) {
		if (!ex_unpacked_stream_begin(info, s, p))
			return false;
		info->solid = start;
	} else if (s->pos < start) {
		info->solid = start;
	}
	return stream_skip(info, s, start) &&
	    ex_unpacked_info_room(u, start, end) &&
	    ex_unpacked_stream_upto(info, s, end, to, info->solid);
}

uint64_t
ex_unpacked_run_end(const struct info *info, uint64_t at, uint64_t end)
{
	const bool there = ex_unpacked_is_there(info, at / PAGE);

	while (at < end && ex_unpacked_is_there(info, at / PAGE) == there)
		at += PAGE;
	return at < end ? at : end;
}

bool
ex_unpacked_add_used(struct info *info, uint64_t at, uint64_t len)
{
	struct ex_index_bytes *b = info->used;
	uint64_t all = len;

	for (size_t i = 0; i < info->nused; i++, b++) {
		if (b->at <= at && at + len <= b->at + b->len)
			return false;
		all += b->len;
	}
	if (all > KEPT_MAX || !ex_array_room(&info->used, info->nused, 1,
	    &info->used_cap, sizeof(*b), USED_MAX))
		return false;
	info->used[info->nused++] = (struct ex_index_bytes){
		.at = at, .len = len,
	};
	return true;
}

bool
ex_unpacked_info_begin(struct ex_unpacked *u, const struct ex_index *index)
{
	struct info *info = &u->info;
	const struct unpacked_section *s = info->section;
	const struct ex_index_bytes *b = index->bytes.at;
	const struct ex_index_point *p = index->points.at;

	info->end = s->size;
	info->packed = ex_unpacked_stream_of(s, &info->packed_size);
	info->there = calloc(s->size / PAGE / 8 + 1, 1);
	info->point = calloc(POINTS_MAX, sizeof(*info->point));
	if (info->packed == NULL || info->there == NULL || info->point == NULL)
		return false;
	for (size_t i = 0; i < index->bytes.n; i++, b++) {
		if (strcmp(b->name, s->name) == 0 && b->size == s->size &&
		    ex_unpacked_map_bytes(u, s, index, b)) {
			ex_unpacked_set_there(info, b->at, b->at + b->len);
			(void)ex_unpacked_add_used(info, b->at, b->len);
		}
	}
	for (size_t i = 0; i < index->points.n && i < POINTS_MAX; i++, p++) {
		info->point[info->npoints] = *p;
		info->point[info->npoints++].window =
		    (uintptr_t)(index->image + p->window);
	}
	return true;
}
