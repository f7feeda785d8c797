/*
 * live_maps: the mappings of a running process.
 *
 * Reading /proc/PID/maps for each sample would cost more than explaining the
 * sample.  So it is read when the sample's backtrace cannot be right:
 *
 *	a pc lies in no module, or cannot be unwound
 *	the code before a pc is not that of its module's file: another module
 *	has taken its place
 *
 * and otherwise as often as it takes only a small part of the time.
 */
#include "processes/live_maps.h"

#include <errno.h>
#include <string.h>

#include "module/module.h"
#include "os/clock.h"
#include "processes/synthetic_records.h"
#include "proc/proc.h"
#include "space/space.h"
#include "unwind/unwind.h"

/* reading maps may take 1/SPARED of the time */
enum { SPARED = 20 };

static void
learn_record(void *arg, const struct ex_record *record)
{
	ex_space_learn(arg, record);
}

void
live_maps_begin(struct live_maps *m, struct ex_space *space, pid_t pid,
    const struct live_maps_origin *origin)
{
	*m = (struct live_maps){.space = space, .pid = pid, .is = *origin};
}

static bool
is_another_program(const struct live_maps *m)
{
	uint64_t now;

	return wp_proc_program(m->pid, &now) != 0 ||
	    (m->is.known && now != m->is.program);
}

static int
learn(struct live_maps *m)
{
	struct synthetic_records records = {0};
	int err = synthetic_records_take(&records, m->pid);

	if (err == 0 && is_another_program(m))
		err = -ESRCH;
	if (err == 0)
		synthetic_records_each(&records, learn_record, m->space);
	synthetic_records_free(&records);
	return err;
}

int
live_maps_look(struct live_maps *m)
{
	const uint64_t began = wp_clock_ns();
	uint64_t code;
	int err = wp_proc_code(m->pid, &code);

	if (err == 0 && code != m->is.code && (err = learn(m)) == 0) {
		m->is.code = code;
		memset(m->doubted, 0, sizeof(m->doubted));
	}
	m->looked = wp_clock_ns();
	m->cost = m->looked - began;
	return err;
}

/* The entry for a doubtful pc for which reading the maps again did not help. */
static uint64_t *
doubted_at(struct live_maps *m, uint64_t pc)
{
	return &m->doubted[(pc ^ pc >> 6) % 64];
}

/* Whether a word of the process's code is the same as in its module. */
static bool
is_own_code(struct ex_process *process, uint64_t addr, uint64_t word)
{
	uint64_t own = 0, vaddr;
	struct ex_module *module = ex_process_module(process, addr, &vaddr);

	return module != NULL && memcmp(&own, &word,
	    ex_module_bytes(module, vaddr, &own, sizeof(own))) == 0;
}

/* The first pc of a backtrace that cannot be right, or 0.  The code is compared
   where it may have been replaced. */
static uint64_t
doubtful(struct live_maps *m, struct ex_process *process,
    const struct ex_pc *pc, size_t n, enum ex_end end, bool same)
{
	const bool stuck = n > 0 && (end == EX_END_NO_MODULE ||
	    end == EX_END_NO_CFI || end == EX_END_BAD);
	const size_t good = same ? 0 : stuck ? n - 1 : n;
	uint64_t addr[WP_PROC_WORDS], word[WP_PROC_WORDS];
	size_t got;

	for (size_t i = 0; i < n; i++)
		addr[i] = pc[i].pc - sizeof(word[i]);
	got = wp_proc_read_words(m->pid, addr, word, good);
	for (size_t i = 0; i < good; i++)
		if ((i >= got || !is_own_code(process, addr[i], word[i])) &&
		    *doubted_at(m, addr[i]) != addr[i])
			return addr[i];
	return stuck && *doubted_at(m, addr[n - 1]) != addr[n - 1] ?
	    addr[n - 1] : 0;
}

static void
check(struct live_maps *m, const struct ex_sample *sample, bool same)
{
	struct ex_process *process = ex_space_process(m->space, m->pid);
	struct ex_pc pc[WP_PROC_WORDS];
	enum ex_end end;
	uint64_t doubt, code;
	size_t n;

	if (process == NULL)
		return;
	n = ex_unwind(process, sample, pc, WP_PROC_WORDS, &end);
	doubt = doubtful(m, process, pc, n, end, same);
	if (doubt == 0 && wp_clock_ns() - m->looked < SPARED * m->cost)
		return;
	code = m->is.code;
	(void)live_maps_look(m);
	if (doubt != 0 && m->is.code == code)
		*doubted_at(m, doubt) = doubt;
}

void
live_maps_check(struct live_maps *m, const struct ex_sample *sample)
{
	check(m, sample, false);
}

void
live_maps_check_again(struct live_maps *m, const struct ex_sample *sample)
{
	check(m, sample, true);
}
