/* places: what is armed in one traced thread.  See places.h. */
#include "places.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "attr.h"
#include "perf.h"

/* Descriptors that can have an owner. */
enum {
	OWNERS = sizeof(((struct wp_channel *)NULL)->owner) / sizeof(uint16_t),
};

static const struct place nothing = {.fd = -1};

struct places *
places_new(pid_t tid, struct wp_channel *channel, struct places **list)
{
	struct places *places = calloc(1, sizeof(*places));

	if (places == NULL)
		return NULL;
	places->tid = tid;
	places->channel = channel;
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
is_register(const struct place *place)
{
	return place->watch != NULL && place->signal == 0;
}

static bool
is_event(const struct place *place)
{
	return place->watch != NULL && place->signal != 0;
}

bool
place_fires(const struct place *place)
{
	return is_register(place) && place->on;
}

static bool
same_slot(const struct wp_slot *a, const struct wp_slot *b)
{
	return a->addr == b->addr && a->len == b->len && a->type == b->type;
}

static bool
same_register(const struct place *is, const struct place *want)
{
	return is_register(is) == is_register(want) && (!is_register(is) ||
	    (is->on == want->on && same_slot(&is->slot, &want->slot)));
}

static bool
same_event(const struct place *is, const struct place *want)
{
	return is->fd >= 0 && is->serial == want->serial &&
	    is->on == want->on && same_slot(&is->slot, &want->slot);
}

static int
set_registers(struct places *places,
    const struct place want[WP_DEBUG_REGISTERS], bool anew)
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
close_event(struct places *places, struct place *place)
{
	struct wp_perf_count count;

	if (atomic_load(&place->watch->serial) == place->serial &&
	    wp_perf_read(place->fd, false, &count) == 0)
		place->watch->gone += count.value;
	atomic_store(&places->channel->owner[place->fd], 0);
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

/* The signal says which descriptor it came from; whose that is, is known before
   one can come. */
static int
open_event(struct places *places, struct place *place, const struct place *want)
{
	struct perf_event_attr attr;
	int err, fd;

	wp_attr_inside(&attr, &want->slot, want->watch->period,
	    want->watch->kernel);
	if ((fd = open_until_exec(&attr, places->tid)) < 0)
		return fd;
	if (fd >= OWNERS) {
		(void)close(fd);
		return -EMFILE;
	}
	*place = *want;
	place->fd = fd;
	atomic_store(&places->channel->owner[fd],
	    wp_channel_owner(want->index, want->piece));
	if ((err = wp_perf_signal(fd, places->tid, want->signal)) < 0 ||
	    (want->on && (err = wp_perf_once(fd, want->watch->period)) < 0))
		close_event(places, place);
	return err;
}

int
places_set(struct places *places, const struct place want[WP_DEBUG_REGISTERS],
    bool anew)
{
	int err;

	/* all that is taken has to be free again first */
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (places->at[n].fd >= 0 &&
		    !same_event(&places->at[n], &want[n]))
			close_event(places, &places->at[n]);
	err = set_registers(places, want, anew);
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && err == 0; n++)
		if (is_event(&want[n]) && places->at[n].fd < 0)
			err = open_event(places, &places->at[n], &want[n]);
	return err;
}

/* An event whose one overflow is used up is not always revived by another, if
   its thread does not run; a new one is as good. */
int
places_rearm(struct places *places, int fd)
{
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++) {
		const struct place was = places->at[n];

		if (was.fd != fd || !was.on)
			continue;
		close_event(places, &places->at[n]);
		return open_event(places, &places->at[n], &was);
	}
	return 0;
}

uint64_t
places_count(const struct places *places, uint32_t serial)
{
	struct wp_perf_count count;
	uint64_t total = 0;

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (places->at[n].fd >= 0 && places->at[n].serial == serial &&
		    wp_perf_read(places->at[n].fd, false, &count) == 0)
			total += count.value;
	return total;
}

void
places_free(struct places *places)
{
	for (unsigned n = 0; n < WP_DEBUG_REGISTERS; n++)
		if (places->at[n].fd >= 0)
			close_event(places, &places->at[n]);
	if (places->next != NULL)
		places->next->from = places->from;
	*places->from = places->next;
	free(places);
}
