/*
 * identify: finds the watches of a signal.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "handler/capture.h"
#include "handler/trap_run.h"
#include "os/libc.h"
#include "os/siginfo_perf.h"
#include "os/trap_cpu.h"

/* The bits of a serial that fit into sig_data. */
#define SERIAL (WP_NARROW ? ~WP_SIG_USES | WP_SIG_NARROW_USES : UINT32_MAX)

/* Add the watches that sig_data names, whether the kernel or the tracer sent
   it.  times: the number of accesses, 0 if not known. */
static void
match_data(struct wp_run *run, uint64_t data, uint64_t times)
{
	unsigned slot = data >> 16 & 0xff, index;

	if (slot != WP_SIG_MANY) {
		wp_run_add(run, wp_watch_enter(data & 0xffff,
		    (uint32_t)(data >> 24), SERIAL), wp_sig_slots(slot),
		    times);
		return;
	}
	if (WP_NARROW)
		times = 0;	/* it has the watches */
	for (unsigned i = 0; i < 4; i++)
		if ((index = wp_sig_many_get(data, i)) != 0)
			wp_run_add(run, wp_watch_enter(index - 1, 0, 0),
			    times >> (16 * i + 12) & 0xf,
			    times >> 16 * i & 0xfff);
}

static void
spend(struct wp_run *run, int fd, int code, unsigned index)
{
	if (run->nspent < WP_TAKEN_MAX && wp_cpu_traps_before())
		run->spent[run->nspent++] = (struct wp_fired){
			.fd = fd, .code = code, .index = index,
		};
}

/* Events that the helper armed.  Its tracer waits to arm them again, even if
   all their watches are closed by now, so there is at least one entry. */
static void
spend_helpers(struct wp_run *run)
{
	for (unsigned i = 0; i == 0 || i < run->n; i++)
		spend(run, -1, POLL_HUP, i < run->n ?
		    wp_watch_index(run->match[i].watch) : 0);
}

/* Take what this thread's events of an entered watch have counted.  Only the
   event of this signal has a code; each of the others is taken to have
   overflowed once, and to be used up. */
static void
match_watch(struct wp_run *run, struct wp_watch *w, int fd, int code)
{
	const struct wp_at at = {
		wp_cpu_pc(run->context), wp_cpu_sp(run->context),
	};
	uint32_t slots = 0;
	uint64_t times = 0, n;

	for (size_t i = 0; i < atomic_load(&w->narmed); i++) {
		struct wp_armed *armed = &w->armed[i];

		if (armed->tid != run->tid ||
		    (run->begins && armed->fd != fd))
			continue;
		if ((n = wp_async_count_take(&armed->fired, armed->fd, at,
		    &run->late)) == 0)
			continue;
		slots |= 1u << armed->slot;
		times += n;
		spend(run, armed->fd, armed->fd == fd ? code : POLL_HUP,
		    wp_watch_index(w));
	}
	if (times == 0)
		wp_watch_leave(w);
	else
		wp_run_add(run, w, slots, times);
}

/* Add the watches whose events in this thread have fired.  Returns whether the
   descriptor belongs to one of our events. */
static bool
match_events(struct wp_run *run, int fd, int code)
{
	struct wp_watch_walk walk = WP_WALK_ALL;
	struct wp_watch *w;
	bool ours = false;

	while ((w = wp_watch_next(&walk)) != NULL) {
		if (w->delivery->by_descriptor) {
			ours = ours || wp_watch_has(w, fd);
			match_watch(run, w, fd, code);
		} else
			wp_watch_leave(w);
	}
	return ours;
}

static struct wp_siginfo_perf
siginfo_perf(const siginfo_t *info)
{
	struct wp_siginfo_perf by;

	memcpy(&by, info, sizeof(by));
	return by;
}

