/*
 * heap_rerun: makes the further runs of `watchctl --heap`, which find the
 * writers of the damage that the first run found: there the guard has
 * libwatchpoint watch the damaged bytes as soon as their block is allocated.
 */
#ifndef HEAP_RERUN_H
#define HEAP_RERUN_H

#include <sys/types.h>

#include "heap/heap_evidence.h"
#include "helper/serve.h"

/* Standard input, which each run shall read from the same place. */
struct heap_input {
	bool is_file;
	off_t at;		/* where the first run begins to read */
	int notify;		/* readable when the input, which is not a file,
				   has been read; -1: that cannot be noticed */
};
void heap_input_look(struct heap_input *);
void heap_input_close(struct heap_input *);

struct heap_rerun {
	struct serve *serve;	/* the owner of the session */
	const char *guard;	/* the path of the guard's library */
	const struct heap_input *input;
	uint64_t took;		/* duration of the first run, ns */
};

/* Run the command again, as often as necessary and permitted, to find the
   writers of the damage, and add to each finding its hits. */
void heap_rerun(const struct heap_rerun *, struct heap_findings *);

#endif
