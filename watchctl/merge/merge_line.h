/*
 * merge_line: merges one line of JSON, schema "watchctl/1".
 */
#ifndef MERGE_LINE_H
#define MERGE_LINE_H

#include "merge/json_text.h"
#include "merge/merged.h"

/* The reader's state within a file. */
struct merge_place {
	struct merged *merged;
	struct merged_run *run;	/* the run of the last start line; NULL: none
				   was accepted */
	uint64_t file;		/* a hash that identifies the file */
	uint64_t repeated;	/* lines that had arrived before */
};

/* Merge a line, without its line end.  NULL; or why it is left out, as the end
   of a sentence. */
const char *merge_line(struct merge_place *, struct json_text);

#endif
