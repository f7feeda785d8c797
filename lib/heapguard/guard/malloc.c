/*
 * malloc: the functions that allocate, in place of the allocator's own.
 *
 * Each determines its caller from its own frame, so none may be inlined or call
 * another one.  Where blocks are not guarded (before the guard is ready, and in
 * programs that are left alone), calls are passed to the allocator.
 */
#include "guard/malloc.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "guard/next.h"
#include "guard/state.h"

#define EXPORTED __attribute__((visibility("default")))

static _Atomic bool finding;

/* Find the allocator, if that has not been done.  False: it is being looked
   for. */
static bool
is_ready(void)
{
	if (hg_next.malloc != NULL)
		return true;
	if (atomic_exchange(&finding, true))
		return false;
	hg_next_begin();
	return hg_next.malloc != NULL;
}

/* Allocate a block that is not guarded. */
static void *
plain(size_t size, size_t align)
{
	if (!is_ready())
		return hg_arena_alloc(size, align);
	return hg_early_note(align <= 16 ? hg_next.malloc(size) :
	    hg_next.memalign(align, size));
}

static void *
allocate(size_t size, size_t align, const struct hg_record *from)
{
	return hg_state.on ? hg_alloc(size, align, HG_MALLOC, from) :
	    plain(size, align);
}

static inline __attribute__((always_inline)) void
give_back(void *p, const struct hg_record *from)
{
	if (p == NULL)
		return;
	if (hg_state.on)
		hg_free(p, HG_MALLOC, from);
	else if (!hg_arena_has(p) && is_ready())
		hg_next.free(p);
}

EXPORTED void *
malloc(size_t size)
{
	return allocate(size, 0, HG_CALLER);
}

EXPORTED void
free(void *p)
{
	give_back(p, HG_CALLER);
}

EXPORTED void *
calloc(size_t n, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	if (hg_state.on)
		return hg_zeroed(all, HG_CALLER);
	return is_ready() ? hg_early_note(hg_next.calloc(n, size)) :
	    hg_arena_alloc(all, 0);
}

static void *
from_arena(const void *p, size_t size, const struct hg_record *from)
{
	const size_t left = hg_arena_left(p);
	void *to = allocate(size, 0, from);

	if (to != NULL)
		memcpy(to, p, size < left ? size : left);
	return to;
}

static void *
reallocate(void *p, size_t size, const struct hg_record *from)
{
	if (p == NULL)
		return allocate(size, 0, from);
	if (hg_arena_has(p))
		return from_arena(p, size, from);
	if (!hg_state.on)
		return is_ready() ? hg_early_note(hg_next.realloc(p, size)) :
		    NULL;
	if (size == 0) {		/* as glibc does */
		hg_free(p, HG_MALLOC, from);
		return NULL;
	}
	return hg_realloc(p, size, from);
}

EXPORTED void *
realloc(void *p, size_t size)
{
	return reallocate(p, size, HG_CALLER);
}

EXPORTED void *
reallocarray(void *p, size_t n, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return reallocate(p, all, HG_CALLER);
}

EXPORTED int
posix_memalign(void **out, size_t align, size_t size)
{
	const int saved = errno;
	void *p;

	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	p = allocate(size, align, HG_CALLER);
	errno = saved;
	if (p == NULL)
		return ENOMEM;
	*out = p;
	return 0;
}

/* Round up to a power of two, as glibc does. */
static size_t
rounded(size_t align)
{
	size_t n = 16;

	while (n < align && n < (size_t)1 << 40)
		n *= 2;
	return n;
}

EXPORTED void *
aligned_alloc(size_t align, size_t size)
{
	return allocate(size, rounded(align), HG_CALLER);
}

EXPORTED void *
memalign(size_t align, size_t size)
{
	return allocate(size, rounded(align), HG_CALLER);
}

EXPORTED void *
valloc(size_t size)
{
	return allocate(size, (size_t)getpagesize(), HG_CALLER);
}

EXPORTED void *
pvalloc(size_t size)
{
	const size_t page = (size_t)getpagesize();

	return allocate((size + page - 1) / page * page, page, HG_CALLER);
}

