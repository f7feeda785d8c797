/*
 * account: decides which watches an instruction has touched.
 *
 * Overview.  When one step touches several watches, or several debug registers
 * of one, the kernel sends a single SIGTRAP, for one of them; but it counts
 * each.  So for every watch there are two numbers: what the kernel has counted,
 * and how many of these accesses handlers have accounted for.
 *
 *	counted   ----+---------------+-----------> what the debug registers saw
 *	              | on their way  |
 *	accounted ----+---------------> what handlers know of
 *
 * A handler accounts for its own signal's access first.  If its watch, or
 * another one, is then ahead (counted > accounted), the step has touched that
 * as well: for another watch it is a hit, too, and all of it is accounted for:
 * it is claimed.
 *
 * With one thread this is exact, if nothing was lost.  With several, what is
 * ahead may be on its way to another thread's handler.  If the other watch
 * covers the whole of the debug register that fired, for at least the same
 * accesses, it was touched for certain.  Else others get a moment to account
 * for theirs, and what is still ahead is claimed.  This goes wrong
 *  - when the other thread is kept from its handler for longer, or has the
 *    signal blocked: a hit is reported twice, once here;
 *  - when two threads claim one access at the same time: one of them gets it;
 *  - when accesses had been lost before: they are claimed.
 * Where it can, the helper decides by the instruction's operands what was a
 * hit, and also how many accesses there were (helper/access_tally.c).
 *
 * Nothing that was reported may be left over, however, because it would be
 * counted as lost.  So a thread does not leave while a watch is ahead, unless
 * it has claimed as much as its step can have touched.  And what is ahead is
 * found only in this order: accounted is read, then counted, and then accounted
 * is changed if it still is what was read.  Two steps of two registers each,
 * with the count of before:
 *
 *	first thread		second thread		counted	accounted
 *	access						2	0
 *	accounts for its own				2	1
 *	reads accounted 1, counted 2			2	1
 *				access			4	1
 *				accounts for its own	4	2
 *	(sees 2 of 2: leaves)				4	2
 *				claims one		4	3
 *
 * The one left over is the first thread's: what its count says is accounted for
 * was the second's.  With the change of accounted, which fails, it reads both
 * again, and finds 2 or 3 of 4.  The same holds for threads that give others a
 * moment.
 *
 * A thread that leaves when nothing is ahead leaves nothing over: what is
 * counted later has handlers of its own.  A thread that claims too much has
 * claimed an access of another: that one's handler finds more accounted for
 * than counted, and corrects it.
 *
 * A step of an instruction touches each debug register at most once, but of a
 * watch that has several it may touch them all. A system call may touch it any
 * number of times (a copy counts up to once a byte), and so may what happens
 * while the signal is blocked: then what is counted is taken as accounted for.
 * Watches with a period are left out: their accesses are not hits.
 */
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "handler/trap.h"
#include "os/libc.h"

enum {
	READABLE_EVENTS = 64,	/* do not read more than this on each hit */
	TRIES = 100,
	YIELDS = 20,
	NAPS = 40,
	NAP_NS = 20000,
};

/* The helper keeps its own total, which it reports at the end. */
static void
count_for_helper(const struct wp_watch *w, uint64_t more)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	if (channel != NULL)
		(void)atomic_fetch_add(&wp_watch_words(w, channel)->hits,
		    more);
}

/* Read in this order, so that `counted' includes everything in `accounted'. */
struct counts {
	uint64_t raw;		/* w->accounted as read */
	uint64_t accounted;	/* raw without the corrections */
	uint64_t counted;
};

/* Fails if another thread has changed w->accounted since `from' was read. */
static bool
change(struct wp_watch *w, const struct counts *from, uint64_t to)
{
	uint64_t raw = from->raw, corrected = raw & ~WP_ACCOUNTED_MAX;

	if (to < from->accounted)
		corrected += WP_ACCOUNTED_MAX + 1;
	if (!atomic_compare_exchange_strong(&w->accounted, &raw,
	    corrected | to))
		return false;
	count_for_helper(w, to - from->accounted);
	return true;
}

static bool
is_counted(const struct wp_watch *w, uint64_t *count)
{
	return atomic_load(&w->narmed) <= READABLE_EVENTS &&
	    w->delivery->count(w, count) == 0;
}

bool
wp_count_all(const struct wp_watch *w, uint64_t *count)
{
	return w->delivery->counts_all && w->tid == 0 &&
	    is_counted(w, count);
}

/* Whether the events have counted accesses that no thread has accounted for.  A
   handler that claimed an access just before that access's own signal arrived
   has accounted for one too many; that is corrected here. */
static bool
is_ahead(struct wp_watch *w, struct counts *now)
{
	now->raw = atomic_load(&w->accounted);
	now->accounted = now->raw & WP_ACCOUNTED_MAX;
	if (!is_counted(w, &now->counted))
		return false;
	if (now->accounted > now->counted)
		(void)change(w, now, now->counted);
	return now->accounted < now->counted;
}

