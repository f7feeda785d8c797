/* operand_x86_64: the trap comes after the access, and names all watches. */
#include "os/operand.h"

bool
wp_operand(uint32_t code, const uint64_t *reg, struct wp_operand *operand)
{
	(void)code;
	(void)reg;
	(void)operand;
	return false;
}

bool
wp_operand_is_exclusive(uint32_t code)
{
	(void)code;
	return false;
}
