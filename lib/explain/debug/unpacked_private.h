/* unpacked_private: an image of unpacked sections, shared by the files that
   make it. */
#ifndef EX_UNPACKED_PRIVATE_H
#define EX_UNPACKED_PRIVATE_H

#include <libdeflate.h>
#include <zlib.h>

#include "debug/unpacked.h"

#define PAGE UINT64_C(4096)

#define STEP (UINT64_C(1) << 19)	/* bytes made writable at a time, if
					   fewer are needed */
#define BETWEEN (UINT64_C(1) << 20)	/* least bytes between points */
#define POINTS_MAX 4096
#define USED_MAX 1024
#define KEPT_MAX (UINT64_C(64) << 20)	/* bytes of sections in an index */
#define AHEAD (UINT64_C(128) << 10)	/* bytes unpacked in passing at a
					   time */
#define SEEN_SIZE (4 * EX_UNPACKED_PEEK)	/* of these, bytes that can be
						   examined */

enum { SECTIONS_MAX = 32, NAMES_SIZE = 1024, ZLIB_HEADER = 2 };

struct unpacked_section {

	Elf_Scn *scn;		/* in the file */
	const char *name;
	uint64_t at;		/* offset in the image */
	uint64_t size;		/* bytes, as claimed by the file */
	bool packed;
	bool late;		/* unpacked on request only */
	bool asked;		/* late: it was requested */
	bool there;		/* completely unpacked */
};

/* zlib's state between two blocks of the stream. */
struct stream {
	z_stream z;
	bool begun;		/* z is initialized */
	uint64_t pos;		/* bytes unpacked so far */
};

/* .debug_info.  Requested parts are unpacked into the image; others are
   unpacked in passing, and the latest of these can be examined. */
struct info {
	struct unpacked_section *section;
	const uint8_t *packed;	/* the stream, after zlib's header */
	size_t packed_size;
	uint8_t *there;		/* bit n: page n is unpacked */
	uint64_t end;		/* bytes that can be unpacked: fewer than the
				   file claims if it is damaged */
	struct stream fill;	/* fills the image */
	uint64_t solid;		/* unpacked without a gap from here to
				   fill.pos */
	uint64_t room, room_end;	/* the writable part of the image */
	struct stream pass;	/* unpacks in passing; */
	uint8_t *seen;		/* its latest bytes; NULL: none yet */
	uint64_t seen_at;	/* and their offset in the section */
	struct ex_index_point *point;	/* points to continue from, in order;
					   window: an address here */
	size_t npoints;
	uint8_t **window;	/* nwindows of them, of points; malloc'd */
	size_t nwindows, windows_cap;
	struct ex_index_bytes *used;	/* requested pages of units; only at and
					   len */
	size_t nused, used_cap;
};

struct ex_unpacked {
	uint8_t *image;		/* mapped; writable only where something is
				   unpacked */
	uint64_t image_size;
	Elf *elf;		/* of the image */
	struct unpacked_section section[SECTIONS_MAX];
	unsigned n;
	struct info info;
	struct libdeflate_decompressor *inflater;
};

uint64_t ex_unpacked_page_up(uint64_t n);

/* Make a part of the image writable. */
bool ex_unpacked_room(struct ex_unpacked *, uint64_t start, uint64_t end);

/* The same for a part that will be written completely, including its
   surroundings that are handed out in one piece. */
bool ex_unpacked_room_large(struct ex_unpacked *, uint64_t start, uint64_t end);

/* The same for a part of .debug_info; a small one is enlarged. */
bool ex_unpacked_info_room(struct ex_unpacked *, uint64_t start, uint64_t end);

/* A section's packed bytes, after zlib's header.  NULL: it has none. */
const uint8_t *ex_unpacked_stream_of(const struct unpacked_section *,
    size_t *size);

/* Map the section's bytes from an index. */
bool ex_unpacked_map_bytes(struct ex_unpacked *,
    const struct unpacked_section *, const struct ex_index *,
    const struct ex_index_bytes *);
bool ex_unpacked_is_there(const struct info *, uint64_t page);
void ex_unpacked_set_there(struct info *, uint64_t start, uint64_t end);
void ex_unpacked_stream_end(struct stream *);

/* Begin a stream at a point; NULL: at its beginning. */
bool ex_unpacked_stream_begin(const struct info *, struct stream *,
    const struct ex_index_point *);

/* Unpack a stream up to an offset in the section; `to' receives the byte at
   `from' and those after it.  False: it ends earlier. */
bool ex_unpacked_stream_upto(struct info *, struct stream *, uint64_t end,
    uint8_t *to, uint64_t from);

/* The last point at or before an offset, or NULL. */
const struct ex_index_point *ex_unpacked_point_upto(const struct info *,
    uint64_t at);

/* Unpack some pages.  False: damaged. */
bool ex_unpacked_unpack(struct ex_unpacked *, uint64_t start, uint64_t end);

/* The end of a run of pages that are all unpacked, or all not. */
uint64_t ex_unpacked_run_end(const struct info *, uint64_t at, uint64_t end);

/* Remember requested bytes.  False: they are already remembered, or there is no
   room. */
bool ex_unpacked_add_used(struct info *, uint64_t at, uint64_t len);
bool ex_unpacked_info_begin(struct ex_unpacked *, const struct ex_index *);

#endif