EXPORTED size_t
malloc_usable_size(void *p)
{
	size_t size = 0;

	if (p == NULL)
		return 0;
	if (hg_arena_has(p))
		return 0;
	if (hg_state.on && ((size = hg_size(p)) > 0 ||
	    !hg_is_unguarded((uintptr_t)p)))
		return size;
	return is_ready() && hg_next.usable_size != NULL ?
	    hg_next.usable_size(p) : 0;
}

/* --- other names of these functions --- */

void cfree(void *);
EXPORTED void
cfree(void *p)
{
	give_back(p, HG_CALLER);
}

void free_sized(void *, size_t);
EXPORTED void
free_sized(void *p, size_t size)
{
	(void)size;
	give_back(p, HG_CALLER);
}

void free_aligned_sized(void *, size_t, size_t);
EXPORTED void
free_aligned_sized(void *p, size_t align, size_t size)
{
	(void)align;
	(void)size;
	give_back(p, HG_CALLER);
}

/* jemalloc's flags: the lowest six bits are the logarithm of the alignment, and
   one bit asks for a zeroed block. */
enum { MALLOCX_ALIGN = 0x3f, MALLOCX_ZERO = 0x40 };

static void *
allocate_x(size_t size, int flags, const struct hg_record *from)
{
	const size_t align = (size_t)1 << (flags & MALLOCX_ALIGN);
	void *p = allocate(size, align > 16 ? align : 0, from);

	if (p != NULL && (flags & MALLOCX_ZERO) != 0)
		memset(p, 0, size);
	return p;
}

void *mallocx(size_t, int);
EXPORTED void *
mallocx(size_t size, int flags)
{
	return allocate_x(size, flags, HG_CALLER);
}

void *rallocx(void *, size_t, int);
EXPORTED void *
rallocx(void *p, size_t size, int flags)
{
	const size_t before = malloc_usable_size(p);
	char *to = allocate_x(size, flags, HG_CALLER);

	if (to == NULL)
		return NULL;
	memcpy(to, p, before < size ? before : size);
	give_back(p, HG_CALLER);
	return to;
}

/* No block is resized in place. */
size_t xallocx(void *, size_t, size_t, int);
EXPORTED size_t
xallocx(void *p, size_t size, size_t extra, int flags)
{
	(void)size;
	(void)extra;
	(void)flags;
	return malloc_usable_size(p);
}

/* The usable size of a block is the requested one. */
size_t nallocx(size_t, int);
EXPORTED size_t
nallocx(size_t size, int flags)
{
	(void)flags;
	return size > PTRDIFF_MAX ? 0 : size;
}

size_t sallocx(const void *, int);
EXPORTED size_t
sallocx(const void *p, int flags)
{
	(void)flags;
	return malloc_usable_size((void *)(uintptr_t)p);
}

void dallocx(void *, int);
EXPORTED void
dallocx(void *p, int flags)
{
	(void)flags;
	give_back(p, HG_CALLER);
}

void sdallocx(void *, size_t, int);
EXPORTED void
sdallocx(void *p, size_t size, int flags)
{
	(void)size;
	(void)flags;
	give_back(p, HG_CALLER);
}

/* tcmalloc has this function; in another library the name may mean something
   else. */
size_t malloc_size(void *);
EXPORTED size_t
malloc_size(void *p)
{
	static void *kept;

	return hg_next_is_allocators("malloc_size") ? malloc_usable_size(p) :
	    ((__typeof__(malloc_size) *)(uintptr_t)hg_next_once(&kept,
	    "malloc_size"))(p);
}

size_t MallocExtension_GetEstimatedAllocatedSize(size_t);
EXPORTED size_t
MallocExtension_GetEstimatedAllocatedSize(size_t size)
{
	return size;
}

#define SAME(name, as) __asm__(".globl " #name "\n.set " #name ", " #as)
SAME(tc_malloc, malloc);
SAME(tc_malloc_skip_new_handler, malloc);
SAME(tc_free, free);
SAME(tc_calloc, calloc);
SAME(tc_realloc, realloc);
SAME(tc_cfree, cfree);
SAME(tc_free_sized, free_sized);
SAME(tc_memalign, memalign);
SAME(tc_posix_memalign, posix_memalign);
SAME(tc_valloc, valloc);
SAME(tc_pvalloc, pvalloc);
SAME(tc_malloc_size, malloc_usable_size);
SAME(tc_nallocx, nallocx);
SAME(MallocExtension_GetAllocatedSize, malloc_usable_size);