static uint64_t
data_of(const struct wp_siginfo_perf *by)
{
	return WP_NARROW ? wp_sig_wide((uint32_t)by->data, (uint32_t)by->addr) :
	    by->data;
}

static bool
has_magic(const struct wp_siginfo_perf *by)
{
	return wp_sig_is_of(data_of(by), wp_state.copy);
}

bool
wp_signal_is_ours(const siginfo_t *info)
{
	const struct wp_siginfo_perf by = siginfo_perf(info);

	return has_magic(&by);
}

static void
match_perf(struct wp_run *run, const struct wp_siginfo_perf *by, uint64_t times)
{
	run->late = (by->flags & WP_TRAP_PERF_LATE) != 0 ||
	    (WP_NARROW && (by->data & WP_SIG_NARROW_LATE) != 0);
	match_data(run, data_of(by), times);
}

/* A tracer that was killed could not clear the debug registers that it had set,
   and one of them has fired.  Which watch it was is not known. */
static void
match_raw(struct wp_run *run)
{
	struct wp_watch_walk walk = WP_WALK_ALL;
	unsigned n = 0, last = 0;
	struct wp_watch *w;

	while ((w = wp_watch_next(&walk)) != NULL) {
		if (w->delivery->by_tracer) {
			last = wp_watch_index(w);
			n++;
		}
		wp_watch_leave(w);
	}
	if (n == 1)
		wp_run_add(run, wp_watch_enter(last, 0, 0), 0, 0);
	else if (n > 1)
		wp_fallback_line("watchpoint: a hit of an unknown watch: the "
		    "tracer that knew it has ended\n");
}

static bool
identify_trap(struct wp_run *run, const siginfo_t *info)
{
	struct wp_siginfo_perf by = siginfo_perf(info);

	if (by.code == WP_TRAP_PERF && has_magic(&by))
		match_perf(run, &by, 0);
	else if (by.code == WP_TRAP_HWBKPT && atomic_load(&wp_state.traced))
		match_raw(run);
	else
		return false;
	return true;
}

static bool
identify_signal(struct wp_run *run, const siginfo_t *info)
{
	struct wp_siginfo_perf by = siginfo_perf(info);

	if (!has_magic(&by))
		return false;
	run->by_ptrace = true;
	if (by.code == WP_TRAP_PERF) {
		match_perf(run, &by, 0);
		spend_helpers(run);
	}
	return true;		/* otherwise for a tracer that has ended */
}

/* The kernel may have merged our signal with one of the program's own, and kept
   only that one's siginfo.  A signal from a descriptor is ours even if the
   event is closed or was the helper's: a program without an SA_SIGINFO handler
   cannot have asked for it. */
static bool
identify_event(struct wp_run *run, const siginfo_t *info)
{
	struct wp_siginfo_perf by = siginfo_perf(info);
	const bool from_fd = by.code > 0 && by.code <= POLL_HUP;

	if (has_magic(&by) && by.code == WP_TRAP_PERF) {
		match_perf(run, &by, by.addr);
		spend_helpers(run);
		return true;
	}
	if (!from_fd) {
		(void)match_events(run, -1, 0);
		/* the kernel had no memory to queue the siginfo */
		return run->n > 0 && by.code == SI_USER && by.addr == 0;
	}
	return match_events(run, (int)by.data, by.code) ||
	    (wp_program_action(&wp_state.old_event).sa_flags & SA_SIGINFO) == 0;
}

bool
wp_identify(struct wp_run *run, int sig, const siginfo_t *info)
{
	return sig == SIGTRAP ? identify_trap(run, info) :
	    sig == wp_state.event_signal ? identify_event(run, info) :
	    identify_signal(run, info);
}

bool
wp_signal_take(int sig, siginfo_t *info)
{
	static const struct timespec zero;
	uint64_t set = wp_signal_bit(sig);

	return syscall(SYS_rt_sigtimedwait, &set, info, &zero, sizeof(set)) ==
	    sig;
}
