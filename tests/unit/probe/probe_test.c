/*
 * probe: what is found on simulated machines.
 *
 * This file takes the place of perf.c: its functions simulate the machine.
 */
#include "test.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/perf.h"
#include "os/trap_cpu.h"
#include "probe/probe.h"

/* What the machine does. */
struct machine {
	const char *name;
	int refuses;		/* errno of every open; 0: none */
	unsigned slots;
	uint64_t range;		/* longest bp_len */
	bool sigtrap;		/* Linux 5.13: also remove_on_exec and so on */
	bool format_lost;	/* Linux 6.0 */
	bool kernel;		/* permits exclude_kernel=0 */
	bool callchain;		/* permits kernel callchains */
	unsigned hits, samples;	/* of one access */
	uint64_t astray;	/* what is added to a sample's address */
	bool other_thread;	/* samples name another */
	unsigned silent;	/* the processor on which nothing hits, and 1 */
};

static const struct machine usual = {
	.name = "Linux 6.1", .slots = 4, .range = 8, .sigtrap = true,
	.format_lost = true, .kernel = true, .callchain = true,
	.hits = 1, .samples = 1,
};

static struct machine machine;
/* of a thread: descriptors given out, and the address of the last event */
static _Thread_local int opened[WP_SLOTS_MAX + 1];
static _Thread_local uint64_t addr;
static struct perf_event_mmap_page *mapped;

/* How many of those given out are not closed; *vacant: a place for another. */
static unsigned
count_open(unsigned *vacant)
{
	unsigned n = 0;

	for (unsigned i = 0; i <= WP_SLOTS_MAX; i++) {
		if (opened[i] > 0 && fcntl(opened[i], F_GETFD) >= 0)
			n++;
		else
			*vacant = i;
	}
	return n;
}

static int
refusal(const struct perf_event_attr *attr)
{
	if (machine.refuses != 0)
		return machine.refuses;
	if (!machine.sigtrap && attr->sig_data != 0)
		return E2BIG;
	if (!machine.sigtrap && (attr->sigtrap || attr->remove_on_exec ||
	    attr->inherit_thread))
		return EINVAL;
	if (!machine.format_lost && (attr->read_format & PERF_FORMAT_LOST))
		return EINVAL;
	if (!attr->exclude_kernel && (!machine.kernel || (!machine.callchain &&
	    (attr->sample_type & PERF_SAMPLE_CALLCHAIN))))
		return EACCES;
	if (attr->type == PERF_TYPE_SOFTWARE)
		return 0;
	if (attr->bp_len > machine.range)
		return EOPNOTSUPP;
	if (attr->bp_addr % attr->bp_len != 0 &&
	    attr->bp_type != HW_BREAKPOINT_X)
		return EINVAL;
	return 0;
}

int
wp_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	unsigned vacant = 0;
	int err = refusal(attr);

	assert_int_equal(pid, 0);
	assert_int_equal(cpu, -1);
	assert_true(attr->disabled || attr->sample_period == 0);
	if (err != 0)
		return -err;
	if (count_open(&vacant) >= machine.slots)
		return -ENOSPC;
	addr = attr->bp_addr;
	opened[vacant] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return opened[vacant];
}

int
wp_perf_enable(int fd)
{
	(void)fd;
	return 0;
}

/* The access is over: the ring gets its records. */
int
wp_perf_disable(int fd)
{
	struct {
		struct perf_event_header header;
		uint64_t ip;
		uint32_t pid, tid;
		uint64_t addr;
	} sample = {
		.header = {
			.type = PERF_RECORD_SAMPLE,
			.misc = PERF_RECORD_MISC_USER,
			.size = sizeof(sample),
		},
		.tid = (uint32_t)gettid() + machine.other_thread,
		.addr = addr + machine.astray,
	};
	char *data;

	(void)fd;
	if (mapped == NULL)
		return 0;
	data = (char *)mapped + sysconf(_SC_PAGESIZE);
	for (unsigned i = 0; i < machine.samples; i++)
		memcpy(data + i * sizeof(sample), &sample, sizeof(sample));
	mapped->data_head = machine.samples * sizeof(sample);
	return 0;
}

int
wp_perf_read(int fd, uint64_t format, struct wp_perf_count *count)
{
	(void)fd;
	assert_int_equal(format, 0);
	*count = (struct wp_perf_count){
		.value = sched_getcpu() + 1 == (int)machine.silent ? 0 :
		    machine.hits,
	};
	return 0;
}

