/* sample: chooses the blocks to be watched.  See sample.h. */
#include "guard/sample.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "guard/callers.h"
#include "guard/programs.h"
#include "guard/watch.h"

enum { GAP = 2 * 16384 };	/* between two watched blocks of the same
				   callers, at most */

/* By the number of the callers. */
static struct site {
	_Atomic uint32_t counted;	/* blocks in the evidence's count */
	_Atomic bool watched, left_out;
} sites[HG_CALLERS_MAX];

static struct hg_evidence *
evidence(void)
{
	return hg_state.evidence;
}

/* --- the account --- */

/* Add the blocks since the last call, which may have been another thread's: the
   differences add up to the last number. */
static void
count_blocks(uint32_t callers, uint32_t number)
{
	const uint32_t before = atomic_exchange(&sites[callers].counted,
	    number);

	if (before == 0)
		(void)atomic_fetch_add(&evidence()->sites, 1);
	(void)atomic_fetch_add(&evidence()->blocks,
	    (uint64_t)(int64_t)(int32_t)(number - before));
}

void
hg_sample_leave_out(uint32_t callers)
{
	atomic_store(&sites[callers].left_out, true);
}

static void
count_watched(uint32_t callers)
{
	(void)atomic_fetch_add(&evidence()->watched, 1);
	if (!atomic_exchange(&sites[callers].watched, true))
		(void)atomic_fetch_add(&evidence()->sites_watched, 1);
}

void
hg_sample_account(void)
{
	const uint32_t n = hg_callers_made();

	if (evidence() == NULL || evidence()->sample == 0)
		return;
	for (uint32_t i = 1; i <= n; i++)
		if (hg_callers_blocks(i) != 0 &&
		    !atomic_load(&sites[i].left_out))
			count_blocks(i, hg_callers_blocks(i));
}

void
hg_sample_forked(void)
{
	const uint32_t n = hg_callers_made();

	for (uint32_t i = 1; i <= n && evidence()->sample != 0; i++)
		atomic_store(&sites[i].counted, hg_callers_blocks(i));
}

/* --- damage --- */

static uint32_t
count_wanted(void)
{
	const uint32_t n = atomic_load(&evidence()->nwanted);

	return n < HG_WANTED_MAX ? n : HG_WANTED_MAX;
}

/* The damage found in another block of these callers, whose writer has not been
   seen yet; NULL: none. */
static struct hg_wanted *
find(const struct hg_entry *e)
{
	const uint64_t callers = hg_callers_hash(e->alloc);

	for (uint32_t i = 0; i < count_wanted(); i++) {
		struct hg_wanted *w = &evidence()->wanted[i];

		if (atomic_load(&w->state) == HG_WANTED_NOW &&
		    w->identity.callers == callers &&
		    hg_program_is(&w->image, true))
			return w;
	}
	return NULL;
}

static bool
is_past(const struct hg_finding *f)
{
	return f->offset >= (int64_t)f->size;
}

/* Find earlier damage at the same place of a block of the same callers. */
static struct hg_wanted *
find_like(const struct hg_finding *f, int64_t offset)
{
	for (uint32_t i = 0; i < count_wanted(); i++) {
		struct hg_wanted *w = &evidence()->wanted[i];

		if (atomic_load(&w->state) != HG_NOT_YET &&
		    w->identity.callers == f->identity.callers &&
		    w->image.path == f->image.path && w->offset == offset &&
		    (w->past != 0) == is_past(f) &&
		    (w->freed != 0) == (f->kind == HG_USE_AFTER_FREE))
			return w;
	}
	return NULL;
}

/* Record damage.  NULL: there is no room. */
static struct hg_wanted *
make(const struct hg_finding *f, int64_t offset)
{
	const uint32_t i = atomic_fetch_add(&evidence()->nwanted, 1);
	struct hg_wanted *w = &evidence()->wanted[i];

	if (i >= HG_WANTED_MAX) {
		atomic_store(&evidence()->nwanted, HG_WANTED_MAX);
		return NULL;
	}
	w->image = f->image;
	w->identity = f->identity;
	w->offset = offset;
	w->past = is_past(f);
	w->freed = f->kind == HG_USE_AFTER_FREE;
	return w;
}

static void
have_all_due(uint64_t callers)
{
	const uint32_t n = hg_callers_made();

	for (uint32_t i = 1; i <= n; i++)
		if (hg_callers_hash(i) == callers)
			hg_callers_set_due(i, hg_callers_blocks(i));
}

