/* heap_findings: reports what was found in heaps. */
#ifndef HEAP_FINDINGS_H
#define HEAP_FINDINGS_H

#include "heap/heap_evidence.h"
#include "helper/serve.h"

void heap_findings_report(struct serve *, const struct hg_finding *);

/* Say that so many more were found than are kept, and that so many cannot be
   read. */
void heap_findings_unread(struct serve *, unsigned more, unsigned bad);

/* Say how many were like others, which are not kept. */
void heap_findings_repeated(struct serve *, const struct hg_evidence *);

/* Say why blocks could not be watched, if that is so. */
void heap_findings_unwatched(struct serve *, const struct hg_evidence *);

#endif
