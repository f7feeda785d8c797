/* value: the bytes of a watch, as far as they are known. */
#include "hit/value.h"

#include <stddef.h>
#include <string.h>

const char *
ex_value_source_text(enum ex_value_source source)
{
	switch (source) {
	case EX_VALUE_REGISTER:
		return "register";
	case EX_VALUE_IMMEDIATE:
		return "immediate";
	case EX_VALUE_DERIVED:
		return "derived";
	case EX_VALUE_STOP:
		return "stop";
	case EX_VALUE_PROVED:
		return "proved";
	case EX_VALUE_LATER:
		return "later";
	case EX_VALUE_UNKNOWN:
		break;
	}
	return NULL;
}

bool
ex_value_known(const struct ex_value *value, unsigned from, unsigned len)
{
	if (len == 0 || from >= EX_VALUE_MAX || len > EX_VALUE_MAX - from)
		return false;
	return (~value->known & (uint32_t)(((UINT64_C(1) << len) - 1) << from))
	    == 0;
}

uint64_t
ex_value_number(const struct ex_value *value, unsigned from, unsigned len)
{
	uint64_t number = 0;

	if (len == sizeof(number) && from <= EX_VALUE_MAX - sizeof(number)) {
		memcpy(&number, value->byte + from, sizeof(number));
		return number;
	}
	for (unsigned i = len < 8 ? len : 8; i > 0; i--)
		number = number << 8 |
		    value->byte[(from + i - 1) % EX_VALUE_MAX];
	return number;
}
