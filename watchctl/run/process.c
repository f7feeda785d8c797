/*
 * process: the processes of a run, their watches, and their numbers in the
 * session.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "os/trap_cpu.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "session/replay.h"

struct process *
run_new_process(struct run *run, pid_t pid)
{
	struct process *process = reallocarray(run->process,
	    run->nprocesses + 1, sizeof(*process));
	struct spec_place *place = calloc(run->options->nspecs, sizeof(*place));

	if (process != NULL)
		run->process = process;
	if (process == NULL || place == NULL) {
		free(place);
		return NULL;
	}
	process += run->nprocesses;
	*process = (struct process){.pid = pid, .place = place};
	run->nprocesses++;
	return process;
}

int
run_poll_add(struct run *run, pid_t pid)
{
	const size_t at = 1 + run->nprocesses - 1;
	struct pollfd *p = reallocarray(run->poll, run->npoll + 1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	run->poll = p;
	memmove(p + at + 1, p + at, (run->npoll - at) * sizeof(*p));
	p[at] = (struct pollfd){.fd = pidfd_open(pid, 0), .events = POLLIN};
	run->npoll++;
	return 0;
}

void
run_leave_out(struct run *run, size_t i)
{
	struct process *process = &run->process[i];
	const bool program = process->program;
	struct pollfd *p;

	for (size_t k = 0; process->place != NULL &&
	    k < run->options->nspecs; k++)
		free(process->place[k].symbol);
	free(process->place);
	free(process->waits);
	run->nprocesses--;
	memmove(process, process + 1,
	    (run->nprocesses - i) * sizeof(*process));
	if (run->poll == NULL || program)
		return;
	p = &run->poll[1 + i];
	if (p->fd >= 0)
		(void)close(p->fd);
	run->npoll--;
	memmove(p, p + 1, (run->npoll - 1 - i) * sizeof(*p));
}

bool
run_is_armed(const struct run *run, const struct process *process)
{
	return !process->disarmed &&
	    wp_target_alive(run->target, process->first, process->n);
}

void
run_disarm(struct run *run, struct process *process)
{
	if (process->disarmed)
		return;
	process->disarmed = true;
	wp_target_disarm(run->target, process->first, process->n);
}

void
run_turn_off(struct run *run)
{
	const struct wp_watched *watched;
	size_t n;

	if (run->options->each == 0 || run->ops->turn_off == NULL)
		return;
	watched = wp_target_watches(run->target, &n);
	for (size_t w = 0; w < n; w++)
		if (!watched[w].off && hit_filter_is_full(run->session.filter,
		    run_session_index(run, w)))
			run->ops->turn_off(run, w);
}

void
run_report_exclusive(struct run *run, size_t watch)
{
	const struct ex_watch *w = run_watch(run, watch);

	session_event(&run->session, &(struct watch_event){
		.what = WATCH_DISARMED, .watch = w->id - 1,
		.time = wp_clock_ns(), .pid = w->pid, .gap = WATCH_NO_GAP,
	});
	session_warn(&run->session, "%s is not watched any more: the program "
	    "uses it by ldxr and stxr, and stxr never succeeds on what is "
	    "watched", w->spec);
	session_doubt(&run->session, "%s was not watched after an access by "
	    "ldxr or stxr", w->spec);
}

int
run_launch(struct run *run, struct wp_cause *cause)
{
	return run->options->command == NULL ? 0 :
	    wp_target_launch(run->target, run->options->command,
	    &run->process->pid, cause);
}

unsigned
run_threads(const struct run *run)
{
	return wp_target_threads(run->target);
}

struct wp_region
run_region(const struct run *run, const struct process *process, size_t i)
{
	return (struct wp_region){
		.addr = process->place[i].addr, .len = process->place[i].len,
		.access = run->options->spec[i].access,
		.insn = process->place[i].code,
	};
}

int
run_learn_records(struct run *run, pid_t pid, bool executed)
{
	struct synthetic_records *all = &run->synthetic;
	const size_t before = all->len;
	int learnt = 0, err = synthetic_records_take(all, pid);

	if (err == 0 && executed)
		synthetic_records_executed(all, before);
	if (err == 0 || err == -EACCES || err == -EPERM)
		learnt = live_broker_learn(&run->live, pid, all->bytes + before,
		    all->len - before, err == 0 && !run->ops->registers ?
		    all->time : 0);
	if (run->remote != NULL)	/* a recording begins with all of
					   them, so they are kept */
		all->len = before;
	return learnt < 0 ? learnt : err;
}

