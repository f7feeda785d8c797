/* thread_regs: the armed watches of one traced thread.  See thread_regs.h. */
#include "helper/thread_regs.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <string.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/perf.h"

static const struct thread_reg nothing = {.fd = -1};

void
thread_regs_init(struct thread_regs *regs, struct wp_uptime *uptime)
{
	regs->uptime = uptime;
	regs->clock = -1;
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		regs->at[n] = nothing;
}

static bool
is_register(const struct thread_reg *reg)
{
	return reg->watch != NULL && reg->signal == 0;
}

static bool
is_event(const struct thread_reg *reg)
{
	return reg->watch != NULL && reg->signal != 0;
}

bool
thread_reg_fires(const struct thread_reg *reg)
{
	return is_register(reg) && reg->on;
}

static bool
same_slot(const struct wp_slot *a, const struct wp_slot *b)
{
	return a->addr == b->addr && a->len == b->len && a->type == b->type;
}

static bool
same_register(const struct thread_reg *is, const struct thread_reg *want)
{
	return is_register(is) == is_register(want) && (!is_register(is) ||
	    (is->on == want->on && same_slot(&is->slot, &want->slot)));
}

static bool
same_event(const struct thread_reg *is, const struct thread_reg *want)
{
	return is->fd >= 0 && is->serial == want->serial &&
	    is->on == want->on && same_slot(&is->slot, &want->slot);
}

/* The first watch that has a debug register which is on. */
static unsigned
first_watch(const struct thread_regs *regs)
{
	unsigned n = 0;

	while (n < WP_DEBUG_REGISTERS - 1 && !thread_reg_fires(&regs->at[n]))
		n++;
	return regs->at[n].index;
}

/* Set the registers' slots.  Returns which of them are on. */
static unsigned
registers(const struct thread_reg at[WP_DEBUG_REGISTERS],
    struct wp_slot slot[WP_DEBUG_REGISTERS])
{
	unsigned on = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		slot[n] = (struct wp_slot){0};
		if (!is_register(&at[n]))
			continue;
		slot[n] = at[n].slot;
		on |= (unsigned)at[n].on << n;
	}
	return on;
}

/* Switch a set of places off, and all others on. */
static int
switch_off(struct thread_regs *regs, unsigned off)
{
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	const unsigned on = registers(regs->at, slot);

	if (regs->off_for_step == off)
		return 0;
	regs->off_for_step = off;
	return wp_trace_registers(regs->traced.tid, slot, on & ~off);
}

/* Registers that are off for a step miss nothing, so they count as on. */
void
thread_regs_look(struct thread_regs *regs, bool last)
{
	const unsigned off = regs->off_for_step;
	struct debugreg_time *time = &regs->time;
	const pid_t tid = regs->traced.tid;
	const bool begun = time->begun;

	(void)thread_regs_resume(regs);
	debugreg_time_end(time, tid, first_watch(regs), regs->uptime);
	if (begun && !last)
		debugreg_time_begin(time, tid, time->slot, time->on);
	(void)switch_off(regs, off);
}

unsigned
thread_regs_hit(const struct thread_regs *regs)
{
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	const unsigned on = registers(regs->at, slot);

	return wp_trace_registers_hit(regs->traced.tid, slot,
	    on & ~regs->off_for_step);
}

int
thread_regs_pass(struct thread_regs *regs, unsigned hit)
{
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	unsigned off = regs->off_for_step;
	bool execution = false;

	(void)registers(regs->at, slot);
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		execution = execution || ((hit >> n & 1) != 0 &&
		    slot[n].type == HW_BREAKPOINT_X);
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		off |= (unsigned)((slot[n].type == HW_BREAKPOINT_X) ==
		    execution) << n;
	return switch_off(regs, off);
}

int
thread_regs_resume(struct thread_regs *regs)
{
	return switch_off(regs, 0);
}

