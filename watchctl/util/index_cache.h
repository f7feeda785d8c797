/*
 * index_cache: indexes of debug information, kept in the user's cache
 * directory.
 *
 * $XDG_CACHE_HOME/watchctl, or ~/.cache/watchctl: a directory that belongs to
 * who runs watchctl, and that nobody else may write.  Where it is not that, or
 * the environment is not trusted (setuid, file capabilities), nothing is kept.
 */
#ifndef INDEX_CACHE_H
#define INDEX_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* As debug/index.h has them.  At most one is written at a time. */
int index_cache_open(const char *key);
int index_cache_begin(const char *key);
int index_cache_put(const void *bytes, size_t len);
int index_cache_end(bool good);

#endif
