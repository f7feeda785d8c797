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
#define BETWEEN (UINT64_C(1) << 20)	/* bytes from point to point, at
					   least */
#define POINTS_MAX 4096
#define USED_MAX 1024
#define KEPT_MAX (UINT64_C(64) << 20)	/* bytes of sections in an index */
#define AHEAD (UINT64_C(128) << 10)	/* bytes that go by at a time */
#define SEEN_SIZE (4 * EX_UNPACKED_PEEK)	/* of these so many are there to
						   be looked at */

enum { SECTIONS_MAX = 32, NAMES_SIZE = 1024, ZLIB_HEADER = 2 };

struct section {

	Elf_Scn *scn;		/* in the file */
	const char *name;
	uint64_t at;		/* its place in the image */
	uint64_t size;		/* bytes, as far as the file says */
	bool packed;
	bool late;		/* it is filled when somebody asks for it */
	bool asked;		/* late: somebody did */
	bool there;		/* as a whole */
};

/* zlib's state between two blocks of the stream. */
struct stream {
	z_stream z;
	bool begun;		/* it is to be ended */
	uint64_t pos;		/* bytes that came of it */
};

/* .debug_info, which is unpacked as it is asked for; or goes by, and what went
   by last can be looked at. */
struct info {
	struct section *section;
	const uint8_t *packed;	/* the stream, behind zlib's header */
	size_t packed_size;
	uint8_t *there;		/* a bit for each page that is unpacked */
	uint64_t end;		/* bytes that can be had: less than the file
				   says if it is damaged */
	struct stream fill;	/* fills the image */
	uint64_t solid;		/* from here on it is filled, up to fill.pos */
	uint64_t room, room_end;	/* where the image is writable */
	struct stream pass;	/* goes by; */
	uint8_t *seen;		/* what came of it last; NULL: nothing yet */
	uint64_t seen_at;	/* and where that begins in the section */
	struct ex_index_point *point;	/* where one can go on from, in order;
					   window: an address here */
	size_t npoints;
	uint8_t **window;	/* nwindows of them, of points; malloc'd */
	size_t nwindows, windows_cap;
	struct ex_index_bytes *used;	/* pages of units that were asked for;
					   at and len only */
	size_t nused, used_cap;
};

struct ex_unpacked {
	uint8_t *image;		/* mapped; readable, and writable as far as
				   something is there */
	uint64_t image_size;
	Elf *elf;		/* of the image */
	struct section section[SECTIONS_MAX];
	unsigned n;
	struct info info;
	struct libdeflate_decompressor *inflater;
};

uint64_t ex_unpacked_page_up(uint64_t n);

/* Make a part of the image writable. */
bool ex_unpacked_room(struct ex_unpacked *, uint64_t start, uint64_t end);

/* The same of one that will be written as a whole, and what is around it as far
   as it is given out in one piece. */
bool ex_unpacked_room_large(struct ex_unpacked *, uint64_t start, uint64_t end);

/* The same of a part of .debug_info; and more than that at a time if it is
   little. */
bool ex_unpacked_info_room(struct ex_unpacked *, uint64_t start, uint64_t end);

/* The packed bytes, behind zlib's header.  NULL: it has none. */
const uint8_t *ex_unpacked_stream_of(const struct section *, size_t *size);

/* Map what is in an index of it. */
bool ex_unpacked_map_bytes(struct ex_unpacked *, const struct section *,
    const struct ex_index *, const struct ex_index_bytes *);
bool ex_unpacked_is_there(const struct info *, uint64_t page);
void ex_unpacked_set_there(struct info *, uint64_t start, uint64_t end);
void ex_unpacked_stream_end(struct stream *);

/* Have a stream begin at a point; NULL: at its beginning. */
bool ex_unpacked_stream_begin(const struct info *, struct stream *,
    const struct ex_index_point *);

/* Have bytes come of a stream, up to a place in the section; to: where the next
   one goes.  False: it ends before. */
bool ex_unpacked_stream_upto(struct info *, struct stream *, uint64_t end,
    uint8_t *to, uint64_t from);

/* The last point at or before a place, or NULL. */
const struct ex_index_point *ex_unpacked_point_upto(const struct info *,
    uint64_t at);

/* Unpack some pages.  False: damaged. */
bool ex_unpacked_unpack(struct ex_unpacked *, uint64_t start, uint64_t end);

/* Where a run of pages that are there, or are not, ends. */
uint64_t ex_unpacked_run_end(const struct info *, uint64_t at, uint64_t end);

/* Remember that something was asked for.  False: it is remembered already, or
   there is no room. */
bool ex_unpacked_add_used(struct info *, uint64_t at, uint64_t len);
bool ex_unpacked_info_begin(struct ex_unpacked *, const struct ex_index *);

#endif
