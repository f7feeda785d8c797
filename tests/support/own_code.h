/*
 * own_code: code of the test program itself, which never runs, as its module
 * contains it.
 */
#ifndef OWN_CODE_H
#define OWN_CODE_H

#include <Zydis/Zydis.h>

#include "capture.h"
#include "space/space.h"

struct own_code {
	struct ex_space *space;
	struct ex_module *module;
	uint64_t base;		/* what to add to a vaddr */
	ZydisDecoder decoder;
};

/* The setup of all tests: a module that has something at an address. */
static inline int
own_code_open(void **state, const uint8_t *at)
{
	static struct own_code code;
	const uint64_t addr = (uint64_t)(uintptr_t)at;
	struct ex_process *process = capture_self(&code.space);
	uint64_t vaddr;

	*state = &code;
	if (process == NULL || (code.module = ex_process_module(process, addr,
	    &vaddr)) == NULL)
		return -1;
	code.base = addr - vaddr;
	return ZYAN_SUCCESS(ZydisDecoderInit(&code.decoder,
	    ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ? 0 : -1;
}

static inline int
own_code_close(void **state)
{
	struct own_code *code = *state;

	ex_space_free(code->space);
	return 0;
}

#endif
