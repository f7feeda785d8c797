/* kernel_symbol: finds the address of a name in /proc/kallsyms. */
#ifndef KERNEL_SYMBOL_H
#define KERNEL_SYMBOL_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The address; 0: there is none, or it is hidden. */
static inline uint64_t
kernel_symbol(const char *name)
{
	char line[512], symbol[256];
	uint64_t addr, found = 0;
	FILE *syms = fopen("/proc/kallsyms", "r");

	while (syms != NULL && found == 0 &&
	    fgets(line, sizeof(line), syms) != NULL)
		if (sscanf(line, "%" SCNx64 " %*c %255s", &addr, symbol) == 2 &&
		    strcmp(symbol, name) == 0)
			found = addr;
	if (syms != NULL)
		(void)fclose(syms);
	return found;
}

#endif
