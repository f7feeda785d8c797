/*
 * expression: parses the C expressions of SPECs into a tree.
 *
 *	server.clients->len  table[i + 1].next  *(long *)0x404090
 *	list.c::head  ns::Class<int>::member  module::name%member
 *
 * Calls, assignments and conditional operators are not accepted.  Whether `a %
 * b` is a Fortran member, and `(a)` a type, is decided on evaluation.  Parsing
 * is pure; depth and size of a tree are bounded.
 */
#ifndef EXPRESSION_H
#define EXPRESSION_H

#include "spec/token.h"

enum node_kind {
	NODE_NUMBER,		/* number */
	NODE_NAME,		/* text */
	NODE_RESULT,		/* text: what the function with this name
				   returns */
	NODE_MEMBER,		/* left.text */
	NODE_ARROW,		/* left->text */
	NODE_INDEX,		/* left[right] */
	NODE_ELEMENT,		/* left(right): Fortran's */
	NODE_DEREFERENCE,	/* *left */
	NODE_ADDRESS,		/* &left */
	NODE_NEGATIVE,		/* -left */
	NODE_POSITIVE,		/* +left */
	NODE_COMPLEMENT,	/* ~left */
	NODE_CAST,		/* (type)left, static_cast<type>(left) */
	NODE_SIZE,		/* sizeof left */
	NODE_TYPE_SIZE,		/* sizeof (type) */
	NODE_MULTIPLY, NODE_DIVIDE, NODE_REMAINDER,	/* left * right */
	NODE_ADD, NODE_SUBTRACT, NODE_SHIFT_LEFT, NODE_SHIFT_RIGHT, NODE_AND,
};

/* Texts point into the parsed one. */
struct node {
	enum node_kind kind;
	const struct node *left, *right;
	const char *text;	/* len characters: the name */
	size_t len;
	const char *begin, *end;	/* the whole text of the node, and */
	const char *at;		/* the character that a message points at */
	struct token_number number;
	struct token_type type;
	bool reinterprets;	/* a cast: the address stays as it is */
};

enum { EXPRESSION_NODES = 256 };

struct expression {
	struct node node[EXPRESSION_NODES];
	size_t n;
	const struct node *root;
};

/* Parse as much as possible from *p on; the text must outlive the tree.  NULL;
   or what is wrong at *p. */
const char *expression_parse(const char **p, struct expression *);

/* The same for the steps at *p that begin with a function's result:
   "->member[1].name". */
const char *expression_parse_steps(const char **p, const char *function,
    size_t len, struct expression *);

/* Whether it is always a value and never an object: &x, p + 1. */
bool expression_is_value(const struct node *);

/* Whether a cast of C++, such as static_cast<T *>, is in the text: no symbol has
   one. */
bool expression_has_named_cast(const char *text);

/* Whether the type of the object that it names comes from a cast:
   *(float *)word, ((struct conn *)bytes)->state; not table[(int)i]. */
bool expression_casts(const struct node *);

#endif
