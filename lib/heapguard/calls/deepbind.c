/*
 * deepbind: has libraries that are opened with RTLD_DEEPBIND use the guard.
 *
 * Such a library finds the C library's functions before the guard's, so its
 * malloc and free are the allocator's.  But what strdup(3) returns to it is
 * guarded, and the allocator would abort when that is freed.  So when it has
 * been opened, its references to functions that allocate are made those of the
 * rest of the program.  What its constructors have allocated before that is the
 * allocator's, and is passed to it.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard/evidence.h"
#include "guard/next.h"
#include "guard/state.h"

static const char *const names[] = {
	"malloc", "free", "calloc", "realloc", "reallocarray",
	"posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
	"malloc_usable_size", "cfree", "free_sized", "free_aligned_sized",
	"dlopen", "dlclose",
	"_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
	"_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
	"_ZnwmSt11align_val_tRKSt9nothrow_t",
	"_ZnamSt11align_val_tRKSt9nothrow_t",
	"_ZdlPv", "_ZdlPvm", "_ZdlPvRKSt9nothrow_t", "_ZdlPvSt11align_val_t",
	"_ZdlPvmSt11align_val_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t",
	"_ZdaPv", "_ZdaPvm", "_ZdaPvRKSt9nothrow_t", "_ZdaPvSt11align_val_t",
	"_ZdaPvmSt11align_val_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* The first of the modules that were opened, and the functions that these find
   instead of the guard's. */
struct opened {
	uint64_t base;
	bool reached;
	size_t n;
	struct binding {
		const char *name;
		uint64_t found, usual;
	} binding[NAMES];
};

/* Look up all functions first, because the dynamic linker holds a lock during
   dl_iterate_phdr(3). */
static void
find_bindings(struct opened *o, void *library)
{
	for (size_t i = 0; i < NAMES; i++) {
		const struct binding b = {
			.name = names[i],
			.found = (uintptr_t)dlsym(library, names[i]),
			.usual = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]),
		};

		if (b.found != 0 && b.found != b.usual &&
		    b.found == (uintptr_t)dlsym(RTLD_NEXT, names[i]))
			o->binding[o->n++] = b;
	}
}

static bool
is_read_only(const struct dl_phdr_info *module, uint64_t address)
{
	for (unsigned i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &module->dlpi_phdr[i];

		if (p->p_type == PT_GNU_RELRO && address - module->dlpi_addr -
		    p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

static void
set(const struct dl_phdr_info *module, uint64_t address, uint64_t to)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	void *at = (void *)(uintptr_t)(address / page * page);
	const bool read_only = is_read_only(module, address);

	if (read_only && mprotect(at, page, PROT_READ | PROT_WRITE) != 0)
		return;
	atomic_store((_Atomic uint64_t *)(uintptr_t)address, to);
	if (read_only)
		(void)mprotect(at, page, PROT_READ);
}

/* What a module's dynamic section points to. */
struct tables {
	const ElfW(Sym) *symbols;
	const char *strings;
	struct {
		const ElfW(Rela) *first;
		size_t bytes;
	} plt, others;
};

static const void *
at_address(const struct dl_phdr_info *module, uint64_t address)
{
	return (void *)(uintptr_t)(address < module->dlpi_addr ?
	    module->dlpi_addr + address : address);
}

static struct tables
read_tables(const struct dl_phdr_info *module)
{
	const ElfW(Dyn) *d = NULL;
	struct tables t = {0};

	for (unsigned i = 0; i < module->dlpi_phnum; i++)
		if (module->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (void *)(uintptr_t)(module->dlpi_addr +
			    module->dlpi_phdr[i].p_vaddr);
	for (; d != NULL && d->d_tag != DT_NULL; d++) {
		const void *at = at_address(module, d->d_un.d_ptr);

		switch (d->d_tag) {
		case DT_SYMTAB: t.symbols = at; break;
		case DT_STRTAB: t.strings = at; break;
		case DT_JMPREL: t.plt.first = at; break;
		case DT_PLTRELSZ: t.plt.bytes = d->d_un.d_val; break;
		case DT_RELA: t.others.first = at; break;
		case DT_RELASZ: t.others.bytes = d->d_un.d_val; break;
		default: break;
		}
	}
	return t;
}

/* Redirect one reference.  The slot of a call may still point to the lazy
   lookup, so its present value does not matter. */
static void
bind_one(const struct opened *o, const struct dl_phdr_info *module,
    const struct tables *t, const ElfW(Rela) *r)
{
	const ElfW(Sym) *symbol = &t->symbols[ELF64_R_SYM(r->r_info)];
	const uint64_t type = ELF64_R_TYPE(r->r_info),
	    slot = module->dlpi_addr + r->r_offset;

	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
	    type != R_X86_64_64) || symbol->st_shndx != SHN_UNDEF)
		return;
	for (size_t i = 0; i < o->n; i++) {
		const struct binding *b = &o->binding[i];

		if (strcmp(t->strings + symbol->st_name, b->name) == 0 &&
		    (type == R_X86_64_JUMP_SLOT ||
		    *(const uint64_t *)(uintptr_t)slot == b->found))
			set(module, slot, b->usual);
	}
}

static int
bind_module(struct dl_phdr_info *module, size_t size, void *arg)
{
	struct opened *o = arg;
	struct tables t;

	(void)size;
	o->reached = o->reached || module->dlpi_addr == o->base;
	if (!o->reached)
		return 0;
	t = read_tables(module);
	if (t.symbols == NULL || t.strings == NULL)
		return 0;
	for (size_t i = 0; i < t.plt.bytes / sizeof(*t.plt.first); i++)
		bind_one(o, module, &t, &t.plt.first[i]);
	for (size_t i = 0; i < t.others.bytes / sizeof(*t.others.first); i++)
		bind_one(o, module, &t, &t.others.first[i]);
	return 0;
}

static void *kept;

static void *
open_deep(const char *name, int flags)
{
	struct hg_evidence *e = hg_state.evidence;
	struct opened o = {0};
	struct link_map *map;
	void *library;

	strncpy(e->opening, name, sizeof(e->opening) - 1);
	(void)atomic_fetch_add(&e->nopening, 1);
	atomic_store(&hg_state.shared, true);
	library = ((__typeof__(&dlopen))(uintptr_t)kept)(name, flags);
	(void)atomic_fetch_sub(&e->nopening, 1);
	if (library != NULL && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
		o.base = map->l_addr;
		find_bindings(&o, library);
		(void)dl_iterate_phdr(bind_module, &o);
	}
	return library;
}

#if defined(__has_attribute)
#if __has_attribute(musttail)
#define JUMP __attribute__((musttail)) return
#endif
#endif
#ifndef JUMP
#define JUMP return
#endif

/* The C library searches for a file as its caller's RUNPATH says, so the last
   call is a jump, which leaves the caller's return address in place.  It is
   also made where the library was not found from here. */
__attribute__((visibility("default"))) void *
dlopen(const char *name, int flags)
{
	void *library;

	(void)hg_next_once(&kept, "dlopen");
	if ((flags & RTLD_DEEPBIND) != 0 && name != NULL && hg_state.on &&
	    (library = open_deep(name, flags)) != NULL)
		return library;
	JUMP ((__typeof__(&dlopen))(uintptr_t)kept)(name, flags);
}
