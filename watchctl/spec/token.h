/*
 * token: the tokens of an expression: names, numbers, characters, types.
 *
 * A name is all that says which: scopes, template arguments, and the source
 * file of a static one ("list.c::head").  Pure; nothing is copied.
 */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Skip blanks. */
const char *token_skip(const char *);

/* How many characters of a name are at p: 0: none; *wrong: where it cannot go
   on, as a template's '<' that is never closed; NULL: nothing is wrong. */
size_t token_name(const char *p, const char **wrong);

/* How many of them name a source file, with the "::" behind it; 0: none do. */
size_t token_file(const char *p);

/* How many of a single word are at p: letters, digits, '_' and '$'. */
size_t token_word(const char *p);

/* Whether this word is at p, and ends there. */
bool token_is(const char *p, const char *word);

/* A constant. */
struct token_number {
	uint64_t value;
	unsigned size;		/* of its type, bytes */
	bool is_signed;
};

/* Advance over one.  NULL, or what is wrong at *p. */
const char *token_number(const char **p, struct token_number *);
const char *token_character(const char **p, struct token_number *);

/* A type, "struct conn *", "unsigned long" or "int (*)[4]". */
enum { TOKEN_DIMENSIONS = 3 };
struct token_type {
	enum token_tag { TAG_ANY, TAG_STRUCT, TAG_UNION, TAG_ENUM } tag;
	const char *base;	/* C's own type; NULL: a name, */
	const char *name;	/* len characters of it */
	size_t len;
	unsigned pointers;	/* to it */
	unsigned ndims;		/* then to an array of these, with so many
				   dimensions, */
	uint64_t count[TOKEN_DIMENSIONS];
	unsigned outer;		/* so many pointers; a function's are to void */
};

/* Advance over one, and over the blanks behind it.  False: none is there, and
   *p is as it was. */
bool token_type(const char **p, struct token_type *);

#endif
