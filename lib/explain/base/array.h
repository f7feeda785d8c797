/*
 * array: growing arrays; sorting, and searching in sorted arrays.
 */
#ifndef EX_ARRAY_H
#define EX_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Make room for more elements in an array that has n and holds *cap. array is
 * the address of the pointer to the first: NULL as long as *cap is 0; malloc'd,
 * the caller frees it.  False, with nothing changed: out of memory, or there
 * would be more than max.
 */
bool ex_array_room(void *array, size_t n, size_t more, size_t *cap,
    size_t element_size, size_t max);

/* Of n elements, sorted by the uint64_t at this offset in each: the number of
   those where it is at most value. */
size_t ex_array_upto(const void *array, size_t n, size_t element_size,
    size_t offset, uint64_t value);

/* Sort n elements by the uint64_t at this offset in each; the sort is stable.
   False: out of memory, and the order is unchanged. */
bool ex_array_sort(void *array, size_t n, size_t element_size, size_t offset);

/* Compare as qsort(3) and trees need it. */
static inline int
ex_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Make room for one more in the array `at' of a structure that has its n and
   cap. */
#define EX_ARRAY_ROOM(a, at, max)					\
	ex_array_room(&(a)->at, (a)->n, 1, &(a)->cap, sizeof(*(a)->at), max)
#define EX_ARRAY_UPTO(at, n, member, value)				\
	ex_array_upto(at, n, sizeof(*(at)),				\
	    offsetof(__typeof__(*(at)), member), value)
#define EX_ARRAY_SORT(at, n, member)					\
	ex_array_sort(at, n, sizeof(*(at)), offsetof(__typeof__(*(at)), member))

#endif