int
wp_perf_map(int fd, size_t size, struct perf_event_mmap_page **ring)
{
	(void)fd;
	assert_null(mapped);
	mapped = calloc(1, (size_t)sysconf(_SC_PAGESIZE) + size);
	assert_non_null(mapped);
	*ring = mapped;
	return 0;
}

void
wp_perf_unmap(struct perf_event_mmap_page *ring, size_t size)
{
	(void)size;
	assert_ptr_equal(ring, mapped);
	free(mapped);
	mapped = NULL;
}

int
wp_perf_signal(int fd, pid_t tid, int sig)
{
	(void)fd;
	(void)sig;
	assert_int_equal(tid, gettid());
	return 0;
}

int
wp_perf_set_bpf(int fd, int prog_fd)
{
	(void)fd;
	(void)prog_fd;
	return -EINVAL;
}

TEST(finds_what_each_kernel_has)
{
	static const struct machine machines[] = {
		{"Linux 5.10", 0, 4, 8, false, false, true, true, 1, 1, 0, 0},
		{"Linux 5.15", 0, 4, 8, true, false, true, true, 1, 1, 0, 0},
		{"Linux 6.1", 0, 4, 8, true, true, true, true, 1, 1, 0, 0},
		{"paranoid 2", 0, 4, 8, true, true, false, false, 1, 1, 0, 0},
		{"no chains", 0, 4, 8, true, true, true, false, 1, 1, 0, 0},
		{"AMD masks", 0, 4, 2048, true, true, true, true, 1, 1, 0, 0},
		{"any range", 0, 4, 1 << 30, true, true, true, true, 1, 1, 0,
		    0},
		{"2 taken", 0, 2, 8, true, true, true, true, 1, 1, 0, 0},
		{"most slots", 0, 64, 8, true, true, true, true, 1, 1, 0, 0},
	};

	for (size_t i = 0; i < COUNT(machines); i++) {
		struct machine *const m = &machine;
		const uint64_t range = machines[i].range;
		const unsigned slots = machines[i].slots;
		struct wp_features has;
		unsigned vacant;

		machine = machines[i];
		m->hits = 1;
		print_message("%s\n", m->name);
		assert_int_equal(wp_probe_features(&has, NULL), 0);
		assert_int_equal(has.caps.slots,
		    slots < WP_SLOTS_MAX ? slots : WP_SLOTS_MAX);
		assert_int_equal(has.caps.range, range < 4096 ? range : 4096);
		assert_int_equal(has.inherit_thread, m->sigtrap);
		assert_int_equal(has.remove_on_exec, m->sigtrap);
		assert_int_equal(has.sigtrap, m->sigtrap);
		assert_int_equal(has.format_lost, m->format_lost);
		assert_int_equal(has.kernel,
		    m->kernel && wp_cpu_traps_kernel());
		assert_int_equal(has.callchain, m->kernel && m->callchain);
		assert_int_equal(wp_probe_all_slots(), slots < 4 ? 4 :
		    has.caps.slots);
		assert_int_equal(count_open(&vacant), 0);
	}
}

TEST(has_no_features_without_watches)
{
	static const int errs[] = {EACCES, EPERM, ENODEV, ENOENT, EOPNOTSUPP,
	    ENOSYS, ENOSPC, EMFILE, EINVAL, E2BIG};

	machine = usual;
	for (size_t i = 0; i < COUNT(errs); i++) {
		struct wp_features has;
		struct wp_cause cause;
		int err;

		machine.refuses = errs[i];
		err = wp_probe_features(&has, &cause);
		assert_true(err < 0);
		assert_int_equal(err, -cause.err);
		assert_int_not_equal(cause.code, WP_CAUSE_NONE);
		assert_null(strchr(cause.text, '\n'));
		assert_int_equal(has.caps.slots, 0);
		assert_false(has.remove_on_exec || has.kernel);
		assert_int_equal(wp_probe_free_slots(), 0);
		assert_int_equal(wp_probe_all_slots(), 4);
	}
}

/* One that opens and does not count is no feature, here or elsewhere. */
TEST(has_no_features_where_nothing_fires)
{
	struct wp_probe_cpus cpus;
	struct wp_features has;
	struct wp_cause cause;

	machine = usual;
	machine.hits = 0;
	assert_int_equal(wp_probe_features(&has, &cause), -ENODEV);
	assert_int_equal(cause.code, WP_CAUSE_SILENT);
	assert_holds(cause.text, "do not fire");
	assert_int_equal(has.caps.slots, 0);
	wp_probe_without_slots(&has);
	assert_int_equal(has.caps.slots, 0);
	assert_true(has.remove_on_exec && has.inherit_thread);
	assert_false(has.kernel || has.sigtrap);
	wp_probe_cpus(&cpus);
	assert_true(cpus.tried > 0);
	assert_int_equal(cpus.fired, 0);
	assert_true(cpus.silent >= 0);
}

