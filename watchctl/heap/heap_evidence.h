/* heap_evidence: reads the findings of guarded programs (guard/evidence.h). */
#ifndef HEAP_EVIDENCE_H
#define HEAP_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "guard/evidence.h"
#include "report/report.h"
#include "option/options.h"

struct heap_evidence {
	struct hg_evidence *at;		/* NULL: none */
	int fd;
};

/* 0, or -errno after a line on stderr; close it in any case. */
int heap_evidence_make(struct heap_evidence *);
void heap_evidence_close(struct heap_evidence *);

/* Set the variable that leads the next started command to the evidence.  0, or
   -errno after a line on stderr. */
int heap_evidence_set(const struct heap_evidence *, const struct options *);

/* The command has ended: wait for a while until no program has the evidence
   mapped, then copy it, so that it cannot change any more.  Returns whether
   programs still have it mapped. */
bool heap_evidence_in_use(struct heap_evidence *);

/* Kill all programs that still have it mapped. */
void heap_evidence_end_users(const struct heap_evidence *);

/* Checked copies of the findings. */
struct heap_findings {
	struct hg_finding *one;		/* malloc'd; n of them */
	size_t n;
	unsigned more;			/* findings for which there was no
					   room */
	unsigned bad;			/* findings that make no sense */
};

/* 0 or -ENOMEM; free the array in any case. */
int heap_evidence_take(const struct heap_evidence *, struct heap_findings *);

/* The number of findings, and of those for which there was no room. */
uint32_t heap_evidence_count(const struct heap_evidence *);
uint32_t heap_evidence_more(const struct heap_evidence *);

/* Copy the finding at this index, which exists.  False: it makes no sense. */
bool heap_evidence_finding(const struct heap_evidence *, uint32_t,
    struct hg_finding *);

/* Add which share of what could be watched was watched. */
void heap_evidence_cover(const struct heap_evidence *, struct coverage *);

#endif
