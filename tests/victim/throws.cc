/*
 * throws: C++ exceptions through frames with cleanups, to be unwound at every
 * instruction between two int3.
 */
#include <stdexcept>
#include <string>

namespace {

volatile int sink;

struct Guard {
	int n;
	explicit Guard(int i) : n(i) {}
	~Guard() { sink = sink + n; }
};

__attribute__((noinline)) void
thrower(int n)
{
	const Guard guard(n);

	if (n > 0)
		throw n;
	sink = n;
}

__attribute__((noinline)) void
level(int n, int depth)
{
	const Guard guard(depth);

	if (depth == 0)
		thrower(n);
	else
		level(n, depth - 1);
	sink = depth;
}

} /* namespace */

int
main()
{
	try {		/* what is bound and allocated once is now */
		level(1, 1);
	} catch (int n) {
		sink = n;
	}
	__asm__ volatile("int3");
	try {
		level(2, 1);
	} catch (int n) {
		sink = n;
	}
	__asm__ volatile("int3");
	return 0;
}
