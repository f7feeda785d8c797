/*
 * deliver_ptrace: watches that the helper arms in the program's threads by
 * ptrace(2): by debug registers, and for deliver_async by events.
 */
#include <string.h>

#include "os/trap_cpu.h"
#include "arming/delivery.h"
#include "arming/helper.h"

static struct wp_request *
request_for(const struct wp_watch *w, uint32_t what)
{
	struct wp_request *request = wp_helper_request(what);

	if (request != NULL)
		request->index = wp_watch_index(w);
	return request;
}

static void
put_slots(struct wp_request *request, const struct wp_slot *slots, unsigned n)
{
	request->nslots = n;
	memcpy(request->slot, slots, n * sizeof(*slots));
}

int
wp_helper_arm(struct wp_watch *w, uint32_t serial, int by_signal,
    struct wp_cause *cause)
{
	struct wp_cause why = {0};
	struct wp_request *request;
	struct wp_channel_watch *words;

	if (wp_helper_start(&why) < 0 ||
	    (request = request_for(w, WP_ASK_ARM)) == NULL)
		return wp_cause_set(cause, WP_CAUSE_TRACE_NO_HELPER,
		    why.text[0] != '\0' ? why.text : "it has ended");
	if (by_signal == 0)
		atomic_store(&wp_state.traced, true);
	words = wp_watch_words(w, atomic_load(&wp_state.channel));
	atomic_store(&words->on, false);
	atomic_store(&words->counted, 0);
	request->tid = w->tid;
	request->serial = serial;
	request->by_signal = (uint32_t)by_signal;
	request->once = wp_cpu_traps_before();
	request->period = w->attr.period;
	request->kernel = w->kernel;
	put_slots(request, w->slot, w->nslots);
	return wp_helper_ask(cause);
}

/* `on' is cleared first: the tracer may be alive even if the helper is dead. */
void
wp_helper_disarm(struct wp_watch *w)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	if (channel != NULL)
		atomic_store(&wp_watch_words(w, channel)->on, false);
	if (request_for(w, WP_ASK_DISARM) != NULL)
		(void)wp_helper_ask(NULL);
}

int
wp_helper_move(struct wp_watch *w, const struct wp_slot *slots,
    struct wp_cause *cause)
{
	struct wp_request *request = request_for(w, WP_ASK_MOVE);
	int err;

	if (request == NULL)
		return wp_cause_set(cause, WP_CAUSE_HELPER_DIED);
	put_slots(request, slots, w->nslots);
	if ((err = wp_helper_ask(cause)) < 0)
		return err;
	wp_watch_place(w, slots);
	return 0;
}

static int
ptrace_open(struct wp_watch *w, uint32_t serial, struct wp_cause *cause)
{
	return wp_helper_arm(w, serial, 0, cause);
}

static int
ptrace_enable(struct wp_watch *w)
{
	return wp_helper_switch(w, true);
}

static int
ptrace_disable(struct wp_watch *w)
{
	return wp_helper_switch(w, false);
}

static int
ptrace_signal(void)
{
	return WP_SIGNAL;
}

const struct wp_delivery wp_deliver_ptrace = {
	.name = "ptrace", .by_tracer = true, .signal = ptrace_signal,
	.open = ptrace_open, .close = wp_helper_disarm,
	.enable = ptrace_enable, .disable = ptrace_disable,
	.move = wp_helper_move, .count = wp_helper_count,
};
