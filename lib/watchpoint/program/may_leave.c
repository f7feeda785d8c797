/*
 * may_leave: decides whether a handler may leave a hit by longjmp(3).
 *
 * Signal safety: async-signal-safe; _dl_find_object(3) takes no lock.
 */
#include "program/scope_lock.h"
#include "program/table.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE

#include <gnu/libc-version.h>

/* Weak, because glibc before 2.35 lacks the first, and the second belongs to
   the dynamic loader, which is not linked against. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));
extern struct r_debug _r_debug __attribute__((weak));

/* Whether both addresses are in the same module, or the first one is in
   none. */
static bool
together(const void *a, const void *b)
{
	struct dl_find_object one, other;

	if (_dl_find_object((void *)(uintptr_t)a, &one) != 0)
		return false;
	return _dl_find_object((void *)(uintptr_t)b, &other) != 0 ||
	    one.dlfo_map_start == other.dlfo_map_start;
}

int
wp_may_leave(const struct wp_hit *hit)
{
	return !hit->late && !wp_scope_locked() && _dl_find_object != NULL &&
	    !together(hit->pc, (const void *)(uintptr_t)gnu_get_libc_version) &&
	    !together(hit->pc, &_r_debug);
}

#else

int
wp_may_leave(const struct wp_hit *hit)
{
	(void)hit;
	return 0;
}

#endif
