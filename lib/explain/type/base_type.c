/* base_type: the types that C itself has, those of <stdint.h>, and arrays that
   casts make of types. */
#include "type/declaration.h"

#include <string.h>

bool
ex_type_own(const char *name, struct ex_type *type)
{
	static const struct ex_layout own[] = {
		{.name = "char", .kind = EX_CHAR, .size = 1, .is_signed = true},
		{.name = "signed char", .kind = EX_CHAR, .size = 1,
		 .is_signed = true},
		{.name = "unsigned char", .kind = EX_CHAR, .size = 1},
		{.name = "short", .kind = EX_SIGNED, .size = 2,
		 .is_signed = true},
		{.name = "unsigned short", .kind = EX_UNSIGNED, .size = 2},
		{.name = "int", .kind = EX_SIGNED, .size = 4,
		 .is_signed = true},
		{.name = "unsigned int", .kind = EX_UNSIGNED, .size = 4},
		{.name = "long", .kind = EX_SIGNED, .size = 8,
		 .is_signed = true},
		{.name = "unsigned long", .kind = EX_UNSIGNED, .size = 8},
		{.name = "long long", .kind = EX_SIGNED, .size = 8,
		 .is_signed = true},
		{.name = "unsigned long long", .kind = EX_UNSIGNED, .size = 8},
		{.name = "float", .kind = EX_FLOAT, .size = 4},
		{.name = "double", .kind = EX_FLOAT, .size = 8},
		{.name = "long double", .kind = EX_FLOAT, .size = 16},
		{.name = "bool", .kind = EX_BOOL, .size = 1},
		{.name = "int8_t", .kind = EX_CHAR, .size = 1,
		 .is_signed = true},
		{.name = "uint8_t", .kind = EX_CHAR, .size = 1},
		{.name = "int16_t", .kind = EX_SIGNED, .size = 2,
		 .is_signed = true},
		{.name = "uint16_t", .kind = EX_UNSIGNED, .size = 2},
		{.name = "int32_t", .kind = EX_SIGNED, .size = 4,
		 .is_signed = true},
		{.name = "uint32_t", .kind = EX_UNSIGNED, .size = 4},
		{.name = "int64_t", .kind = EX_SIGNED, .size = 8,
		 .is_signed = true},
		{.name = "uint64_t", .kind = EX_UNSIGNED, .size = 8},
		{.name = "intptr_t", .kind = EX_SIGNED, .size = 8,
		 .is_signed = true},
		{.name = "uintptr_t", .kind = EX_UNSIGNED, .size = 8},
		{.name = "size_t", .kind = EX_UNSIGNED, .size = 8},
		{.name = "ssize_t", .kind = EX_SIGNED, .size = 8,
		 .is_signed = true},
	};

	*type = (struct ex_type){.tags = true};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (strcmp(own[i].name, name) == 0)
			type->layout = &own[i];
	}
	return type->layout != NULL || strcmp(name, "void") == 0;
}

void
ex_type_array(struct ex_type *type, const uint64_t *count, unsigned ndims,
    unsigned pointers)
{
	type->inner = type->pointers;
	type->ndims = ndims < EX_DIMENSIONS ? ndims : EX_DIMENSIONS;
	memset(type->first, 0, sizeof(type->first));
	memcpy(type->count, count, type->ndims * sizeof(*count));
	type->pointers = pointers;
}
