/*
 * option_table: the single list of options, for the command line, the help, the
 * manual's synopsis, and completion.
 */
#ifndef OPTION_TABLE_H
#define OPTION_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

/* The getopt_long(3) values of options without a letter.  They differ from all
   letters, so a value shows which form was misused. */
enum { OPT_COUNT = 256, OPT_USER_ONLY, OPT_CHANGED, OPT_STACK, OPT_ALLOW,
	OPT_ERROR_EXITCODE, OPT_JUNIT, OPT_SARIF, OPT_GITHUB, OPT_LEARN,
	OPT_POLICY, OPT_INSIDE, OPT_STOP, OPT_ON_HIT, OPT_NO_ASLR,
	OPT_IF, OPT_EVERY, OPT_EACH, OPT_MAX_RATE, OPT_ONCE, OPT_LAST,
	OPT_TOP,
	OPT_UNTIL, OPT_WITH,
	OPT_STACKS, OPT_EXPLAIN_MEMORY, OPT_NO_CACHE, OPT_BUFFER,
	OPT_DELIVERY, OPT_EXE, OPT_CGROUP, OPT_ALL_CPUS,
	OPT_FOLLOW, OPT_IF_MISSING, OPT_SLOTS,
	OPT_AFTER_FREE, OPT_FREE_FUNCTION,
	OPT_HEAP, OPT_HEAP_RUNS, OPT_HEAP_QUARANTINE,
	OPT_HELP, OPT_VERSION,
	OPT_END };	/* the number of values, including letters */

/* The forms of a command line, and a flag for the synopsis. */
enum {
	OPTION_ATTACH = 1,	/* -p, --exe, --cgroup or --all-cpus */
	OPTION_COMMAND = 2,
	OPTION_INSIDE = 4,	/* a command, with --inside */
	OPTION_REPORT = 8,
	OPTION_HEAP = 32,	/* a command, with --heap */
	OPTION_APART = 16	/* not listed with the others in a synopsis */
};

struct option_entry {
	char letter;		/* NUL: none */
	const char *name;	/* without its dashes; NULL: none */
	int value;		/* for getopt_long(3) */
	const char *argument;	/* its name in the help; in lower case: the only
				   accepted argument; "[=...": may be left out,
				   and is never a separate word; NULL: it takes
				   none */
	const char *words;	/* accepted words, separated by blanks; NULL:
				   not listed */
	unsigned forms;		/* the forms that accept it */
	const char *help;	/* lines, the last without its end */
};

/* In the order of the help; the last has no help. */
extern const struct option_entry option_table[];

static inline bool
option_is_for(const struct option_entry *entry, unsigned forms)
{
	return (entry->forms & forms) != 0;
}

/* Whether it takes an argument: no_argument, required_argument, or
   optional_argument. */
int option_takes(const struct option_entry *);

/* The entry of an option, by its letter or value; and its name on a command
   line: "-n", "--each". */
const struct option_entry *option_of(int);
const char *option_called(int);

/* For getopt_long(3): `first' followed by the letters, and the names.  Valid
   until the next call. */
struct option_names {
	char letters[64];
	const struct option *names;	/* the last is all zero */
};
const struct option_names *option_names(unsigned forms, const char *first);

/* Write the help; or the manual's synopsis (mdoc(7)). */
void option_help(FILE *);
void option_synopsis(FILE *);

#endif
