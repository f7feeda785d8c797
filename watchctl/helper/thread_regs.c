/* thread_regs: what is armed in one traced thread.  See thread_regs.h. */
#include "helper/thread_regs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/perf.h"

static const struct thread_reg nothing = {.fd = -1};

struct thread_regs *
thread_regs_new(pid_t tid, struct thread_regs **list)
{
	struct thread_regs *places = calloc(1, sizeof(*places));

	if (places == NULL)
		return NULL;
	places->tid = tid;
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		places->at[n] = nothing;
	places->next = *list;
	places->from = list;
	if (places->next != NULL)
		places->next->from = &places->next;
	*list = places;
	return places;
}

static bool
is_register(const struct thread_reg *place)
{
	return place->watch != NULL && place->signal == 0;
}

static bool
is_event(const struct thread_reg *place)
{
	return place->watch != NULL && place->signal != 0;
}

bool
thread_reg_fires(const struct thread_reg *place)
{
	return is_register(place) && place->on;
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

static int
set_registers(struct thread_regs *places,
    const struct thread_reg want[WP_DEBUG_REGISTERS], bool anew)
{
	struct wp_slot slot[WP_DEBUG_REGISTERS] = {{0}};
	bool differs = anew, wanted = false;
	unsigned on = 0;
	int err = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		differs = differs || !same_register(&places->at[n], &want[n]);
		if (!is_register(&want[n]))
			continue;
		wanted = true;
		slot[n] = want[n].slot;
		on |= (unsigned)want[n].on << n;
	}
	if (differs)
		err = wp_trace_registers(places->tid, slot, on);
	if (err == -ENOTSUP && !wanted)
		err = 0;
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		if (is_register(&want[n]) && err == 0)
			places->at[n] = want[n];
		else if (is_register(&places->at[n]))
			places->at[n] = nothing;
	}
	return err;
}

static void
close_event(struct thread_reg *place)
{
	struct wp_perf_count count;

	if (atomic_load(&place->watch->serial) == place->serial &&
	    wp_perf_read(place->fd, WP_INSIDE_FORMAT, &count) == 0)
		place->watch->closed_total += count.value;
	wp_async_count_close(&place->fired);
	(void)close(place->fd);
	*place = nothing;
}

/* Another program that the thread executes would die of the signal.  Kernels
   before 5.13 do not know how to prevent that. */
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
switch_on(const struct thread_reg *place)
{
	return !place->on ? 0 : place->watch->once ?
	    wp_perf_once(place->fd, place->watch->period) :
	    wp_perf_enable(place->fd);
}

static int
open_event(struct thread_regs *places, struct thread_reg *place, const struct thread_reg *want)
{
	struct perf_event_attr attr;
	int err, fd;

	wp_attr_inside(&attr, &want->slot, want->watch->period,
	    want->watch->kernel);
	wp_attr_fires(&attr);
	if ((fd = open_until_exec(&attr, places->tid)) < 0)
		return fd;
	*place = *want;
	place->fd = fd;
	place->spent = false;
	if ((err = wp_async_count_open(&place->fired, fd)) < 0 ||
	    (err = wp_perf_signal(fd, places->tid, want->signal)) < 0 ||
	    (err = switch_on(place)) < 0)
		close_event(place);
	return err;
}

int
thread_regs_set(struct thread_regs *places, const struct thread_reg want[WP_DEBUG_REGISTERS],
    bool anew)
{
	int err;

	/* all that is taken has to be free again first */
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (places->at[n].fd >= 0 &&
		    !same_event(&places->at[n], &want[n]))
			close_event(&places->at[n]);
	err = set_registers(places, want, anew);
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && err == 0; n++)
		if (is_event(&want[n]) && places->at[n].fd < 0)
			err = open_event(places, &places->at[n], &want[n]);
	return err;
}

uint64_t
thread_reg_take(struct thread_reg *place, struct wp_at at, bool *late)
{
	uint64_t n = is_event(place) && place->fd >= 0 ?
	    wp_async_count_take(&place->fired, place->fd, at, late) : 0;

	place->spent = place->spent || (n > 0 && place->watch->once);
	return n;
}

bool
thread_regs_have(const struct thread_regs *places, int fd)
{
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (is_event(&places->at[n]) && places->at[n].fd == fd)
			return true;
	return false;
}

/* What the handler has touched since is not reported as an access. */
static void
forget_own(struct thread_reg *place)
{
	const uint64_t before = place->fired.taken;
	bool late;

	(void)thread_reg_take(place, (struct wp_at){0}, &late);
	place->watch->closed_total -= place->fired.taken - before;
}

/* An event whose one overflow is used up is not always revived by another, if
   its thread does not run; a new one is as good. */
int
thread_regs_rearm(struct thread_regs *places)
{
	int err = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && err == 0; n++) {
		struct thread_reg *place = &places->at[n], was;

		if (!is_event(place) || place->fd < 0)
			continue;
		forget_own(place);
		if (!place->spent)
			continue;
		was = *place;
		close_event(place);
		err = open_event(places, place, &was);
	}
	return err;
}

uint64_t
thread_regs_count(const struct thread_regs *places, uint32_t serial)
{
	struct wp_perf_count count;
	uint64_t total = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (places->at[n].fd >= 0 && places->at[n].serial == serial &&
		    wp_perf_read(places->at[n].fd, WP_INSIDE_FORMAT, &count) == 0)
			total += count.value;
	return total;
}

void
thread_regs_free(struct thread_regs *places)
{
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (places->at[n].fd >= 0)
			close_event(&places->at[n]);
	if (places->next != NULL)
		places->next->from = places->from;
	*places->from = places->next;
	free(places);
}
