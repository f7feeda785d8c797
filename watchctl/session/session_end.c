/*
 * session_end: the account of a session, and whether the run was complete.
 */
#include "session/session_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "session/crash_account.h"
#include "util/complain.h"

void
session_doubt(struct session *s, const char *format, ...)
{
	va_list ap;

	if (s->doubt[0] != '\0')
		return;
	va_start(ap, format);
	(void)vsnprintf(s->doubt, sizeof(s->doubt), format, ap);
	va_end(ap);
}

void
session_uptime(struct session *s, const struct wp_uptime *uptime)
{
	const char *spec;
	char where[64];

	s->uptime = *uptime;
	if (uptime->unknown > uptime->executed)
		session_doubt(s, "for how long it was watched is not known%s",
		    uptime->known ? " of all processes" : "");
	if (uptime->worst == 0)
		return;
	spec = uptime->watch < s->nwatches ? s->watches[uptime->watch]->spec :
	    "?";
	if (uptime->processors > 0)
		(void)snprintf(where, sizeof(where), "on its processors");
	else
		(void)snprintf(where, sizeof(where), "in thread %d, or those "
		    "that it made", uptime->tid);
	session_warn(s, "%s was not watched for %.6f s %s: events or debug "
	    "registers were switched off by another process, or there are no "
	    "events for a processor; accesses in that time were neither seen "
	    "nor counted", spec,
	    (double)uptime->worst / 1e9, where);
	session_doubt(s, "%s was not watched for %.6f s %s", spec,
	    (double)uptime->worst / 1e9, where);
}

/* Whether the account can be omitted. */
static bool
is_quiet(const struct session *s, const struct report_end *end)
{
	return s->quiet && (options_json(s->options) ||
	    (end->hits == 0 && s->doubt[0] == '\0'));
}

/* Append to a text of this size. */
__attribute__((format(printf, 3, 4)))
static void
add(char *text, size_t size, const char *format, ...)
{
	const size_t len = strlen(text);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text + len, size - len, format, ap);
	va_end(ap);
}

static void
say_uptime(const struct wp_uptime *uptime)
{
	char text[160] = "the watches were on for ";

	if (!uptime->known && uptime->unknown > uptime->executed)
		(void)complain("for how long the watches were on is not known");
	if (!uptime->known)
		return;
	if (uptime->off > 0)
		add(text, sizeof(text), "%.3f of ",
		    (double)(uptime->ran - uptime->off) / 1e9);
	add(text, sizeof(text), "the %.3f s that ", (double)uptime->ran / 1e9);
	if (uptime->processors > 0)
		add(text, sizeof(text), "%u processor%s ran",
		    uptime->processors, uptime->processors == 1 ? "" : "s");
	else if (uptime->threads > 0)
		add(text, sizeof(text), "%u thread%s ran", uptime->threads,
		    uptime->threads == 1 ? "" : "s");
	else
		add(text, sizeof(text), "the threads ran");
	if (uptime->unknown > 0)
		add(text, sizeof(text), "; of %u process%s that is not known",
		    uptime->unknown, uptime->unknown == 1 ? "" : "es");
	(void)complain("%s", text);
}

/* Print the account to stderr, even if there is no memory. */
static void
say_account(const struct session *s, const struct report_end *end)
{
	char text[512] = "";

	add(text, sizeof(text), "%" PRIu64 " hit%s, %" PRIu64 " reported, %"
	    PRIu64 " lost", end->hits, end->hits == 1 ? "" : "s",
	    end->reported, end->lost);
	if (end->conditional)
		add(text, sizeof(text), ", %" PRIu64 " rejected",
		    end->rejected);
	if (end->changed)
		add(text, sizeof(text), ", %" PRIu64 " unchanged",
		    end->unchanged);
	if (end->thinned)
		add(text, sizeof(text), ", %" PRIu64 " skipped",
		    end->skipped);
	if (end->judged)
		add(text, sizeof(text), ", %" PRIu64 " stray", end->stray);
	if (end->nfindings > 0)
		add(text, sizeof(text), " by %zu %s", end->nfindings,
		    policy_word(end->findings, end->nfindings));
	if (end->unjudged > 0)
		add(text, sizeof(text), ", %" PRIu64 " not judged",
		    end->unjudged);
	if (s->options->heap)
		add(text, sizeof(text), ", %" PRIu64 " finding%s in heaps",
		    s->damage, s->damage == 1 ? "" : "s");
	if (s->allowed > 0)
		add(text, sizeof(text), ", %" PRIu64 " allowed", s->allowed);
	if (end->dropped > 0)
		add(text, sizeof(text), "; %" PRIu64 " %s not wanted",
		    end->dropped, end->dropped == 1 ?
		    "access was a write and" : "accesses were writes and");
	if (end->merged > 0)
		add(text, sizeof(text), "; %" PRIu64 " more access%s part of "
		    "hits that came late", end->merged, end->merged == 1 ?
		    " is" : "es are");
	if (s->late_unknown > 0)
		add(text, sizeof(text), "; %" PRIu64 " %s late and may be "
		    "several accesses", s->late_unknown, s->late_unknown == 1 ?
		    "hit came" : "hits came");
	if (s->skipped > 0)
		add(text, sizeof(text), "; %" PRIu64 " %s skipped", s->skipped,
		    s->skipped == 1 ? "record of an unknown type was" :
		    "records of unknown types were");
	(void)complain("%s", text);
	say_uptime(&s->uptime);
}

