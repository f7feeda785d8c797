/*
 * synthetic_records: the state before the watch, as records.  They are kept
 * because explaining and recordings both begin with them.
 */
#ifndef SYNTHETIC_RECORDS_H
#define SYNTHETIC_RECORDS_H

#include "record/record.h"

struct synthetic_records {
	uint8_t *bytes;		/* records, one after the other */
	size_t len, cap;
	uint64_t time;		/* when the last were read, or before, ns,
				   CLOCK_MONOTONIC */
	struct ex_formats *formats;	/* for decoding them; NULL: none yet */
};

/* Add records of a process's present state.  0 or -errno. */
int synthetic_records_take(struct synthetic_records *, pid_t);

/* The records from this offset on are of a process that has executed another
   program since its earlier records. */
void synthetic_records_executed(struct synthetic_records *, size_t at);

/* Mark all mappings of a process as shared, because other processes have its
   memory. */
void synthetic_records_shared(struct synthetic_records *, pid_t);

/* Call fn for each record, in order. */
void synthetic_records_each(const struct synthetic_records *,
    void (*fn)(void *arg, const struct ex_record *), void *arg);

void synthetic_records_free(struct synthetic_records *);

#endif
