/*
 * hit_condition: evaluates whether a condition holds for a hit, by the known
 * properties of the hit.
 *
 * Only proved facts decide: not a value that was read later, nor that a caller
 * is absent where the backtrace may miss one.  A value has the type that debug
 * information gives it; without one it is an integer as wide as its watch, of
 * unknown sign.  Where the sign matters, the condition's truth is unknown.
 */
#ifndef HIT_CONDITION_H
#define HIT_CONDITION_H

#include "hit/hit.h"
#include "spec/condition.h"

/* Check a condition against the watched variable; NULL: its type is unknown.
   0; -EINVAL after a line on stderr: an enumerator in the condition does not
   exist there. */
int hit_condition_check(const struct condition *,
    const struct ex_object *watched);

struct hit_condition;

/* Create one for a condition, which must outlive it.  NULL: out of memory. */
struct hit_condition *hit_condition_new(const struct condition *);
void hit_condition_free(struct hit_condition *);

/* Evaluate the condition for a hit; all hits come from one explainer. count is
   as in conditions; 0: not known. */
enum condition_truth hit_condition_truth(struct hit_condition *,
    const struct ex_hit *, uint64_t count);

/* Whether a hit is rejected (NULL: there is no condition).  A hit for which the
   truth is unknown is not rejected, and becomes `unsure'. */
bool hit_condition_rejects(struct hit_condition *, struct ex_hit *,
    uint64_t count);

#endif
