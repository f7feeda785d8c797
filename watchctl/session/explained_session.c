/* explained_session: a session whose hits are explained in this process. */
#include "session/explained_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "space/space.h"
#include "util/complain.h"
#include "report/last_hits.h"
#include "policy/allocator.h"
#include "policy/hit_condition.h"
#include "policy/learned.h"
#include "ci/ci.h"
#include "report/summary.h"
#include "os/clock.h"
#include "top/top.h"
#include "type/declared_object.h"

static const struct report_ops *const forms[] = {
	[FORM_TEXT] = &report_text,
	[FORM_JSON] = &report_json,
	[FORM_FOLDED] = &report_folded,
	[FORM_SUMMARY] = &report_text,
	[FORM_SUMMARY_JSON] = &report_json,
	[FORM_GCC] = &report_gcc,
	[FORM_TRACE] = &report_trace,
	[FORM_HTML] = &report_html,
};

/* The report has reached the point where the previous one was; continue it. */
static void
catch_up(struct session *s)
{
	if (!s->skipping || s->resuming || s->reported < s->skip)
		return;
	session_note(s, report_flush(&s->report));
	s->skipping = false;
}

static void
call_given(const struct session *s, const struct ex_hit *hit,
    enum session_fate fate)
{
	if (s->given != NULL)
		s->given(s->given_arg, hit, fate);
}

/* A previous session has reported this hit. */
static int
recall(struct session *s, struct ex_hit *hit)
{
	hit->seq = s->recall->first_seq;
	if (s->policy != NULL)
		session_note(s, policy_recall(s->policy, hit,
		    s->recall->count));
	if (s->learned != NULL)
		session_note(s, learned_take(s->learned, hit,
		    s->recall->count));
	if (s->report.summary != NULL)
		session_note(s, summary_recall(s->report.summary, hit,
		    s->recall));
	if (s->report.ops->recall != NULL)
		session_note(s, s->report.ops->recall(&s->report, hit,
		    s->recall));
	hit_filter_recall(s->filter, hit);
	call_given(s, hit, SESSION_REPORTED);
	return 0;
}

/* Decide whether a hit is reported.  A program that waits for its hits gets all
   of them. */
static enum session_fate
sift(struct session *s, struct ex_hit *hit, uint64_t number)
{
	if (hit_condition_rejects(s->condition, hit, number) &&
	    s->reply == NULL)
		return SESSION_REJECTED;
	if (s->reply != NULL)
		return SESSION_REPORTED;
	/* hits of --heap are of bytes found damaged */
	if ((s->options->changed || s->options->heap) && hit->unchanged)
		return SESSION_UNCHANGED;
	return hit_filter_skips(s->filter, hit) ? SESSION_SKIPPED :
	    SESSION_REPORTED;
}

static void
leave_out(struct session *s, const struct ex_hit *hit, enum session_fate fate)
{
	s->rejected += fate == SESSION_REJECTED;
	s->unchanged += fate == SESSION_UNCHANGED;
	s->thinned += fate == SESSION_SKIPPED;
	call_given(s, hit, fate);
}

/* The watch has reached its limit, so no more of its hits are reported. */
static void
report_last(struct session *s, const struct ex_hit *hit)
{
	const size_t watch = hit->watch->id - 1;

	if (hit_filter_is_full(s->filter, watch))
		session_event(s, &(struct watch_event){
			.what = WATCH_DISARMED, .watch = (unsigned)watch,
			.time = hit->time, .pid = hit->watch->pid,
			.gap = WATCH_NO_GAP,
		});
}

/* Report a hit that is not left out. */
static void
report_hit(struct session *s, struct ex_hit *hit)
{
	if (s->policy != NULL && !s->reply_only)
		session_note(s, policy_judge(s->policy, hit));
	if (s->reply != NULL)
		(void)s->reply->ops->hit(s->reply, hit);
	if (s->reply_only)
		return;
	if (s->learned != NULL)
		session_note(s, learned_take(s->learned, hit, 1));
	s->stray += hit->stray;
	s->unjudged += hit->unjudged;
	s->unjudged_late += hit->unjudged && hit->late;
	call_given(s, hit, SESSION_REPORTED);
	session_note(s, s->report.ops->hit(&s->report, hit));
	s->reported++;
	if (s->options->heap)
		heap_writers_add(&s->heap_writers, hit);
	s->last_hit = hit->time;
	catch_up(s);
	report_last(s, hit);
	s->full = session_is_full(s);
}

