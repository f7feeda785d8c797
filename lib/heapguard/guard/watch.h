/*
 * watch: watches the bytes that another run of the command found damaged, from
 * the allocation of their block to its end.
 *
 * The watches are libwatchpoint's, which is loaded into the program with the
 * guard.  A block is identified by its callers, its size and its number.
 */
#ifndef HG_WATCH_H
#define HG_WATCH_H

#include <stdbool.h>

#include "guard/cfi.h"
#include "guard/ledger.h"

/* Determine which blocks of this program are wanted; call this once. */
void hg_watch_begin(void);

/* The number of the first block to look at of callers with this hash; 0:
   none. */
uint32_t hg_watch_wants(uint64_t callers);

/* Call these when a block that is due was allocated and has its canaries, and
   when one that HG_WANTED marks was freed and filled. */
void hg_watch_allocated(struct hg_entry *, uint64_t block);
void hg_watch_freed(struct hg_entry *, uint64_t block);

/* Call this before the guard or the allocator writes to a block that is so
   marked. */
void hg_watch_end(const struct hg_entry *);

/* Call this when a function that this frame called has had the kernel write so
   many bytes, or -1: where its writes are not watched, report what is watched
   among them and damaged now. */
void hg_watch_written(const void *, int64_t bytes,
    const struct hg_record *from);

/* Call this in a forked child. */
void hg_watch_forked(void);

/* Priorities: a block takes the watch of another one whose level is lower, or,
   if both are sampled, whose callers are more frequent. */
enum hg_level { HG_SAMPLED, HG_ALIKE, HG_EXACT };

/* Bytes of a block. */
struct hg_place {
	int64_t offset;		/* from its start */
	uint32_t len;		/* 1, 2, 4 or 8, and aligned so */
	enum hg_level level;
	uint32_t rank;		/* sampled: how often its callers were seen */
	uint32_t id;		/* identifies its hits; 0: its label does */
	const char *label;
};

/* Watch these bytes.  0; -EBUSY: no other watch gives way; -EAGAIN: too many
   watches were moved in this second; another -errno: the watch was refused,
   which is recorded. */
int hg_watch_set(const struct hg_entry *, uint64_t block,
    const struct hg_place *);

/* The id of a block that is watched; 0: it is not. */
uint32_t hg_watch_id(const struct hg_entry *);

#endif
