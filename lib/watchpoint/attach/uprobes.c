/* uprobes: events that are uprobes.  See uprobes.h. */
#include "attach/uprobes.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/target_private.h"
#include "bpf/bpf.h"
#include "bpf/stack_counter.h"
#include "bpf/thread_counter.h"
#include "os/array.h"
#include "os/attr.h"
#include "os/libc.h"
#include "proc/proc.h"

/* In a run: the memory that is shared is made at once. */
enum { PLACES_MAX = 65536, PMU_MAX = 32, LINK_MAX = 32 };

/* The kernel's own ENOTSUPP. */
enum { NOT_SUPPORTED = 524 };

/* A move takes about 30 ms if the thread ends during it. */
enum { MOVES_MAX = 16 };

static const char pmu_type[] = "/sys/bus/event_source/devices/uprobe/type";

enum { NO_NAME = -1 };

/* A thread that closes uprobes. */
struct wp_closer {
	pthread_t thread;
	struct wp_closer *next;
	size_t n;
	struct closing {
		int fd;
		long name;	/* the number of the name that is to be removed;
				   < 0: none */
	} it[];
};

static int
refuse(uint64_t addr, const char *why, struct wp_cause *cause)
{
	return wp_cause_set(cause, WP_CAUSE_NO_UPROBE,
	    (unsigned long long)addr, why);
}

/* --- before they are opened --- */

static int
make_shared(struct wp_uprobes *u)
{
	const size_t size = PLACES_MAX * sizeof(*u->guarded);
	void *memory;

	if (u->guarded != NULL)
		return 0;
	if ((u->map = wp_bpf_shared(size)) < 0)
		return u->map;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, u->map,
	    0);
	if (memory != MAP_FAILED) {
		u->guarded = memory;
		return 0;
	}
	(void)close(u->map);
	u->map = -1;
	return -ENOMEM;
}

static int
add(struct wp_uprobes *u, size_t watch, unsigned slot, uint64_t addr,
    pid_t pid)
{
	if (u->given == PLACES_MAX)
		return -EMFILE;
	if (WP_ARRAY_ROOM(u, uprobe) < 0)
		return -ENOMEM;
	u->uprobe[u->n++] = (struct wp_uprobe){
		.watch = (uint16_t)watch, .slot = (uint16_t)slot, .pid = pid,
		.addr = addr, .index = u->given++, .fd = -1, .program = -1,
		.programs = -1,
	};
	return 0;
}

int
wp_uprobes_plan(struct wp_target *target, size_t first, size_t n, pid_t pid,
    struct wp_cause *cause)
{
	struct wp_uprobes *u = &target->uprobes;
	const size_t before = u->n;
	int err = 0;

	for (size_t w = first; w < first + n && err == 0; w++) {
		const struct wp_watched *watched = &target->watch[w];

		if (!watched->uprobe)
			continue;
		if (u->n == before && !wp_proc_has_our_pids(pid))
			return refuse(watched->slot->addr, "the process is in "
			    "another PID namespace; run watchctl there",
			    cause);
		err = make_shared(u);
		for (unsigned s = 0; s < watched->nslots && err == 0; s++)
			err = add(u, w, s, watched->slot[s].addr, pid);
	}
	if (err == 0)
		return 0;
	u->n = before;
	return wp_cause_errno(cause, "making memory for uprobes", -err);
}

bool
wp_uprobes_guard(const struct wp_uprobes *u, size_t watch, unsigned slot,
    struct wp_uprobe_guard *guard)
{
	for (size_t i = 0; i < u->n; i++) {
		const struct wp_uprobe *uprobe = &u->uprobe[i];

		if (uprobe->watch != watch || uprobe->slot != slot)
			continue;
		*guard = (struct wp_uprobe_guard){
			.addr = uprobe->addr, .pid = u->named ? 0 : uprobe->pid,
			.map = u->map, .index = uprobe->index,
		};
		return true;
	}
	return false;
}

/* --- opening --- */

/* The type of their events, < 0: this kernel has none. */
static long
find_type(void)
{
	char text[PMU_MAX];
	const int fd = open(pmu_type, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

const char *
wp_uprobe_why_not(int err)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		return "not permitted; run as root (sudo), or with "
		    "CAP_SYS_ADMIN (CAP_PERFMON is not enough)";
	case ENOEXEC:
		return "its code lies in no file of its own, as if made at run "
		    "time";
	case ENOENT:
		return "this kernel has none (CONFIG_UPROBE_EVENTS)";
	case ENOTSUP:
		return "its code is not 64-bit";
	case EINVAL:
	case NOT_SUPPORTED:
		return "the kernel cannot execute that instruction elsewhere";
	default:
		return wp_libc_why(-err);
	}
}

