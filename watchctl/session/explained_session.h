/*
 * explained_session: a session whose hits are explained, judged and reported in
 * this process, which is an explainer (or a test).
 */
#ifndef EXPLAINED_SESSION_H
#define EXPLAINED_SESSION_H

#include "session/session.h"

/* How a report goes on that somebody else began, and did not live to end. */
struct session_resume {
	bool begun;		/* its first lines are written, ... */
	uint64_t hits;		/* ... and these; UINT64_MAX: all of it */
};

/* A session for a report that goes into an open stream, which stays the
   caller's; of a space, which is the session's then, or
   NULL: a new one.  As session_open otherwise. */
int explained_session_open(struct session *, const struct options *,
    enum ex_source, struct ex_space *, FILE *out,
    const struct output_screen *, const struct session_resume *);

/* The same of one that is open.  0, or -ENOMEM after a line on stderr. */
int explained_session_begin(struct session *, enum ex_source,
    struct ex_space *);

/* All that was there before somebody else left the report to this process is
   known, after a time in which s->resuming was set: it goes on from here. */
void explained_session_resumed(struct session *);

/* All hits up to this one, by its number `begun', are reported or left out. */
uint64_t explained_session_done(const struct session *);

/* How many hits are written when what is being written now is. */
uint64_t explained_session_writing(const struct session *);

/* As session_object; SPEC NULL: none. */
int explained_session_object(struct session *, pid_t, const struct spec *,
    uint64_t addr, uint64_t len);

#endif
