/*
 * ci: the findings of a run, in the formats of systems that run tests (--junit,
 * --sarif, --github).
 *
 * Each form writes the same list of problems.  A new kind of problem is added
 * to that list, by ci_add, and to the table of rules.
 */
#ifndef CI_H
#define CI_H

#include <limits.h>

#include "report/report.h"
#include "util/buffer.h"

struct ci_rule {
	const char *id;		/* "stray-write" */
	const char *title;	/* "stray write" */
	const char *help;	/* a sentence */
};

/* In the order of this table; the last is all NULL. */
extern const struct ci_rule ci_rules[];
const struct ci_rule *ci_rule(const char *id);

struct ci_problem {
	const struct ci_rule *rule;
	const char *title;	/* the rule's, or a more exact one */
	char *program;		/* in which it is */
	char *subject;		/* "SPEC by FUNCTION" */
	char *message;		/* a sentence without its full stop */
	const char *spec;	/* in which watch it is; NULL: in none */
	uint64_t print;		/* a hash of the rule, the SPEC and the names of
				   functions: the same in each build */
	const struct ex_frame *frame;	/* where it is; NULL: not known */
	const struct ex_stack *stack;	/* how it came there; NULL: not known */
	bool doubt;		/* it is not a fault of the program: it may have
				   been missed */
};

struct ci {			/* all zero: nothing is found */
	struct ci_problem *problem;	/* n of them */
	size_t n, cap;
	const struct ex_watch *const *watch;	/* nwatches of them */
	unsigned nwatches;
	const char *program;	/* what runs; "": not known */
	double seconds;		/* for how long */
	char directory[PATH_MAX];	/* the current one; "": not known */
	bool failed;		/* out of memory: a problem is missing */
};

/* The run has ended: what was found in heaps is there, if anything was, and
   before it come its stray writers, each once, whatever its instructions; and
   why it cannot be vouched for ("": it can).  program and the report outlive
   it. */
void ci_end(struct ci *, const struct report_start *,
    const struct report_end *, const char *program, const char *doubt,
    double seconds);
void ci_free(struct ci *);

/* Add a problem, whose texts are malloc'd and then its own; one that is there
   already, by its print, is not added. */
void ci_add(struct ci *, const struct ci_problem *);

/* Add what was found in a heap, while the run goes on; its stacks outlive
   it. */
void ci_add_damage(struct ci *, const struct report_damage *);

/* A hash of texts, up to NULL, for a print. */
uint64_t ci_print(const char *const *texts);

/* The path of a frame's source file as a reader is to have it: below the
   current directory from there on, else absolute.  NULL: it is not known. */
const char *ci_path(const struct ci *, const struct ex_frame *);

/* A line for each problem, as GitHub's runner takes them from a log. */
void ci_put_github(const struct ci *, struct buffer *);

/* A file of JUnit's; of SARIF 2.1.0. */
void ci_put_junit(const struct ci *, struct buffer *);
void ci_put_sarif(const struct ci *, struct buffer *);

#endif