/* Of the last processor that this test may run on, each time. */
TEST(tries_each_processor)
{
	struct wp_probe_result r;
	struct wp_probe_cpus cpus;
	cpu_set_t all;
	int last = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			last = cpu;
	machine = usual;
	wp_probe_cpus(&cpus);
	assert_int_equal(cpus.tried, CPU_COUNT(&all));
	assert_int_equal(cpus.fired, cpus.tried);
	assert_int_equal(cpus.silent, -1);
	wp_probe_fire(WP_PROBE_CPUS, &r);
	assert_true(r.ok);
	machine.silent = (unsigned)last + 1;
	wp_probe_cpus(&cpus);
	assert_int_equal(cpus.tried, CPU_COUNT(&all));
	assert_int_equal(cpus.fired, cpus.tried - 1);
	assert_int_equal(cpus.silent, last);
	wp_probe_fire(WP_PROBE_CPUS, &r);
	assert_false(r.ok);
	assert_holds(r.detail, "did not fire on processor");
	machine.refuses = EACCES;
	wp_probe_cpus(&cpus);
	assert_int_equal(cpus.tried, 0);
	assert_int_equal(cpus.silent, -1);
	wp_probe_fire(WP_PROBE_CPUS, &r);
	assert_false(r.ok);
	assert_int_equal(r.err, EACCES);
}

/* Machines that take a watch and then fire wrongly, or not at all. */
TEST(believes_only_what_fires)
{
	static const struct {
		unsigned hits, samples;
		uint64_t astray;
		bool other_thread;
		const char *detail;	/* NULL: believed */
	} cases[] = {
		{1, 1, 0, false, NULL},
		{0, 0, 0, false, "did not fire"},
		{0, 1, 0, false, "did not fire"},
		{1, 0, 0, false, "one hit and one record"},
		{2, 2, 0, false, "one hit and one record"},
		{1, 2, 0, false, "one hit and one record"},
		{1, 1, 8, false, "another address or thread"},
		{1, 1, 0, true, "another address or thread"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		machine = usual;
		machine.hits = cases[i].hits;
		machine.samples = cases[i].samples;
		machine.astray = cases[i].astray;
		machine.other_thread = cases[i].other_thread;
		for (unsigned k = WP_PROBE_WRITE; k <= WP_PROBE_EXECUTE; k++) {
			struct wp_probe_result r;

			if (k == WP_PROBE_CPUS)
				continue;
			wp_probe_fire((enum wp_probe_kind)k, &r);
			assert_int_equal(r.ok, cases[i].detail == NULL);
			assert_int_equal(r.err, 0);
			if (cases[i].detail == NULL)
				continue;
			assert_holds(r.detail, cases[i].detail);
			assert_string_not_equal(r.advice, "");
		}
	}
}

/* A signal that never comes is waited for, not for ever. */
TEST(signals_that_never_come)
{
	static const enum wp_probe_kind kinds[] = {
		WP_PROBE_SIGTRAP, WP_PROBE_ASYNC,
	};

	machine = usual;
	for (size_t i = 0; i < 2; i++) {
		struct wp_probe_result r;

		wp_probe_fire(kinds[i], &r);
		assert_false(r.ok);
		assert_int_equal(r.err, 0);
		assert_holds(r.detail, "no signal");
		assert_string_not_equal(r.advice, "");
	}
}

/* A user's record of a read(2) is not a kernel hit. */
TEST(kernel_hits_are_the_kernels)
{
	struct wp_probe_result r;

	machine = usual;
	wp_probe_fire(WP_PROBE_KERNEL, &r);
	assert_false(r.ok);
	assert_holds(r.detail, "not the kernel");
	machine.hits = machine.samples = 0;
	wp_probe_fire(WP_PROBE_KERNEL, &r);
	assert_false(r.ok);
	assert_holds(r.advice, "unseen");
}

TEST(old_kernels_have_no_sigtrap)
{
	struct wp_probe_result r;

	machine = usual;
	machine.sigtrap = false;
	wp_probe_fire(WP_PROBE_SIGTRAP, &r);
	assert_false(r.ok);
	assert_true(r.err == E2BIG || r.err == EINVAL);
	assert_string_equal(r.detail, "perf_event_open: this kernel has no "
	    "sigtrap events");
	assert_holds(r.advice, "O_ASYNC");
}

RUN_TESTS()