static int
set_registers(struct thread_regs *regs,
    const struct thread_reg want[WP_DEBUG_REGISTERS], bool anew)
{
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	const unsigned on = registers(want, slot);
	bool differs = anew, wanted = false;
	int err = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		differs = differs || !same_register(&regs->at[n], &want[n]);
		wanted = wanted || is_register(&want[n]);
	}
	if (differs) {
		thread_regs_look(regs, true);
		err = wp_trace_registers(regs->traced.tid, slot,
		    on & ~regs->off_for_step);
	}
	if (err == -ENOTSUP && !wanted)
		err = 0;
	if (differs && err == 0)
		debugreg_time_begin(&regs->time, regs->traced.tid, slot, on);
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		if (is_register(&want[n]) && err == 0)
			regs->at[n] = want[n];
		else if (is_register(&regs->at[n]))
			regs->at[n] = nothing;
	}
	return err;
}

/* Read the thread's clock, which does not advance while the thread is
   stopped. */
static uint64_t
ran(const struct thread_regs *regs)
{
	struct wp_perf_count count;

	return regs->clock < 0 || wp_perf_read(regs->clock, WP_INSIDE_FORMAT,
	    &count) < 0 ? 0 : count.running;
}

/* For how long an event was off that should have been on since it was opened,
   given the running times of the thread and of the event. */
static uint64_t
off(const struct thread_reg *reg, uint64_t ran, uint64_t running)
{
	return reg->on && ran > reg->since + running ?
	    ran - reg->since - running : 0;
}

static void
note_gap(struct wp_uptime *uptime, const struct thread_regs *regs,
    const struct thread_reg *reg, uint64_t off)
{
	if (off <= uptime->worst)
		return;
	uptime->worst = off;
	uptime->watch = reg->index;
	uptime->tid = regs->traced.tid;
}

static void
close_event(struct thread_regs *regs, struct thread_reg *reg)
{
	const uint64_t time = ran(regs);
	struct wp_perf_count count;

	if (wp_perf_read(reg->fd, WP_INSIDE_FORMAT, &count) == 0) {
		uint64_t gap = off(reg, time, count.running);

		if (atomic_load(&reg->watch->serial) == reg->serial)
			reg->watch->closed_total += count.value;
		regs->off[reg - regs->at] += gap;
		note_gap(regs->uptime, regs, reg, gap);
	}
	wp_async_count_close(&reg->fired);
	(void)close(reg->fd);
	*reg = nothing;
}

/* If the thread executes another program, the signal would kill that.  Kernels
   before 5.13 cannot prevent it. */
static int
open_until_exec(struct perf_event_attr *attr, pid_t tid)
{
	int fd;

	attr->remove_on_exec = 1;
	fd = wp_perf_open(attr, tid, -1);
	if (fd != -EINVAL)
		return fd;
	attr->remove_on_exec = 0;
	return wp_perf_open(attr, tid, -1);
}

static int
switch_on(const struct thread_reg *reg)
{
	return !reg->on ? 0 : reg->watch->once ?
	    wp_perf_once(reg->fd, reg->watch->period) :
	    wp_perf_enable(reg->fd);
}

static int
open_event(struct thread_regs *regs, struct thread_reg *reg,
    const struct thread_reg *want)
{
	struct perf_event_attr attr;
	int err, fd;

	wp_attr_inside(&attr, &want->slot, want->watch->period,
	    want->watch->kernel);
	wp_attr_fires(&attr);
	if ((fd = open_until_exec(&attr, regs->traced.tid)) < 0)
		return fd;
	*reg = *want;
	reg->fd = fd;
	reg->spent = false;
	reg->since = ran(regs);
	if ((err = wp_async_count_open(&reg->fired, fd)) < 0 ||
	    (err = wp_perf_signal(fd, regs->traced.tid, want->signal)) < 0 ||
	    (err = switch_on(reg)) < 0)
		close_event(regs, reg);
	return err;
}

/* The clock is opened after the events that it measures (uptime.h).  An event
   that a hit uses up is off between hits, as intended, so it is not
   measured. */
static void
open_clock(struct thread_regs *regs)
{
	struct perf_event_attr attr;
	bool any = false, once = false;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (is_event(&regs->at[n]) && regs->at[n].on) {
			any = true;
			once = once || regs->at[n].watch->once;
		}
	if (!any || regs->clock >= 0)
		return;
	wp_attr_clock(&attr, false);
	if (!once)
		regs->clock = open_until_exec(&attr, regs->traced.tid);
	if (regs->clock < 0)
		regs->uptime->unknown = 1;
}

