/*
 * classify: decides which watches were hit: those that the instruction touched
 * and whose counts confirm it (account.c), except where the access is
 * permitted, over the limit, or not of the watched kind.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "handler/capture.h"
#include "handler/trap_run.h"
#include "os/operand.h"
#include "os/trap_cpu.h"

enum { PERMITS_MAX = 1000 };

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct wp_scope *permits;	/* the innermost one, or NULL */
	bool permitted;		/* whether an access was, since last asked */
	uint64_t foresaw;		/* pc of an instruction all of whose
					   watches are already matched, or 0 */
} self;

struct wp_scope **
wp_permits(void)
{
	return &self.permits;
}

bool
wp_has_permitted(void)
{
	bool permitted = self.permitted;

	self.permitted = false;
	return permitted;
}

static void
account(struct wp_run *run)
{
	struct wp_watch *w = run->match[0].watch;

	run->steps = run->late || (w->kernel &&
	    wp_cpu_after_syscall(run->context)) ? WP_STEP_MANY : WP_STEP_ONE;
	for (unsigned i = 0; i < run->n; i++) {
		struct wp_match *match = &run->match[i];
		const uint32_t slots = wp_match_account(match, run->steps);

		/* the signal names only one of the slots touched */
		if (match->watch->delivery->counts_all)
			match->slots = slots;
	}
}

/* Whether the watch may have been hit as well, so that its count is worth
   reading. */
static bool
is_candidate(struct wp_run *run, const struct wp_watch *w)
{
	return w->delivery == run->match[0].watch->delivery &&
	    w->attr.period <= 1 && atomic_load(&w->on) &&
	    (w->tid == 0 || w->tid == run->tid) && !wp_run_has(run, w);
}

/* Returns false if the operand of the instruction cannot be determined. */
static bool
operand_of(const struct wp_run *run, struct wp_operand *operand)
{
	uint64_t reg[WP_CPU_REGS_MAX];
	uint32_t code;

	(void)wp_cpu_regs(run->context, reg);
	return wp_peek(&code, wp_cpu_pc(run->context), sizeof(code)) ==
	    sizeof(code) && wp_operand(code, reg, operand);
}

bool
wp_classify_foresaw(const struct wp_run *run)
{
	return self.foresaw == wp_cpu_pc(run->context);
}

/* On a processor that traps before the access, the signal names one watch, but
   the operand shows which others the instruction is about to touch. */
static void
match_touched(struct wp_run *run)
{
	struct wp_watch_walk walk = {.left = atomic_load(&wp_state.nopen)};
	struct wp_operand operand;
	struct wp_watch *w;

	if (run->late || run->by_ptrace ||
	    run->match[0].watch->region.access == WP_EXEC ||
	    !operand_of(run, &operand))
		return;
	self.foresaw = wp_cpu_pc(run->context);
	while (run->n < WP_MATCH_MAX && (w = wp_watch_next(&walk)) != NULL) {
		uint32_t slots = 0;

		for (unsigned i = 0; i < w->nslots && is_candidate(run, w); i++)
			slots |= (uint32_t)wp_operand_hits(&operand,
			    &w->slot[i]) << i;
		if (slots != 0)
			wp_run_add(run, w, slots, 1);
		else
			wp_watch_leave(w);
	}
}

/* Add the other watches that the step touched.  The async and ptrace deliveries
   report each of them by themselves. */
static void
match_also(struct wp_run *run)
{
	const struct wp_match match = run->match[0];
	struct wp_watch_walk walk = {.left = atomic_load(&wp_state.nopen)};
	struct wp_watch *w;

	self.foresaw = 0;
	if (walk.left < 2)
		return;
	if (wp_cpu_traps_before())
		match_touched(run);
	if (!match.watch->delivery->counts_all)
		return;
	while (run->n < WP_MATCH_MAX && (w = wp_watch_next(&walk)) != NULL) {
		if (is_candidate(run, w) && wp_account_also(w,
		    match.fired < match.watch->nslots ?
		    &match.watch->slot[match.fired] : NULL, run->steps))
			wp_run_add(run, w, wp_account_slots(w), 0);
		else
			wp_watch_leave(w);
	}
}

/* The list of permits lies on the stack, which may be damaged: it is read with
   wp_peek, and no further than a limit. */
static bool
is_permitted(const struct wp_match *match)
{
	const struct wp_region place = wp_match_fired(match);
	const struct wp_scope *at = self.permits;
	struct wp_scope scope;

	for (unsigned i = 0; i < PERMITS_MAX && at != NULL; i++) {
		uint64_t addr;

		if (wp_peek(&scope, (uintptr_t)at, sizeof(scope)) !=
		    sizeof(scope))
			return false;
		addr = (uintptr_t)scope.addr;
		if (place.addr < addr + scope.len &&
		    addr < place.addr + place.len) {
			self.permitted = true;
			return true;
		}
		at = scope.outer;
	}
	return false;
}

/* Returns the number of the hit, or 0 if it is over the limit. */
static uint64_t
count_hit(struct wp_watch *w)
{
	uint64_t n = atomic_load(&w->hits), until = atomic_load(&w->until);

	do
		if (n >= until)
			return 0;
	while (!atomic_compare_exchange_weak(&w->hits, &n, n + 1));
	if (n + 1 == until)
		(void)w->delivery->disable(w);
	return n + 1;
}

/* Drop the matches that are not hits. */
static void
sift(struct wp_run *run)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->n; i++) {
		struct wp_match *match = &run->match[i];
		struct wp_watch *w = match->watch;

		match->stray = (w->attr.flags & WP_STRAY) != 0;
		/* events are disabled one by one, and may fire until then */
		if (atomic_load(&w->on) &&
		    (!match->stray || !is_permitted(match)) &&
		    (w->is_hit == NULL || w->is_hit(run)))
			match->nth = count_hit(w);
		if (match->nth != 0) {
			run->match[n++] = *match;
			continue;
		}
		wp_account_suppressed(w);
		wp_watch_leave(w);
	}
	run->n = n;
}

void
wp_classify(struct wp_run *run)
{
	account(run);
	match_also(run);
	sift(run);
}
