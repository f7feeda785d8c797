/*
 * pin: objects that dlclose(3) must not unload: the one that this library is
 * linked into, whose signal handler the next hit needs, and those of a watch's
 * bytes and handler.
 *
 * Not called with the table locked: the dynamic loader has a lock of its own,
 * and runs constructors under it, which may open watches.  It does not while it
 * goes through its objects, but has another one then, which a child made by
 * fork(2) would find locked for ever: so that is done with the table locked,
 * for which fork(2) waits.  And while a program begins its objects are left
 * alone: none of these is ever unloaded, and asking the loader for one would
 * have it run constructors before their time.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>

#include "program/table.h"

enum { PINNED_MAX = 64 };	/* beyond that, objects are pinned each time */

/* Load addresses of the pinned objects. */
static _Atomic uintptr_t pinned[PINNED_MAX];

struct looked {
	uintptr_t addr;		/* of something in the object */
	uintptr_t begin;	/* load address of that object */
	const char *name;  /* its name; "" for the program; NULL if not found */
};

static bool
covers(const struct dl_phdr_info *info, uintptr_t addr)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD &&
		    addr - (info->dlpi_addr + part->p_vaddr) < part->p_memsz)
			return true;
	}
	return false;
}

static int
look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct looked *looked = arg;

	(void)size;
	if (!covers(info, looked->addr))
		return 0;
	looked->begin = info->dlpi_addr;
	looked->name = info->dlpi_name;
	return 1;
}

/* Whether it has been noted before; if not, note it. */
static bool
note(uintptr_t begin)
{
	for (unsigned i = 0; i < PINNED_MAX; i++) {
		uintptr_t was = 0;

		if (atomic_compare_exchange_strong(&pinned[i], &was, begin))
			return false;
		if (was == begin)
			return true;
	}
	return false;
}

/* dlopen is looked up by name, because the linker warns of it in statically
   linked programs, where nothing is ever unloaded. */
static void
keep(const char *name)
{
	void *(*open)(const char *, int);

	*(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
	if (open != NULL)
		(void)open(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void
wp_pin(const volatile void *addr)
{
	struct looked looked = {.addr = (uintptr_t)addr};

	if (addr == NULL || wp_state.begins)
		return;
	wp_watches_lock();
	(void)dl_iterate_phdr(look, &looked);
	wp_watches_unlock();
	if (looked.name != NULL && *looked.name != '\0' && !note(looked.begin))
		keep(looked.name);
}

bool
wp_is_in_other_object(const volatile void *addr, const void *other)
{
	struct looked looked = {.addr = (uintptr_t)addr};
	struct looked beside = {.addr = (uintptr_t)other};

	wp_watches_lock();
	(void)dl_iterate_phdr(look, &looked);
	(void)dl_iterate_phdr(look, &beside);
	wp_watches_unlock();
	return looked.name != NULL && (beside.name == NULL ||
	    looked.begin != beside.begin);
}
