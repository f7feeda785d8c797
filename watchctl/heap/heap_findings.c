/* heap_findings: reports what was found in heaps. */
#include "heap/heap_findings.h"

#include <string.h>
#include <unistd.h>

void
heap_findings_report(struct serve *serve, const struct hg_finding *f)
{
	struct session *s = &serve->session;

	/* its files are asked for after it has ended */
	answers_allow_child(&serve->live.broker.answers, f->pid, getpid());
	session_damage(s, f);
	(void)session_flush(s, UINT64_MAX);
}

void
heap_findings_unread(struct serve *serve, unsigned more, unsigned bad)
{
	struct session *s = &serve->session;

	if (more > 0)
		session_warn(s, "%u findings more are not reported: %d are "
		    "kept", more, HG_FINDINGS_MAX);
	if (bad > 0)
		session_warn(s, "%u finding%s not be read: the program was "
		    "killed while it wrote, or has written over it", bad,
		    bad == 1 ? " can" : "s can");
	if (bad > 0)
		session_doubt(s, "a finding cannot be read");
}

void
heap_findings_repeated(struct serve *serve, const struct hg_evidence *e)
{
	const uint32_t n = atomic_load(&e->repeated);

	if (n > 0)
		session_warn(&serve->session, "the same was done %u time%s "
		    "more, to other blocks of the same callers", n,
		    n == 1 ? "" : "s");
}

void
heap_findings_unwatched(struct serve *serve, const struct hg_evidence *e)
{
	char cause[HG_CAUSE_MAX];

	memcpy(cause, e->cause, sizeof(cause));
	cause[sizeof(cause) - 1] = '\0';
	if (atomic_load(&e->refusals) > 0)
		session_warn(&serve->session, "%s could not be watched: %s",
		    e->sample != 0 ? "some blocks" :
		    "a damaged block, in another run,", cause);
}
