/*
 * att: an x86 instruction as text, in AT&T syntax, as objdump and gdb print it.
 *
 * Zydis decodes; its own AT&T formatter differs from binutils in names,
 * suffixes, immediates and spacing, so the text is put together here.
 */
#ifndef EX_ATT_H
#define EX_ATT_H

#include <Zydis/Zydis.h>
#include <stddef.h>
#include <stdint.h>

/* Write the text of an instruction at pc (for the targets of its branches), cut
   off at size bytes, NUL included. */
void ex_att_text(const ZydisDecodedInstruction *, const ZydisDecodedOperand *,
    uint64_t pc, char *to, size_t size);

#endif
