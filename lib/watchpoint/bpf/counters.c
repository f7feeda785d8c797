/*
 * counters: the programs that count.
 *
 * Registers: R6 what the program is given, R7 what the processor's were at its
 * last switch, R8 the thread's own, R9 whether one could not be read.  On the
 * stack lies what enum counters_stack says.
 */
#include "bpf/counters.h"

#include <errno.h>
#include <unistd.h>

#include "bpf/bpf.h"
#include "bpf/code.h"
#include "bpf/counter_reading.h"
#include "os/cpus.h"
#include "os/libc.h"

enum {
	THREADS_MAX = 1 << 15,	/* threads that counts are kept for */
	WORST = -4096,		/* results from here on are errno values */
};

/* Offsets from the end of the stack. */
enum counters_stack {
	TASK = WP_CODE_OWN - 8,
	ZERO = WP_CODE_OWN - 16,
	UNREAD = ZERO - 8,	/* whether a counter could not be read */
	COUNTS = WP_CODE_COUNTS,	/* 8 bytes each, downwards */
	NEW = COUNTS - 8 * (WP_COUNTERS - 1) - 8 * (2 * WP_COUNTERS + 2),
};
_Static_assert((int)NEW >= -512, "a program's stack is no larger");

/* The offset of a count on the stack; in a thread's entry, and of its value
   there at the last hit. */
static int
count_at(unsigned i)
{
	return COUNTS - 8 * (int)i;
}

static int
own_at(unsigned i)
{
	return 8 * (int)i;
}

static int
last_at(const struct wp_counters *w, unsigned i)
{
	return 8 * (int)(w->n + i);
}

/* The offset of the flag that the thread is running. */
static int
here_at(const struct wp_counters *w)
{
	return 8 * (int)(2 * w->n);
}

static int
number_at(const struct wp_counters *w)
{
	return here_at(w) + 8;
}

/* Offsets in a processor's entry: whether a counter could not be read, and the
   task that was switched to. */
static int
unread_at(const struct wp_counters *w)
{
	return 8 * (int)w->n;
}

static int
came_at(const struct wp_counters *w)
{
	return 8 * (int)(w->n + 1);
}

/* Emit a -= b, or a += b. */
static void
calculate(struct code *c, int op, unsigned a, unsigned b)
{
	emit(c, BPF_ALU64 | op | BPF_X, a, b, 0, 0);
}

/* Read all counters.  R9 is set if one cannot be read. */
static void
read_all(struct code *c, const struct wp_counters *w)
{
	unsigned good;

	set(c, BPF_REG_9, 0);
	for (unsigned i = 0; i < w->n; i++) {
		set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD,
		    (uint32_t)w->events[i]);
		set_wide(c, BPF_REG_2, 0, BPF_F_CURRENT_CPU);
		call(c, BPF_FUNC_perf_event_read);
		store(c, BPF_DW, FP, count_at(i), BPF_REG_0);
		good = jump(c, BPF_JLT, BPF_REG_0, WORST);
		set(c, BPF_REG_9, 1);
		land(c, good);
	}
}

/* R0 becomes the element of a map whose key is on the stack, or 0. */
static void
look_up(struct code *c, int map, int key)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)map);
	copy(c, BPF_REG_2, FP);
	add(c, BPF_REG_2, key);
	call(c, BPF_FUNC_map_lookup_elem);
}

/* R7 becomes the processor's entry.  It always exists, but the verifier wants
   the jump for NULL, which is returned. */
static unsigned
look_up_since(struct code *c, const struct wp_counters *w)
{
	set(c, BPF_REG_1, 0);
	store(c, BPF_DW, FP, ZERO, BPF_REG_1);
	look_up(c, w->since, ZERO);
	copy(c, BPF_REG_7, BPF_REG_0);
	return jump(c, BPF_JEQ, BPF_REG_7, 0);
}

/* Store the task of the current thread. */
static void
store_task(struct code *c)
{
	call(c, BPF_FUNC_get_current_task);
	store(c, BPF_DW, FP, TASK, BPF_REG_0);
}

