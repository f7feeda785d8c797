/* heap_findings: reports findings in heaps. */
#ifndef HEAP_FINDINGS_H
#define HEAP_FINDINGS_H

#include "heap/heap_evidence.h"
#include "helper/serve.h"

void heap_findings_report(struct serve *, const struct hg_finding *);

/* Warn that there were more findings than are kept, and findings that cannot be
   read. */
void heap_findings_unread(struct serve *, unsigned more, unsigned bad);

/* Report how many findings were dropped because they were like others. */
void heap_findings_repeated(struct serve *, const struct hg_evidence *);

/* Report why blocks could not be watched, if any could not. */
void heap_findings_unwatched(struct serve *, const struct hg_evidence *);

#endif
