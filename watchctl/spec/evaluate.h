/*
 * evaluate: finds the object of a process that an expression names.
 *
 * Names are looked up as SPECs are; types are the debug information's, or C's
 * own; memory is read as it is now.  What can go wrong is reported with the
 * column.
 */
#ifndef EVALUATE_H
#define EVALUATE_H

#include "spec/spec.h"

/* The object of spec->expression.  0 or -errno with a cause; -ENOENT as of
   spec_resolve. */
int evaluate(const struct spec *, struct ex_process *, bool early,
    struct spec_place *, struct wp_cause *);

/* How far behind the beginning of what spec->allocator returns the object of
   spec->expression is, and how long.  As above. */
int evaluate_part(const struct spec *, struct ex_process *, bool early,
    uint64_t *offset, uint64_t *len, struct wp_cause *);

/* How long what the function at a module's vaddr returns a pointer to is, by
   its type; 0: not known. */
uint64_t evaluate_size(struct ex_process *, struct ex_module *,
    uint64_t vaddr);

/* Whether a SPEC that is good as a symbol names a reference, which is what it
   refers to. */
bool evaluate_is_reference(const struct spec *, struct ex_process *,
    bool early);

/* As spec_declare, of an expression. */
void evaluate_declare(const struct spec *, struct ex_process *, uint64_t addr,
    uint64_t len);

#endif