int
run_learn(struct run *run, struct process *process, bool executed,
    struct wp_cause *cause)
{
	const int err = run_learn_records(run, process->pid, executed);

	if (err == 0 && !wp_cpu_watches_narrow() &&
	    wp_proc_is_narrow(process->pid))
		return wp_cause_set(cause, WP_CAUSE_NARROW, process->pid);
	if (err == -ESRCH)
		return wp_cause_set(cause, WP_CAUSE_GONE, process->pid);
	if (err == -EACCES || err == -EPERM)
		return wp_cause_denied(cause, process->pid);
	if (err < 0)
		return wp_cause_errno(cause, "reading its mappings", -err);
	if (wp_proc_comm(process->pid, process->pid, process->comm) < 0)
		process->comm[0] = '\0';
	return 0;
}

const struct process *
run_process_of(const struct run *run, size_t w)
{
	const struct process *process = run->process;

	while (w < process->first || w >= process->first + process->n)
		process++;
	return process;
}

const struct ex_watch *
run_spec_watch(const struct run *run, size_t i)
{
	const struct session *s = &run->session;
	size_t w = 0;

	while (w < s->nwatches && ex_watch_number(s->watches[w]) != i + 1)
		w++;
	return w < s->nwatches ? s->watches[w] : NULL;
}

const struct ex_watch *
run_watch(const struct run *run, size_t w)
{
	return run->session.watches[run_session_index(run, w)];
}

size_t
run_session_index(const struct run *run, size_t w)
{
	return w < run->ndescribed ? run->described[w] : SIZE_MAX;
}

/* The session also has watches for parts of objects, so the target's
   index is not higher. */
ssize_t
run_target_index(const struct run *run, size_t watch)
{
	size_t w = run->ndescribed < watch + 1 ? run->ndescribed : watch + 1;

	while (w-- > 0 && run->described[w] != watch)
		;
	return (ssize_t)w;
}

/* Report one slot to the session and the formats.  *event is filled for a
   recording; its ids have to be freed. */
static int
describe_slot(struct run *run, size_t w, unsigned i, bool rotates,
    const struct wp_slot *slot, struct ex_perf_event *event)
{
	uint64_t *ids;
	int err, n = wp_target_slot_ids(run->target, w, i, &event->attr, &ids);

	if (n < 0)
		return n;
	event->ids = ids;
	event->nids = (size_t)n;
	err = ex_formats_add(run->formats, &event->attr, ids, event->nids);
	session_format(&run->session, &event->attr, ids, event->nids);
	/* the address of a rotating slot is in each sample */
	return err < 0 ? err : session_add_slot(&run->session,
	    (int)run_session_index(run, w), rotates ? 0 : slot->addr,
	    rotates ? 0 : wp_slot_bytes(slot->type, slot->len));
}

bool
run_has_executed(const struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == pid && run->process[i].executed)
			return true;
	return false;
}

size_t
run_spec_of(const struct process *process, size_t w)
{
	return process->program || process->rotates || process->some ?
	    process->spec[w - process->first] : w - process->first;
}

/* Whether the watch of a SPEC moves when a pointer on its path changes. */
static bool
is_followed(const struct run *run, const struct process *process, size_t i)
{
	return run->follow != NULL && run->options->spec[i].line == 0 &&
	    process->place[i].nmore > 0;
}

/* How many watches of the process belong to a SPEC that rotates. */
static unsigned
slots_of(const struct process *process, size_t i)
{
	unsigned slots = 0;

	for (size_t k = 0; k < process->n; k++)
		slots += process->spec[k] == i;
	return slots;
}

/* Add one of the slots that rotate over an object.  The first one stands for
   the whole object. */
static int
add_rotating(struct run *run, const struct process *process, size_t w)
{
	struct session *s = &run->session;
	const size_t i = run_spec_of(process, w), first = process->first + i;
	const struct spec *spec = &run->options->spec[i];
	const struct spec_place *place = &process->place[i];
	const struct ex_watch *whole = w == first ? NULL :
	    run_watch(run, first);
	int err;

	session_pending(s, whole == NULL && run->objects != NULL);
	if (whole == NULL) {
		session_moves(s, true, 0);
	} else {
		session_of_process(s, ex_watch_number(whole), whole->pid,
		    whole->comm);
		session_part(s, whole->id);
	}
	err = session_add_watch(s, spec->text, place->symbol, place->addr,
	    place->len, spec->access, slots_of(process, i));
	session_part(s, 0);
	return err;
}

