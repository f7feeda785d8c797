/*
 * argument: reads the arguments of a function at a hit of its first
 * instruction.
 *
 * Debug information gives the location of each argument at an address: a
 * register or memory.  A sample has the registers and a copy of the stack.  An
 * argument that is elsewhere was not captured, and one that is not in its
 * location yet would be wrong: both are left out.
 */
#ifndef EX_ARGUMENT_H
#define EX_ARGUMENT_H

#include "record/record.h"

struct ex_process;

enum { EX_ARGUMENTS_MAX = 32, EX_ARGUMENT_TEXT = 256 };

struct ex_arguments {
	unsigned n;
	struct ex_argument {
		const char *name;	/* "": it has none */
		const char *type;	/* as C or C++ names it */
		bool has_value;		/* its value, of at most 8 bytes, is
					   known as a number */
		uint64_t value;
		/* as of ex_object_text; "": none for its type */
		char text[EX_ARGUMENT_TEXT];
	} arg[EX_ARGUMENTS_MAX];
};

/* The arguments of a sample taken at this pc, in their order; none if no
   function begins there. */
void ex_arguments_take(struct ex_process *, const struct ex_sample *,
    uint64_t pc, struct ex_arguments *);

#endif
