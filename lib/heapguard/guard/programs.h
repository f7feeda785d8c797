/*
 * programs: the programs of a run, each of which registers itself if it is
 * guarded.
 *
 * A process that executes a program records that, too: a program that was
 * executed and has not registered itself is not guarded.
 */
#ifndef HG_PROGRAMS_H
#define HG_PROGRAMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "guard/evidence.h"

/* Record that this process is about to execute a program; the result undoes
   that by hg_program_failed (NULL: nothing to undo).  And record that a process
   which this one has made has executed one. */
struct hg_program *hg_program_executed(const char *path);
void hg_program_spawned(pid_t, const char *path);
void hg_program_failed(struct hg_program *);

/* Register this program. */
void hg_program_hello(enum hg_hello);

/* Identify this program, by the arguments that it was executed with, except for
   the names of files in a directory for temporary files: /tmp, and this one. */
void hg_program_image(int argc, char **argv, const char *temporary,
    struct hg_image *);

/* Whether this is that program; any: arguments and order may differ. */
bool hg_program_is(const struct hg_image *, bool any);

/* The path of this process's program. */
void hg_program_name(char path[HG_PATH_MAX]);

#endif
