/*
 * html_escape: writes untrusted text into a page, so that none of it becomes
 * markup.
 */
#ifndef HTML_ESCAPE_H
#define HTML_ESCAPE_H

#include "util/buffer.h"

/* Append a text, as a reader is to see it (visible.h); the same of at most so
   many characters, "..." if there are more. */
void html_put(struct buffer *, const char *text);
void html_put_max(struct buffer *, const char *text, size_t max);

/* Escape what was appended from start on, so that it is text. */
void html_escape(struct buffer *, size_t start);

#endif
