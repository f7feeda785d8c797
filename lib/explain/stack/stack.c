/*
 * stack: distinct backtraces, symbolized once.
 *
 * Overview: a sample whose unwinding would read what that of another read has
 * the same backtrace (stack_cache.h).  Otherwise it is unwound, and its
 * backtrace is first a key: addresses, and the process and generation that give
 * them a meaning.  A key seen before leads to its stack by one look-up.  A new
 * one is symbolized, and its frames lead to a stack that is there already (of a
 * forked child, of an earlier generation), or make one.
 *
 *	sample ------- same reads -----> stack
 *	   |                               ^
 *	  else -> key ------ known --------+
 *		   |                       |
 *		  new --> frames, id ------+  equal ones, or the new one
 *
 * Life-cycle: when stacks take too much memory, those that were not seen since
 * the last time are freed, or all if these are few; except those that somebody
 * holds.  Keys and the stack cache are dropped at the same time, and keys also
 * when there are far more of them than stacks (a process that maps code all the
 * time has many generations).
 */
#include "stack/stack.h"

#include <stdlib.h>
#include <string.h>

#include "space/space.h"
#include "stack/hot_stack.h"
#include "stack/stack_cache.h"
#include "insn/tail_call.h"
#include "space/jit.h"
#include "module/module_private.h"
#include "base/array.h"
#include "base/table.h"

#define USER_MAX 256		/* pcs of a backtrace */
#define KERNEL_MAX 128
#define KEYS_MAX (1U << 16)	/* kept however few the stacks are */
#define CHUNK_SIZE (64U * 1024)
#define LIMIT_USUAL ((size_t)128 << 20)	/* bytes of stacks */

/* Memory that is freed all at once. */
struct chunk {
	struct chunk *next;	/* filled before */
	size_t used, size;	/* bytes of data */
	_Alignas(max_align_t) char data[];
};

/* A backtrace and its frames. */
struct kept {
	struct ex_stack stack;	/* first */
	unsigned holders;
	bool seen;		/* again, since there was too little room */
	size_t size;
	struct ex_frame frame[];
};

/* A backtrace as addresses. */
struct stack_key {
	const struct ex_stack *stack;	/* what it is */
	size_t n;		/* words */
	uint64_t word[];
};

/* The words of a key that are known before the user's part is unwound.  The
   kernel's pcs follow, then those of the user, and how they end. */
enum {
	KEY_PROCESS, KEY_GENERATION, KEY_EDITION, KEY_FIRST_PC, KEY_SHAPE,
	KEY_PCS,
};

/* The pcs of a sample, innermost first, and how they are to be shown. */
struct pcs {
	struct ex_pc kernel[KERNEL_MAX], user[USER_MAX];
	unsigned nkernel, nuser;
	enum ex_end end;
	uint64_t first_pc;	/* as ex_stack_of's */
	bool after;
};

struct ex_stacks {
	struct ex_space *space;
	struct ex_table tails;	/* of ex_tail_find */
	struct ex_table stacks;	/* of struct kept, by id */
	size_t size, limit;	/* bytes of them, and at which some are freed */
	unsigned made;		/* how many were, so far */
	struct ex_table keys;	/* of struct stack_key, by a hash of it */
	struct ex_stack_cache *memo;
	const struct ex_stack *found;	/* in it; NULL: it was not, or it is not
					   the user's alone */
	struct chunk *key_memory;
	struct ex_frame *frame;	/* of the stack being made */
	unsigned nframes;
	size_t frames_cap;
	uint64_t id;		/* of the same, so far */
	bool unnamed;		/* the same: of code outside of all modules a
				   name may come yet */
	struct pcs pcs;		/* of the sample at hand */
	struct ex_reads reads;	/* of their unwinding */
	uint64_t word[KEY_PCS + KERNEL_MAX + USER_MAX + 1];	/* their key */
};

static void *
chunk_alloc(struct chunk **list, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	struct chunk *chunk = *list;
	void *memory;

	size = (size + align - 1) / align * align;
	if (chunk == NULL || size > chunk->size - chunk->used) {
		const size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;

		chunk = malloc(sizeof(*chunk) + room);
		if (chunk == NULL)
			return NULL;
		chunk->next = *list;
		chunk->used = 0;
		chunk->size = room;
		*list = chunk;
	}
	memory = chunk->data + chunk->used;
	chunk->used += size;
	return memory;
}

static void
chunks_free(struct chunk **list)
{
	struct chunk *chunk;

	while ((chunk = *list) != NULL) {
		*list = chunk->next;
		free(chunk);
	}
}

