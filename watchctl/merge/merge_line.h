/*
 * merge_line: a line of JSON, schema "watchctl/1", and how it is merged.
 */
#ifndef MERGE_LINE_H
#define MERGE_LINE_H

#include "merge/json_text.h"
#include "merge/merged.h"

/* Where in a file one is. */
struct merge_place {
	struct merged *merged;
	struct merged_run *run;	/* that the last start line began; NULL:
				   there was none that was taken */
	uint64_t file;		/* a hash of which file it is */
	uint64_t repeated;	/* lines that arrived before */
};

/* Take a line, without its end.  NULL; or why it is left out, as the end of a
   sentence. */
const char *merge_line(struct merge_place *, struct json_text);

#endif
