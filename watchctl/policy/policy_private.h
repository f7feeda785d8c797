/* policy_private: what the files of a policy share. */
#ifndef POLICY_PRIVATE_H
#define POLICY_PRIVATE_H

#include "policy/by_stack.h"
#include "policy/policy.h"

struct policy {
	const char *const *allow;	/* n patterns */
	size_t n;
	bool whole;		/* some pattern, here or in the file, is for
				   full or mangled names */
	const struct policy_file *file;	/* NULL: none */
	bool *used;		/* by line number: the line has allowed
				   something */
	const struct ex_watch *watch;	/* the watch of the last hit, and the
					   file's rules for it; NULL: none */
	const struct policy_watch *rules;
	struct by_stack verdicts;	/* of struct verdict */
	void *asked;		/* a tree of known answers about jumps
				   (policy_backtrace.c) */
	struct findings findings;
};

/* Whether a pattern is meant for names with parameters or for mangled names.
   Other patterns are not matched with these, because "*config*" shall not match
   every function that is passed a config. */
bool policy_is_for_whole(const char *pattern);

/* Whether a pattern matches a frame's function, or its source file. */
bool policy_allows(const struct policy *, const struct ex_frame *);

/* The line that names a frame's function as a writer; NULL: there is none. */
const struct policy_line *policy_writer_line(const struct policy *,
    const struct ex_frame *);

/* Record that a line of the file has allowed something. */
void policy_use(const struct policy *, const struct policy_line *);

#endif