static bool
is_64_bit(int file)
{
	unsigned char ident[EI_NIDENT];

	return pread(file, ident, sizeof(ident), 0) != sizeof(ident) ||
	    memcmp(ident, ELFMAG, SELFMAG) != 0 ||
	    ident[EI_CLASS] == ELFCLASS64;
}

/* The file that has the code at an address, and where: a descriptor or
   -errno. */
static int
open_code(pid_t tid, uint64_t addr, uint64_t *offset)
{
	const int file = wp_proc_open_code(tid, addr, offset);

	if (file < 0 || is_64_bit(file))
		return file;
	(void)close(file);
	return -ENOTSUP;
}

static int
open_event(pid_t tid, uint64_t addr, bool returns, uint64_t period)
{
	const long type = find_type();
	struct perf_event_attr attr;
	char link[LINK_MAX];
	uint64_t offset;
	int fd, file = type < 0 ? (int)type : open_code(tid, addr, &offset);

	if (file < 0)
		return file;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	wp_attr_uprobe(&attr, (uint32_t)type, link, offset);
	attr.config = returns;
	attr.sample_period = period;
	attr.wakeup_events = period != 0;
	attr.read_format = period != 0 ? PERF_FORMAT_TOTAL_TIME_RUNNING : 0;
	fd = wp_perf_open(&attr, tid, -1);
	(void)close(file);
	return fd;
}

int
wp_uprobe_open(pid_t tid, uint64_t addr, bool returns)
{
	return open_event(tid, addr, returns, 0);
}

int
wp_uprobe_open_signal(pid_t tid, uint64_t addr)
{
	return open_event(tid, addr, false, 1);
}

/* The program is kept, for another event of its. */
static int
load(struct wp_target *target, struct wp_uprobe *uprobe)
{
	struct wp_uprobe_guard guard;

	if (!target->options.count)
		return wp_samplers_take(&target->samplers, uprobe->watch,
		    uprobe->slot);
	if (!wp_uprobes_guard(&target->uprobes, uprobe->watch, uprobe->slot,
	    &guard))
		return -ENOENT;
	return wp_thread_counter_load(target->thread_counts.map, uprobe->watch,
	    &guard, NULL);
}

/* Load the guards of the uprobes of one process, which follow each other in the
   array. */
static int
guard_programs(struct wp_uprobes *u, struct wp_uprobe *first, size_t n)
{
	const struct wp_uprobe_guard guard = {
		.pid = first->pid, .map = u->map, .index = first->index,
	};
	unsigned places = 0;

	if (u->named)	/* inherited events end by themselves */
		return 0;
	for (const struct wp_uprobe *it = first; it < u->uprobe + u->n &&
	    it->watch >= first->watch && (size_t)(it->watch - first->watch) <
	    n; it++)
		places++;
	first->programs = wp_uprobe_guard_programs(&guard, places);
	return first->programs < 0 ? first->programs : 0;
}

static int
follow(struct wp_uprobes *u, const struct wp_uprobe *uprobe, pid_t tid)
{
	struct wp_followed *followed = &u->followed;
	int fd;

	if (WP_ARRAY_ROOM(followed, event) < 0)
		return -ENOMEM;
	if ((fd = wp_uprobe_name_follow(&uprobe->name, tid)) < 0)
		return fd;
	followed->event[followed->n].fd = fd;
	followed->event[followed->n++].watch = uprobe->watch;
	return 0;
}

int
wp_uprobes_follow(struct wp_uprobes *u, size_t first, size_t n, pid_t tid)
{
	int err = 0;

	for (size_t i = 0; u->named && i < u->n && err == 0; i++)
		if (u->uprobe[i].watch >= first &&
		    u->uprobe[i].watch - first < n)
			err = follow(u, &u->uprobe[i], tid);
	return err;
}

/* The first event of a process in which there is a uprobe takes long, so that
   of one thread is opened here, before the process is held. */
static int
open_named(struct wp_uprobes *u, struct wp_uprobe *uprobe)
{
	const pid_t tid = uprobe->tid;
	uint64_t offset;
	int err, file = open_code(tid, uprobe->addr, &offset);

	if (file < 0)
		return file;
	uprobe->fd = wp_uprobe_name_open(&uprobe->name, file, offset);
	(void)close(file);
	if (uprobe->fd < 0)
		return uprobe->fd;
	uprobe->tid = 0;
	err = wp_perf_set_bpf(uprobe->fd, uprobe->program);
	return err < 0 ? err : follow(u, uprobe, tid);
}

