// own_new: has some of the operators new and delete itself, and uses all of
// them.  Ends with status 3.
#include "operators.hh"

void *
operator new(std::size_t size)
{
	void *p = std::malloc(size);

	if (p == nullptr)
		std::abort();
	return p;
}

void
operator delete(void *p) noexcept
{
	std::free(p);
}

void
operator delete(void *p, std::size_t) noexcept
{
	std::free(p);
}

// What the allocator's operator returns may end in the one here.
static void
use_others(std::size_t size)
{
	::operator delete(usable(::operator new(size, std::nothrow)));
	::operator delete[](usable(::operator new[](size)));
}

int
main()
{
	use_in_threads(use_operators);
	use_in_threads(use_malloc);
	use_in_threads(use_others);
	std::puts("done");
	return 3;
}
