/* trap_before: samples of accesses that were trapped before they were made.
   See trap_before.h. */
#include "run/trap_before.h"

#include <stdlib.h>
#include <string.h>

#include "os/attr.h"
#include "os/operand.h"
#include "proc/proc.h"
#include "os/trap_cpu.h"

enum { REGS = 33 };	/* registers of a sample, in the order of operand.h */

static size_t
watch_of(const struct run *run, const struct ex_record *r)
{
	return run->session.slots[r->attr].watch->id - 1 - run->npending;
}

/* Record the sample again, as one of this slot. */
static bool
record_also(struct run *run, const struct ex_record *r, size_t w, unsigned slot)
{
	const struct wp_watched *watched = wp_target_watches(run->target,
	    &(size_t){0});
	struct perf_event_attr attr;
	struct wp_sample *sample;
	struct ex_record other;
	uint64_t *ids;
	bool more = true;

	if (wp_target_slot_ids(run->target, w, slot, &attr, &ids) < 0)
		return true;
	if (ids[0] != 0 && (sample = malloc(r->size)) != NULL) {
		memcpy(sample, r->bytes, r->size);
		sample->id = ids[0];
		sample->addr = watched[w].slot[slot].addr;
		if (run_decode(run, &sample->header, &other)) {
			run->also++;
			more = session_record(&run->session, &other);
		}
		free(sample);
	}
	free(ids);
	return more;
}

/* The first slot of the watch that the operand touches, or -1. */
static int
slot_hit(const struct wp_watched *watch, const struct wp_operand *operand)
{
	for (unsigned i = 0; i < watch->nslots && !watch->off; i++)
		if (wp_operand_hits(operand, &watch->slot[i]))
			return (int)i;
	return -1;
}

static bool
record_others(struct run *run, const struct ex_record *r, uint32_t code)
{
	const size_t w = watch_of(run, r);
	const struct process *process = run_process_of(run, w);
	const struct wp_watched *watched;
	struct wp_operand operand;
	uint64_t reg[REGS];
	size_t n;
	int slot;

	for (unsigned i = 0; i < REGS; i++)
		if (!ex_regs_get(&r->sample.user, i, &reg[i]))
			return true;
	if (!wp_operand(code, reg, &operand))
		return true;
	watched = wp_target_watches(run->target, &n);
	for (size_t i = process->first; i < process->first + process->n; i++)
		if (i != w && (slot = slot_hit(&watched[i], &operand)) >= 0 &&
		    !record_also(run, r, i, (unsigned)slot))
			return false;
	return true;
}

bool
trap_before_record(struct run *run, const struct ex_record *r)
{
	const struct wp_watched *watched;
	uint32_t code;
	size_t n, w;

	if (!session_record(&run->session, r))
		return false;
	if (!wp_cpu_traps_before() || !session_is_sample(&run->session, r) ||
	    run->session.slots[r->attr].watch->access == WP_EXEC ||
	    wp_proc_read(r->pid, r->sample.ip, &code, sizeof(code)) !=
	    sizeof(code))
		return true;
	w = watch_of(run, r);
	watched = wp_target_watches(run->target, &n);
	if (!wp_operand_is_exclusive(code))
		return record_others(run, r, code);
	if (!watched[w].off) {
		wp_target_turn_off(run->target, w);
		run_report_exclusive(run, w);
	}
	return true;
}