static int
open_one(struct wp_target *target, struct wp_uprobe *uprobe)
{
	int err;

	uprobe->tid = wp_proc_living(uprobe->pid);
	uprobe->program = load(target, uprobe);
	if (uprobe->program < 0)
		return uprobe->program;
	if (target->uprobes.named)
		return open_named(&target->uprobes, uprobe);
	if ((uprobe->fd = wp_uprobe_open(uprobe->tid, uprobe->addr,
	    false)) < 0)
		return uprobe->fd;
	err = wp_perf_set_bpf(uprobe->fd, uprobe->program);
	return err;
}

/* Whether it is for this place alone that there is none. */
static bool
is_no_place(int err)
{
	return err == -ENOEXEC || err == -EINVAL || err == -NOT_SUPPORTED;
}

int
wp_uprobes_open(struct wp_target *target, size_t first, size_t n,
    struct wp_cause *cause)
{
	struct wp_uprobes *u = &target->uprobes;
	bool guarded = false;

	for (size_t i = 0; i < u->n; i++) {
		struct wp_uprobe *uprobe = &u->uprobe[i];
		int err = 0;

		if (uprobe->watch < first || uprobe->watch - first >= n ||
		    uprobe->fd >= 0)
			continue;
		if (!guarded)
			err = guard_programs(u, uprobe, first + n -
			    uprobe->watch);
		guarded = true;
		if (err == 0 && (err = open_one(target, uprobe)) == 0)
			continue;
		if (is_no_place(err) && wp_target_exchange(target,
		    uprobe->watch, first, n))
			err = -ECANCELED;
		else if (err == -ESRCH)
			err = wp_cause_set(cause, WP_CAUSE_GONE, uprobe->pid);
		else
			err = refuse(uprobe->addr, wp_uprobe_why_not(err),
			    cause);
		wp_uprobes_close(u, first, n);
		return err;
	}
	return 0;
}

/* --- while they are there --- */

void
wp_uprobes_turn(struct wp_uprobes *u, size_t first, size_t n, bool on)
{
	bool any = false;

	for (size_t i = 0; i < u->n; i++) {
		if (u->uprobe[i].watch < first ||
		    u->uprobe[i].watch - first >= n)
			continue;
		any = true;
		__atomic_store_n(&u->guarded[u->uprobe[i].index].on, on,
		    __ATOMIC_SEQ_CST);
	}
	if (any && !on)		/* those that run have ended */
		(void)wp_stack_table_settle();
}

uint64_t
wp_uprobes_count(const struct wp_uprobes *u, size_t watch)
{
	uint64_t count = 0;

	for (size_t i = 0; i < u->n; i++)
		if (u->uprobe[i].watch == watch)
			count += __atomic_load_n(
			    &u->guarded[u->uprobe[i].index].count,
			    __ATOMIC_SEQ_CST);
	return count;
}

/* --- closing --- */

static void
close_event(const struct closing *it)
{
	(void)close(it->fd);
	if (it->name >= 0)
		wp_uprobe_name_remove((unsigned)it->name);
}

static void *
close_all(void *arg)
{
	struct wp_closer *closer = arg;

	for (size_t i = 0; i < closer->n; i++)
		close_event(&closer->it[i]);
	return NULL;
}

/* Without memory they are closed when this process ends. */
static struct wp_closer *
new_closer(size_t n)
{
	return n == 0 ? NULL : malloc(sizeof(struct wp_closer) +
	    n * sizeof(struct closing));
}

/* Close uprobes in a thread, because for each one the kernel waits until no
   thread can still be in it. */
static void
close_later(struct wp_uprobes *u, struct wp_closer *closer)
{
	if (closer->n > 0 && pthread_create(&closer->thread, NULL, close_all,
	    closer) == 0) {
		closer->next = u->closer;
		u->closer = closer;
		return;
	}
	(void)close_all(closer);
	free(closer);
}

/* List what of these watches is to be closed: the events that are inherited
   before those that keep their names. */