/* --- hits that are held --- */

static void
hold(struct session *s, const struct ex_hit *hit)
{
	struct ex_hit *first;

	while (last_hits_is_full(s->held, hit)) {
		first = last_hits_first(s->held);
		first->seq = s->reported + 1;
		leave_out(s, first, SESSION_SKIPPED);
		last_hits_pop(s->held);
	}
	last_hits_put(s->held, hit);
}

/* The change is found out again, because other hits have reused its texts. */
static void
release(struct session *s)
{
	struct ex_hit *hit;

	while (s->held != NULL && (hit = last_hits_first(s->held)) != NULL) {
		hit->seq = s->reported + 1;
		ex_hit_change(hit);
		report_hit(s, hit);
		last_hits_pop(s->held);
	}
}

/* --- hits that were only counted --- */

static void
add_tally(struct session *s, const struct wp_target_tally *tally)
{
	struct ex_hit hit;

	if (tally->watch >= s->nwatches ||
	    !ex_explain_counted(s->explainer, s->watches[tally->watch],
	    tally->pid, tally->stack, &hit))
		session_note(s, -ENOMEM);
	else
		session_note(s, report_tally(&s->report, &hit, tally));
}

uint64_t
explained_session_done(const struct session *s)
{
	const struct ex_hit *first = s->held == NULL ? NULL :
	    last_hits_first(s->held);

	return first == NULL ? ex_explain_done(s->explainer) :
	    first->begun - 1;
}

/* --- */

static bool
is_end(struct session *s, const struct ex_hit *hit, uint64_t number)
{
	return s->ends != NULL && !s->reply_only &&
	    hit_condition_truth(s->ends, hit, number) == CONDITION_TRUE;
}

/* Note that the thread of a SPEC has ended, and its instance of a thread-local
   variable with it. */
static void
take_thread_end(struct session *s, const struct ex_record *r)
{
	const struct options *o = s->options;

	for (size_t i = 0; r->type == PERF_RECORD_EXIT && i < o->nspecs; i++) {
		if (o->spec[i].thread == 0 || o->spec[i].thread != r->task.tid)
			continue;
		if (s->thread_ends == NULL && (s->thread_ends =
		    calloc(o->nspecs, sizeof(*s->thread_ends))) == NULL)
			session_note(s, -ENOMEM);
		else if (s->thread_ends[i].pid == 0)
			s->thread_ends[i] = (struct thread_end){
				r->task.pid, r->task.time,
			};
	}
}

/* Whether the hit is in memory that was the instance of a thread that has
   ended; by then it may belong to another thread. */
static bool
is_after_end(const struct session *s, const struct ex_hit *hit)
{
	const size_t i = ex_watch_number(hit->watch) - 1;

	return s->thread_ends != NULL && i < s->options->nspecs &&
	    s->thread_ends[i].pid == hit->pid &&
	    hit->time > s->thread_ends[i].time;
}

/* Whether the allocator accessed freed memory, which belongs to it. */
static bool
is_allocators(const struct session *s, const struct ex_hit *hit)
{
	return ex_hit_after_free(hit) && options_objects(s->options) &&
	    allocator_made(hit, s->options);
}

/* The explainer calls this when a hit is complete. */
static int
give(void *arg, struct ex_hit *hit)
{
	struct session *s = arg;
	enum session_fate fate;
	uint64_t number;

	if (s->recall != NULL)
		return recall(s, hit);
	hit->seq = s->reported + 1;
	if (hit_filter_is_full(s->filter, hit->watch->id - 1) ||
	    is_after_end(s, hit) || is_allocators(s, hit)) {
		leave_out(s, hit, SESSION_BEYOND);
		return 0;
	}
	number = hit_filter_count(s->filter, hit);
	if ((fate = sift(s, hit, number)) != SESSION_REPORTED) {
		leave_out(s, hit, fate);
		return 0;
	}
	if (is_end(s, hit, number))
		s->ended = hit->begun;
	if (s->held == NULL)
		report_hit(s, hit);
	else
		hold(s, hit);
	if (s->ended != 0) {
		release(s);
		s->until = s->full = true;
	}
	if (s->ended != 0 && s->held != NULL)
		session_released(s, "until");
	return s->full || s->err < 0;
}