static void
forget(struct code *c, const struct wp_counters *w)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)w->threads);
	copy(c, BPF_REG_2, FP);
	add(c, BPF_REG_2, TASK);
	call(c, BPF_FUNC_map_delete_elem);
}

/* Turn the counts into those since the last switch on this processor. */
static void
subtract_since(struct code *c, const struct wp_counters *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		load(c, BPF_DW, BPF_REG_1, FP, count_at(i));
		load(c, BPF_DW, BPF_REG_2, BPF_REG_7, own_at(i));
		calculate(c, BPF_SUB, BPF_REG_1, BPF_REG_2);
		store(c, BPF_DW, FP, count_at(i), BPF_REG_1);
	}
}

/* Also set R9 if the current thread may not be the one of the last switch, or
   if that switch could not read all counters.  The counts are those since
   then. */
static void
doubt(struct code *c, const struct wp_counters *w)
{
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, unread_at(w));
	calculate(c, BPF_OR, BPF_REG_9, BPF_REG_1);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, came_at(w));
	load(c, BPF_DW, BPF_REG_2, FP, TASK);
	calculate(c, BPF_XOR, BPF_REG_1, BPF_REG_2);
	calculate(c, BPF_OR, BPF_REG_9, BPF_REG_1);
	load(c, BPF_DW, BPF_REG_1, FP, count_at(0));
	add(c, BPF_REG_1, -1);
	calculate(c, BPF_OR, BPF_REG_9, BPF_REG_1);
}

/* --- at a hit --- */

/* Turn the counts into those since the thread's last hit. */
static void
subtract_last(struct code *c, const struct wp_counters *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		load(c, BPF_DW, BPF_REG_1, FP, count_at(i));
		load(c, BPF_DW, BPF_REG_2, BPF_REG_8, own_at(i));
		calculate(c, BPF_ADD, BPF_REG_1, BPF_REG_2);
		load(c, BPF_DW, BPF_REG_2, BPF_REG_8, last_at(w, i));
		store(c, BPF_DW, BPF_REG_8, last_at(w, i), BPF_REG_1);
		calculate(c, BPF_SUB, BPF_REG_1, BPF_REG_2);
		store(c, BPF_DW, FP, count_at(i), BPF_REG_1);
	}
}

/* Start the entry of a thread at its first hit. */
static void
begin_thread(struct code *c, const struct wp_counters *w)
{
	set(c, BPF_REG_1, 0);
	for (unsigned i = 0; i < w->n; i++) {
		store(c, BPF_DW, FP, NEW + own_at(i), BPF_REG_1);
		load(c, BPF_DW, BPF_REG_2, FP, count_at(i));
		store(c, BPF_DW, FP, NEW + last_at(w, i), BPF_REG_2);
	}
	set(c, BPF_REG_1, 1);
	store(c, BPF_DW, FP, NEW + here_at(w), BPF_REG_1);
	call(c, BPF_FUNC_get_current_pid_tgid);
	store(c, BPF_DW, FP, NEW + number_at(w), BPF_REG_0);
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)w->threads);
	copy(c, BPF_REG_2, FP);
	add(c, BPF_REG_2, TASK);
	copy(c, BPF_REG_3, FP);
	add(c, BPF_REG_3, NEW);
	set(c, BPF_REG_4, BPF_NOEXIST);
	call(c, BPF_FUNC_map_update_elem);
}

static void
set_none(struct code *c, const struct wp_counters *w)
{
	set_wide(c, BPF_REG_1, 0, WP_READING_NONE);
	for (unsigned i = 0; i < w->n; i++)
		store(c, BPF_DW, FP, count_at(i), BPF_REG_1);
}

