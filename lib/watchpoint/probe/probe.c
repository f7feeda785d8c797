/*
 * probe: finds out what this machine can do, by trying.
 *
 * Every try but one is an open of a disabled event on this thread, closed at
 * once.  The other event counts a store: one that opens may not fire.
 */
#include "probe/probe_private.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/libc.h"
#include "os/perf.h"
#include "proc/proc.h"
#include "os/trap_cpu.h"

/* The longest range tried: AMD's masks have 12 bits at least where there are
   masks, and the kernel does not check which processors have more. */
#define RANGE_MAX 4096

/* The inode of the first user namespace, on every kernel. */
#define FIRST_USER_NAMESPACE 0xeffffffd

static volatile uint64_t word;	/* what the dummies watch */

struct perf_event_attr
wp_probe_attr(uint32_t type, uint64_t addr, uint64_t len)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = type,
		.bp_addr = addr,
		.bp_len = len,
	};
}

/* A write watch of len bytes around the word that stays disabled. */
static struct perf_event_attr
dummy(uint64_t len)
{
	return wp_probe_attr(HW_BREAKPOINT_W, (uintptr_t)&word & ~(len - 1),
	    len);
}

static bool
opens(struct perf_event_attr attr)
{
	int fd = wp_perf_open(&attr, 0, -1);

	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}

/* Open such watches until no more fit.  Result: how many fit, or -errno. */
static int
count_slots(void)
{
	struct perf_event_attr attr = dummy(sizeof(word));
	int fd[WP_SLOTS_MAX], n = 0, err = 0;

	while (n < WP_SLOTS_MAX && err == 0) {
		if ((fd[n] = wp_perf_open(&attr, 0, -1)) < 0)
			err = fd[n];
		else
			n++;
	}
	for (int i = 0; i < n; i++)
		(void)close(fd[i]);
	return n > 0 && (err == 0 || err == -ENOSPC) ? n : err;
}

int
wp_probe_fires(void)
{
	struct perf_event_attr attr = dummy(sizeof(word));
	struct wp_perf_count count;
	int err, fd;

	attr.disabled = 0;
	attr.sample_period = 0;
	if ((fd = wp_perf_open(&attr, 0, -1)) < 0)
		return fd;
	word = 1;
	err = wp_perf_read(fd, 0, &count);
	(void)close(fd);
	return err < 0 ? err : count.value > 0;
}

static uint64_t
longest_range(void)
{
	uint64_t range = wp_slot_usual.range;

	while (range < RANGE_MAX && opens(dummy(range * 2)))
		range *= 2;
	return range;
}

/* Find the attributes that the kernel knows and permits in addition to those of
   a plain event. */
static void
try_attributes(struct wp_features *features, const struct perf_event_attr plain)
{
	struct perf_event_attr attr = plain;

	attr.inherit = 1;
	attr.inherit_thread = 1;
	features->inherit_thread = opens(attr);

	attr = plain;
	attr.remove_on_exec = 1;
	features->remove_on_exec = opens(attr);
	attr.sigtrap = 1;	/* takes remove_on_exec */
	attr.sig_data = 1;
	features->sigtrap = opens(attr);

	attr = plain;
	attr.read_format = PERF_FORMAT_LOST;
	features->format_lost = opens(attr);

	attr = plain;
	attr.exclude_kernel = 0;
	features->kernel = opens(attr) && wp_cpu_traps_kernel();
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	features->callchain = opens(attr);
}

int
wp_probe_features(struct wp_features *features, struct wp_cause *cause)
{
	int slots = count_slots();

	*features = (struct wp_features){
		.paranoid = wp_proc_setting("perf_event_paranoid"),
	};
	if (slots < 0)
		return wp_probe_cause(-slots, cause);
	if (wp_probe_fires() == 0)
		return wp_cause_set(cause, WP_CAUSE_SILENT, sched_getcpu(),
		    0u, 1u);
	features->caps.slots = (unsigned)slots;
	features->caps.range = longest_range();
	features->caps.bytes = wp_slot_usual.bytes;
	try_attributes(features, dummy(sizeof(word)));
	return 0;
}

