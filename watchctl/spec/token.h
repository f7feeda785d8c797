/*
 * token: recognizes the tokens of an expression: names, numbers, characters,
 * types.
 *
 * A name includes everything that qualifies it: scopes, template arguments, and
 * the source file of a static one ("list.c::head").  Pure; nothing is copied.
 */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Skip blanks. */
const char *token_skip(const char *);

/* The length of the name at p, 0: none; *wrong: where it is malformed, such as
   a template's '<' that is never closed; NULL: it is not. */
size_t token_name(const char *p, const char **wrong);

/* The length of the source file at the beginning of a name, including "::"; 0:
   none. */
size_t token_file(const char *p);

/* The length of the word at p: letters, digits, '_' and '$'. */
size_t token_word(const char *p);

/* Whether exactly this word is at p. */
bool token_is(const char *p, const char *word);

/* A constant. */
struct token_number {
	uint64_t value;
	unsigned size;		/* of its type, bytes */
	bool is_signed;
};

/* Advance over a constant.  NULL, or what is wrong at *p. */
const char *token_number(const char **p, struct token_number *);
const char *token_character(const char **p, struct token_number *);

/* A type, "struct conn *", "unsigned long", "int (*)[4]" or "T &". */
enum { TOKEN_DIMENSIONS = 3 };
struct token_type {
	enum token_tag { TAG_ANY, TAG_STRUCT, TAG_UNION, TAG_ENUM } tag;
	const char *base;	/* a basic type of C; NULL: a name, */
	const char *name;	/* len characters of it */
	size_t len;
	unsigned pointers;	/* to it */
	unsigned ndims;		/* then to an array of these, with this many
				   dimensions, */
	uint64_t count[TOKEN_DIMENSIONS];
	unsigned outer;		/* then this many pointers; function pointers
				   become pointers to void */
	bool reference;		/* it is a reference to that */
};

/* Advance over a type and the blanks after it.  False: there is none, and *p is
   unchanged. */
bool token_type(const char **p, struct token_type *);

#endif
