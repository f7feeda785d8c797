/*
 * policy: which code may touch the watched memory, and which touched it without
 * being allowed.
 *
 * A hit is allowed when a function of its backtrace, inlined ones included, or
 * the source file of one is among those allowed: they may, and so may whatever
 * they call.  Any other hit is stray, if its backtrace is whole; otherwise an
 * allowed caller could be missing, and the hit is not judged.  Nor is one that
 * came late, whose backtrace is not that of the access.  Only the program's
 * frames count, for a hit of the kernel too.  What the dynamic loader writes
 * itself, such as a pointer that it relocates, is never stray.
 *
 * A policy file (option/policy_file.h) allows more at one watch: patterns, and
 * writers, by their exact names (culprit_name.h).  These may, and what of the C
 * and C++ library they call, but nothing else that they call.
 *
 * Stray hits, and those not judged, are summed up in findings: one for each
 * watch and place in the program that is to be blamed.  That is the innermost
 * function that is not of the C or C++ library: the function that calls memcpy,
 * not memcpy.
 */
#ifndef POLICY_H
#define POLICY_H

#include <string.h>

#include "hit/hit.h"
#include "policy/findings.h"
#include "option/policy_file.h"

struct policy;

/*
 * A policy by these patterns (fnmatch(3)), which outlive it.  Each may match
 *  - a function's name, demangled and without parameters; one with a '(' or '_'
 *    at its beginning also that with parameters, and the mangled one;
 *  - a source file's name: its last part; if the pattern has a '/', its path or
 *    what follows a '/' of it.
 * NULL: out of memory.
 */
struct policy *policy_new(const char *const *allow, size_t n);
void policy_free(struct policy *);

/* Before the first hit: the rules of this file, which outlives it, too.  False:
   out of memory. */
bool policy_add_file(struct policy *, const struct policy_file *);

/* The i'th of its rules, from 0, that allowed nothing; NULL: there are not so
   many. */
const struct policy_line *policy_unused(const struct policy *, size_t i);

/* Set hit->stray, unless it is set already, or hit->unjudged, and count the hit
   when one is.  Hits come from one explainer, which outlives the policy's last
   use.  0, or -ENOMEM: one is, but the findings are no longer complete.
   Hot path: with a backtrace seen before, a look-up by its index. */
int policy_judge(struct policy *, struct ex_hit *);

/* The same, for a hit that stands for as many as this, all with its
   backtrace. */
int policy_recall(struct policy *, struct ex_hit *, uint64_t times);

/* Whether a frame is of a function that a pattern matches. */
bool policy_names(const struct policy *, const struct ex_frame *);

/* Whether no allowed function can be missing on a backtrace; NULL: one may
   be. */
bool policy_is_whole(struct policy *, const struct ex_stack *);

/* Append the name of a backtrace's writer; NAMED: it is proved that this is the
   innermost function that is not of the C or C++ library. */
enum policy_writer {
	POLICY_WRITER_NAMED,
	POLICY_WRITER_UNNAMED,	/* it has no name, or none for a line */
	POLICY_WRITER_MISSING	/* another may be missing on the backtrace */
};
enum policy_writer policy_writer(struct policy *, const struct ex_stack *,
    struct buffer *);

/* All findings of stray hits, or of those not judged, in order of their first
   hits; valid until the next hit. */
size_t policy_findings(const struct policy *, bool unjudged,
    const struct finding *const **);

/* What the n findings are, for a sentence: "writer", "writers"; where one did
   not write, "place", "places". */
static inline const char *
policy_word(const struct finding *const *findings, size_t n)
{
	bool writers = true;

	for (size_t i = 0; i < n; i++)
		writers = writers && strcmp(findings[i]->access, "write") == 0;
	if (n == 1)
		return writers ? "writer" : "place";
	return writers ? "writers" : "places";
}

#endif
