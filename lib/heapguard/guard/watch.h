/*
 * watch: the bytes that another run of the command found damaged, watched from
 * the moment when their block is there until it ends.
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

/* Whether a block whose callers have this hash may be. */
bool hg_watch_wants(uint64_t callers);

/* A block of such callers is there, with its canaries; and one that HG_WANTED
   marks is freed and filled. */
void hg_watch_allocated(struct hg_entry *, uint64_t block);
void hg_watch_freed(struct hg_entry *, uint64_t block);

/* The guard, or the allocator, is about to write to one that is marked so. */
void hg_watch_end(const struct hg_entry *);

/* In the child of a fork. */
void hg_watch_forked(void);

#endif
