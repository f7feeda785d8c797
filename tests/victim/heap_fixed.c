/* heap_fixed: at a fixed address, where the addresses of malloc and free are
   those of stubs; writes one byte past a block's end. */
#include <stdlib.h>

static void *(*volatile allocate)(size_t);
static void (*volatile give_back)(void *);

int
main(void)
{
	volatile char *p;

	allocate = malloc;
	give_back = free;
	p = allocate(40);
	p[40] = 'f';
	give_back((void *)p);
	return 3;
}
