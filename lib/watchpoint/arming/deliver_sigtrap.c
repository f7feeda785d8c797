/*
 * deliver_sigtrap: a hit is a SIGTRAP of the thread that made it, by the
 * kernel, with sig_data.
 *
 * Each thread that exists has an event for each slot, which the threads that it
 * makes inherit; children made by fork(2) and programs executed do not.
 */
#include "os/libc.h"
#include "os/perf.h"
#include "arming/delivery.h"

static void
sigtrap_attr(struct perf_event_attr *attr, const struct wp_watch *w,
    uint32_t serial, unsigned slot)
{
	attr->inherit = attr->inherit_thread = w->tid == 0;
	attr->remove_on_exec = 1;
	attr->sigtrap = 1;
	attr->sig_data = wp_sig_data(serial, slot, wp_watch_index(w));
	if (WP_NARROW)
		attr->sig_data = wp_sig_narrow(attr->sig_data);
}

static int
enable_one(const struct wp_watch *w, struct wp_armed *armed)
{
	(void)w;
	return wp_perf_enable(armed->fd);
}

static const struct wp_arming arming = {
	.inherited = true, .attr = sigtrap_attr, .enable = enable_one,
};

static int
sigtrap_signal(void)
{
	return SIGTRAP;
}

const struct wp_delivery wp_deliver_sigtrap = {
	.name = "sigtrap", .counts_all = true, .arming = &arming,
	.signal = sigtrap_signal,
	.open = wp_self_events_open, .close = wp_self_events_close,
	.enable = wp_self_events_enable, .disable = wp_watch_disable,
	.move = wp_self_events_move, .count = wp_watch_count,
};
