/* preloaded: starts a command with one of our libraries preloaded. */
#ifndef PRELOADED_H
#define PRELOADED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "handler/channel.h"
#include "option/options.h"

/* A library, and the places to look for it. */
struct preloaded_library {
	const char *option, *name;	/* the option that needs it; its file
					   name */
	const char *beside[2];		/* paths relative to this program:
					   installed, and in the build tree */
	const char *installed;
	const char *variable;		/* environment variable that may name
					   it; NULL: none */
};

/* Find the library.  0, or -errno after a line on stderr. */
int preloaded_find(const struct preloaded_library *, char path[PATH_MAX]);

/* Find the command's file, and check that it can be started.  0, or the exit
   status after a line on stderr. */
int preloaded_check(const char *command, char path[PATH_MAX]);

/* Put a library in front of those that the command preloads anyway.  0, or
   nonzero: out of memory. */
int preloaded_set(const char *library);

/* Catch signals: pass those meant for the command on to it, and ring the
   channel's bell, if there is a channel, at any signal. */
void preloaded_catch(struct wp_channel *);
void preloaded_forget_channel(void);

/* Start the command; quiet: for a further run, with this standard input, no
   output, and a session without a terminal.  0, or the exit status after a line
   on stderr. */
int preloaded_start(const struct options *, pid_t *);
int preloaded_start_quiet(const struct options *, int input, pid_t *);

/* Whether a signal has arrived that ends the command; it also ends a quiet
   one. */
bool preloaded_is_interrupted(void);

/* Wait for the command.  Result: its exit status, or 128 + the signal that
   ended it. */
int preloaded_wait(pid_t);

#endif