/* --- what a session has done here --- */

static int
ready(struct session *s)
{
	if (s->report.ops == NULL)
		return 0;
	s->explainer = ex_explainer_new(s->space, s->slots, s->nslots, give, s);
	return s->explainer == NULL ? -ENOMEM : 0;
}

static void
slot(struct session *s)
{
	if (s->explainer != NULL)
		ex_explainer_slots(s->explainer, s->slots, s->nslots);
}

static void
start(struct session *s, const struct report_start *begin)
{
	if (s->report.ops == NULL)
		return;
	if (begin->comm != NULL)
		(void)snprintf(s->comm, sizeof(s->comm), "%s", begin->comm);
	if (s->err == 0)
		session_note(s, s->report.ops->start(&s->report, begin));
	catch_up(s);
}

static void
record(struct session *s, const struct ex_record *r)
{
	take_thread_end(s, r);
	(void)ex_explain(s->explainer, r);
}

/* Report names and lines that are missing because a file is not trusted. */
static void
report_disbelief(struct session *s)
{
	const struct ex_module *m;
	const char *why;

	while (s->started &&
	    (m = ex_space_rejected_debug(s->space, &why)) != NULL)
		session_warn(s, "debug information is not used: %s: %s", why,
		    ex_module_path(m));
}

static void
flush(struct session *s, uint64_t now)
{
	if (s->explainer != NULL && !s->full && s->err == 0)
		(void)ex_explain_flush(s->explainer, now);
	report_disbelief(s);
}

static const struct ex_tally *
tally(const struct session *s)
{
	return s->explainer == NULL ? NULL : ex_explain_tally(s->explainer);
}

static void
findings(struct session *s, struct report_end *end)
{
	end->nfindings = policy_findings(s->policy, false, &end->findings);
	end->ndoubts = policy_findings(s->policy, true, &end->doubts);
}

/* --- what is written beside the report --- */

static void
warn_unused(struct session *s)
{
	const struct policy_line *line;

	/* if nothing started, no rule could be used */
	for (size_t i = 0; s->policy != NULL && s->started &&
	    (line = policy_unused(s->policy, i)) != NULL; i++)
		session_warn(s, "%s:%u: nothing used this: %s = %s",
		    s->options->policy_path, line->number,
		    line->key == POLICY_WRITER ? "writer" : "allow",
		    line->value);
}

static void
put_side(struct session *s, enum side side, struct buffer *b)
{
	if (b->failed)
		session_note(s, -ENOMEM);
	else
		session_note(s, s->put_side(side, b->bytes, b->len));
	buffer_free(b);
}

/* Report the hits that --learn could not use, and why. */
static void
warn_not_learned(struct session *s, const struct learned_rest *rest)
{
	const struct {
		uint64_t hits;
		const char *why;
	} not[] = {
		{rest->unnamed, "the functions that made them have no names, "
		    "or none for a line"},
		{rest->missing, "functions may be missing on their "
		    "backtraces"},
		{rest->late, "they came late, and their backtraces are not "
		    "the accesses'"},
		{s->lost, "they were lost"},
	};

	for (size_t i = 0; i < sizeof(not) / sizeof(not[0]); i++)
		if (not[i].hits > 0)
			session_warn(s, "--learn took nothing of %" PRIu64
			    " hit%s: %s", not[i].hits,
			    not[i].hits == 1 ? "" : "s", not[i].why);
}

static void
put_learned(struct session *s)
{
	struct buffer b = {0};
	struct learned_rest rest;

	for (size_t i = 0; i < s->nwatches; i++)
		if (s->watches[i]->whole == NULL)
			session_note(s, learned_watch(s->learned,
			    s->watches[i]));
	rest = learned_put(s->learned, &b);
	warn_not_learned(s, &rest);
	if (s->put_side != NULL)
		put_side(s, SIDE_LEARN, &b);
	buffer_free(&b);
}

/* The program's name for CI; "" if not known. */
static const char *
program_of(const struct session *s)
{
	const char *path = s->options->command != NULL ?
	    s->options->command[0] : "", *slash = strrchr(path, '/');

	return *path == '\0' ? s->comm : slash == NULL ? path : slash + 1;
}