static uint64_t
hash_text(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = ex_hash(hash, (unsigned char)*text);
	return ex_hash(hash, 0);
}

static void
forget_keys(struct ex_stacks *stacks)
{
	chunks_free(&stacks->key_memory);
	ex_table_free(&stacks->keys, NULL);
}

static size_t limit = LIMIT_USUAL;

struct ex_stacks *
ex_stacks_new(struct ex_space *space)
{
	struct ex_stacks *stacks = calloc(1, sizeof(*stacks));

	if (stacks == NULL)
		return NULL;
	if ((stacks->memo = ex_stack_cache_new()) == NULL) {
		free(stacks);
		return NULL;
	}
	stacks->space = space;
	stacks->limit = limit;
	return stacks;
}

void
ex_stacks_limit(size_t bytes)
{
	limit = bytes;
}

void
ex_stacks_free(struct ex_stacks *stacks)
{
	if (stacks == NULL)
		return;
	ex_stack_cache_free(stacks->memo);
	ex_table_free(&stacks->tails, free);
	forget_keys(stacks);
	ex_table_free(&stacks->stacks, free);
	free(stacks->frame);
	free(stacks);
}

/* The highest bits of a canonical address are equal, so two of them are
   free. */
static size_t
put_pcs(uint64_t *word, const struct ex_pc *pc, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		word[i] = pc[i].pc << 2 | (uint64_t)pc[i].exact << 1 |
		    (uint64_t)pc[i].signal;
	return n;
}

/* Write the part of the key that is known before unwinding.  Result: the number
   of words. */
static size_t
begin_key(struct ex_stacks *stacks, struct ex_process *process)
{
	const struct ex_jit *jit = ex_process_jit(process);
	const struct pcs *pcs = &stacks->pcs;
	uint64_t *word = stacks->word;

	word[KEY_EDITION] = jit == NULL ? 0 : ex_jit_edition(jit);
	word[KEY_PROCESS] = (uintptr_t)process;
	word[KEY_GENERATION] = ex_process_generation(process);
	word[KEY_FIRST_PC] = pcs->first_pc;
	word[KEY_SHAPE] = (uint64_t)pcs->nkernel << 1 | (uint64_t)pcs->after;
	return KEY_PCS + put_pcs(word + KEY_PCS, pcs->kernel, pcs->nkernel);
}

/* Add the rest to the first n words.  Result: the number of all words. */
static size_t
end_key(struct ex_stacks *stacks, size_t n)
{
	const struct pcs *pcs = &stacks->pcs;

	n += put_pcs(stacks->word + n, pcs->user, pcs->nuser);
	stacks->word[n] = pcs->end;
	return n + 1;
}

static const struct ex_stack *
find_key(const struct ex_stacks *stacks, size_t n, uint64_t hash)
{
	const struct stack_key *key;
	size_t i = 0;

	while ((key = ex_table_next(&stacks->keys, hash, &i)) != NULL)
		if (key->n == n && memcmp(key->word, stacks->word,
		    n * sizeof(key->word[0])) == 0)
			return key->stack;
	return NULL;
}

/* Remember the current key, if there is memory. */
static void
add_key(struct ex_stacks *stacks, size_t n, uint64_t hash,
    const struct ex_stack *stack)
{
	struct stack_key *key;

	if (stacks->keys.n >= KEYS_MAX &&
	    stacks->keys.n / 4 >= stacks->stacks.n)
		forget_keys(stacks);
	if (!ex_table_reserve(&stacks->keys, 1))
		return;
	key = chunk_alloc(&stacks->key_memory,
	    sizeof(*key) + n * sizeof(key->word[0]));
	if (key == NULL)
		return;
	key->stack = stack;
	key->n = n;
	memcpy(key->word, stacks->word, n * sizeof(key->word[0]));
	ex_table_put(&stacks->keys, hash, key);
}

/* Room for n more frames; NULL: out of memory. */
static struct ex_frame *
more_frames(struct ex_stacks *stacks, unsigned n)
{
	if (!ex_array_room(&stacks->frame, stacks->nframes, n,
	    &stacks->frames_cap, sizeof(*stacks->frame), SIZE_MAX))
		return NULL;
	stacks->nframes += n;
	return stacks->frame + stacks->nframes - n;
}

/* Of an address without a name, only the offset in its page is the same in each
   process and on each host. */
static uint64_t
unnamed_id(uint64_t id, uint64_t pc)
{
	return ex_hash(ex_hash(id, 0), pc % 4096);
}