int
thread_regs_set(struct thread_regs *regs,
    const struct thread_reg want[WP_DEBUG_REGISTERS], bool anew)
{
	int err;

	/* everything that is in use has to be freed first */
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (regs->at[n].fd >= 0 &&
		    !same_event(&regs->at[n], &want[n]))
			close_event(regs, &regs->at[n]);
	err = set_registers(regs, want, anew);
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && err == 0; n++)
		if (is_event(&want[n]) && regs->at[n].fd < 0)
			err = open_event(regs, &regs->at[n], &want[n]);
	open_clock(regs);
	return err;
}

uint64_t
thread_reg_take(struct thread_reg *reg, struct wp_at at, bool *late)
{
	uint64_t n = is_event(reg) && reg->fd >= 0 ?
	    wp_async_count_take(&reg->fired, reg->fd, at, late) : 0;

	reg->spent = reg->spent || (n > 0 && reg->watch->once);
	return n;
}

bool
thread_regs_have(const struct thread_regs *regs, int fd)
{
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (is_event(&regs->at[n]) && regs->at[n].fd == fd)
			return true;
	return false;
}

/* Accesses made by the handler since the hit are not reported. */
static void
forget_own(struct thread_reg *reg)
{
	const uint64_t before = reg->fired.taken;
	bool late;

	(void)thread_reg_take(reg, (struct wp_at){0}, &late);
	reg->watch->closed_total -= reg->fired.taken - before;
}

/* Allowing another overflow does not always revive an event whose thread is not
   running, so it is replaced by a new one. */
int
thread_regs_rearm(struct thread_regs *regs)
{
	int err = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && err == 0; n++) {
		struct thread_reg *reg = &regs->at[n], was;

		if (!is_event(reg) || reg->fd < 0)
			continue;
		forget_own(reg);
		if (!reg->spent)
			continue;
		was = *reg;
		close_event(regs, reg);
		err = open_event(regs, reg, &was);
	}
	return err;
}

uint64_t
thread_regs_count(const struct thread_regs *regs, uint32_t serial)
{
	struct wp_perf_count count;
	uint64_t total = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (regs->at[n].fd >= 0 && regs->at[n].serial == serial &&
		    wp_perf_read(regs->at[n].fd, WP_INSIDE_FORMAT, &count) == 0)
			total += count.value;
	return total;
}

/* Add a thread that has run for this long. */
static void
add_thread(struct wp_uptime *uptime, uint64_t ran,
    const uint64_t off[WP_DEBUG_REGISTERS])
{
	uint64_t most = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (off[n] > most)
			most = off[n];
	uptime->known = true;
	uptime->threads++;
	uptime->ran += ran;
	uptime->off += most;
}

void
thread_regs_uptime(const struct thread_regs *regs, struct wp_uptime *uptime)
{
	const uint64_t time = ran(regs);
	uint64_t gap[WP_DEBUG_REGISTERS];
	struct wp_perf_count count;

	if (regs->clock < 0)
		return;
	memcpy(gap, regs->off, sizeof(gap));
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		const struct thread_reg *reg = &regs->at[n];
		uint64_t now;

		if (reg->fd < 0 || wp_perf_read(reg->fd, WP_INSIDE_FORMAT,
		    &count) < 0)
			continue;
		now = off(reg, time, count.running);
		gap[n] += now;
		note_gap(uptime, regs, reg, now);
	}
	add_thread(uptime, time, gap);
}

void
thread_regs_close(struct thread_regs *regs)
{
	const uint64_t time = ran(regs);

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (regs->at[n].fd >= 0)
			close_event(regs, &regs->at[n]);
	debugreg_time_lost(&regs->time, regs->uptime);
	if (regs->clock < 0)
		return;
	add_thread(regs->uptime, time, regs->off);
	(void)close(regs->clock);
	regs->clock = -1;
}
