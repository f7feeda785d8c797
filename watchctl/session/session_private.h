/* session_private: what the files of a session share. */
#ifndef SESSION_PRIVATE_H
#define SESSION_PRIVATE_H

#include "session/journal.h"
#include "session/session.h"

/* Whether there is a report, and it can still be written. */
static inline bool
session_reports(const struct session *s)
{
	return s->report.ops != NULL && s->err == 0;
}

/* Append an entry with these bytes to the journal. */
void session_put(struct session *, enum journal_what, const void *bytes,
    size_t len);

/* Append all watches and slots to the journal; and free them. */
void session_put_watches(struct session *);
void session_free_watches(struct session *);

/* Complete the file of the recording.  0 or -errno. */
int session_end_recording(struct session *);

#endif
