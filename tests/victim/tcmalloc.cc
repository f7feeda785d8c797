// tcmalloc: uses all that tcmalloc has beyond malloc; or does one wrong thing,
// as its argument says.  Ends with status 3.
#include "operators.hh"

#include <gperftools/malloc_extension_c.h>
#include <gperftools/tcmalloc.h>

extern "C" std::size_t malloc_size(void *);
extern "C" std::size_t nallocx(std::size_t, int);
extern "C" std::size_t tc_nallocx(std::size_t, int);

static void
use_new(std::size_t size)
{
	const std::align_val_t align{64};

	tc_delete(usable(tc_new(size)));
	tc_delete_sized(usable(tc_new(size)), size);
	tc_delete_nothrow(usable(tc_new_nothrow(size, std::nothrow)),
	    std::nothrow);
	tc_delete_aligned(aligned(tc_new_aligned(size, align), 64), align);
	tc_delete_sized_aligned(aligned(tc_new_aligned(size, align), 64), size,
	    align);
	tc_delete_aligned_nothrow(aligned(tc_new_aligned_nothrow(size, align,
	    std::nothrow), 64), align, std::nothrow);
	tc_deletearray(usable(tc_newarray(size)));
	tc_deletearray_sized(usable(tc_newarray(size)), size);
	tc_deletearray_nothrow(usable(tc_newarray_nothrow(size,
	    std::nothrow)), std::nothrow);
	tc_deletearray_aligned(aligned(tc_newarray_aligned(size, align), 64),
	    align);
	tc_deletearray_sized_aligned(aligned(tc_newarray_aligned(size, align),
	    64), size, align);
	tc_deletearray_aligned_nothrow(aligned(tc_newarray_aligned_nothrow(
	    size, align, std::nothrow), 64), align, std::nothrow);
}

static void
use_tc(std::size_t size)
{
	void *p = tc_malloc(size);

	tc_free(filled(p, tc_malloc_size(p)));
	p = tc_malloc_skip_new_handler(size);
	tc_free_sized(filled(p, malloc_size(p)), size);
	p = tc_realloc(tc_calloc(size, 2), 5 * size);
	std::free(filled(p, MallocExtension_GetAllocatedSize(p)));
	tc_cfree(aligned(tc_memalign(256, size), 256));
	if (tc_posix_memalign(&p, 128, size) != 0)
		std::abort();
	tc_free(aligned(p, 128));
	tc_free(aligned(tc_valloc(size), 4096));
	tc_free(aligned(tc_pvalloc(size), 4096));
	tc_free(filled(tc_malloc(size), nallocx(size, 0)));
	tc_free(filled(std::malloc(size), tc_nallocx(size, 0)));
	tc_free(filled(std::malloc(size),
	    MallocExtension_GetEstimatedAllocatedSize(size)));
	std::free(usable(tc_malloc(size)));
	::operator delete(usable(tc_new(size)));
	tc_deletearray(usable(::operator new[](size)));
}

static void
use_all(std::size_t size)
{
	use_operators(size);
	use_malloc(size);
	use_new(size);
	use_tc(size);
}

int
main(int argc, char **argv)
{
	const std::string act = argc > 1 ? argv[1] : "";
	char *volatile p;

	if (act == "mismatch") {
		tc_free(tc_new_nothrow(40, std::nothrow));
		tc_deletearray_sized(tc_new(40), 40);
		tc_delete_sized(tc_malloc_skip_new_handler(40), 40);
	} else if (act == "overflow") {
		p = static_cast<char *>(tc_malloc_skip_new_handler(40));
		p[40] = 't';
		tc_free_sized(p, 40);
	} else if (act == "double-free") {
		p = static_cast<char *>(tc_new_nothrow(40, std::nothrow));
		tc_delete_sized(p, 40);
		tc_delete_nothrow(p, std::nothrow);
	} else {
		use_in_threads(use_all);
	}
	std::puts("done");
	return 3;
}
