/* open: what is refused before a watch is opened. */
#ifndef WP_OPEN_H
#define WP_OPEN_H

/* Refuse as wp_open does, for this reason.  Returns -EINVAL. */
int wp_open_refuse(const char *why);

#endif
