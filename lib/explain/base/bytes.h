/*
 * bytes: reads numbers in this machine's byte order, at any alignment.  The
 * caller has made sure that the bytes exist; record/cursor.h reads with checks.
 */
#ifndef EX_BYTES_H
#define EX_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint32_t
ex_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t
ex_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* A number of `bits' bits, at most 64, from this bit on. */
static inline uint64_t
ex_bits(const uint8_t *bytes, uint64_t bit, unsigned bits)
{
	const unsigned shift = bit % 8;
	uint64_t value = 0;

	bytes += bit / 8;
	if (shift == 0 && bits == 64)
		return ex_u64(bytes);
	for (unsigned at = 0; at < shift + bits; at += 8) {
		const uint64_t byte = bytes[at / 8];

		value |= at < shift ? byte >> shift : byte << (at - shift);
	}
	return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

#endif
