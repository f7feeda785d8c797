/*
 * journal_reader: keeps the session of a journal (session/journal.h) that
 * watchctl writes, and reports the results of its samples and hits.
 */
#ifndef JOURNAL_READER_H
#define JOURNAL_READER_H

#include "broker/message.h"
#include "session/session.h"

/* Take a message about the journal of the open session, and close its
   descriptor (-1: none).  At the end of the journal this process ends.  False:
   it is another message. */
bool journal_read(struct session *, struct broker_shared *,
    const struct broker_message *, int fd);

#endif
