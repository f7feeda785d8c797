/*
 * cxx: operators new and delete in all their forms.
 *
 * If a program defines some of them itself, all calls are passed to the C++
 * library, which calls the program's.  The operators of jemalloc and tcmalloc
 * do not: a block of an operator that the program lacks may be freed by one
 * that it has, which calls free.  So such blocks are guarded as blocks of
 * malloc.
 *
 * A call for which there is no memory is passed on too, because what follows (a
 * handler, an exception) is up to C++.
 */
#include <errno.h>
#include <stdint.h>

#include "guard/ledger.h"
#include "guard/block.h"
#include "guard/malloc.h"
#include "guard/next.h"
#include "guard/state.h"

#define EXPORTED __attribute__((visibility("default")))

/* The operators, by their mangled names. */
EXPORTED void *hg_new(size_t) __asm__("_Znwm");
EXPORTED void *hg_new_array(size_t) __asm__("_Znam");
EXPORTED void *hg_new_nothrow(size_t, const void *)
    __asm__("_ZnwmRKSt9nothrow_t");
EXPORTED void *hg_new_array_nothrow(size_t, const void *)
    __asm__("_ZnamRKSt9nothrow_t");
EXPORTED void *hg_new_aligned(size_t, size_t)
    __asm__("_ZnwmSt11align_val_t");
EXPORTED void *hg_new_array_aligned(size_t, size_t)
    __asm__("_ZnamSt11align_val_t");
EXPORTED void *hg_new_aligned_nothrow(size_t, size_t, const void *)
    __asm__("_ZnwmSt11align_val_tRKSt9nothrow_t");
EXPORTED void *hg_new_array_aligned_nothrow(size_t, size_t, const void *)
    __asm__("_ZnamSt11align_val_tRKSt9nothrow_t");

/* The operators' other arguments do not matter. */
#define DELETES(x) \
	x(hg_delete, "_ZdlPv", HG_NEW) \
	x(hg_delete_sized, "_ZdlPvm", HG_NEW) \
	x(hg_delete_nothrow, "_ZdlPvRKSt9nothrow_t", HG_NEW) \
	x(hg_delete_aligned, "_ZdlPvSt11align_val_t", HG_NEW) \
	x(hg_delete_sized_aligned, "_ZdlPvmSt11align_val_t", HG_NEW) \
	x(hg_delete_aligned_nothrow, \
	    "_ZdlPvSt11align_val_tRKSt9nothrow_t", HG_NEW) \
	x(hg_delete_array, "_ZdaPv", HG_NEW_ARRAY) \
	x(hg_delete_array_sized, "_ZdaPvm", HG_NEW_ARRAY) \
	x(hg_delete_array_nothrow, "_ZdaPvRKSt9nothrow_t", HG_NEW_ARRAY) \
	x(hg_delete_array_aligned, "_ZdaPvSt11align_val_t", HG_NEW_ARRAY) \
	x(hg_delete_array_sized_aligned, "_ZdaPvmSt11align_val_t", \
	    HG_NEW_ARRAY) \
	x(hg_delete_array_aligned_nothrow, \
	    "_ZdaPvSt11align_val_tRKSt9nothrow_t", HG_NEW_ARRAY)

static bool
is_ours(void)
{
	return hg_state.on && hg_state.cxx != HG_CXX_PASSED;
}

static enum hg_family
family_of(enum hg_family family)
{
	return hg_state.cxx == HG_CXX_DISTINGUISHED ? family : HG_MALLOC;
}

/* A block that the C++ library's operator new took from malloc(3) becomes one
   of the operator. */
static void *
adopt(void *p, enum hg_family family)
{
	struct hg_entry *e = p == NULL || !is_ours() ? NULL :
	    hg_block_entry(p);

	if (e != NULL)
		e->family = family_of(family) & 3;
	return p;
}

static void *
allocate(size_t size, size_t align, enum hg_family family,
    const struct hg_record *from)
{
	const int saved = errno;
	void *p = is_ours() ? hg_alloc(size, align, family_of(family),
	    from) : NULL;

	if (p == NULL)
		errno = saved;
	return p;
}

typedef void *block;
typedef void *plain_new(size_t);
typedef void *nothrow_new(size_t, const void *);
typedef void *aligned_new(size_t, size_t);
typedef void *aligned_nothrow_new(size_t, size_t, const void *);
typedef void plain_delete(void *, size_t, size_t);