static bool
add_kernel_frame(struct ex_stacks *stacks, const struct ex_pc *pc)
{
	struct ex_frame *frame = more_frames(stacks, 1);
	uint64_t offset = 0;

	if (frame == NULL)
		return false;
	*frame = (struct ex_frame){ .pc = pc->pc, .kernel = true };
	if (ex_space_kernel(stacks->space))
		frame->function = ex_kernel_symbol(pc->pc - !pc->exact,
		    &offset);
	if (frame->function == NULL) {
		stacks->id = unnamed_id(stacks->id, pc->pc);
		return true;
	}
	frame->offset = offset + !pc->exact;
	stacks->id = ex_hash(hash_text(stacks->id, frame->function),
	    frame->offset);
	return true;
}

/* Add the frame of a user pc outside all modules, which may be in code that the
   program generated. */
static bool
add_other_frame(struct ex_stacks *stacks, struct ex_process *process,
    const struct ex_pc *pc)
{
	struct ex_frame *frame = more_frames(stacks, 1);
	struct ex_jit *jit = ex_process_jit(process);
	uint64_t start = 0;

	if (frame == NULL)
		return false;
	*frame = (struct ex_frame){ .pc = pc->pc, .signal = pc->signal };
	if (jit != NULL)
		frame->function = ex_jit_find(jit, pc->pc - !pc->exact,
		    &start);
	if (frame->function == NULL) {
		stacks->unnamed = true;
		stacks->id = unnamed_id(stacks->id, pc->pc);
		return true;
	}
	frame->module = ex_jit_module(jit);
	frame->jit = true;
	frame->vaddr = pc->pc;
	frame->offset = pc->pc - start;
	stacks->id = ex_hash(hash_text(stacks->id, frame->function),
	    frame->offset);
	return true;
}

/* Add the frames of a user pc: the function, and those that were inlined
   there. */
static bool
add_user_frames(struct ex_stacks *stacks, struct ex_process *process,
    const struct ex_pc *pc)
{
	const struct ex_frames *frames;
	struct ex_module *module;
	struct ex_frame *frame;
	const char *build_id;
	uint64_t vaddr;
	unsigned i;

	module = ex_process_module(process, pc->pc - !pc->exact, &vaddr);
	if (module == NULL)
		return add_other_frame(stacks, process, pc);
	frames = ex_symbol_frames(module, vaddr + !pc->exact, vaddr);
	frame = frames != NULL ? more_frames(stacks, frames->n) : NULL;
	if (frame == NULL)
		return false;
	for (i = 0; i < frames->n; i++) {
		frame[i] = frames->frame[i];
		frame[i].pc = pc->pc;
		frame[i].module = module;
		frame[i].vaddr = vaddr + !pc->exact;
		frame[i].signal = pc->signal;
	}
	build_id = ex_module_build_id(module);
	stacks->id = hash_text(stacks->id,
	    *build_id != '\0' ? build_id : ex_module_name(module));
	stacks->id = ex_hash(ex_hash(stacks->id, vaddr), pc->exact);
	return true;
}

/* Add the frames of a function that ended in a tail call, and so has left
   nothing on the stack. */
static bool
add_tail_frames(struct ex_stacks *stacks, struct ex_process *process,
    const struct ex_tail_caller *caller)
{
	const struct ex_pc at = { .exact = true,
	    .pc = caller->jump != 0 ? caller->jump : caller->entry };
	const unsigned before = stacks->nframes;
	struct ex_frame *frame;

	if (!add_user_frames(stacks, process, &at))
		return false;
	if (caller->jump == 0) {	/* the function's alone */
		stacks->frame[before] = stacks->frame[stacks->nframes - 1];
		stacks->nframes = before + 1;
	}
	for (unsigned i = before; i < stacks->nframes; i++) {
		frame = &stacks->frame[i];
		frame->tail = true;
		if (caller->jump != 0)
			continue;
		frame->pc = 0;
		frame->line = frame->column = 0;
	}
	stacks->id = ex_hash(stacks->id, caller->jump != 0);
	return true;
}

/* Add the functions that are missing between two of the user's pcs. */
static bool
add_missing(struct ex_stacks *stacks, struct ex_process *process,
    const struct ex_pc *pc, const struct ex_pc *caller)
{
	const unsigned before = stacks->nframes;
	const struct ex_tail *tail;
	bool pointer;

	if (pc->signal || caller->exact)
		return true;
	tail = ex_tail_find(&stacks->tails, process, pc->pc - !pc->exact,
	    caller->pc, &pointer);
	if (before > 0)
		stacks->frame[before - 1].pointer = pointer;
	for (unsigned i = 0; tail != NULL && i < tail->n; i++) {
		if (!add_tail_frames(stacks, process, &tail->caller[i]))
			return false;
	}
	if (tail != NULL && tail->gap)
		stacks->frame[before].gap = true;
	return true;
}

