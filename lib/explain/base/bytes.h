/*
 * bytes: numbers of this machine's order, at any alignment.  That they are
 * there is the caller's to know; record/cursor.h checks.
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

#endif