/* The tally of this process's explainer, or NULL if there is none. */
static const struct ex_tally *
access_tally_of(const struct session *s)
{
	return s->ops == NULL ? NULL : s->ops->explained(s);
}

/* If the report could not be written completely, count the missing hits as
   lost. */
static void
correct_end(struct session *s, struct report_end *end)
{
	const struct ex_tally *tally = access_tally_of(s);
	uint64_t taken = tally == NULL ? s->samples - s->joined - s->dropped :
	    s->before + tally->samples - tally->joined - tally->dropped;

	if (s->err == 0)
		return;
	if (s->options->form != FORM_PERF && s->journal == NULL)
		s->written = s->report.written;
	if (end->counts != NULL)
		taken = end->reported;
	end->hits = taken + s->lost;
	end->reported = s->written;
	end->lost = end->hits - end->reported - end->rejected -
	    end->unchanged - end->skipped - end->handled;
}

/* Record the total of lost samples, as perf record does.  The LOST records in
   the file cover only samples that were lost before another record. */
static void
record_lost(struct session *s)
{
	const struct {
		struct perf_event_header header;
		uint64_t lost;
		uint64_t id[4];	/* pid and tid, time, cpu, identifier */
	} record = {
		.header = {PERF_RECORD_LOST_SAMPLES, 0, sizeof(record)},
		.lost = s->lost,
	};

	if (s->recording != NULL && s->lost > 0)
		session_note(s, ex_perfwriter_record(s->recording, &record));
}

/* Collect what is reported at the end. */
static void
fill_end(struct session *s, struct report_end *end)
{
	const struct ex_tally *tally = access_tally_of(s);

	for (size_t i = 0; end->counts != NULL && i < s->nwatches; i++)
		s->reported += end->counts[i];
	end->threads = s->threads;
	end->nthreads = s->nthreads;
	for (size_t i = 0; i < s->ncoverage; i++)
		s->coverage[i].hits = s->coverage[i].place < 0 ||
		    s->coverage[i].heap ? 0 :
		    hit_filter_hits(s->filter, (size_t)s->coverage[i].place);
	end->coverage = s->coverage;
	end->ncoverage = s->ncoverage;
	end->reported = s->reported;
	end->lost = s->lost;
	end->hits = s->reported + s->rejected + s->unchanged + s->thinned +
	    s->handled + s->lost;
	end->handled = s->handled;
	end->merged = s->merged;
	end->uptime = s->uptime;
	end->changed = s->options->changed || s->unchanged > 0;
	end->unchanged = s->unchanged;
	end->conditional = s->options->condition.root != NULL;
	end->rejected = s->rejected;
	end->thinned = options_thin(s->options);
	end->skipped = s->thinned;
	end->dropped = s->dropped;
	if (tally != NULL)
		end->dropped += tally->dropped;
	if (!options_judge(s->options))
		return;
	/* no code may touch what is only counted */
	if (end->counts != NULL)
		s->stray = s->reported;
	end->judged = true;
	end->stray = s->stray;
	end->unjudged = s->unjudged;
	if (s->ops != NULL)
		s->ops->findings(s, end);
}

