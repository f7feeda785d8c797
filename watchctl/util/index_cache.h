/*
 * index_cache: keeps indexes of debug information in the user's cache
 * directory.
 *
 * That is $XDG_CACHE_HOME/watchctl, or ~/.cache/watchctl, which must belong to
 * the user who runs watchctl and be writable by nobody else.  Otherwise, or if
 * the environment is not trusted (setuid, file capabilities), nothing is kept.
 */
#ifndef INDEX_CACHE_H
#define INDEX_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* As in debug/index.h.  At most one is written at a time. */
int index_cache_open(const char *key);
int index_cache_begin(const char *key);
int index_cache_put(const void *bytes, size_t len);
int index_cache_end(bool good);

#endif
