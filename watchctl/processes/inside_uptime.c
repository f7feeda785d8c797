/* inside_uptime: for how long a program's watches on itself were on. */
#include "processes/inside_uptime.h"

#include <errno.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/clock.h"
#include "os/perf.h"
#include "proc/proc.h"

/* On older kernels the clock also runs in children, which is wrong here. */
static int
open_clock(pid_t pid, bool until_exec)
{
	struct perf_event_attr attr;

	wp_attr_clock(&attr, true);
	attr.remove_on_exec = until_exec;
	return wp_perf_open(&attr, pid, -1);
}

/* Returns 0 if it has one thread, -EBUSY if several. */
static int
is_alone(pid_t pid)
{
	struct wp_proc_status status;
	int err = wp_proc_status(pid, &status);

	return err < 0 ? err : status.threads == 1 ? 0 : -EBUSY;
}

void
inside_uptime_begin(struct inside_uptime *p, const struct event_dups *dups,
    pid_t pid, bool until_exec)
{
	int err;

	p->dups = dups;
	p->pid = pid;
	p->made = 0;
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		p->measured[i] = event_dups_running(dups, i, p->on[i]);
	p->since = wp_clock_ns();
	p->clock = open_clock(pid, until_exec);
	if (p->clock < 0 || (err = is_alone(pid)) == 0)
		return;
	(void)close(p->clock);
	p->clock = err;
}

void
inside_uptime_thread(struct inside_uptime *p, uint64_t time)
{
	p->made += p->dups != NULL && time >= p->since;
}

/* For how long a watch was off, given the running time of its threads. */
static uint64_t
watch_off(const struct inside_uptime *p, unsigned i, uint64_t ran)
{
	uint64_t on[WP_SLOTS_MAX], least = UINT64_MAX;

	if (!event_dups_running(p->dups, i, on))
		return 0;
	for (unsigned k = 0; k < p->dups->of[i].nslots; k++)
		if (on[k] - p->on[i][k] < least)
			least = on[k] - p->on[i][k];
	return least < ran ? ran - least : 0;
}

/* Whether there are watches, and all are measured. */
static bool
is_measured(const struct inside_uptime *p)
{
	bool any = false;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		if (p->dups->of[i].serial != 0 && !p->measured[i])
			return false;
		any = any || p->measured[i];
	}
	return any;
}

void
inside_uptime_end(struct inside_uptime *p, struct wp_uptime *uptime)
{
	struct wp_perf_count count;

	*uptime = (struct wp_uptime){0};
	if (p->dups == NULL || p->clock < 0 || !is_measured(p) ||
	    wp_perf_read(p->clock, WP_INSIDE_FORMAT, &count) < 0)
		return;
	uptime->known = true;
	uptime->threads = 1 + p->made;
	uptime->ran = count.running;
	uptime->tid = p->pid;
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const uint64_t off = p->measured[i] ?
		    watch_off(p, i, uptime->ran) : 0;

		if (off > uptime->off) {
			uptime->off = uptime->worst = off;
			uptime->watch = i;
		}
	}
}

void
inside_uptime_close(struct inside_uptime *p)
{
	if (p->dups != NULL && p->clock >= 0)
		(void)close(p->clock);
	*p = (struct inside_uptime){0};
}
