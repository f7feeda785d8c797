/*
 * html_escape: writes untrusted text into a page, so that none of it becomes
 * markup.
 */
#ifndef HTML_ESCAPE_H
#define HTML_ESCAPE_H

#include "util/buffer.h"

/* Append a text, made visible (visible.h) and escaped; and at most max
   characters of it, with "..." if there are more. */
void html_put(struct buffer *, const char *text);
void html_put_max(struct buffer *, const char *text, size_t max);

/* Escape everything that was appended from start on. */
void html_escape(struct buffer *, size_t start);

#endif
