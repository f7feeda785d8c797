/*
 * thread_local: finds the address of a thread's instance of a thread-local
 * variable.
 *
 * What the program and the libraries that it was started with have is in front
 * of each thread's control block, to which its fs register points, or gs in a
 * 32-bit program: at the same distance in all threads, which glibc's loader
 * notes for each module.  Where it does so glibc itself says, to debuggers; of
 * the program itself it follows from how programs are linked.
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

#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "pending/loader.h"
#include "pending/new_module.h"
#include "run/run.h"
#include "util/buffer.h"
#include "watch/ptrace_refused.h"

const char *
thread_local_not_with(const struct options *o)
{
	return o->with != 0 ? "--with" : o->delivery == DELIVERY_BPF ?
	    "--delivery bpf" : run_changes_not_with(o);
}

/* A member of one of glibc's structures. */
struct glibc_member {
	uint32_t bits, n, offset;
};

static int
not_found(const struct spec *spec, const char *why, struct wp_cause *cause)
{
	return spec->thread == 0 ? wp_cause_set(cause, WP_CAUSE_NO_LOCALS,
	    spec->text, why) : wp_cause_set(cause, WP_CAUSE_NO_LOCAL,
	    spec->text, spec->thread, why);
}

/* The same of what may be there later. */
static int
not_yet(const struct spec *spec, const char *why, struct wp_cause *cause)
{
	(void)not_found(spec, why, cause);
	return -EAGAIN;
}

/* Find the member of glibc's struct link_map in which the loader stores the
   distance. */
static int
find_member(struct live_broker *live, pid_t pid, const struct spec *spec,
    struct glibc_member *member, struct wp_cause *cause)
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

/* Read a member, which has the size of a long of its process. */
static bool
read_member(pid_t pid, uint64_t at, const struct glibc_member *member,
    int64_t *value)
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

/* Find the distance from the start of the module's storage to the control
   block. */
static int
find_distance(struct live_broker *live, pid_t pid, const struct spec *spec,
    uint64_t base, int64_t *distance, struct wp_cause *cause)
{
	const uint64_t module = loader_module(pid, base);
	struct glibc_member member = {.bits = 0};
	int err;

	if (loader_program_storage(pid, base, (uint64_t *)distance))
		return 0;
	if ((err = find_member(live, pid, spec, &member, cause)) < 0)
		return err;
	if (module == 0 ||
	    !read_member(pid, module + member.offset, &member, distance))
		return not_yet(spec, "no dynamic loader has the module in "
		    "its list: it was opened by dlmopen(3)", cause);
	/* it has none, or must not get one any more */
	if (*distance == 0 || *distance == -1)
		return not_yet(spec, "the module was opened later, and a "
		    "thread gets its own when it first uses it; give the "
		    "address", cause);
	return 0;
}

/* One look at a thread, and its outcome. */
struct thread_lookup {
	pid_t pid, tid;
	uint64_t block;		/* its control block; 0: it has none */
	int err;
};

/* In a thread that lives only for it: where the other one cannot be released
   yet, the end of this one releases it. */
static void *
look_held(void *arg)
{
	struct thread_lookup *look = arg;
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

/* Whether the calling thread holds it. */
static bool
is_held(pid_t tid)
{
	struct wp_proc_status status;

	return wp_proc_status(tid, &status) == 0 && status.tracer == gettid() &&
	    wp_trace_pc(tid) != 0;
}

static int
find_block(pid_t pid, pid_t tid, const struct spec *spec, uint64_t *block,
    struct wp_cause *cause)
{
	struct thread_lookup look = {.pid = pid, .tid = tid};
	pthread_t thread;
	int err = 0;

	if (is_held(tid))
		look.block = wp_trace_thread_block(tid);
	else if ((err = pthread_create(&thread, NULL, look_held, &look)) == 0)
		(void)pthread_join(thread, NULL);
	if (err != 0)
		return wp_cause_errno(cause, "making a thread", err);
	if (look.err == -ESRCH)
		return not_found(spec, "the thread has ended", cause);
	if (look.err < 0)
		return ptrace_refused(pid, -look.err, cause);
	if (look.block == 0)
		return not_yet(spec, "it has no thread-local storage", cause);
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
    bool each, bool early, struct spec_place *place, struct wp_cause *cause)
{
	int err;

	spec->finds_local = each || spec->thread != 0;
	err = live_broker_resolve(live, pid, spec, early, place, cause);
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