void
wp_code_counters(struct code *c, const struct wp_counters *w)
{
	unsigned nowhere, unread, begun, ended, known, other;

	read_all(c, w);
	nowhere = look_up_since(c, w);
	subtract_since(c, w);
	store_task(c);
	doubt(c, w);
	unread = jump(c, BPF_JNE, BPF_REG_9, 0);
	look_up(c, w->threads, TASK);
	copy(c, BPF_REG_8, BPF_REG_0);
	known = jump(c, BPF_JNE, BPF_REG_8, 0);
	begin_thread(c, w);
	begun = jump_always(c);
	land(c, known);
	call(c, BPF_FUNC_get_current_pid_tgid);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, number_at(w));
	calculate(c, BPF_XOR, BPF_REG_0, BPF_REG_1);
	other = jump(c, BPF_JNE, BPF_REG_0, 0);
	subtract_last(c, w);
	ended = jump_always(c);
	land(c, unread);
	land(c, other);
	forget(c, w);
	land(c, nowhere);
	land(c, begun);
	set_none(c, w);
	land(c, ended);
}

/* --- at a switch --- */

/* R8 becomes the entry of the thread with this task.  Returns the jump for
   NULL. */
static unsigned
look_up_thread(struct code *c, const struct wp_counters *w)
{
	look_up(c, w->threads, TASK);
	copy(c, BPF_REG_8, BPF_REG_0);
	return jump(c, BPF_JEQ, BPF_REG_8, 0);
}

/* Add the counts to the entry in this register. */
static void
add_counts(struct code *c, const struct wp_counters *w, unsigned to)
{
	for (unsigned i = 0; i < w->n; i++) {
		load(c, BPF_DW, BPF_REG_1, to, own_at(i));
		load(c, BPF_DW, BPF_REG_2, FP, count_at(i));
		calculate(c, BPF_ADD, BPF_REG_1, BPF_REG_2);
		store(c, BPF_DW, to, own_at(i), BPF_REG_1);
	}
}

/* Counts since the last switch belong to the thread that is switched out. */
static void
go(struct code *c, const struct wp_counters *w)
{
	unsigned unknown, unread, done;

	store_task(c);
	subtract_since(c, w);
	doubt(c, w);
	unknown = look_up_thread(c, w);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, here_at(w));
	add(c, BPF_REG_1, -1);
	calculate(c, BPF_OR, BPF_REG_9, BPF_REG_1);
	unread = jump(c, BPF_JNE, BPF_REG_9, 0);
	store(c, BPF_DW, BPF_REG_8, here_at(w), BPF_REG_9);
	add_counts(c, w, BPF_REG_8);
	done = jump_always(c);
	land(c, unread);
	forget(c, w);
	land(c, done);
	land(c, unknown);
}

/* The thread that is switched in must have been switched out before. */
static void
come(struct code *c, const struct wp_counters *w)
{
	unsigned unknown, gone, done;

	load(c, BPF_DW, BPF_REG_1, BPF_REG_6, 2 * 8);
	store(c, BPF_DW, FP, TASK, BPF_REG_1);
	store(c, BPF_DW, BPF_REG_7, came_at(w), BPF_REG_1);
	unknown = look_up_thread(c, w);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, here_at(w));
	gone = jump(c, BPF_JEQ, BPF_REG_1, 0);
	forget(c, w);
	done = jump_always(c);
	land(c, gone);
	set(c, BPF_REG_1, 1);
	store(c, BPF_DW, BPF_REG_8, here_at(w), BPF_REG_1);
	land(c, done);
	land(c, unknown);
}

/* Set the processor's entry to the values just read. */
static void
note_since(struct code *c, const struct wp_counters *w)
{
	add_counts(c, w, BPF_REG_7);
	load(c, BPF_DW, BPF_REG_1, FP, UNREAD);
	store(c, BPF_DW, BPF_REG_7, unread_at(w), BPF_REG_1);
}

static int
open_switching(const struct wp_counters *w)
{
	struct code c = {.n = 0};
	unsigned nowhere;

	copy(&c, BPF_REG_6, BPF_REG_1);
	read_all(&c, w);
	store(&c, BPF_DW, FP, UNREAD, BPF_REG_9);
	nowhere = look_up_since(&c, w);
	go(&c, w);
	note_since(&c, w);
	come(&c, w);
	land(&c, nowhere);
	return_zero(&c);
	return wp_bpf_trace("sched_switch", c.insn, c.n);
}

