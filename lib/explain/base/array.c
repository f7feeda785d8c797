/* array: growing arrays; sorting, and searching in sorted arrays. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST 16		/* elements of a new array */
#define LARGE ((size_t)1 << 22)	/* bytes; smaller arrays gain nothing */
#define PAGE ((uintptr_t)4096)

/* The memory will be written from start to end, so let the kernel use huge
   pages, with fewer page faults. */
static void
expect_fill(void *at, size_t size)
{
	const uintptr_t start = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;
	const uintptr_t end = ((uintptr_t)at + size) / PAGE * PAGE;

	if (size >= LARGE)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

bool
ex_array_room(void *array, size_t n, size_t more, size_t *cap,
    size_t element_size, size_t max)
{
	size_t wanted = *cap < FIRST ? FIRST : *cap * 2;
	void *at, *bigger;

	if (more <= *cap - n)
		return true;
	if (n > max || more > max - n)
		return false;
	if (wanted > max)
		wanted = max;
	if (wanted < n + more)
		wanted = n + more;
	/* *array is of the caller's pointer type */
	memcpy(&at, array, sizeof(at));
	if ((bigger = reallocarray(at, wanted, element_size)) == NULL)
		return false;
	memcpy(array, &bigger, sizeof(bigger));
	*cap = wanted;
	expect_fill(bigger, wanted * element_size);
	return true;
}

size_t
ex_array_upto(const void *array, size_t n, size_t element_size, size_t offset,
    uint64_t value)
{
	const uint8_t *at = array;
	size_t low = 0, high = n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		uint64_t there;

		memcpy(&there, at + mid * element_size + offset, sizeof(there));
		if (there <= value)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* --- sorting --- */

/* A sort key and the index of its element. */
struct sort_key {
	uint64_t value;
	size_t index;
};

enum { DIGIT = 11, DIGITS = 1 << DIGIT };  /* bits of a digit, and its values */

/* Sort keys by one digit, from one array into another.  Returns false, having
   done nothing, if all have the same digit. */
static bool
sort_digit(const struct sort_key *from, struct sort_key *to, size_t n,
    unsigned shift)
{
	size_t place[DIGITS] = {0}, next = 0;

	for (size_t i = 0; i < n; i++)
		place[from[i].value >> shift & (DIGITS - 1)]++;
	if (place[from[0].value >> shift & (DIGITS - 1)] == n)
		return false;
	for (size_t i = 0; i < DIGITS; i++) {
		size_t count = place[i];

		place[i] = next;
		next += count;
	}
	for (size_t i = 0; i < n; i++)
		to[place[from[i].value >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

static uint64_t
value_of(const uint8_t *array, size_t i, size_t element_size, size_t offset)
{
	uint64_t value;

	memcpy(&value, array + i * element_size + offset, sizeof(value));
	return value;
}

static bool
is_sorted(const uint8_t *array, size_t n, size_t element_size, size_t offset)
{
	for (size_t i = 1; i < n; i++) {
		if (value_of(array, i - 1, element_size, offset) >
		    value_of(array, i, element_size, offset))
			return false;
	}
	return true;
}

/* A radix sort, least significant digit first, because there are many elements
   and moving them takes most of the time. */
bool
ex_array_sort(void *array, size_t n, size_t element_size, size_t offset)
{
	const size_t size = 2 * sizeof(struct sort_key) + element_size;
	struct sort_key *scratch, *key, *to, *other;
	uint8_t *copy;

	if (is_sorted(array, n, element_size, offset))
		return true;
	if ((scratch = reallocarray(NULL, n, size)) == NULL)
		return false;
	expect_fill(scratch, n * size);
	key = scratch;
	to = scratch + n;
	copy = (uint8_t *)(to + n);
	for (size_t i = 0; i < n; i++)
		key[i] = (struct sort_key){
			value_of(array, i, element_size, offset), i,
		};
	for (unsigned shift = 0; shift < 64; shift += DIGIT) {
		if (!sort_digit(key, to, n, shift))
			continue;
		other = key;
		key = to;
		to = other;
	}
	memcpy(copy, array, n * element_size);
	for (size_t i = 0; i < n; i++)
		memcpy((uint8_t *)array + i * element_size,
		    copy + key[i].index * element_size, element_size);
	free(scratch);
	return true;
}
