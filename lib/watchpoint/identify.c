/*
 * identify: which watches a signal names.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trap_run.h"

/* Of siginfo.h; glibc 2.36 lacks them. */
enum {
	CODE_TRAP_HWBKPT = 4,
	CODE_TRAP_PERF = 6,
	FLAG_LATE = 1,		/* TRAP_PERF_FLAG_ASYNC */
};

/* What the kernel's siginfo holds of an access. */
struct told_by {
	int32_t signo, error, code, pad;
	uint64_t addr;		/* async: si_band */
	uint64_t data;		/* sig_data; async: si_fd */
	uint32_t type, flags;
};
_Static_assert(sizeof(struct told_by) <= sizeof(siginfo_t), "of 64 bits");

/* sig_data, of the kernel or of the tracer: ours, open or not. */
static void
tell_data(struct wp_run *run, uint64_t data)
{
	unsigned slot = data >> 16 & 0xff, index;

	if (slot != WP_SIG_MANY) {
		wp_run_tell(run, wp_watch_enter(data & 0xffff,
		    (uint32_t)(data >> 24), 0xffffff), wp_sig_slots(slot));
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		if ((index = wp_sig_many_get(data, i)) != 0)
			wp_run_tell(run, wp_watch_enter(index - 1, 0, 0), 0);
}

static void
spend(struct wp_run *run, int fd, int code, unsigned index, bool local)
{
	run->spent[run->nspent++] = (struct wp_spent){
		.fd = fd, .code = code, .index = index, .local = local,
	};
}

/* The descriptor of an event by the async delivery: of this process, or of the
   helper.  false: of neither. */
static bool
tell_fd(struct wp_run *run, int fd, int code)
{
	struct wp_channel *channel = atomic_load(&wp_inside.channel);
	struct wp_watch *w;
	uint16_t owner;
	int slot;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		if (wp_inside.watch[i].delivery != &wp_deliver_async ||
		    (w = wp_watch_enter(i, 0, 0)) == NULL)
			continue;
		slot = wp_watch_slot_of(w, fd);
		if (slot >= 0) {
			spend(run, fd, code, i, true);
			wp_run_tell(run, w, wp_sig_slots((unsigned)slot));
			return true;
		}
		wp_watch_leave(w);
	}
	if (channel == NULL || fd < 0 || fd > UINT16_MAX ||
	    (owner = atomic_load(&channel->owner[fd])) == 0)
		return false;
	spend(run, fd, code, wp_channel_owner_index(owner), false);
	wp_run_tell(run, wp_watch_enter(wp_channel_owner_index(owner), 0, 0),
	    wp_sig_slots(wp_channel_owner_slot(owner)));
	return true;
}

static struct told_by
told_by(const siginfo_t *info)
{
	struct told_by by;

	memcpy(&by, info, sizeof(by));
	return by;
}

static bool
has_magic(const struct told_by *by)
{
	return by->data >> 48 == WP_SIG_MAGIC;
}

bool
wp_signal_is_ours(const siginfo_t *info)
{
	const struct told_by by = told_by(info);

	return has_magic(&by);
}

static void
tell_perf(struct wp_run *run, const struct told_by *by)
{
	run->late = (by->flags & FLAG_LATE) != 0;
	tell_data(run, by->data);
}

/* A debug register fired that a tracer had set and could not clear when it was
   killed.  Which one is not told. */
static void
tell_raw(struct wp_run *run)
{
	unsigned n = 0, last = 0;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&wp_inside.watch[i].serial) != 0 &&
		    wp_inside.watch[i].delivery == &wp_deliver_ptrace) {
			last = i;
			n++;
		}
	if (n == 1)
		wp_run_tell(run, wp_watch_enter(last, 0, 0), 0);
	else if (n > 1)
		wp_say("watchpoint: a hit, and the tracer that knows of which "
		    "watch has ended\n");
}

static bool
identify_trap(struct wp_run *run, const siginfo_t *info)
{
	struct told_by by = told_by(info);

	if (by.code == CODE_TRAP_PERF && has_magic(&by))
		tell_perf(run, &by);
	else if (by.code == CODE_TRAP_HWBKPT && atomic_load(&wp_inside.traced))
		tell_raw(run);
	else
		return false;
	return true;
}

/* Of an event that is closed it is ours still; whose else, if the program has
   no handler for such signals? */
static bool
identify_signal(struct wp_run *run, const siginfo_t *info)
{
	struct told_by by = told_by(info);

	if (has_magic(&by)) {
		run->by_ptrace = true;
		if (by.code == CODE_TRAP_PERF)
			tell_perf(run, &by);
		return true;	/* else for the tracer, which has ended */
	}
	if (by.code <= 0 || by.code > POLL_HUP)
		return false;
	return tell_fd(run, (int)by.data, by.code) ||
	    (wp_inside.old_signal.sa_flags & SA_SIGINFO) == 0;
}

bool
wp_identify(struct wp_run *run, int sig, const siginfo_t *info)
{
	return sig == SIGTRAP ? identify_trap(run, info) :
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

void
wp_identify_further(struct wp_run *run)
{
	siginfo_t info;

	while (run->nspent < WP_TAKEN_MAX && wp_signal_take(WP_SIGNAL, &info))
		if (!identify_signal(run, &info)) {
			wp_signal_again(WP_SIGNAL, &info);
			return;
		}
}
