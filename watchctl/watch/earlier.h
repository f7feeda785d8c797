/*
 * earlier: what was there before the watch, as records: kept, since both the
 * explaining and a recording begin with them.
 */
#ifndef EARLIER_H
#define EARLIER_H

#include "record/record.h"

struct earlier {
	uint8_t *bytes;		/* records, one after the other */
	size_t len, cap;
	struct ex_formats *formats;	/* to decode them by; NULL: none yet */
};

/* Add the records of a process as it is now.  0 or -errno. */
int earlier_take(struct earlier *, pid_t);

/* Call fn for each record, in order. */
void earlier_each(const struct earlier *,
    void (*fn)(void *arg, const struct ex_record *), void *arg);

void earlier_free(struct earlier *);

#endif
