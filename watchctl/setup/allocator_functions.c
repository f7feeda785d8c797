/* allocator_functions: finds the functions that free and hand out memory. */
#include "setup/allocator_functions.h"

#include <stdlib.h>
#include <string.h>

#include "proc/proc.h"

struct finder {
	struct live_broker *live;
	pid_t pid;
	bool early;
	struct wp_objects_what *what;
};

/* The names of functions that free their first argument, or that allocate.
   Those of the C++ library call free. */
static const char *const frees[] = {
	"free", "free_sized", "free_aligned_sized", "dallocx",
	"sdallocx", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm",
	"_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t",
	"_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
	"_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t",
};
static const struct {
	const char *name;
	enum wp_object_call which;
} hands_out[] = {
	{"realloc", WP_OBJECT_RESIZED},	/* the first */
	{"malloc", WP_OBJECT_SIZE}, {"calloc", WP_OBJECT_PRODUCT},
	{"memalign", WP_OBJECT_ALIGNED},
	{"aligned_alloc", WP_OBJECT_ALIGNED},
	{"posix_memalign", WP_OBJECT_POINTED}, {"valloc", WP_OBJECT_SIZE},
	{"pvalloc", WP_OBJECT_SIZE},
};
enum { NEEDED = 1 };		/* of those that free */

/* Find the addresses of the functions of this name. */
static int
find_functions(const struct finder *f, const char *name,
    struct spec_place *place, struct wp_cause *cause)
{
	struct spec spec;
	int err = spec_parse(name, WP_EXEC, &spec, cause);

	if (err < 0)
		return err;
	/* not behind its prologue, where its arguments are */
	spec.has_off = true;
	spec.all = true;
	err = live_broker_resolve(f->live, f->pid, &spec, f->early, place,
	    cause);
	free(place->symbol);
	place->symbol = NULL;
	spec_free(&spec);
	return err;
}

static uint64_t
address(const struct spec_place *place, unsigned i)
{
	return i == 0 ? place->addr : place->more[i - 1];
}

/* The functions of a name free. */
static int
add_end(struct finder *f, const char *name, unsigned arguments,
    struct wp_cause *cause)
{
	struct wp_objects_what *what = f->what;
	struct spec_place place = {.symbol = NULL};
	const int err = find_functions(f, name, &place, cause);

	for (unsigned i = 0; err == 0 && i <= place.nmore; i++) {
		size_t k = 0;

		while (k < what->nends &&
		    what->end[k].addr != address(&place, i))
			k++;
		if (k == WP_OBJECT_ENDS)
			break;
		what->end[k].addr = address(&place, i);
		what->end[k].arguments = arguments;
		what->nends += k == what->nends;
	}
	return err;
}

/* Add the functions that allocate. */
static void
add_call(struct finder *f, size_t which)
{
	struct wp_objects_what *what = f->what;
	struct spec_place place = {.symbol = NULL};
	const int err = find_functions(f, hands_out[which].name, &place, NULL);

	for (unsigned i = 0; err == 0 && i <= place.nmore; i++) {
		size_t k = 0;

		while (k < what->ncalls &&
		    what->call[k].addr != address(&place, i))
			k++;
		if (k == what->ncalls && k < WP_OBJECT_CALLS) {
			what->call[k].addr = address(&place, i);
			what->call[k].which = hands_out[which].which;
			what->ncalls++;
		}
	}
}

/* Whether something is mapped from a file of C++'s own library there. */
static int
is_of_cxx(void *arg, const struct wp_proc_map *map)
{
	const uint64_t *addr = arg;
	const char *name = strrchr(map->path, '/');

	return *addr >= map->start && *addr < map->end && name != NULL &&
	    (strncmp(name, "/libstdc++", 10) == 0 ||
	    strncmp(name, "/libc++", 7) == 0);
}

static void
leave_out_cxx(struct finder *f)
{
	struct wp_objects_what *what = f->what;
	size_t n = 0;

	for (size_t i = 0; i < what->nends; i++)
		if (wp_proc_maps(f->pid, is_of_cxx, &what->end[i].addr) != 1)
			what->end[n++] = what->end[i];
	what->nends = n;
}

/* Of functions named by --free-function, each of the first three arguments may
   be the object, because the first one may be a pool. */
int
allocator_functions_find(struct run *run, pid_t pid, bool early,
    struct wp_objects_what *what, struct wp_cause *cause)
{
	const struct options *o = run->options;
	struct finder f = {&run->live, pid, early, what};
	int err = 0;

	for (size_t i = 0; i < sizeof(frees) / sizeof(*frees); i++) {
		const bool needed = i < NEEDED;

		err = add_end(&f, frees[i], 1, needed ? cause : NULL);
		if (err < 0 && needed)
			return err;
	}
	leave_out_cxx(&f);
	err = 0;
	for (size_t i = 0; i < o->nfree_functions && err == 0; i++)
		err = add_end(&f, o->free_function[i], 3, cause);
	for (size_t i = 0; err == 0 && i < (what->stays ?
	    sizeof(hands_out) / sizeof(*hands_out) : 1); i++)
		add_call(&f, i);
	return err;
}
