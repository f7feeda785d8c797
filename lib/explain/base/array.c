/* array: arrays that grow, and searching in sorted ones. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 16		/* elements of a new array */

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
	/* the pointer's own type is the caller's */
	memcpy(&at, array, sizeof(at));
	if ((bigger = reallocarray(at, wanted, element_size)) == NULL)
		return false;
	memcpy(array, &bigger, sizeof(bigger));
	*cap = wanted;
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
