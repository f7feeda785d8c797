/*
 * thread_local: where a thread has its own instance of a thread-local variable.
 *
 * What the program and the libraries that it was started with have is in front
 * of each thread's control block, to which its fs register points, or gs in a
 * 32-bit program: at the same distance in all threads, which glibc's loader
 * notes for each module.  Where it does so glibc itself says, to debuggers.
 * What is opened later has no such place: each thread gets its own instance
 * when it first uses it.
 */
#include "pending/thread_local.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/array.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "pending/loader.h"
#include "run/run.h"
#include "util/buffer.h"
#include "watch/ptrace_refused.h"

/* A member of one of glibc's structures. */
struct member {
	uint32_t bits, n, offset;
};

static int
not_found(const struct spec *spec, const char *why, struct wp_cause *cause)
{
	return spec->thread == 0 ? wp_cause_set(cause, WP_CAUSE_NO_LOCALS,
	    spec->text, why) : wp_cause_set(cause, WP_CAUSE_NO_LOCAL,
	    spec->text, spec->thread, why);
}

/* Where glibc notes the distance, in what its loader keeps of each module. */
static int
find_member(struct live_broker *live, pid_t pid, const struct spec *spec,
    struct member *member, struct wp_cause *cause)
{
	static const char name[] = "_thread_db_link_map_l_tls_offset:8";
	struct spec_place place;
	struct spec at;
	int err = spec_parse(name, WP_WRITE, &at, cause);

	if (err < 0)
		return err;
	err = live_broker_resolve(live, pid, &at, false, &place, NULL);
	spec_free(&at);
	if (err < 0)
		return not_found(spec, "its C library is not glibc", cause);
	free(place.symbol);
	if (wp_proc_read(pid, place.addr, member, sizeof(*member)) !=
	    sizeof(*member) || (member->bits != 64 && member->bits != 32) ||
	    member->n != 1)
		return not_found(spec, "this glibc is not known", cause);
	return 0;
}

/* What a member holds: a number of its process's size. */
static bool
read_member(pid_t pid, uint64_t at, const struct member *member, int64_t *value)
{
	const size_t size = member->bits / 8;
	int32_t narrow = 0;

	if (size == sizeof(*value))
		return wp_proc_read(pid, at, value, size) == (ssize_t)size;
	if (wp_proc_read(pid, at, &narrow, size) != (ssize_t)size)
		return false;
	*value = narrow;
	return true;
}

/* How far the module's storage begins before the control block. */
static int
find_distance(struct live_broker *live, pid_t pid, const struct spec *spec,
    uint64_t base, int64_t *distance, struct wp_cause *cause)
{
	const uint64_t module = loader_module(pid, base);
	struct member member = {.bits = 0};
	int err = find_member(live, pid, spec, &member, cause);

	if (err < 0)
		return err;
	if (module == 0 ||
	    !read_member(pid, module + member.offset, &member, distance))
		return not_found(spec, "no dynamic loader has the module in "
		    "its list: it is linked statically, or opened by "
		    "dlmopen(3)",
		    cause);
	/* it has none, or must not get one any more */
	if (*distance == 0 || *distance == -1)
		return not_found(spec, "the module was opened later, and a "
		    "thread gets its own when it first uses it; give the "
		    "address", cause);
	return 0;
}

/* One look at a thread, and its outcome. */
struct look {
	pid_t pid, tid;
	uint64_t block;		/* its control block; 0: it has none */
	int err;
};

/* In a thread that lives only for it: where the other one cannot be released
   yet, the end of this one releases it. */
static void *
look_held(void *arg)
{
	struct look *look = arg;
	struct wp_hold hold = {0};

	if ((look->err = wp_hold_thread(&hold, look->pid, look->tid)) < 0)
		return NULL;
	if (hold.thread[0].stopped)
		look->block = wp_trace_thread_block(look->tid);
	else
		look->err = -ETIMEDOUT;
	wp_hold_release(&hold);
	return NULL;
}

static int
find_block(pid_t pid, pid_t tid, const struct spec *spec, uint64_t *block,
    struct wp_cause *cause)
{
	struct look look = {.pid = pid, .tid = tid};
	pthread_t thread;
	int err = pthread_create(&thread, NULL, look_held, &look);

	if (err != 0)
		return wp_cause_errno(cause, "making a thread", err);
	(void)pthread_join(thread, NULL);
	if (look.err == -ESRCH)
		return not_found(spec, "the thread has ended", cause);
	if (look.err < 0)
		return ptrace_refused(pid, -look.err, cause);
	if (look.block == 0)
		return not_found(spec, "it has no thread-local storage", cause);
	*block = look.block;
	return 0;
}

/* "own@4711" */
static int
name_instance(const struct spec *spec, struct spec_place *place,
    struct wp_cause *cause)
{
	struct buffer name = {0};

	if (place->symbol == NULL)
		return 0;
	buffer_printf(&name, "%s@%d", place->symbol, spec->thread);
	free(place->symbol);
	place->symbol = strdup(buffer_text(&name));
	buffer_free(&name);
	return place->symbol == NULL ? wp_cause_set(cause,
	    WP_CAUSE_NO_MEMORY) : 0;
}

