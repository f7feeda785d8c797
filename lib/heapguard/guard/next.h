/* next: the allocator behind the guard, and other modules. */
#ifndef HG_NEXT_H
#define HG_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern struct hg_next {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	void *(*memalign)(size_t, size_t);
	size_t (*usable_size)(void *);
} hg_next __attribute__((visibility("hidden")));

/* Find the allocator.  Memory that dlsym(3) needs meanwhile comes from an
   arena. */
void hg_next_begin(void);

/* The next function of this name after ours, looked up once and kept.  It
   exists, because the program's call came here. */
void *hg_next_once(void **kept, const char *name);

/* Whether the program's calls to this name reach our function. */
bool hg_next_is_before(const char *name, const void *ours);

/* Whether the function of this name that is not ours is of the same library as
   the allocator. */
bool hg_next_is_allocators(const char *name);

/* The module of an address: its memory, load address and name.  False: there is
   none. */
struct hg_module {
	uint64_t start, end;
	uint64_t base;
	const char *name;
};
bool hg_frame_module(uint64_t pc, struct hg_module *);

/* Memory for calls before the allocator is known; whether a block is from
   there, and how many bytes of it may be read. */
void *hg_arena_alloc(size_t size, size_t align);
bool hg_arena_has(const void *);
size_t hg_arena_left(const void *);

/* Blocks that the allocator handed out before the guard was on, and gets back:
   constructors of other libraries may run first.  Result: the block. */
void *hg_early_note(void *);
bool hg_early_has(uint64_t block);
void hg_early_forget(uint64_t block);

#endif