/* Replace the first of the user's pcs by the one to show. */
static void
set_first(struct pcs *pcs)
{
	struct ex_pc *first = pcs->user;

	if (pcs->first_pc != 0) {
		first->pc = pcs->first_pc;
		first->exact = true;
	} else if (pcs->after) {
		first->exact = false;
	}
}

/* Name the current pcs.  False: out of memory. */
static bool
symbolize(struct ex_stacks *stacks, struct ex_process *process)
{
	struct pcs *pcs = &stacks->pcs;
	unsigned i;

	stacks->nframes = 0;
	stacks->unnamed = false;
	stacks->id = ex_hash(0, pcs->end + 1);
	for (i = 0; i < pcs->nkernel; i++)
		if (!add_kernel_frame(stacks, &pcs->kernel[i]))
			return false;
	set_first(pcs);
	for (i = 0; i < pcs->nuser; i++) {
		if (!add_user_frames(stacks, process, &pcs->user[i]) ||
		    (i + 1 < pcs->nuser && !add_missing(stacks, process,
		    &pcs->user[i], &pcs->user[i + 1])))
			return false;
	}
	return true;
}

static bool
same_frame(const struct ex_frame *a, const struct ex_frame *b)
{
	return a->pc == b->pc && a->module == b->module &&
	    a->vaddr == b->vaddr && a->line == b->line &&
	    a->inlined == b->inlined && a->signal == b->signal &&
	    a->tail == b->tail && a->gap == b->gap && a->jit == b->jit &&
	    (!a->jit || strcmp(a->function, b->function) == 0);
}

static bool
same_stack(const struct ex_stack *a, const struct ex_stack *b)
{
	unsigned i;

	if (a->n != b->n || a->end != b->end)
		return false;
	for (i = 0; i < a->n; i++)
		if (!same_frame(&a->frame[i], &b->frame[i]))
			return false;
	return true;
}

static const struct ex_stack *
again(const struct ex_stack *stack)
{
	((struct kept *)(uintptr_t)stack)->seen = true;
	return stack;
}

/* Free stacks that nobody holds, either all or those that were not seen again,
   and drop the keys and the cache.  Without memory for another table, nothing
   is freed. */
static void
free_stacks(struct ex_stacks *stacks, bool seen_too)
{
	struct ex_table left = {0};
	struct kept *kept;
	size_t i = 0;

	if (!ex_table_reserve(&left, stacks->stacks.n))
		return;
	forget_keys(stacks);
	ex_stack_cache_clear(stacks->memo);
	while ((kept = ex_table_each(&stacks->stacks, &i)) != NULL) {
		if (kept->holders > 0 || (kept->seen && !seen_too)) {
			kept->seen = false;
			ex_table_put(&left, kept->stack.id, kept);
			continue;
		}
		stacks->size -= kept->size;
		free(kept);
	}
	ex_table_free(&stacks->stacks, NULL);
	stacks->stacks = left;
}

/* Make room for one more stack.  There is no limit for stacks that are held. */
static void
make_room(struct ex_stacks *stacks, size_t size)
{
	if (stacks->size + size <= stacks->limit)
		return;
	free_stacks(stacks, false);
	if (stacks->size > stacks->limit / 2)
		free_stacks(stacks, true);
	stacks->limit = limit > 2 * stacks->size ? limit : 2 * stacks->size;
}

/* Add a copy of a stack that is equal to no other. */
static struct ex_stack *
add_stack(struct ex_stacks *stacks, const struct ex_stack *wanted,
    unsigned variant)
{
	const size_t frames = wanted->n * sizeof(wanted->frame[0]);
	const size_t size = sizeof(struct kept) + frames;
	struct kept *kept;

	make_room(stacks, size);
	if (!ex_table_reserve(&stacks->stacks, 1) ||
	    (kept = malloc(size)) == NULL)
		return NULL;
	*kept = (struct kept){.stack = *wanted, .size = size};
	if (frames > 0)
		memcpy(kept->frame, wanted->frame, frames);
	kept->stack.frame = kept->frame;
	kept->stack.holders = &kept->holders;
	kept->stack.variant = variant;
	kept->stack.index = stacks->made++;
	stacks->size += size;
	ex_table_put(&stacks->stacks, kept->stack.id, kept);
	return &kept->stack;
}

