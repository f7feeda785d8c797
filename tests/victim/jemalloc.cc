// jemalloc: uses all that jemalloc has beyond malloc; or does one wrong thing,
// as its argument says.  Ends with status 3.
#include "operators.hh"

#include <jemalloc/jemalloc.h>

static void
use_x(std::size_t size)
{
	void *p = usable(mallocx(size, MALLOCX_ALIGN(256) | MALLOCX_ZERO));
	std::size_t got;

	p = aligned(rallocx(p, 2 * size, MALLOCX_ALIGN(256)), 256);
	got = xallocx(p, 4 * size, size, MALLOCX_ALIGN(256));
	if (got < 2 * size || got != sallocx(p, 0))
		std::abort();
	dallocx(filled(p, got), MALLOCX_ALIGN(256));
	got = nallocx(size, 0);
	sdallocx(filled(mallocx(size, 0), got), size, 0);
	got = nallocx(size, MALLOCX_ALIGN(64));
	p = filled(mallocx(size, MALLOCX_ALIGN(64)), got);
	std::free(p);
	dallocx(usable(std::malloc(size)), 0);
	p = usable(rallocx(usable(std::malloc(size)), size / 2 + 1,
	    MALLOCX_TCACHE_NONE));
	std::free(std::realloc(p, 3 * size));
}

static void
use_all(std::size_t size)
{
	use_operators(size);
	use_malloc(size);
	use_x(size);
}

int
main(int argc, char **argv)
{
	const std::string act = argc > 1 ? argv[1] : "";
	char *volatile p;

	if (act == "mismatch") {
		dallocx(::operator new(40), 0);
		::operator delete(mallocx(40, 0));
	} else if (act == "overflow") {
		p = static_cast<char *>(mallocx(40, 0));
		p[40] = 'j';
		sdallocx(p, 40, 0);
	} else if (act == "double-free") {
		p = static_cast<char *>(mallocx(40, 0));
		dallocx(p, 0);
		sdallocx(p, 40, 0);
	} else {
		use_in_threads(use_all);
		if (nallocx(SIZE_MAX / 2 + 1, 0) != 0)
			return 4;
	}
	std::puts("done");
	return 3;
}
