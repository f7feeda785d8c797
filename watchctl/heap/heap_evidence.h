/* heap_evidence: the findings of guarded programs (guard/evidence.h), as
   watchctl reads them. */
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

/* Have the command that is started next find it.  0, or -errno after a line on
   stderr. */
int heap_evidence_set(const struct heap_evidence *, const struct options *);

/* The command ended: whether programs that it started still have it, which is
   waited for, for a while.  Then it is a copy that they do not change. */
bool heap_evidence_in_use(struct heap_evidence *);

/* Kill all that still have it. */
void heap_evidence_end_users(const struct heap_evidence *);

/* What was found: copies that were checked. */
struct heap_findings {
	struct hg_finding *one;		/* malloc'd; n of them */
	size_t n;
	unsigned more;			/* there was no room for */
	unsigned bad;			/* that make no sense */
};

/* 0 or -ENOMEM; free the array in any case. */
int heap_evidence_take(const struct heap_evidence *, struct heap_findings *);

/* How many there are, and for how many there was no room. */
uint32_t heap_evidence_count(const struct heap_evidence *);
uint32_t heap_evidence_more(const struct heap_evidence *);

/* One of them, by its place, which is there.  False: it makes no sense. */
bool heap_evidence_finding(const struct heap_evidence *, uint32_t,
    struct hg_finding *);

/* Add how much of what could be watched was. */
void heap_evidence_cover(const struct heap_evidence *, struct coverage *);

#endif
