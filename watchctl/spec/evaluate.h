/*
 * evaluate: finds the object of a process that an expression names.
 *
 * Names are looked up like those of SPECs; types come from the debug
 * information or are C's own; memory is read as it is now.  Errors are reported
 * with their column.
 */
#ifndef EVALUATE_H
#define EVALUATE_H

#include "spec/spec.h"

struct ex_module;

/* Find the object of spec->expression.  0 or -errno with a cause; -ENOENT as of
   spec_resolve. */
int evaluate(const struct spec *, struct ex_process *, bool early,
    struct spec_place *, struct wp_cause *);

/* The offset and length of the object of spec->expression within what
   spec->allocator returns.  As above. */
int evaluate_part(const struct spec *, struct ex_process *, bool early,
    uint64_t *offset, uint64_t *len, struct wp_cause *);

/* The size of what the function at a module's vaddr returns a pointer to, by
   its type; 0: not known. */
uint64_t evaluate_size(struct ex_process *, struct ex_module *,
    uint64_t vaddr);

/* Whether a SPEC that is also a symbol names a reference, which stands for what
   it refers to. */
bool evaluate_is_reference(const struct spec *, struct ex_process *,
    bool early);

/* As spec_declare, for an expression. */
void evaluate_declare(const struct spec *, struct ex_process *, uint64_t addr,
    uint64_t len);

#endif
