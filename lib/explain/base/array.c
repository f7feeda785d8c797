/* array: arrays that grow, sorting, and searching in sorted ones. */
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

/* --- sorting --- */

/* An element's number, and where it was. */
struct key {
	uint64_t value;
	size_t index;
};

enum { DIGIT = 11, DIGITS = 1 << DIGIT };	/* bits, and values of them */

/* Sort keys by one digit of theirs, from one array into another.  False: all
   have the same, and nothing was done. */
static bool
sort_digit(const struct key *from, struct key *to, size_t n, unsigned shift)
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

/* The keys of an array.  Result: whether they are in order. */
static bool
read_keys(const uint8_t *array, size_t n, size_t element_size, size_t offset,
    struct key *key)
{
	bool sorted = true;

	for (size_t i = 0; i < n; i++) {
		key[i].index = i;
		memcpy(&key[i].value, array + i * element_size + offset,
		    sizeof(key[i].value));
		sorted &= i == 0 || key[i - 1].value <= key[i].value;
	}
	return sorted;
}

/* By the digits of the numbers, the lowest first: there are many elements, and
   moving them is what takes time. */
bool
ex_array_sort(void *array, size_t n, size_t element_size, size_t offset)
{
	struct key *key = calloc(n, sizeof(*key)), *to = NULL, *other;
	uint8_t *copy = NULL;
	bool done = false;

	if (n == 0 || (key != NULL && read_keys(array, n, element_size, offset,
	    key))) {
		free(key);
		return true;
	}
	to = calloc(n, sizeof(*to));
	copy = reallocarray(NULL, n, element_size);
	if (key != NULL && to != NULL && copy != NULL) {
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
		done = true;
	}
	free(copy);
	free(to);
	free(key);
	return done;
}
