/*
 * condition: a condition for hits, as a C expression.
 *
 *	new < 0 && comm == "worker"	caller("reload") || (access == "read")
 *
 * A condition is parsed once, into a tree that is evaluated for each hit; the
 * caller supplies the values of names.  An unknown value makes the result
 * unknown only where it matters: `false && unknown` is false.
 *
 * The operands of && and || have no side effects, so the cheaper one is
 * evaluated first.
 */
#ifndef CONDITION_H
#define CONDITION_H

#include <stddef.h>

#include "base/number.h"

enum condition_kind {
	CONDITION_NUMBER,	/* number */
	CONDITION_NAME,		/* name: a number of the hit */
	CONDITION_ENUMERATOR,	/* text: an enumerator of the watched type */
	CONDITION_EQUAL_TEXT,	/* name == text, of a hit's text */
	CONDITION_IN,		/* text: a function */
	CONDITION_CALLER,	/* text: a function */
	CONDITION_NOT,		/* !a */
	CONDITION_COMPLEMENT,	/* ~a */
	CONDITION_NEGATIVE,	/* -a */
	CONDITION_POSITIVE,	/* +a */
	CONDITION_CAST,		/* (type of number)a */
	CONDITION_CAST_BOOL,	/* (bool)a */
	CONDITION_OPERATOR,	/* a operator b */
	CONDITION_AND,		/* a && b, */
	CONDITION_OR,		/* a || b: a is the cheaper one */
	CONDITION_CHOICE,	/* a ? b : c */
	CONDITION_TEXT,		/* text; only within the parser */
};

enum condition_name {
	CONDITION_OLD, CONDITION_NEW, CONDITION_CHANGED, CONDITION_COUNT,
	CONDITION_TID, CONDITION_PID, CONDITION_CPU,
	/* texts */
	CONDITION_COMM, CONDITION_ACCESS, CONDITION_ORIGIN,
};

struct condition_node {
	enum condition_kind kind;
	const struct condition_node *a, *b, *c;
	enum condition_name name;
	enum ex_operator operator;
	struct ex_number number;
	const char *text;	/* lives as long as the condition */
	unsigned column;	/* where it begins, from 1 */
	unsigned call;		/* IN and CALLER: its number among these, from
				   0 */
	unsigned cost;		/* relative cost of evaluation */
};

struct condition {
	const struct condition_node *root;
	unsigned calls;		/* number of IN and CALLER nodes */
	bool typed;		/* it has enumerators */
	const char *option;	/* "--if", for messages; set by the caller after
				   parsing */
	/* private to condition.c */
	struct condition_node *nodes;
	size_t n;
	char *texts, *text_end;
};

/* An error and its column, from 1; one more than the last at the end. */
struct condition_error {
	unsigned column;
	char text[160];
};

/* Parse a text.  0; -EINVAL with an error; -ENOMEM.  Free it in any case. */
int condition_parse(const char *text, struct condition *,
    struct condition_error *);
void condition_free(struct condition *);

enum condition_truth { CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

/* Supplies the values of one hit. */
struct condition_hit {
	/* The number of a name; and of an enumerator.  False: unknown. */
	bool (*number)(void *arg, enum condition_name, struct ex_number *);
	bool (*enumerator)(void *arg, const char *text, struct ex_number *);
	enum condition_truth (*is_text)(void *arg, enum condition_name,
	    const char *text);
	/* evaluates IN or CALLER */
	enum condition_truth (*call)(void *arg, const struct condition_node *);
	void *arg;
};

enum condition_truth condition_holds(const struct condition *,
    const struct condition_hit *);

/* Call fn for each node, until it returns false, which is then the result. */
bool condition_each(const struct condition *,
    bool (*fn)(void *arg, const struct condition_node *), void *arg);

#endif
