/*
 * synthetic_records: the state before the watch, as records.  They are kept,
 * because both explaining and a recording begin with them.
 */
#ifndef SYNTHETIC_RECORDS_H
#define SYNTHETIC_RECORDS_H

#include "record/record.h"

struct synthetic_records {
	uint8_t *bytes;		/* records, one after the other */
	size_t len, cap;
	struct ex_formats *formats;	/* to decode them by; NULL: none yet */
};

/* Add the records of a process as it is now.  0 or -errno. */
int synthetic_records_take(struct synthetic_records *, pid_t);

/* Those from there on are of a process that has executed another program since
   others of it. */
void synthetic_records_executed(struct synthetic_records *, size_t at);

/* Other processes have this one's memory: all that it maps is shared. */
void synthetic_records_shared(struct synthetic_records *, pid_t);

/* Call fn for each record, in order. */
void synthetic_records_each(const struct synthetic_records *,
    void (*fn)(void *arg, const struct ex_record *), void *arg);

void synthetic_records_free(struct synthetic_records *);

#endif