void
wp_probe_without_slots(struct wp_features *features)
{
	struct perf_event_attr plain = dummy(sizeof(word));

	wp_attr_beside(&plain);
	*features = (struct wp_features){.paranoid = features->paranoid};
	try_attributes(features, plain);
	/* these are features of breakpoints */
	features->sigtrap = features->kernel = features->callchain = false;
}

unsigned
wp_probe_free_slots(void)
{
	int n = count_slots();

	return n < 0 ? 0 : (unsigned)n;
}

unsigned
wp_probe_all_slots(void)
{
	unsigned now = wp_probe_free_slots();

	return now > wp_slot_usual.slots ? now : wp_slot_usual.slots;
}

static int
no_slot(struct wp_cause *cause)
{
	char who[80] = "other events or debug registers hold them";
	pid_t tracer = wp_proc_tracer(wp_libc_tid());

	if (tracer != 0)
		(void)snprintf(who, sizeof(who),
		    "process %d traces it and may hold them", tracer);
	return wp_cause_set(cause, WP_CAUSE_NO_SLOT, wp_libc_tid(), 1u,
	    wp_slot_usual.slots, who);
}

static int
refused(struct wp_cause *cause, int err, const char *why)
{
	(void)wp_cause_set(cause, WP_CAUSE_SYSTEM, "perf_event_open", why);
	if (cause != NULL)
		cause->err = err;
	return -err;
}

const char *
wp_probe_refusal(int err)
{
	const char *why = wp_libc_why(err);

	return err == E2BIG ? "this kernel does not know a field of the event "
	    "that is asked for" : why != NULL ? why : "unknown error";
}

static bool
has_seccomp_filter(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

bool
wp_probe_capable(unsigned capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct stat space;

	return (stat("/proc/self/ns/user", &space) != 0 ||
	    space.st_ino == FIRST_USER_NAMESPACE) &&
	    syscall(SYS_capget, &header, data) == 0 &&
	    (data[capability / 32].effective >> capability % 32 & 1) != 0;
}

int
wp_probe_cause(int err, struct wp_cause *cause)
{
	int paranoid = wp_proc_setting("perf_event_paranoid");

	switch (err) {
	case ENOSPC:
		return no_slot(cause);
	case EACCES:
		if (paranoid > 2)
			return wp_cause_set(cause,
			    wp_probe_capable(CAP_PERFMON) ?
			    WP_CAUSE_DENIED_PERFMON : WP_CAUSE_DENIED_PARANOID,
			    paranoid);
		return refused(cause, err, "not permitted, though not by "
		    "kernel.perf_event_paranoid: a security module (SELinux, "
		    "AppArmor) has to allow it");
	case EPERM:
		if (has_seccomp_filter())
			return wp_cause_set(cause, WP_CAUSE_DENIED_SECCOMP);
		return refused(cause, err, "not permitted, though no seccomp "
		    "filter is in force: a security module has to allow it");
	case ENOSYS:
		/* the kernel has perf events, as the sysctl exists, but a
		   filter refuses */
		if (paranoid != INT_MIN)
			return refused(cause, err, "hidden by a seccomp "
			    "filter: start the container with --security-opt "
			    "seccomp=unconfined, or run outside");
		return wp_cause_set(cause, WP_CAUSE_NO_PERF);
	case ENODEV:
	case ENOENT:
	case EOPNOTSUPP:
		return wp_cause_set(cause, WP_CAUSE_NO_BREAKPOINTS,
		    wp_libc_why(err));
	case E2BIG:
		return refused(cause, err, wp_probe_refusal(err));
	default:
		return wp_cause_errno(cause, "perf_event_open", err);
	}
}