static double
seconds_of(const struct session *s)
{
	const uint64_t begun = s->report.begin.time;
	const uint64_t now = s->options->file != NULL ? s->last_hit :
	    wp_clock_ns();

	return now > begun ? (double)(now - begun) / 1e9 : 0;
}

static void
put_ci(struct session *s, const struct report_end *end)
{
	static void (*const put[])(const struct ci *, struct buffer *) = {
		[SIDE_JUNIT] = ci_put_junit, [SIDE_SARIF] = ci_put_sarif,
		[SIDE_GITHUB] = ci_put_github,
	};
	const struct report_start start = {
		.watches = (const struct ex_watch *const *)s->watches,
		/* those of --heap were made by what it found */
		.nwatches = s->options->heap ? 0 : (unsigned)s->nwatches,
	};

	ci_end(s->ci, &start, end, program_of(s), s->doubt, seconds_of(s));
	if (s->ci->failed)
		session_note(s, -ENOMEM);
	for (int i = 0; i < SIDE_LEARN && !s->ci->failed; i++) {
		struct buffer b = {0};

		if (s->options->side[i] == NULL)
			continue;
		put[i](s->ci, &b);
		put_side(s, (enum side)i, &b);
	}
}

static void
put_sides(struct session *s, const struct report_end *end)
{
	warn_unused(s);
	if (s->learned != NULL)
		put_learned(s);
	if (s->ci != NULL && s->put_side != NULL)
		put_ci(s, end);
}

/* Learn the mappings as they were when the damage was found. */
static void
learn_maps(struct session *s, const struct hg_finding *f)
{
	for (uint32_t i = 0; i < f->nmaps && i < HG_MAPS_MAX; i++) {
		const struct hg_map *map = &f->map[i];
		const struct ex_record record = {
			.type = PERF_RECORD_MMAP2, .attr = -1,
			.pid = f->pid, .tid = f->pid,
			.mmap = {
				.start = map->start, .len = map->len,
				.pgoff = map->pgoff, .prot = PROT_EXEC,
				.maj = map->maj, .min = map->min,
				.ino = map->ino, .path = map->path,
			},
		};

		ex_space_learn(s->space, &record);
	}
}

/* Keep the damage, and the backtraces that it refers to. */
static void
keep_damage(struct session *s, const struct report_damage *it)
{
	for (unsigned i = 0; i < HG_STACKS; i++)
		ex_stack_hold(it->stack[i]);
	ci_add_damage(s->ci, it);
}

/* Whether one of the functions of a stack is allowed. */
static bool
names(const struct session *s, const struct ex_stack *stack)
{
	for (size_t i = 0; stack != NULL && i < stack->n; i++)
		if (policy_names(s->known, &stack->frame[i]))
			return true;
	return false;
}

/* Whether the damage is allowed, by its writer if that is known, or else by any
   of its stacks. */
static bool
is_allowed(const struct session *s, const struct report_damage *it)
{
	if (s->known == NULL)
		return false;
	if (it->writer != NULL)
		return names(s, it->writer) ||
		    names(s, it->stack[HG_STACK_ALLOC]);
	return names(s, it->stack[HG_STACK_ALLOC]) ||
	    names(s, it->stack[HG_STACK_FREE]) ||
	    names(s, it->stack[HG_STACK_NOTICED]);
}

static void
allow_damage(struct session *s)
{
	s->damage--;
	s->allowed++;
}

static void
report_damage(struct session *s, const struct report_damage *it)
{
	if (s->report.ops->damage != NULL && !s->resuming)
		session_note(s, s->report.ops->damage(&s->report, it));
	if (s->ci != NULL)
		keep_damage(s, it);
}

/* Explain a finding of the heap, whose backtraces must all exist at the same
   time. */
static void
damage(struct session *s, const struct hg_finding *f)
{
	struct report_damage it = {.found = f};

	learn_maps(s, f);
	for (unsigned i = 0; i < HG_STACKS; i++) {
		const struct hg_stack *stack = &f->stack[i];

		if (stack->n == 0 || stack->n > HG_FRAMES_MAX)
			continue;
		it.stack[i] = ex_explain_callers(s->explainer, f->pid,
		    stack->pc, stack->n, stack->whole != 0);
		ex_stack_hold(it.stack[i]);
	}
	if (f->nhits > 0)
		it.writer = heap_writers_find(&s->heap_writers, f->hit[0]);
	if (is_allowed(s, &it))
		allow_damage(s);
	else
		report_damage(s, &it);
	for (unsigned i = 0; i < HG_STACKS; i++)
		ex_stack_let_go(it.stack[i]);
}