/* The kept stack that is equal to this one, or else a copy of it. */
static const struct ex_stack *
intern(struct ex_stacks *stacks, const struct ex_stack *wanted)
{
	const struct ex_stack *there;
	unsigned variant = 0;
	size_t i = 0;

	while ((there = ex_table_next(&stacks->stacks, wanted->id, &i)) !=
	    NULL) {
		if (same_stack(there, wanted))
			return again(there);
		if (variant <= there->variant)
			variant = there->variant + 1;
	}
	return add_stack(stacks, wanted, variant);
}

/* The stack of the current pcs, whose key was not known. */
static const struct ex_stack *
new_stack(struct ex_stacks *stacks, struct ex_process *process)
{
	struct ex_stack stack = { 0 };

	if (!symbolize(stacks, process))
		return NULL;
	stack.id = stacks->id != 0 ? stacks->id : 1;
	stack.n = stacks->nframes;
	stack.frame = stacks->frame;
	stack.end = stacks->pcs.end;
	stack.unnamed = stacks->unnamed;
	for (unsigned i = 0; i < stack.n; i++)
		stack.gap |= stack.frame[i].gap;
	return intern(stacks, &stack);
}

static uint64_t
hash_key(const struct ex_stacks *stacks, size_t n)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < n; i++)
		hash = ex_hash(hash, stacks->word[i]);
	return hash;
}

/* The stack with this key, unless names for it may have become known since. */
static const struct ex_stack *
known_stack(const struct ex_stacks *stacks, struct ex_process *process,
    size_t n, uint64_t hash)
{
	const struct ex_stack *stack = find_key(stacks, n, hash);
	struct ex_jit *jit = ex_process_jit(process);
	uint64_t edition;

	if (stack == NULL || !stack->unnamed || jit == NULL)
		return stack;
	edition = ex_jit_edition(jit);
	ex_jit_look(jit);
	return ex_jit_edition(jit) == edition ? stack : NULL;
}

/* The stack with the current key of n words; it is made if there is none. */
static const struct ex_stack *
stack_of_key(struct ex_stacks *stacks, struct ex_process *process, size_t n)
{
	const uint64_t hash = hash_key(stacks, n);
	const struct ex_stack *stack = known_stack(stacks, process, n, hash);

	if (stack != NULL)
		return again(stack);
	/* new names have changed the first of the pcs, or the key */
	stack = new_stack(stacks, process);
	if (stack != NULL)
		add_key(stacks, n, hash, stack);
	return stack;
}

const struct ex_stack *
ex_stack_of(struct ex_stacks *stacks, struct ex_process *process,
    const struct ex_sample *sample, uint64_t first_pc, bool after)
{
	struct pcs *pcs = &stacks->pcs;
	const struct ex_stack *stack;
	size_t n;

	pcs->first_pc = first_pc;
	pcs->after = after;
	pcs->nkernel = ex_unwind_kernel(sample, pcs->kernel, KERNEL_MAX);
	n = begin_key(stacks, process);
	stack = ex_stack_cache_find(stacks->memo, stacks->word, n, sample);
	stacks->found = pcs->nkernel == 0 ? stack : NULL;
	if (stack != NULL)
		return again(stack);
	pcs->nuser = ex_unwind_reads(process, sample, pcs->user, USER_MAX,
	    &pcs->end, &stacks->reads);
	stack = stack_of_key(stacks, process, end_key(stacks, n));
	if (stack != NULL && !stack->unnamed)
		ex_stack_cache_put(stacks->memo, stacks->word, n, sample,
		    &stacks->reads, stack);
	return stack;
}

const struct ex_stack *
ex_stack_of_callers(struct ex_stacks *stacks, struct ex_process *process,
    const uint64_t *pc, unsigned n, bool whole)
{
	struct pcs *pcs = &stacks->pcs;

	pcs->first_pc = 0;
	pcs->after = true;
	pcs->nkernel = 0;
	pcs->nuser = n < EX_CALLERS_MAX ? n : EX_CALLERS_MAX;
	for (unsigned i = 0; i < pcs->nuser; i++)
		pcs->user[i] = (struct ex_pc){.pc = pc[i], .exact = i == 0};
	pcs->end = whole ? EX_END_OUTERMOST : EX_END_DEPTH;
	return stack_of_key(stacks, process, end_key(stacks,
	    begin_key(stacks, process)));
}

bool
ex_stack_often(struct ex_stacks *stacks, const struct ex_sample *sample,
    struct wp_known_stack *known)
{
	return stacks->found != NULL &&
	    stacks->found->end == EX_END_OUTERMOST &&
	    ex_stack_cache_often(stacks->memo, &stacks->reads) &&
	    ex_hot_stack_make(sample, &stacks->reads, known);
}
