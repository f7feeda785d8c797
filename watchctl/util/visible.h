/*
 * visible: makes untrusted text (names, paths, a SPEC) safe to print.
 *
 * Characters that a terminal would obey or hide are written as escapes: control
 * characters, line and paragraph separators, marks that change the direction of
 * writing, and bytes that are not UTF-8.  Everything else stays as it is.
 */
#ifndef VISIBLE_H
#define VISIBLE_H

#include <stdbool.h>

#include "util/buffer.h"

/* Append text for a reader: \t \n \r, \xNN for one byte, \uNNNN for one
   character.  A backslash stays one: this is to be read, not decoded. */
void visible_put(struct buffer *, const char *text);

/* The same, of at most max characters (escapes count as one); "..." says that
   there are more. */
void visible_put_max(struct buffer *, const char *text, size_t max);

/* Append text as a JSON string with its quotes; a byte that is not UTF-8
   becomes U+FFFD. */
void visible_put_json(struct buffer *, const char *text);

/* Whether a terminal may be given a text: of what controls one it has only line
   ends, tabs and, where they are allowed, colours. */
bool visible_is_harmless(const char *text, size_t len, bool colour);

/* Cut the lines that a buffer has from start on at so many columns: "..." says
   that there is more.  Colours cost no column, and are all kept. */
void visible_cut(struct buffer *, size_t start, unsigned columns);

/* How many characters a UTF-8 text shows: what to align columns by. */
size_t visible_columns(const char *text, size_t len);

#endif
