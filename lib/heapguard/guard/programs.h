/*
 * programs: the programs of a run, each of which registers itself if it is
 * guarded.
 *
 * Whoever executes one says so, too: what has not said hello is not guarded.
 */
#ifndef HG_PROGRAMS_H
#define HG_PROGRAMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "guard/evidence.h"

/* This process executes a program; say which.  Result: what to give to undo
   that, if it could not; NULL: nothing.  And one that this process has made has
   executed one. */
struct hg_program *hg_program_executed(const char *path);
void hg_program_spawned(pid_t, const char *path);
void hg_program_failed(struct hg_program *);

/* It has executed one. */
void hg_program_hello(enum hg_hello);

/* Which one this is, by the arguments that it was executed with. */
void hg_program_image(int argc, char **argv, struct hg_image *);

/* Whether it is that one; any: or another of the same file. */
bool hg_program_is(const struct hg_image *, bool any);

/* This process's. */
void hg_program_name(char path[HG_PATH_MAX]);

#endif
