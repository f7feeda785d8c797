/*
 * fuzz: what the programs that libFuzzer calls share.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static inline void
expect(int truth)
{
	if (!truth)
		abort();
}

#endif
