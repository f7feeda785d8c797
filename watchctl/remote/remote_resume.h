/*
 * remote_resume: writes the state that a new explainer needs to continue a
 * session.
 */
#ifndef REMOTE_RESUME_H
#define REMOTE_RESUME_H

#include "remote/past_hits.h"
#include "session/session.h"
#include "util/buffer.h"

/* Append entries of a journal (session/journal.h): the log, the session's
   state, and its past hits.  Without memory the buffer has failed. */
void remote_resume_put(struct buffer *, const struct buffer *log,
    const struct session *, const struct past_hits *);

#endif