/* --- when a thread has ended --- */

/* Remove the entry of a thread whose task is about to be freed and may be
   reused.  While a thread ends, the kernel may still write on its behalf, which
   would start a new entry; after this point it does not. */
static int
open_ending(const struct wp_counters *w)
{
	struct code c = {.n = 0};

	load(&c, BPF_DW, BPF_REG_1, BPF_REG_1, 0);
	store(&c, BPF_DW, FP, TASK, BPF_REG_1);
	forget(&c, w);
	return_zero(&c);
	return wp_bpf_trace("sched_process_free", c.insn, c.n);
}

/* --- of user space --- */

/* Open one counter on each online processor.  Returns 0, or -errno with a
   cause. */
static int
open_counter(struct wp_counters *w, unsigned counter,
    const struct wp_cpus *online, struct wp_cause *cause)
{
	const int map = wp_bpf_events(online->end);
	int err = 0, fd;

	if (map < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_BPF,
		    "making an array of events", wp_libc_why(-map));
	w->counter[w->n] = counter;
	w->events[w->n++] = map;
	for (unsigned cpu = 0; cpu < online->end && err == 0; cpu++) {
		if (!online->has[cpu])
			continue;
		if ((fd = wp_counter_open(counter, (int)cpu)) < 0)
			return wp_cause_set(cause, WP_CAUSE_NO_COUNTER,
			    wp_counter_name(counter), wp_libc_why(-fd),
			    fd == -EBUSY ? ", since other events hold the "
			    "processor's counters" :
			    wp_counter_is_hardware(counter) ? ", as many "
			    "virtual machines have none of the processor's" :
			    "");
		err = wp_bpf_update(map, &cpu, &fd);
		(void)close(fd);
	}
	return err == 0 ? 0 : wp_cause_errno(cause, "reading a counter by BPF",
	    -err);
}

static int
open_counters(struct wp_counters *w, uint32_t which, struct wp_cause *cause)
{
	static struct wp_cpus online;
	int err = wp_cpus_online(&online);

	if (err < 0)
		return wp_cause_errno(cause, "reading which processors run",
		    -err);
	w->hidden = (which >> WP_COUNTER_CONTEXT_SWITCHES & 1) == 0;
	err = open_counter(w, WP_COUNTER_CONTEXT_SWITCHES, &online, cause);
	for (unsigned i = 0; i < WP_COUNTERS && err == 0; i++)
		if ((which >> i & 1) != 0 && i != WP_COUNTER_CONTEXT_SWITCHES)
			err = open_counter(w, i, &online, cause);
	return err;
}

/* Returns 0 or -errno. */
static int
open_programs(struct wp_counters *w)
{
	if ((w->since = wp_bpf_per_cpu(wp_counters_since(w->n))) < 0)
		return w->since;
	if ((w->threads = wp_bpf_hash(sizeof(uint64_t),
	    wp_counters_thread(w->n), THREADS_MAX)) < 0)
		return w->threads;
	if ((w->switching = open_switching(w)) < 0)
		return w->switching;
	return (w->ending = open_ending(w)) < 0 ? w->ending : 0;
}

int
wp_counters_open(struct wp_counters *w, uint32_t which, struct wp_cause *cause)
{
	int err;

	*w = (struct wp_counters){
		.since = -1, .threads = -1, .switching = -1, .ending = -1,
	};
	err = open_counters(w, which, cause);
	if (err == 0 && (err = open_programs(w)) < 0)
		(void)wp_cause_set(cause, WP_CAUSE_NO_BPF,
		    "loading a BPF program that counts", wp_libc_why(-err));
	if (err < 0)
		wp_counters_close(w);
	return err;
}

static void
close_one(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

void
wp_counters_close(struct wp_counters *w)
{
	if (w->n == 0)
		return;
	close_one(w->switching);
	close_one(w->ending);
	close_one(w->since);
	close_one(w->threads);
	while (w->n > 0)
		close_one(w->events[--w->n]);
}