/* Hits are not judged for one reason, the other, or some for each. */
static void
doubt_unjudged(struct session *s)
{
	const uint64_t late = s->unjudged_late, missing = s->unjudged - late;
	char why[256] = "";

	if (s->unjudged == 0)
		return;
	if (late > 0 && missing > 0)
		add(why, sizeof(why), "%" PRIu64 " ", late);
	if (late > 0)
		add(why, sizeof(why), "came late, and what %s backtrace%s "
		    "show%s is where the signal was unblocked",
		    late == 1 ? "its" : "their", late == 1 ? "" : "s",
		    late == 1 ? "s" : "");
	if (late > 0 && missing > 0)
		add(why, sizeof(why), "; of the other%s ",
		    missing == 1 ? "" : "s");
	if (missing > 0)
		add(why, sizeof(why), "a caller that is allowed may be missing "
		    "in %s backtrace%s", late > 0 ? "the" :
		    missing == 1 ? "its" : "their", missing == 1 ? "" : "s");
	session_doubt(s, "%" PRIu64 " hit%s cannot be judged: %s%s",
	    s->unjudged, s->unjudged == 1 ? "" : "s",
	    late == s->unjudged ? late == 1 ? "it " : "they " : "", why);
}

/* Whether something stray may have been missed, where that matters. */
static bool
find_doubt(struct session *s)
{
	if (!options_vouch(s->options))
		return false;
	if (s->lost > 0)
		session_doubt(s, "%" PRIu64 " hit%s lost", s->lost,
		    s->lost == 1 ? " was" : "s were");
	doubt_unjudged(s);
	if (s->err == -EPIPE)
		session_doubt(s, "the report's reader has gone, which ended "
		    "the watch");
	return s->doubt[0] != '\0';
}

/* Have it ended by the process that keeps it.  Result: the exit status, or
   -errno: there is none. */
static int
put_end(struct session *s, const char *reason, int status,
    const uint64_t *counts)
{
	const struct journal_entry entry = {.what = JOURNAL_END};
	struct journal_end it = {
		.lost = s->lost, .handled = s->handled, .skipped = s->skipped,
		.merged = s->merged, .late_unknown = s->late_unknown,
		.uptime = s->uptime, .status = status, .err = s->err,
		.quiet = s->quiet,
		.ncounts = counts == NULL ? 0 : (uint32_t)s->nwatches,
	};

	(void)snprintf(it.reason, sizeof(it.reason), "%s", reason);
	(void)snprintf(it.doubt, sizeof(it.doubt), "%s", s->doubt);
	s->journal->put(s->journal, &entry, &it, sizeof(it), counts,
	    it.ncounts * sizeof(*counts));
	if ((status = s->journal->end(s->journal)) >= 0)
		crash_account_end();
	return status;
}

/* Whether the report is incomplete; a message says why. */
static bool
is_incomplete(const struct session *s)
{
	static const char broken[] = "the report is incomplete: ";

	if (s->err != 0 && s->err != -EPIPE)
		(void)complain("%s%s: %s", broken, s->output.path != NULL ?
		    s->output.path : "output", s->err == -EINTR ? "it was not "
		    "being read when a signal for watchctl came" :
		    s->err == -ENOBUFS ? "64 MiB of it were not being read" :
		    s->err == -ECONNRESET ? "there is no process any more that "
		    "explains" : strerror(-s->err));
	else if (s->skipping && s->skip != UINT64_MAX)
		(void)complain("%swhat it is made of has changed meanwhile",
		    broken);
	else
		return false;
	return true;
}

int
session_end(struct session *s, const char *reason, int status,
    const uint64_t *counts)
{
	struct report_end end = {
		.reason = reason, .status = status, .counts = counts,
	};
	bool doubtful;

	if (s->journal != NULL &&
	    (status = put_end(s, reason, status, counts)) >= 0)
		return complain_failed() ? STATUS_OWN_FAILURE : status;
	fill_end(s, &end);
	doubtful = find_doubt(s) && s->options->error_status != 0 &&
	    s->stray == 0 && s->damage == 0;
	if (s->ops != NULL)
		s->ops->sides(s, &end);
	if (doubtful)
		end.status = STATUS_NOT_VOUCHED;
	else if (s->options->error_status != 0 &&
	    (s->stray > 0 || s->damage > 0))
		end.status = s->options->error_status;
	s->report.ending = true;
	if (session_reports(s))
		session_note(s, s->report.ops->end(&s->report, &end));
	else if (s->report.ops != NULL)
		(void)s->report.ops->end(&s->report, NULL);
	s->report.ops = NULL;
	record_lost(s);
	session_note(s, session_end_recording(s));
	correct_end(s, &end);
	if (!is_quiet(s, &end))
		say_account(s, &end);
	crash_account_end();
	if (is_incomplete(s))
		return STATUS_OWN_FAILURE;
	if (doubtful)
		(void)complain("exit status %d: nothing stray was seen, but "
		    "%s", end.status, s->doubt);
	return complain_failed() ? STATUS_OWN_FAILURE : end.status;
}

