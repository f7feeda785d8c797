/* find: what memmem(3) finds, is found. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/find.h"

enum { SIZE = 3000, ROUNDS = 20000 };

static size_t
below(size_t n)
{
	static uint64_t seed = 1;

	seed = seed * UINT64_C(6364136223846793005) +
	    UINT64_C(1442695040888963407);
	return (size_t)(seed >> 33) % n;
}

/* Of few values, so that there are many places that nearly match. */
static void
fill(uint8_t *at, size_t n, unsigned values)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)below(values);
}

TEST(finds_what_memmem_finds)
{
	uint8_t *bytes = malloc(SIZE), what[12];
	unsigned found = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		const unsigned values = 2 + i % 60;
		const size_t n = below(SIZE);
		const size_t len = 1 + below(sizeof(what));
		/* to its end, where nothing behind it may be read */
		uint8_t *in = bytes + SIZE - n;
		const void *hit;

		fill(in, n, values);
		fill(what, len, values);
		if (len <= n && i % 2 == 0)
			memcpy(in + below(n - len + 1), what, len);
		hit = memmem(in, n, what, len);
		assert_ptr_equal(ex_find(in, n, what, len), hit);
		found += hit != NULL;
	}
	assert_in_range(found, ROUNDS / 3, ROUNDS - ROUNDS / 10);
	free(bytes);
}

RUN_TESTS()
