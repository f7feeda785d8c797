// operators: each form of new and delete, and blocks filled as far as the
// allocator says they may be.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <string>
#include <thread>
#include <vector>

// Fill all that is there, and see that nothing of it is anybody else's.
inline void *
filled(void *p, std::size_t size)
{
	if (p == nullptr || size == 0)
		std::abort();
	std::memset(p, 'x', size);
	return p;
}

inline void *
usable(void *p)
{
	return filled(p, malloc_usable_size(p));
}

inline void *
aligned(void *p, std::size_t align)
{
	if (reinterpret_cast<std::uintptr_t>(p) % align != 0)
		std::abort();
	return usable(p);
}

inline void
use_operators(std::size_t size)
{
	const std::align_val_t align{64};

	::operator delete(usable(::operator new(size)));
	::operator delete(usable(::operator new(size)), size);
	::operator delete(usable(::operator new(size, std::nothrow)),
	    std::nothrow);
	::operator delete(aligned(::operator new(size, align), 64), align);
	::operator delete(aligned(::operator new(size, align), 64), size,
	    align);
	::operator delete(aligned(::operator new(size, align, std::nothrow),
	    64), align, std::nothrow);
	::operator delete[](usable(::operator new[](size)));
	::operator delete[](usable(::operator new[](size)), size);
	::operator delete[](usable(::operator new[](size, std::nothrow)),
	    std::nothrow);
	::operator delete[](aligned(::operator new[](size, align), 64), align);
	::operator delete[](aligned(::operator new[](size, align), 64), size,
	    align);
	::operator delete[](aligned(::operator new[](size, align,
	    std::nothrow), 64), align, std::nothrow);
}

// What comes from one of C's functions and goes back to another.
inline void
use_malloc(std::size_t size)
{
	void *p = nullptr;

	std::free(usable(std::realloc(usable(std::malloc(size)), 3 * size)));
	std::free(usable(std::calloc(3, size)));
	if (posix_memalign(&p, 256, size) != 0)
		std::abort();
	std::free(aligned(p, 256));
	std::free(aligned(std::aligned_alloc(128,
	    (size + 127) / 128 * 128), 128));
	std::free(aligned(memalign(512, size), 512));
	std::free(aligned(valloc(size), 4096));
}

// With many sizes, in several threads.
template <typename Function>
void
use_in_threads(Function use)
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([use] {
			for (std::size_t size = 1; size < 100000;
			    size += 1 + size / 3)
				use(size);
		});
	for (auto &thread : threads)
		thread.join();
}