/* Account for at most this many of the accesses that were ahead.  Returns false
   if another thread has changed the total. */
static bool
claim(struct wp_watch *w, const struct counts *then, uint64_t at_most)
{
	return change(w, then, then->counted - then->accounted < at_most ?
	    then->counted : then->accounted + at_most);
}

static void
claim_now(struct wp_watch *w, uint64_t at_most)
{
	struct counts now;

	for (unsigned i = 0; i < TRIES && is_ahead(w, &now); i++)
		if (claim(w, &now, at_most))
			return;
}

/* The largest number of accesses that one step can make. */
static uint64_t
most(const struct wp_watch *w, enum wp_steps steps)
{
	return steps == WP_STEP_MANY ? UINT64_MAX : w->nslots;
}

/* Returns 0, not known, while other threads run: their accesses at the same
   time cannot be told apart from this one's. */
uint32_t
wp_account_slots(struct wp_watch *w)
{
	uint64_t count[WP_SLOTS_MAX];
	uint32_t slots = 0;

	if (w->nslots == 1)
		return 1;
	if (!w->delivery->counts_all || !wp_libc_alone() ||
	    atomic_load(&w->narmed) > READABLE_EVENTS ||
	    wp_watch_count_slots(w, count) != 0)
		return 0;
	for (unsigned i = 0; i < w->nslots; i++)
		if (atomic_exchange(&w->slot_accounted[i], count[i]) !=
		    count[i])
			slots |= 1u << i;
	return slots;
}

void
wp_account_times(struct wp_watch *w, uint64_t times)
{
	(void)atomic_fetch_add(&w->accounted, times);
	count_for_helper(w, times);
}

/* Accounting for one access too many would hide one that is lost later.  Other
   handlers claim accesses only if the watch has several registers or is one of
   several watches; only then is a correction needed. */
uint32_t
wp_account(struct wp_watch *w, enum wp_steps steps)
{
	struct counts now;

	(void)atomic_fetch_add(&w->accounted, 1);
	count_for_helper(w, 1);
	if (most(w, steps) > 1)
		claim_now(w, most(w, steps) - 1);
	else if (atomic_load(&wp_state.nopen) > 1)
		(void)is_ahead(w, &now);
	return wp_account_slots(w);
}

void
wp_account_suppressed(struct wp_watch *w)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	(void)atomic_fetch_add(&w->suppressed, 1);
	if (channel != NULL)
		(void)atomic_fetch_add(
		    &wp_watch_words(w, channel)->suppressed, 1);
}

/* Whether an access that fires the register `by' must fire a register of w. */
static bool
is_covered(const struct wp_watch *w, const struct wp_slot *by)
{
	for (unsigned i = 0; i < w->nslots; i++) {
		const struct wp_slot *slot = &w->slot[i];

		if (slot->addr <= by->addr &&
		    by->addr + by->len <= slot->addr + slot->len &&
		    (slot->type & by->type) == by->type)
			return true;
	}
	return false;
}

/* Give the handlers of other threads time to account for their own accesses;
   returns false once they have.  The events are read again only when at least
   as much is accounted for as was counted before. */
static bool
stays_ahead(struct wp_watch *w, struct counts *now)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	for (unsigned i = 0; i < YIELDS + NAPS; i++) {
		if (wp_accounted(w) >= now->counted && !is_ahead(w, now))
			return false;
		if (i < YIELDS)
			(void)sched_yield();
		else	/* nanosleep(3) is a cancellation point */
			(void)syscall(SYS_nanosleep, &nap, NULL);
	}
	return is_ahead(w, now);
}

/* At least one register of w was touched.  Whether its other registers were
   touched as well follows from what remains after other threads have accounted
   for their accesses. */
static bool
account_sure(struct wp_watch *w, const struct counts *then)
{
	struct counts now;

	if (!claim(w, then, 1))
		return false;
	if (w->nslots > 1 && is_ahead(w, &now) && (wp_libc_alone() ||
	    stays_ahead(w, &now)))
		claim_now(w, w->nslots - 1);
	return true;
}

/* A claim fails if another thread has changed the total in the meantime, or if
   this very code has, because the watch is on its stack.  In the second case it
   would fail forever, so the number of attempts is limited. */
bool
wp_account_also(struct wp_watch *w, const struct wp_slot *fired,
    enum wp_steps steps)
{
	const bool sure = steps == WP_STEP_ONE && fired != NULL &&
	    is_covered(w, fired);
	struct counts now;

	for (unsigned i = 0; i < TRIES && is_ahead(w, &now); i++) {
		if (!sure && !wp_libc_alone() && !stays_ahead(w, &now))
			return false;
		if (sure ? account_sure(w, &now) : claim(w, &now,
		    most(w, steps)))
			return true;
	}
	return false;
}
