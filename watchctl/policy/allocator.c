/* allocator: recognizes hits that the allocator itself makes. */
#include "policy/allocator.h"

#include <string.h>

static const char *const functions[] = {
	"malloc", "calloc", "realloc", "free", "cfree", "memalign",
	"aligned_alloc", "posix_memalign", "valloc", "pvalloc",
	"reallocarray", "free_sized", "free_aligned_sized", "malloc_trim",
	"malloc_usable_size", "mallocx", "rallocx", "xallocx", "dallocx",
	"sdallocx",
};

/* Prefixes used by allocators and libraries. */
static const char *const prefixes[] = {
	"__GI_", "__libc_", "__", "je_", "mi_", "tc_", "_",
};

static bool
is_listed(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (strcmp(name, functions[i]) == 0)
			return true;
	return false;
}

/* Skip prefixes as in "__GI___libc_free". */
static const char *
without_prefixes(const char *name)
{
	size_t i = 0;

	while (i < sizeof(prefixes) / sizeof(*prefixes)) {
		const size_t len = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], len) == 0) {
			name += len;
			i = 0;
		} else {
			i++;
		}
	}
	return name;
}

/* Whether a SPEC such as "libfoo.so!conn_new" names the function. */
static bool
is_named(const char *name, const char *spec)
{
	const char *function = strrchr(spec, '!');
	size_t len;

	function = function == NULL ? spec : function + 1;
	len = strlen(function);
	/* the SPEC may lack the parameters of C++ */
	return strncmp(name, function, len) == 0 &&
	    (name[len] == '\0' || name[len] == '(');
}

static bool
is_allocators(const char *name, const struct options *o)
{
	if (is_listed(without_prefixes(name)) ||
	    strncmp(name, "operator new", 12) == 0 ||
	    strncmp(name, "operator delete", 15) == 0 ||
	    is_named(name, o->spec->allocator))
		return true;
	for (size_t i = 0; i < o->nfree_functions; i++)
		if (is_named(name, o->free_function[i]))
			return true;
	return false;
}

bool
allocator_made(const struct ex_hit *hit, const struct options *o)
{
	const struct ex_stack *stack = hit->stack;

	for (unsigned i = 0; stack != NULL && i < stack->n; i++)
		if (stack->frame[i].function != NULL &&
		    is_allocators(stack->frame[i].function, o))
			return true;
	return false;
}
