/*
 * log_frames: finds the functions and lines of the frames in a log
 * (broker/symbolize_log.c), in the modules' files as they are now.
 */
#ifndef LOG_FRAMES_H
#define LOG_FRAMES_H

#include <stdbool.h>
#include <sys/types.h>

#include "broker/message.h"

struct ex_space;

/* All zero except the space, which is one of recordings. */
struct log_frames {
	struct ex_space *space;
	void *files;		/* a tree, by path */
	pid_t nfiles;
};

/* Take and answer a message about a log.  False: it is another message. */
bool log_frames_take(struct log_frames *, const struct broker_message *);

#endif
