/*
 * thread_local: where a thread has its own instance of a thread-local variable.
 *
 * What the program and the libraries that it was started with have is in front of
 * each thread's control block, to which its fs register points: at the same distance
 * in all threads, which glibc's loader notes for each module.  Where it does so
 * glibc itself says, to debuggers.  What is opened later has no such place: each
 * thread gets its own instance when it first uses it.
 */
#include "pending/thread_local.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/proc.h"
#include "ptrace/ptrace.h"
#include "pending/loader.h"
#include "util/buffer.h"
#include "watch/ptrace_refused.h"

/* A member of one of glibc's structures. */
struct member {
	uint32_t bits, n, offset;
};

static int
not_found(const struct spec *spec, const char *why, struct wp_cause *cause)
{
	return wp_cause_set(cause, WP_CAUSE_NO_LOCAL, spec->text, spec->thread,
	    why);
}

/* Where glibc notes the distance, in what its loader keeps of each module. */
static int
find_member(struct live_box *live, pid_t pid, const struct spec *spec,
    struct member *member, struct wp_cause *cause)
{
	static const char name[] = "_thread_db_link_map_l_tls_offset:8";
	struct spec_place place;
	struct spec at;
	int err = spec_parse(name, WP_WRITE, &at, cause);

	if (err < 0)
		return err;
	err = live_box_resolve(live, pid, &at, false, &place, NULL);
	spec_free(&at);
	if (err < 0)
		return not_found(spec, "its C library is not glibc", cause);
	free(place.symbol);
	if (wp_proc_read(pid, place.addr, member, sizeof(*member)) !=
	    sizeof(*member) || member->bits != 64 || member->n != 1)
		return not_found(spec, "this glibc is not known", cause);
	return 0;
}

/* How far the module's storage begins before the control block. */
static int
find_distance(struct live_box *live, pid_t pid, const struct spec *spec,
    uint64_t base, int64_t *distance, struct wp_cause *cause)
{
	const uint64_t module = loader_module(pid, base);
	struct member member = {.bits = 0};
	int err = find_member(live, pid, spec, &member, cause);

	if (err < 0)
		return err;
	if (module == 0 || wp_proc_read(pid, module + member.offset, distance,
	    sizeof(*distance)) != sizeof(*distance))
		return not_found(spec, "no dynamic loader has the module in its "
		    "list: it is linked statically, or opened by dlmopen(3)",
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

/* In a thread that lives only for it: where the other one cannot be released yet, the
   end of this one releases it. */
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
find_block(pid_t pid, const struct spec *spec, uint64_t *block,
    struct wp_cause *cause)
{
	struct look look = {.pid = pid, .tid = spec->thread};
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

/* Make the place that of the SPEC's thread. */
static int
find_instance(struct live_box *live, pid_t pid, const struct spec *spec,
    struct spec_place *place, struct wp_cause *cause)
{
	uint64_t block = 0;
	int64_t distance = 0;
	int err;

	if (syscall(SYS_tgkill, pid, spec->thread, 0) != 0)
		return not_found(spec, "the process has no such thread", cause);
	if ((err = find_distance(live, pid, spec, place->base, &distance,
	    cause)) < 0 || (err = find_block(pid, spec, &block, cause)) < 0)
		return err;
	place->addr += block - (uint64_t)distance;
	place->local = false;
	return name_instance(spec, place, cause);
}

int
thread_local_resolve(struct live_box *live, pid_t pid, struct spec *spec,
    struct spec_place *place, struct wp_cause *cause)
{
	int err;

	spec->finds_local = true;
	err = live_box_resolve(live, pid, spec, false, place, cause);
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