static size_t
list_closing(struct wp_uprobes *u, size_t first, size_t n, struct closing *it)
{
	struct wp_followed *followed = &u->followed;
	size_t nit = 0, kept = 0;

	for (size_t i = 0; i < followed->n; i++)
		if (followed->event[i].watch < first ||
		    followed->event[i].watch - first >= n)
			followed->event[kept++] = followed->event[i];
		else
			it[nit++] = (struct closing){followed->event[i].fd,
			    NO_NAME};
	followed->n = kept;
	kept = 0;
	for (size_t i = 0; i < u->n; i++) {
		const struct wp_uprobe uprobe = u->uprobe[i];

		if (uprobe.watch < first || uprobe.watch - first >= n) {
			u->uprobe[kept++] = uprobe;
			continue;
		}
		u->guarded[uprobe.index].on = 0;
		if (uprobe.program >= 0)
			(void)close(uprobe.program);
		if (uprobe.programs >= 0)
			(void)close(uprobe.programs);
		if (uprobe.fd >= 0)
			it[nit++] = (struct closing){uprobe.fd, u->named ?
			    (long)uprobe.name.number : NO_NAME};
	}
	u->n = kept;
	return nit;
}

void
wp_uprobes_close(struct wp_uprobes *u, size_t first, size_t n)
{
	struct wp_closer *closer = new_closer(u->n + u->followed.n);

	if (closer == NULL)
		return;
	closer->n = list_closing(u, first, n, closer->it);
	close_later(u, closer);
}

void
wp_uprobes_free(struct wp_uprobes *u)
{
	wp_uprobes_close(u, 0, SIZE_MAX);
	while (u->closer != NULL) {
		struct wp_closer *closer = u->closer;

		u->closer = closer->next;
		(void)pthread_join(closer->thread, NULL);
		free(closer);
	}
	if (u->guarded != NULL)
		(void)munmap(u->guarded, PLACES_MAX * sizeof(*u->guarded));
	if (u->map >= 0)
		(void)close(u->map);
	free(u->uprobe);
	free(u->followed.event);
	*u = (struct wp_uprobes){.map = -1};
}

/* --- another thread --- */

/* 0; -ESRCH: that one has ended, too; or -errno. */
static int
move_one(struct wp_uprobes *u, struct wp_uprobe *uprobe, pid_t tid)
{
	struct wp_closer *closer = new_closer(1);
	int err, fd = closer == NULL ? -ENOMEM :
	    wp_uprobe_open(tid, uprobe->addr, false);

	if (fd < 0 || (err = wp_perf_set_bpf(fd, uprobe->program)) < 0) {
		if (fd >= 0)
			(void)close(fd);
		free(closer);
		return fd < 0 ? fd : err;
	}
	closer->n = 1;
	closer->it[0] = (struct closing){uprobe->fd, NO_NAME};
	close_later(u, closer);
	uprobe->fd = fd;
	uprobe->tid = tid;
	return 0;
}

/* Find a thread of the process that has not ended.  0: there is none. -EAGAIN:
   none was found, but the list changed meanwhile. */
static pid_t
thread_that_goes_on(pid_t pid, pid_t ended)
{
	pid_t *tids = NULL, found = 0;
	size_t cap = 0;
	const int n = wp_proc_threads(pid, &tids, &cap);

	for (int i = 0; i < n && found == 0; i++)
		if (tids[i] != ended && !wp_proc_exiting(tids[i]))
			found = tids[i];
	free(tids);
	/* threads that end make no others */
	return found != 0 || n <= 0 || n == wp_proc_count_threads(pid) ?
	    found : -EAGAIN;
}

/* Move an event to another thread.  That thread may end during the move, so it
   is checked afterwards: if it still runs then, its end will be recorded. */
static int
move_to_another(struct wp_uprobes *u, struct wp_uprobe *uprobe, pid_t ended)
{
	for (unsigned i = 0; i < MOVES_MAX; i++) {
		const pid_t tid = thread_that_goes_on(uprobe->pid, ended);
		const int err = tid <= 0 ? tid : move_one(u, uprobe, tid);

		if (tid == 0 || (err < 0 && err != -ESRCH && err != -EAGAIN))
			return err;
		if (err == 0 && !wp_proc_exiting(tid))
			return 1;
	}
	return -EAGAIN;
}

int
wp_uprobes_move(struct wp_target *target, pid_t ended)
{
	struct wp_uprobes *u = &target->uprobes;
	int moved = 0;

	for (size_t i = 0; i < u->n; i++) {
		struct wp_uprobe *uprobe = &u->uprobe[i];
		int err;

		if (uprobe->tid != ended || uprobe->fd < 0)
			continue;
		if ((err = move_to_another(u, uprobe, ended)) < 0)
			return err;
		moved += err;
	}
	return moved;
}
