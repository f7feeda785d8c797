/* preloaded: starts a command with one of our libraries preloaded. */
#ifndef PRELOADED_H
#define PRELOADED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "handler/channel.h"
#include "option/options.h"

/* A library, and where it may be. */
struct preloaded_library {
	const char *option, *name;	/* that needs it; its file's */
	const char *beside[2];		/* this program: installed, built */
	const char *installed;
	const char *variable;		/* that may name it; NULL: none */
};

/* Find it.  0, or -errno after a line on stderr. */
int preloaded_find(const struct preloaded_library *, char path[PATH_MAX]);

/* Whether the command can be started; its file.  0, or the exit status after a
   line on stderr. */
int preloaded_check(const char *command, char path[PATH_MAX]);

/* Put a library in front of what the command is to preload anyway.  0, or
   nonzero: out of memory. */
int preloaded_set(const char *library);

/* Catch signals: those that are meant for the command are passed on to it, and
   the channel, if there is one, rings at any. */
void preloaded_catch(struct wp_channel *);
void preloaded_forget_channel(void);

/* Start the command; quiet: once more, with this standard input and nothing to
   write to, in a session without a terminal.  0, or the exit status after a
   line on stderr. */
int preloaded_start(const struct options *, pid_t *);
int preloaded_start_quiet(const struct options *, int input, pid_t *);

/* Whether a signal has come that is to end the command, as it does a quiet
   one. */
bool preloaded_is_interrupted(void);

/* Its exit status, or 128 + the signal that ended it. */
int preloaded_wait(pid_t);

#endif
