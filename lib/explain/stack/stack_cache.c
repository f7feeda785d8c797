/*
 * stack_cache: a set-associative cache, indexed by what every unwinding depends
 * on.
 *
 *	hash of the caller's words, pc, sp
 *		|
 *	set  [ entry ][ entry ][ entry ][ entry ]	compared, newest first
 *
 *	entry: what all depend on | value and place of each read
 *
 * Callers that share pc and sp differ in their reads, and are in one set.
 */
#include "stack/stack_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "unwind/regs.h"

#define SETS 1024U		/* a power of two */
#define WAYS 4U
#define OFTEN 4U		/* times */

/* The words that are equal in all samples whose reads can be compared.  The
   caller's words follow. */
enum { SHAPE_ABI, SHAPE_MASK, SHAPE_LEN, SHAPE_ASKED, SHAPE_WORDS };

struct cached_stack {
	const struct ex_stack *stack;
	uint64_t hash;
	uint64_t shape[SHAPE_WORDS];
	size_t n;		/* words of the caller's */
	size_t nreads;
	bool by_sp;		/* as the reads' */
	size_t room;		/* of words that there is memory for */
	size_t times;		/* it was found */
	uint64_t word[];	/* the caller's, the reads' values, their
				   places */
};

struct set {
	struct cached_stack *entry[WAYS];	/* newest first; NULL: none */
};

struct ex_stack_cache {
	struct set set[SETS];
	const struct cached_stack *found;	/* last; NULL: none was */
};

struct ex_stack_cache *
ex_stack_cache_new(void)
{
	return calloc(1, sizeof(struct ex_stack_cache));
}

void
ex_stack_cache_clear(struct ex_stack_cache *memo)
{
	for (size_t i = 0; i < SETS; i++)
		for (size_t k = 0; k < WAYS; k++)
			free(memo->set[i].entry[k]);
	memset(memo, 0, sizeof(*memo));
}

void
ex_stack_cache_free(struct ex_stack_cache *memo)
{
	if (memo == NULL)
		return;
	ex_stack_cache_clear(memo);
	free(memo);
}

/* False: the sample is not unwound by its registers and stack. */
static bool
hash_sample(const uint64_t *word, size_t n, const struct ex_sample *sample,
    uint64_t *hash)
{
	uint64_t pc, sp;

	if (sample->stack == NULL ||
	    !ex_regs_frame(&sample->user, &pc, &sp))
		return false;
	*hash = ex_hash(ex_hash(0, pc), sp);
	for (size_t i = 0; i < n; i++)
		*hash = ex_hash(*hash, word[i]);
	return true;
}

static void
shape_of(const struct ex_sample *sample, uint64_t shape[SHAPE_WORDS])
{
	shape[SHAPE_ABI] = sample->user.abi;
	shape[SHAPE_MASK] = sample->user.mask;
	shape[SHAPE_LEN] = sample->stack_len;
	shape[SHAPE_ASKED] = sample->stack_asked;
}

/* Whether a sample has the shape of an entry, and would be read in the same way
   with the same values. */
static bool
is_same(const struct cached_stack *entry, const uint64_t *word, size_t n,
    const struct ex_sample *sample)
{
	const uint64_t *value = entry->word + n, *place = value + entry->nreads;
	uint64_t shape[SHAPE_WORDS];

	shape_of(sample, shape);
	if (entry->n != n ||
	    memcmp(entry->word, word, n * sizeof(*word)) != 0 ||
	    memcmp(entry->shape, shape, sizeof(shape)) != 0)
		return false;
	for (size_t i = 0; i < entry->nreads; i++)
		if (ex_read_value(sample, (uint32_t)place[i]) != value[i])
			return false;
	return true;
}

static struct cached_stack *
find(const struct set *set, uint64_t hash, const uint64_t *word, size_t n,
    const struct ex_sample *sample)
{
	for (size_t i = 0; i < WAYS && set->entry[i] != NULL; i++)
		if (set->entry[i]->hash == hash &&
		    is_same(set->entry[i], word, n, sample))
			return set->entry[i];
	return NULL;
}

const struct ex_stack *
ex_stack_cache_find(struct ex_stack_cache *memo, const uint64_t *word, size_t n,
    const struct ex_sample *sample)
{
	struct cached_stack *entry = NULL;
	uint64_t hash;

	if (hash_sample(word, n, sample, &hash))
		entry = find(&memo->set[hash % SETS], hash, word, n, sample);
	memo->found = entry;
	if (entry == NULL)
		return NULL;
	entry->times++;
	return entry->stack;
}

bool
ex_stack_cache_often(const struct ex_stack_cache *memo, struct ex_reads *reads)
{
	const struct cached_stack *entry = memo->found;
	const uint64_t *place;

	if (entry == NULL || entry->times < OFTEN ||
	    (entry->times & (entry->times - 1)) != 0)
		return false;
	place = entry->word + entry->n + entry->nreads;
	reads->n = (unsigned)entry->nreads;
	reads->by_sp = entry->by_sp;
	for (size_t i = 0; i < entry->nreads; i++)
		reads->place[i] = (uint32_t)place[i];
	return true;
}

/* Put a new entry first in the set.  The oldest is dropped, and its memory is
   used again if it is large enough.  NULL: out of memory; the oldest has been
   dropped. */
static struct cached_stack *
new_entry(struct set *set, size_t words)
{
	struct cached_stack *entry = set->entry[WAYS - 1];

	if (entry == NULL || entry->room < words) {
		free(entry);
		set->entry[WAYS - 1] = NULL;
		entry = malloc(sizeof(*entry) + words * sizeof(entry->word[0]));
		if (entry == NULL)
			return NULL;
		entry->room = words;
	}
	memmove(set->entry + 1, set->entry,
	    (WAYS - 1) * sizeof(set->entry[0]));
	return set->entry[0] = entry;
}

void
ex_stack_cache_put(struct ex_stack_cache *memo, const uint64_t *word, size_t n,
    const struct ex_sample *sample, const struct ex_reads *reads,
    const struct ex_stack *stack)
{
	struct cached_stack *entry;
	uint64_t hash;

	if (reads->n > EX_READS_MAX || !hash_sample(word, n, sample, &hash))
		return;
	entry = new_entry(&memo->set[hash % SETS], n + reads->n * 2);
	if (entry == NULL)
		return;
	memo->found = NULL;
	entry->stack = stack;
	entry->times = 0;
	entry->hash = hash;
	shape_of(sample, entry->shape);
	entry->n = n;
	entry->nreads = reads->n;
	entry->by_sp = reads->by_sp;
	memcpy(entry->word, word, n * sizeof(*word));
	for (size_t i = 0; i < reads->n; i++) {
		entry->word[n + i] = ex_read_value(sample, reads->place[i]);
		entry->word[n + reads->n + i] = reads->place[i];
	}
}