static void
close_session(struct session *s)
{
	policy_free(s->policy);
	policy_free(s->known);
	heap_writers_free(&s->heap_writers);
	learned_free(s->learned);
	if (s->ci != NULL)
		ci_free(s->ci);
	free(s->ci);
	hit_condition_free(s->condition);
	hit_condition_free(s->ends);
	last_hits_free(s->held);
	free(s->thread_ends);
	ex_explainer_free(s->explainer);
	ex_space_free(s->space);
}

int
explained_session_begin(struct session *s, enum ex_source source,
    struct ex_space *space)
{
	static const struct session_ops ops = {
		ready, slot, start, record, flush, release, add_tally, tally,
		findings, put_sides, damage, close_session,
	};
	const struct options *o = s->options;
	const bool conditional = o->condition.root != NULL;
	const bool ends = o->until.root != NULL;

	s->ops = &ops;
	if (o->form != FORM_PERF) {
		s->report.ops = o->top ? &report_top : forms[o->form];
		s->report.verbose = o->verbose;
		s->report.summary_only = o->form == FORM_SUMMARY ||
		    o->form == FORM_SUMMARY_JSON;
		s->report.stacks_once = o->stacks_once ||
		    s->report.summary_only;
	}
	if (options_judge(o))
		s->policy = policy_new(o->allow, o->nallow);
	if (o->heap && o->nallow > 0)
		s->known = policy_new(o->allow, o->nallow);
	if (o->side[SIDE_LEARN] != NULL)
		s->learned = learned_new();
	if (options_ci(o))
		s->ci = calloc(1, sizeof(*s->ci));
	if (conditional)
		s->condition = hit_condition_new(&o->condition);
	if (ends)
		s->ends = hit_condition_new(&o->until);
	if (ends && o->last != 0)
		s->held = last_hits_new(o->last, options_held_samples(o));
	s->space = space != NULL ? space : ex_space_new(source);
	if (s->space == NULL || (conditional && s->condition == NULL) ||
	    (ends && (s->ends == NULL ||
	    (o->last != 0 && s->held == NULL))) ||
	    (o->side[SIDE_LEARN] != NULL && s->learned == NULL) ||
	    (options_ci(o) && s->ci == NULL) ||
	    (o->heap && o->nallow > 0 && s->known == NULL) ||
	    (options_judge(o) && (s->policy == NULL ||
	    (o->policy_path != NULL &&
	    !policy_add_file(s->policy, &o->policy)))))
		return complain("out of memory");
	return 0;
}

int
explained_session_open(struct session *s, const struct options *options,
    enum ex_source source, struct ex_space *space, FILE *out,
    const struct output_screen *screen, const struct session_resume *resume)
{
	*s = (struct session){
		.options = options, .skip = resume->hits,
		.skipping = resume->begun,
	};
	s->report.out = out;
	s->report.screen = *screen;
	if ((s->filter = hit_filter_new(options)) == NULL)
		return complain("out of memory");
	return explained_session_begin(s, source, space);
}

void
explained_session_resumed(struct session *s)
{
	s->resuming = false;
	if (s->started)
		catch_up(s);
}

uint64_t
explained_session_writing(const struct session *s)
{
	const struct report *r = &s->report;

	return r->ending ? UINT64_MAX : r->written + r->nends + r->unplaced;
}

int
explained_session_object(struct session *s, pid_t pid, const struct spec *spec,
    uint64_t addr, uint64_t len)
{
	struct ex_process *memory = ex_space_process(s->space, pid);

	if (memory != NULL && spec != NULL)
		spec_declare(spec, memory, addr, len);
	if (memory != NULL)
		session_note(s, hit_condition_check(&s->options->condition,
		    ex_object_at(memory, addr, len)));
	if (memory != NULL)
		session_note(s, hit_condition_check(&s->options->until,
		    ex_object_at(memory, addr, len)));
	return s->err == -EINVAL ? s->err : 0;
}
