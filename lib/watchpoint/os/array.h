/* array: growing arrays.  Not for the signal handler. */
#ifndef WP_ARRAY_H
#define WP_ARRAY_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one more in an array of n, of which *cap fit.  array is the
   address of the pointer to the first: NULL as long as *cap is 0; malloc'd.
   0; or -ENOMEM, and nothing has changed. */
static inline int
wp_array_room(void *array, size_t n, size_t *cap, size_t size)
{
	const size_t wanted = *cap == 0 ? 64 : *cap * 2;
	void *at, *bigger;

	if (n < *cap)
		return 0;
	/* the pointer's own type is the caller's */
	memcpy(&at, array, sizeof(at));
	if ((bigger = realloc(at, wanted * size)) == NULL)
		return -ENOMEM;
	memcpy(array, &bigger, sizeof(bigger));
	*cap = wanted;
	return 0;
}

/* The same for the array `at' of a structure that has its n and cap. */
#define WP_ARRAY_ROOM(a, at)						\
	wp_array_room(&(a)->at, (a)->n, &(a)->cap, sizeof(*(a)->at))

#endif
