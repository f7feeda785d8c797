/* scope: the implementation of the macros. */
#ifndef WP_SCOPE_H
#define WP_SCOPE_H

/* A macro is not in force, for wp_cause's reason: reported once for each place
   in the source, after what.  By a thread that has wp_scope_lock. */
void wp_scope_failed(const char *macro, const char *name, const char *file,
    int line, const char *what);

#endif