#define NEW(fn, name, family, align, type, parameters, arguments)	\
	block								\
	fn parameters							\
	{								\
		static void *kept;					\
		void *p = allocate(size, align, family, HG_CALLER);	\
		__typeof__(type) *next;					\
									\
		if (p != NULL)						\
			return p;					\
		next = (type *)(uintptr_t)hg_next_once(&kept, name);	\
		return adopt(next arguments, family);			\
	}
#define NEWS(name, array, family)					\
	NEW(array, "_Zn" name "m", family, 0, plain_new,		\
	    (size_t size), (size))					\
	NEW(array##_nothrow, "_Zn" name "mRKSt9nothrow_t", family, 0,	\
	    nothrow_new, (size_t size, const void *nothrow),		\
	    (size, nothrow))						\
	NEW(array##_aligned, "_Zn" name "mSt11align_val_t", family,	\
	    align, aligned_new, (size_t size, size_t align),		\
	    (size, align))						\
	NEW(array##_aligned_nothrow,					\
	    "_Zn" name "mSt11align_val_tRKSt9nothrow_t", family, align,	\
	    aligned_nothrow_new,					\
	    (size_t size, size_t align, const void *nothrow),		\
	    (size, align, nothrow))
NEWS("w", hg_new, HG_NEW)
NEWS("a", hg_new_array, HG_NEW_ARRAY)

static void
give_back(void *p, enum hg_family family, const struct hg_record *from)
{
	if (p != NULL)
		hg_free(p, family_of(family), from);
}

/* None has more than three arguments, each of one word. */
#define DELETE(fn, name, family)					\
	EXPORTED void fn(void *, size_t, size_t) __asm__(name);		\
	void								\
	fn(void *p, size_t a, size_t b)					\
	{								\
		static void *kept;					\
									\
		if (!is_ours())						\
			((plain_delete *)(uintptr_t)			\
			    hg_next_once(&kept, name))(p, a, b);	\
		else							\
			give_back(p, family, HG_CALLER);		\
	}
DELETES(DELETE)

/* tcmalloc's names. */
#define SAME(name, as) __asm__(".globl " #name "\n.set " #name ", " #as)
SAME(tc_new, _Znwm);
SAME(tc_new_nothrow, _ZnwmRKSt9nothrow_t);
SAME(tc_new_aligned, _ZnwmSt11align_val_t);
SAME(tc_new_aligned_nothrow, _ZnwmSt11align_val_tRKSt9nothrow_t);
SAME(tc_newarray, _Znam);
SAME(tc_newarray_nothrow, _ZnamRKSt9nothrow_t);
SAME(tc_newarray_aligned, _ZnamSt11align_val_t);
SAME(tc_newarray_aligned_nothrow, _ZnamSt11align_val_tRKSt9nothrow_t);
SAME(tc_delete, _ZdlPv);
SAME(tc_delete_sized, _ZdlPvm);
SAME(tc_delete_nothrow, _ZdlPvRKSt9nothrow_t);
SAME(tc_delete_aligned, _ZdlPvSt11align_val_t);
SAME(tc_delete_sized_aligned, _ZdlPvmSt11align_val_t);
SAME(tc_delete_aligned_nothrow, _ZdlPvSt11align_val_tRKSt9nothrow_t);
SAME(tc_deletearray, _ZdaPv);
SAME(tc_deletearray_sized, _ZdaPvm);
SAME(tc_deletearray_nothrow, _ZdaPvRKSt9nothrow_t);
SAME(tc_deletearray_aligned, _ZdaPvSt11align_val_t);
SAME(tc_deletearray_sized_aligned, _ZdaPvmSt11align_val_t);
SAME(tc_deletearray_aligned_nothrow, _ZdaPvSt11align_val_tRKSt9nothrow_t);

/* Whether the program finds all of these operators here first. */
static bool
are_first(void)
{
	static const struct {
		const char *name;
		void *ours;
	} all[] = {
		{"_Znwm", (void *)(uintptr_t)hg_new},
		{"_Znam", (void *)(uintptr_t)hg_new_array},
		{"_ZnwmRKSt9nothrow_t", (void *)(uintptr_t)hg_new_nothrow},
		{"_ZnwmSt11align_val_t", (void *)(uintptr_t)hg_new_aligned},
#define ROW(fn, name, family) {name, (void *)(uintptr_t)(fn)},
		DELETES(ROW)
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!hg_next_is_before(all[i].name, all[i].ours))
			return false;
	return true;
}

enum hg_cxx
hg_cxx_look(void)
{
	if (are_first())
		return HG_CXX_DISTINGUISHED;
	return hg_next_is_allocators("_Znwm") ? HG_CXX_AS_MALLOC :
	    HG_CXX_PASSED;
}