void
hg_sample_damaged(const struct hg_finding *f)
{
	const int64_t offset = is_past(f) ? f->offset - (int64_t)f->size :
	    f->offset;
	struct hg_wanted *w;

	if (evidence()->sample == 0 || f->identity.callers == 0)
		return;
	if ((w = find_like(f, offset)) == NULL &&
	    (w = make(f, offset)) == NULL)
		return;
	if (f->watched != 0)
		atomic_store(&w->state, HG_SEEN);
	else if (atomic_load(&w->state) == HG_NOT_YET)
		atomic_store(&w->state, HG_WANTED_NOW);
	if (atomic_load(&w->state) == HG_WANTED_NOW)
		have_all_due(f->identity.callers);
}

/* --- blocks --- */

/* The largest length that a debug register takes at this address, at most
   `left'. */
static uint32_t
length(uint64_t at, uint64_t left)
{
	uint32_t len = 8;

	while (at % len != 0 || len > left)
		len /= 2;
	return len;
}

static void
put_label(char label[HG_LABEL_MAX], const struct hg_entry *e, int64_t offset,
    uint32_t id)
{
	const int64_t past = offset - (int64_t)hg_entry_size(e),
	    n = offset < 0 ? -offset : past < 0 ? offset : past;
	char text[2 * HG_LABEL_MAX], number[16];

	(void)snprintf(number, sizeof(number), " (%u)", id);
	if (past == 0)
		(void)snprintf(text, sizeof(text), "right past the end");
	else
		(void)snprintf(text, sizeof(text), "%lld byte%s %s",
		    (long long)n, n == 1 ? "" : "s", offset < 0 ?
		    "in front" : past < 0 ? "from the start" : "past the end");
	(void)snprintf(text + strlen(text), HG_LABEL_MAX,
	    " of %s %llu-byte block", hg_article(hg_entry_size(e)),
	    (unsigned long long)hg_entry_size(e));
	(void)snprintf(label, HG_LABEL_MAX, "%.*s%s",
	    (int)(HG_LABEL_MAX - 1 - strlen(number)), text, number);
}

static int
watch(struct hg_entry *e, uint64_t block, int64_t offset, enum hg_level level)
{
	char label[HG_LABEL_MAX];
	const bool inside = offset >= 0 && (uint64_t)offset < hg_entry_size(e);
	const struct hg_place place = {
		.offset = offset, .level = level, .rank = e->number,
		.len = length(block + (uint64_t)offset, inside ?
		    hg_entry_size(e) - (uint64_t)offset : 8),
		.id = atomic_fetch_add(&evidence()->watches, 1) + 1,
		.label = label,
	};
	int err;

	put_label(label, e, offset, place.id);
	err = hg_watch_set(e, block, &place);
	if (err == 0)
		e->flags |= HG_WANTED;
	return err;
}

/* The offset in this block that corresponds to the damage in another one. */
static int64_t
offset_in(const struct hg_entry *e, const struct hg_wanted *w)
{
	return w->offset + (w->past != 0 ? (int64_t)hg_entry_size(e) : 0);
}

/* xorshift is random enough: the blocks only have to differ from run to run. */
static uint32_t
random_number(void)
{
	static _Atomic uint32_t last = 2463534242;
	uint32_t n = atomic_load_explicit(&last, memory_order_relaxed);

	n ^= n << 13;
	n ^= n >> 17;
	n ^= n << 5;
	atomic_store_explicit(&last, n, memory_order_relaxed);
	return n;
}

/* The number of blocks until the next watched one, such that block n is chosen
   with a probability of about 1 in n. */
static uint32_t
gap(uint32_t number)
{
	const uint64_t next = ((uint64_t)number << 32) /
	    ((uint64_t)random_number() + 1);
	const uint32_t most = random_number() % GAP;

	return 1 + (next - number < most ? (uint32_t)(next - number) : most);
}

void
hg_sample_allocated(struct hg_entry *e, uint64_t block)
{
	const struct hg_wanted *w = find(e);
	uint32_t next = e->number + 1;
	int err = 0;

	count_blocks(e->alloc, e->number);
	if (w != NULL && w->freed != 0)
		e->flags |= HG_WANTED;
	else
		err = watch(e, block, w != NULL ? offset_in(e, w) :
		    (int64_t)hg_entry_size(e), w != NULL ? HG_ALIKE :
		    HG_SAMPLED);
	if (err == 0 && (w == NULL || w->freed == 0))
		count_watched(e->alloc);
	if (w == NULL)
		next = e->number + (err == -EAGAIN ? 1 + e->number / 4 :
		    gap(e->number));
	hg_callers_set_due(e->alloc, next);
}

void
hg_sample_freed(struct hg_entry *e, uint64_t block)
{
	const struct hg_wanted *w = find(e);

	if (hg_entry_size(e) == 0 || (e->flags & HG_REPORTED) != 0)
		return;
	if (w != NULL && w->freed != 0 &&
	    (w->past != 0 || w->offset < (int64_t)hg_entry_size(e)))
		(void)watch(e, block, offset_in(e, w), HG_ALIKE);
	else
		(void)watch(e, block, 0, HG_SAMPLED);
}
