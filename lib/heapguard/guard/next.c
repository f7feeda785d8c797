/* next: the allocator behind the guard.  See next.h. */
#include "guard/next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { ARENA = 64 << 10, EARLY = 1 << 14 };

struct hg_next hg_next;

/* The first 16 bytes are unused, because the guard may read in front of a
   block. */
static _Alignas(64) char arena[ARENA];
static _Atomic size_t used = 16;

static void *
symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

void *
hg_next_once(void **kept, const char *name)
{
	if (*kept == NULL && (*kept = symbol(name)) == NULL)
		abort();
	return *kept;
}

/* In a program that is linked at a fixed address and takes the address of a
   function, that address is the one of a stub in the program, which jumps to
   the first definition. */
bool
hg_next_is_before(const char *name, const void *ours)
{
	void *found = dlsym(RTLD_DEFAULT, name), *symbol = NULL;
	Dl_info info;

	return found == ours || (found != NULL && dladdr1(found, &info,
	    &symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
	    ((const ElfW(Sym) *)symbol)->st_shndx == SHN_UNDEF);
}

bool
hg_next_is_allocators(const char *name)
{
	Dl_info allocator, at;
	void *found = symbol(name);

	return found != NULL && dladdr(found, &at) != 0 &&
	    dladdr((void *)(uintptr_t)hg_next.malloc, &allocator) != 0 &&
	    at.dli_fbase == allocator.dli_fbase;
}

void
hg_next_begin(void)
{
	hg_next.calloc = (void *(*)(size_t, size_t))(uintptr_t)
	    symbol("calloc");
	hg_next.realloc = (void *(*)(void *, size_t))(uintptr_t)
	    symbol("realloc");
	hg_next.free = (void (*)(void *))(uintptr_t)symbol("free");
	/* not posix_memalign, because tcmalloc's calls memalign, which is
	   ours */
	hg_next.memalign = (void *(*)(size_t, size_t))(uintptr_t)
	    symbol("memalign");
	hg_next.usable_size = (size_t (*)(void *))(uintptr_t)
	    symbol("malloc_usable_size");
	/* last, because it shows that all are known */
	hg_next.malloc = (void *(*)(size_t))(uintptr_t)
	    symbol("malloc");
}

static _Atomic uint64_t early[EARLY];
static _Atomic uint32_t nearly;

void *
hg_early_note(void *p)
{
	const uint32_t i = p == NULL || atomic_load(&nearly) >= EARLY ? EARLY :
	    atomic_fetch_add(&nearly, 1);

	if (i < EARLY)
		atomic_store(&early[i], (uintptr_t)p);
	return p;
}

/* If there were more than the table holds, any block may be one of them. */
bool
hg_early_has(uint64_t block)
{
	const uint32_t n = atomic_load(&nearly);

	for (uint32_t i = 0; i < n && i < EARLY; i++)
		if (atomic_load(&early[i]) == block)
			return true;
	return n >= EARLY;
}

void
hg_early_forget(uint64_t block)
{
	const uint32_t n = atomic_load(&nearly);

	for (uint32_t i = 0; i < n && i < EARLY; i++) {
		uint64_t at = block;

		(void)atomic_compare_exchange_strong(&early[i], &at, 0);
	}
}

void *
hg_arena_alloc(size_t size, size_t align)
{
	size_t at, to;

	if (align < 16)
		align = 16;
	if (size > ARENA || align > ARENA)
		return NULL;
	at = atomic_load(&used);
	do {
		to = (at + align - 1) / align * align;
		if (to + size > ARENA)
			return NULL;
	} while (!atomic_compare_exchange_weak(&used, &at, to + size));
	return arena + to;
}

bool
hg_arena_has(const void *p)
{
	return (uintptr_t)p - (uintptr_t)arena < ARENA;
}

size_t
hg_arena_left(const void *p)
{
	return ARENA - ((uintptr_t)p - (uintptr_t)arena);
}

bool
hg_frame_module(uint64_t pc, struct hg_module *module)
{
	struct dl_find_object found;

	if (_dl_find_object((void *)(uintptr_t)pc, &found) != 0 ||
	    found.dlfo_link_map == NULL)
		return false;
	*module = (struct hg_module){
		(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end,
		found.dlfo_link_map->l_addr, found.dlfo_link_map->l_name,
	};
	return true;
}
