/* heap: watches of heap blocks, which end when the blocks are freed. */
#ifndef WP_HEAP_H
#define WP_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* End the watch of these bytes.  False: there is none. */
bool wp_heap_unwatch(const volatile void *addr, size_t len);

#endif