/* Add a watch to the session, with its process if there are several. */
static int
add_watch(struct run *run, const struct process *process, size_t w,
    const struct wp_watched *watched)
{
	const size_t i = run_spec_of(process, w);
	const struct spec *spec = &run->options->spec[i];
	/* it moves each time to where its module is loaded */
	const bool waits = run->held_modules != NULL &&
	    process->waits != NULL && process->waits[i];

	/* the first program of a command has an entry of its own */
	if (run->nprocesses > (run->waits ? 2 : 1) || run->npending > 0 ||
	    options_scope(run->options) != NULL || run->mappers != NULL)
		session_of_process(&run->session, (unsigned)i + 1,
		    process->pid, process->comm);
	if (process->place[i].rotates)
		return add_rotating(run, process, w);
	session_moves(&run->session, is_followed(run, process, i) ||
	    process->place[i].local || waits, 0);
	session_local(&run->session, process->place[i].local, 0);
	session_pending(&run->session, watched->region.addr == 0 &&
	    (is_followed(run, process, i) || waits));
	return session_add_watch(&run->session, spec->text,
	    process->place[i].symbol, watched->region.addr,
	    waits ? spec->len : watched->region.len, spec->access,
	    watched->uprobe ? 0 :
	    watched->nslots);
}

/* The session's last watch is the target's watch w.  Watches are described in
   order; the index of one that was given up stays SIZE_MAX. */
static int
note_described(struct run *run, size_t w)
{
	int err = 0;

	while (run->ndescribed <= w && (err = wp_array_room(&run->described,
	    run->ndescribed, &run->described_cap,
	    sizeof(*run->described))) == 0)
		run->described[run->ndescribed++] = SIZE_MAX;
	if (err == 0)
		run->described[w] = run->session.nwatches - 1;
	return err;
}

int
run_describe_place(struct run *run, int watch, size_t w,
    const struct wp_slot *slot)
{
	struct perf_event_attr attr;
	uint64_t *ids;
	int err, n = wp_target_slot_ids(run->target, w, 0, &attr, &ids);

	if (n < 0)
		return n;
	/* they share the events of the watch's first place */
	free(ids);
	err = ex_formats_add(run->formats, &attr, NULL, 0);
	session_format(&run->session, &attr, NULL, 0);
	return err < 0 ? err : session_add_slot(&run->session, watch,
	    slot->addr, wp_slot_bytes(slot->type, slot->len));
}

/* Report an armed watch of a process to the session.  Returns the number of
   events, filled for a recording with ids that have to be freed, or -errno. */
int
run_describe_watch(struct run *run, const struct process *process, size_t w,
    struct ex_perf_event *events)
{
	size_t n;
	const struct wp_watched *watched =
	    &wp_target_watches(run->target, &n)[w];
	const struct spec *spec = &run->options->spec[run_spec_of(process,
	    w)];
	const struct spec_place *place =
	    &process->place[spec - run->options->spec];
	const bool rotates = place->rotates || place->local;
	int err = add_watch(run, process, w, watched);

	if (err == 0)
		err = note_described(run, w);
	for (unsigned i = 0; i < watched->nslots && err >= 0; i++) {
		events[i].name = spec->text;
		err = describe_slot(run, w, i, rotates, &watched->slot[i],
		    &events[i]);
		events[i].attr.config = spec->access == WP_READ ? REPLAY_READS :
		    0;
	}
	return err < 0 ? err : (int)watched->nslots;
}

int
run_describe_armed(struct run *run, const struct process *process, size_t w)
{
	struct ex_perf_event events[WP_SLOTS_MAX] = {{.ids = NULL}};
	const int n = run_describe_watch(run, process, w, events);

	for (size_t i = 0; i < WP_SLOTS_MAX; i++)
		free((uint64_t *)(uintptr_t)events[i].ids);
	if (n < 0)
		return n;
	if (run->remote != NULL)
		initial_value_report(run, w, process->pid);
	return 0;
}

void
run_announce_kernel(struct run *run)
{
	if (wp_target_options(run->target)->kernel ||
	    !options_kernel_may_access(run->options))
		return;
	if (!wp_cpu_traps_kernel())
		session_warn(&run->session, "the kernel's accesses on the "
		    "program's behalf are not watched: this processor does not "
		    "trap them; --user-only accepts that");
	else
		session_warn(&run->session, "the kernel's accesses on the "
		    "program's behalf are not watched: not permitted "
		    "(kernel.perf_event_paranoid is %d); --user-only accepts "
		    "that", run->features.paranoid);
}
