/*
 * merge_report: writes the merged report, as text or as JSON Lines.
 */
#ifndef MERGE_REPORT_H
#define MERGE_REPORT_H

#include <stdio.h>

#include "merge/merged.h"

/* The numbers of lines that were repeated or left out. */
struct merge_count {
	uint64_t repeated, left_out;
};

/* Write the report.  0 or -errno. */
int merge_report_json(struct merged *, const struct merge_count *, FILE *);
int merge_report_text(struct merged *, FILE *);

#endif