/* A thread that has not ended; 0: there is none. */
static pid_t
any_thread(pid_t pid)
{
	pid_t *tids = NULL, found = 0;
	size_t cap = 0;
	int n = wp_proc_threads(pid, &tids, &cap);

	for (int i = 0; i < n && found == 0; i++)
		if (!wp_proc_exiting(tids[i]))
			found = tids[i];
	free(tids);
	return found;
}

/* Make the place that of the SPEC's thread, or of any. */
static int
find_instance(struct live_broker *live, pid_t pid, const struct spec *spec,
    struct spec_place *place, struct wp_cause *cause)
{
	const pid_t tid = spec->thread != 0 ? spec->thread : any_thread(pid);
	uint64_t block = 0;
	int64_t distance = 0;
	int err;

	if (syscall(SYS_tgkill, pid, tid, 0) != 0)
		return not_found(spec, "the process has no such thread", cause);
	if ((err = find_distance(live, pid, spec, place->base, &distance,
	    cause)) < 0 ||
	    (err = find_block(pid, tid, spec, &block, cause)) < 0)
		return err;
	place->addr += block - (uint64_t)distance;
	place->local = spec->thread == 0;
	place->base = block;
	if (place->local)
		return 0;
	return name_instance(spec, place, cause);
}

int
thread_local_resolve(struct live_broker *live, pid_t pid, struct spec *spec,
    bool each, struct spec_place *place, struct wp_cause *cause)
{
	int err;

	spec->finds_local = each || spec->thread != 0;
	err = live_broker_resolve(live, pid, spec, false, place, cause);
	spec->finds_local = false;
	if (err == 0 && place->local &&
	    (err = find_instance(live, pid, spec, place, cause)) < 0) {
		free(place->symbol);
		place->symbol = NULL;
	}
	return err;
}

int
thread_local_check(pid_t pid, const struct spec *spec, size_t n,
    struct wp_cause *cause)
{
	for (size_t i = 0; i < n; i++)
		if (spec[i].thread != 0 &&
		    syscall(SYS_tgkill, pid, spec[i].thread, 0) != 0 &&
		    !wp_proc_exiting(pid))
			return not_found(&spec[i], "the thread has ended",
			    cause);
	return 0;
}

/* --- the instances of all threads --- */

/* How glibc aligns control blocks: each thread's own is aligned alike. */
enum { BLOCK_ALIGNMENT = 64 };

/* Where the instance begins of which an event's address is a slot. */
static uint64_t
instance_at(const struct wp_watched *watched, uint64_t addr, unsigned *slot)
{
	for (*slot = 0; *slot < watched->nslots; ++*slot) {
		const uint64_t start = addr - (watched->slot[*slot].addr -
		    watched->region.addr);

		if ((start - watched->region.addr) % BLOCK_ALIGNMENT == 0)
			return start;
	}
	return 0;
}

static struct instance *
find_known(struct instances *known, unsigned whole, uint64_t addr)
{
	for (size_t i = known->n; i > 0; i--)
		if (known->at[i - 1].addr == addr &&
		    known->at[i - 1].whole == whole)
			return &known->at[i - 1];
	return NULL;
}

/* One that is hit for the first time: a part of the session's watch.  Others
   may write it, and make no hit. */
static struct instance *
describe(struct run *run, const struct ex_watch *whole, size_t w, uint64_t addr)
{
	struct session *s = &run->session;
	size_t n;
	const struct wp_watched *watched =
	    &wp_target_watches(run->target, &n)[w];
	int err = WP_ARRAY_ROOM(&run->instances, at);

	session_of_process(s, ex_watch_number(whole), whole->pid, whole->comm);
	session_pending(s, false);
	session_local(s, false);
	session_part(s, whole->id);
	if (err == 0)
		err = session_add_watch(s, whole->spec, whole->symbol, addr,
		    whole->len, whole->access, watched->nslots);
	session_part(s, 0);
	for (unsigned i = 0; i < watched->nslots && err == 0; i++) {
		struct wp_slot slot = watched->slot[i];

		slot.addr += addr - watched->region.addr;
		err = run_describe_place(run, (int)s->nwatches - 1, w, &slot);
	}
	session_note(s, err);
	if (err < 0)
		return NULL;
	session_unseen(s, s->watches[s->nwatches - 1]);
	run->instances.at[run->instances.n] = (struct instance){
		.whole = whole->id, .addr = addr,
	};
	return &run->instances.at[run->instances.n++];
}

void
thread_local_take(struct run *run, const struct ex_record *record)
{
	struct session *s = &run->session;
	const struct ex_watch *whole;
	const struct wp_watched *watched;
	uint64_t addr;
	unsigned slot;
	size_t w, n;

	if (!session_is_sample(s, record) ||
	    !(whole = s->slots[record->attr].watch)->local)
		return;
	w = whole->id - 1 - run->npending;
	watched = &wp_target_watches(run->target, &n)[w];
	addr = instance_at(watched, record->sample.addr, &slot);
	if (addr != 0 && find_known(&run->instances, whole->id, addr) == NULL)
		(void)describe(run, whole, w, addr);
}
