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

/* Append text for a reader: \t \n \r, \xNN for a byte, \uNNNN for a character.
   A backslash is not escaped, because the text is to be read and not
   decoded. */
void visible_put(struct buffer *, const char *text);

/* The same, of at most max characters (escapes count as one); "..." says that
   there are more. */
void visible_put_max(struct buffer *, const char *text, size_t max);

/* Append text as a JSON string with its quotes; a byte that is not UTF-8
   becomes U+FFFD. */
void visible_put_json(struct buffer *, const char *text);

/* The length of the character at text, which has len bytes, at least 1; 0: it is
   not UTF-8. */
size_t visible_utf8(const char *text, size_t len);

/* Whether a text is harmless to a terminal: its only control characters are
   line ends, tabs and, where allowed, colours. */
bool visible_is_harmless(const char *text, size_t len, bool colour);

/* Cut the lines of a buffer from start on after this many columns, with "..."
   at the cut.  Colours cost no column, and are all kept. */
void visible_cut(struct buffer *, size_t start, unsigned columns);

/* The number of visible characters of a UTF-8 text, for aligning columns. */
size_t visible_columns(const char *text, size_t len);

#endif
