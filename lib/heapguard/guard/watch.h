/*
 * watch: watches the bytes that another run of the command found damaged, from
 * the allocation of their block to its end.
 *
 * The watches are libwatchpoint's, which is in the program beside the guard.  A
 * block is known by who allocated it, its size and its number.
 */
#ifndef HG_WATCH_H
#define HG_WATCH_H

#include <stdbool.h>

#include "guard/ledger.h"

/* Find out what is wanted of this program; once. */
void hg_watch_begin(void);

/* Which block of callers of this hash is to be looked at first; 0: none. */
uint32_t hg_watch_wants(uint64_t callers);

/* A block that is due is there, with its canaries; and one that HG_WANTED marks
   is freed and filled. */
void hg_watch_allocated(struct hg_entry *, uint64_t block);
void hg_watch_freed(struct hg_entry *, uint64_t block);

/* The guard, or the allocator, is about to write to one that is marked so. */
void hg_watch_end(const struct hg_entry *);

/* In the child of a fork. */
void hg_watch_forked(void);

/* What one has to be for its watch to take that of another: the first number,
   and of sampled ones that one is a rarer block of its callers. */
enum hg_level { HG_SAMPLED, HG_ALIKE, HG_EXACT };

/* Bytes of a block. */
struct hg_place {
	int64_t offset;		/* from its start */
	uint32_t len;		/* 1, 2, 4 or 8, and aligned so */
	enum hg_level level;
	uint32_t rank;		/* sampled: how often its callers were seen */
	uint32_t id;		/* by which its hits are known; 0: by its label
				   alone */
	const char *label;
};

/* Watch them.  0; -EBUSY: others do not give way, -EAGAIN: there were too many
   moves in this second; else it cannot be had, which is noted. */
int hg_watch_set(const struct hg_entry *, uint64_t block,
    const struct hg_place *);

/* The id of a block that is watched; 0: it is not. */
uint32_t hg_watch_id(const struct hg_entry *);

#endif
