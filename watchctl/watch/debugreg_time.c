/* debugreg_time: for how long debug registers were on.  See debugreg_time.h. */
#include "watch/debugreg_time.h"

#include <string.h>

#include "proc/proc.h"

void
debugreg_time_begin(struct debugreg_time *time, pid_t tid,
    const struct wp_slot slot[WP_DEBUG_REGISTERS], unsigned on)
{
	time->begun = on != 0;
	time->on = on;
	memcpy(time->slot, slot, sizeof(time->slot));
	if (time->begun && wp_proc_ran(tid, &time->ran) < 0)
		time->ran = UINT64_MAX;
}

static void
add_gap(struct wp_uptime *uptime, uint64_t ns, unsigned watch, pid_t tid)
{
	uptime->off += ns;
	if (ns < uptime->worst)
		return;
	uptime->worst = ns > 0 ? ns : 1;
	uptime->watch = watch;
	uptime->tid = tid;
}

/* The watch was on until now, unless the registers were not held. */
static void
end(struct debugreg_time *time, pid_t tid, unsigned watch, int held,
    struct wp_uptime *uptime)
{
	uint64_t ran;

	if (held < 0 || wp_proc_ran(tid, &ran) < 0 || ran < time->ran) {
		debugreg_time_lost(time, uptime);
		return;
	}
	time->begun = false;
	uptime->known = true;
	uptime->threads += !time->counted;
	time->counted = true;
	uptime->ran += ran - time->ran;
	if (!held)
		add_gap(uptime, ran - time->ran, watch, tid);
}

void
debugreg_time_end(struct debugreg_time *time, pid_t tid, unsigned watch,
    struct wp_uptime *uptime)
{
	if (time->begun)
		end(time, tid, watch, wp_trace_registers_hold(tid, time->slot,
		    time->on), uptime);
}

void
debugreg_time_executed(struct debugreg_time *time, pid_t tid,
    struct wp_uptime *uptime)
{
	if (time->begun)
		end(time, tid, 0, 1, uptime);
}

void
debugreg_time_lost(struct debugreg_time *time, struct wp_uptime *uptime)
{
	if (time->begun)
		uptime->unknown = 1;
	time->begun = false;
}
