/* presence: for how long a program's watches on itself were on.  See
   presence.h. */
#include "watch/presence.h"

#include "os/clock.h"

void
presence_begin(struct presence *p, const struct event_dups *dups,
    struct sideband *sideband, bool alone)
{
	p->dups = dups;
	p->sideband = sideband;
	if (alone)
		sideband->since = wp_clock_ns();
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		p->measured[i] = event_dups_running(dups, i, p->on[i]);
	p->ran = sideband_ran(sideband);
}

/* A watch whose threads ran for so long.  Result: how long it was off. */
static uint64_t
watch_off(const struct presence *p, unsigned i, uint64_t ran)
{
	uint64_t on[WP_SLOTS_MAX], least = UINT64_MAX;

	if (!event_dups_running(p->dups, i, on))
		return 0;
	for (unsigned k = 0; k < p->dups->of[i].nslots; k++)
		if (on[k] - p->on[i][k] < least)
			least = on[k] - p->on[i][k];
	return least < ran ? ran - least : 0;
}

void
presence_end(struct presence *p, struct wp_uptime *uptime)
{
	*uptime = (struct wp_uptime){0};
	if (p->dups == NULL || p->ran == 0)
		return;
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (p->dups->of[i].serial != 0 && !p->measured[i])
			return;
	uptime->known = true;
	uptime->threads = sideband_threads(p->sideband);
	uptime->ran = sideband_ran(p->sideband) - p->ran;
	uptime->tid = p->sideband->pid;
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const uint64_t off = p->measured[i] ?
		    watch_off(p, i, uptime->ran) : 0;

		if (off > uptime->off) {
			uptime->off = uptime->worst = off;
			uptime->watch = i;
		}
	}
}
