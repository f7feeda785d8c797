/*
 * probe_fire: each kind of breakpoint, fired for real in this process.
 *
 * Overview: a watch is armed on a word of this file, the word is touched, and
 * what came is compared with what must come.  An event that opens is no proof:
 * some hypervisors and emulators accept breakpoints that never fire.
 *
 * Signal safety: the handler disables its event, because on processors that
 * trap before the access (arm64) returning would trap again and again.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/libc.h"
#include "os/perf.h"
#include "probe/probe_private.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "os/siginfo_perf.h"
#include "os/slot_cpu.h"
#include "os/trap_cpu.h"

#define STORED 0x5afe57011eull	/* what the probes write */
#define SIG_DATA 0x0ddba11c0ffeeull

static volatile uint64_t watched;

/* What the signal handler saw at its first call. */
static struct {
	volatile sig_atomic_t hits;
	int fd;			/* the event to be disabled; -1: none */
	int code;		/* si_code */
	int fd_reported;		/* si_fd */
	pid_t tid;		/* of the thread that got it */
	uint64_t addr;		/* si_addr */
	uint64_t data;		/* si_perf_data */
	uint64_t value;		/* of watched */
} caught;

static struct perf_event_attr
watch_attr(uint32_t type, uint64_t addr, uint64_t len)
{
	struct perf_event_attr attr = wp_probe_attr(type, addr, len);

	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR;
	return attr;
}

static struct perf_event_attr
write_attr(void)
{
	return watch_attr(HW_BREAKPOINT_W, (uintptr_t)&watched,
	    sizeof(watched));
}


__attribute__((format(printf, 2, 3))) static void
worked(struct wp_probe_result *out, const char *format, ...)
{
	va_list ap;

	out->ok = true;
	va_start(ap, format);
	(void)vsnprintf(out->detail, sizeof(out->detail), format, ap);
	va_end(ap);
}

/* A step failed with -errno.  The detail says which, and why; the advice says
   what to do. */
static void
step_failed_because(struct wp_probe_result *out, const char *step, int err,
    const char *why, const char *advice)
{
	out->err = -err;
	(void)snprintf(out->detail, sizeof(out->detail), "%s: %s", step, why);
	(void)snprintf(out->advice, sizeof(out->advice), "%s", advice);
}

static void
step_failed(struct wp_probe_result *out, const char *step, int err,
    const char *advice)
{
	step_failed_because(out, step, err, strerror(-err), advice);
}

/* All steps passed, but the result was not the expected one. */
static void
misfired(struct wp_probe_result *out, const char *detail, const char *advice)
{
	(void)snprintf(out->detail, sizeof(out->detail), "%s", detail);
	(void)snprintf(out->advice, sizeof(out->advice), "%s", advice);
}

/* A watch that needs nothing special could not be opened. */
static void
open_failed(struct wp_probe_result *out, int err)
{
	struct wp_cause cause;

	(void)wp_probe_cause(-err, &cause);
	step_failed_because(out, "perf_event_open", err,
	    wp_probe_refusal(-err),
	    cause.code != WP_CAUSE_NO_BREAKPOINTS ? cause.text :
	    "this machine offers no hardware breakpoints: an emulator or a "
	    "virtual machine without debug registers, or a kernel without "
	    "CONFIG_HAVE_HW_BREAKPOINT; run on real hardware or under another "
	    "hypervisor");
}

static const char never_fires[] = "breakpoints are accepted here and do not "
    "fire, as under some hypervisors and emulators: run on real hardware or "
    "under another hypervisor";

/* Shots: one watch with a ring, one action. */

/* A record of an event made by watch_attr. */
struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t addr;
};
_Static_assert(sizeof(struct sample) == 32, "the kernel adds no padding");

struct shot {
	uint64_t count;		/* hits */
	unsigned samples;	/* of them recorded in the ring */
	struct sample first;
};

static void
read_ring(const struct perf_event_mmap_page *ring, size_t size,
    struct shot *shot)
{
	const char *data = (const char *)ring + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header header;

	for (uint64_t at = 0; at + sizeof(header) <= head && head <= size;
	    at += header.size) {
		memcpy(&header, data + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - at)
			return;
		if (header.type != PERF_RECORD_SAMPLE ||
		    header.size != sizeof(shot->first))
			continue;
		if (shot->samples++ == 0)
			memcpy(&shot->first, data + at, sizeof(shot->first));
	}
}

/* Arm the event, act, and read what it recorded.  0; or -errno, with the name
   of the step. */
static int
shoot_at(int fd, void (*act)(void *), void *arg, struct shot *shot,
    const char **step)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *ring;
	struct wp_perf_count count;
	int err;

	*shot = (struct shot){0};
	*step = "mmap of a ring buffer";
	if ((err = wp_perf_map(fd, size, &ring)) < 0)
		return err;
	*step = "enabling";
	if ((err = wp_perf_enable(fd)) == 0) {
		act(arg);
		*step = "reading the count";
		if ((err = wp_perf_disable(fd)) == 0 &&
		    (err = wp_perf_read(fd, 0, &count)) == 0) {
			shot->count = count.value;
			read_ring(ring, size, shot);
		}
	}
	wp_perf_unmap(ring, size);
	return err;
}

/* The same for an event that is opened first.  False: *out says why it
   failed. */
static bool
shoot(struct wp_probe_result *out, struct perf_event_attr *attr,
    void (*act)(void *), void *arg, struct shot *shot)
{
	const char *step;
	int err, fd = wp_perf_open(attr, 0, -1);

	if (fd < 0) {
		open_failed(out, fd);
		return false;
	}
	err = shoot_at(fd, act, arg, shot, &step);
	(void)close(fd);
	if (err < 0)
		step_failed(out, step, err, err == -EPERM ? "the user's locked "
		    "memory is used up: raise kernel.perf_event_mlock_kb or "
		    "ulimit -l" : "");
	return err == 0;
}

static void
judge_shot(struct wp_probe_result *out, const struct perf_event_attr *attr,
    const struct shot *shot, const char *what)
{
	if (shot->count == 0)
		misfired(out, "the event was set and did not fire",
		    never_fires);
	else if (shot->count != 1 || shot->samples != 1)
		misfired(out, "one access did not make one hit and one record",
		    "hits are counted wrongly here: use another hypervisor");
	else if (shot->first.addr != attr->bp_addr ||
	    shot->first.tid != (uint32_t)wp_libc_tid())
		misfired(out, "the record names another address or thread",
		    "records cannot be trusted here: use another hypervisor");
	else
		worked(out, "%s: one hit, recorded with its address and thread",
		    what);
}

static void
store(void *arg)
{
	(void)arg;
	watched = STORED;
}

static void
load(void *arg)
{
	*(uint64_t *)arg = watched;
}

__attribute__((noinline)) static void
breakpoint_here(void *arg)
{
	__asm__ volatile("" : : "r"(arg) : "memory");
}

static void
fire_write(struct wp_probe_result *out)
{
	struct perf_event_attr attr = write_attr();
	struct shot shot;

	if (shoot(out, &attr, store, NULL, &shot))
		judge_shot(out, &attr, &shot, "a store");
}

static void
fire_cpus(struct wp_probe_result *out)
{
	struct wp_probe_cpus cpus;
	int fd;

	wp_probe_cpus(&cpus);
	if (cpus.tried == 0) {
		struct perf_event_attr attr = write_attr();

		if ((fd = wp_perf_open(&attr, 0, -1)) < 0)
			open_failed(out, fd);
		else
			misfired(out, "no thread could be created to try it",
			    "raise the limits of processes and memory (ulimit "
			    "-u and -v)");
		if (fd >= 0)
			(void)close(fd);
	} else if (cpus.silent >= 0) {
		(void)snprintf(out->detail, sizeof(out->detail), "the event "
		    "was set and did not fire on processor %d, and did on %u "
		    "of %u", cpus.silent, cpus.fired, cpus.tried);
		(void)snprintf(out->advice, sizeof(out->advice), "%s",
		    never_fires);
	} else {
		worked(out, "a store on each of %u processor%s: a hit",
		    cpus.tried, cpus.tried == 1 ? "" : "s");
	}
}

static void
fire_access(struct wp_probe_result *out)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_RW,
	    (uintptr_t)&watched, sizeof(watched));
	struct shot shot;
	uint64_t value;

	if (shoot(out, &attr, load, &value, &shot))
		judge_shot(out, &attr, &shot, "a load");
}

static void
fire_execute(struct wp_probe_result *out)
{
	struct perf_event_attr attr = watch_attr(HW_BREAKPOINT_X,
	    (uintptr_t)breakpoint_here, wp_cpu_exec_len());
	struct shot shot;

	if (shoot(out, &attr, breakpoint_here, NULL, &shot))
		judge_shot(out, &attr, &shot, "a call");
}

/* Have the kernel store to the word, from a pipe that holds 8 bytes. */
static void
read_from_pipe(void *arg)
{
	const int *pipe_fd = arg;

	(void)!read(pipe_fd[0], (void *)(uintptr_t)&watched, sizeof(watched));
}

static void
judge_kernel_shot(struct wp_probe_result *out, const struct shot *shot)
{
	if (shot->count == 0)
		misfired(out, "read(2) into the watched word did not fire",
		    "this processor or kernel does not report the kernel's "
		    "accesses (arm64 never does): what system calls write goes "
		    "unseen");
	else if (shot->samples == 0 || (shot->first.header.misc &
	    PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_KERNEL ||
	    shot->first.addr != (uintptr_t)&watched)
		misfired(out, "the record of a read(2) names another address, "
		    "or not the kernel", "what system calls write may be "
		    "misreported: use --user-only");
	else	/* as many hits as the kernel's copy makes stores */
		worked(out, "read(2) of 8 bytes: %llu hit%s, recorded as the "
		    "kernel's", (unsigned long long)shot->count,
		    shot->count == 1 ? "" : "s");
}

static void
kernel_open_failed(struct wp_probe_result *out)
{
	struct wp_features features;
	struct wp_cause cause;

	if (out->err != EACCES || wp_probe_features(&features, NULL) != 0)
		return;		/* whatever refuses every watch */
	(void)wp_cause_set(&cause, WP_CAUSE_DENIED_KERNEL, features.paranoid);
	(void)snprintf(out->advice, sizeof(out->advice), "%s", cause.text);
}

static void
fire_kernel(struct wp_probe_result *out)
{
	struct perf_event_attr attr = write_attr();
	const uint64_t value = STORED;
	struct shot shot;
	int fds[2];

	attr.exclude_kernel = 0;
	if (pipe2(fds, O_CLOEXEC) != 0) {
		step_failed(out, "pipe", -errno, "");
		return;
	}
	(void)!write(fds[1], &value, sizeof(value));
	if (shoot(out, &attr, read_from_pipe, fds, &shot))
		judge_kernel_shot(out, &shot);
	else
		kernel_open_failed(out);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* BPF. */

/* A program that lets every sample pass, or none.  A descriptor or -errno. */
static int
load_filter(bool pass)
{
	struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0,
		    .imm = pass},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = sizeof(insns) / sizeof(insns[0]);
	attr.license = (uintptr_t)"Dual BSD/GPL";
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

/* Store once with a filter on the event.  False: *out says why it failed. */
static bool
shoot_filtered(struct wp_probe_result *out, bool pass, struct shot *shot)
{
	struct perf_event_attr attr = write_attr();
	const char *step;
	int err, prog, fd = wp_perf_open(&attr, 0, -1);

	if (fd < 0) {
		open_failed(out, fd);
		return false;
	}
	step = "bpf";
	if ((err = prog = load_filter(pass)) >= 0) {
		step = "attaching a BPF program";
		if ((err = wp_perf_set_bpf(fd, prog)) == 0)
			err = shoot_at(fd, store, NULL, shot, &step);
		(void)close(prog);
	}
	(void)close(fd);
	if (err < 0)
		step_failed(out, step, err, "conditions cannot be checked in "
		    "the kernel: that takes CAP_BPF and CAP_PERFMON (root), no "
		    "seccomp filter against bpf(2), and a kernel with "
		    "CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS");
	return err == 0;
}

static void
fire_bpf(struct wp_probe_result *out)
{
	struct shot all, none;

	if (!shoot_filtered(out, true, &all) ||
	    !shoot_filtered(out, false, &none))
		return;
	if (all.count == 0)
		misfired(out, "the event was set and did not fire",
		    never_fires);
	else if (all.samples != 1 || none.samples != 0)
		misfired(out, "a BPF program does not filter the event's "
		    "records", "conditions cannot be checked in the kernel");
	else
		worked(out, "a program rejected one hit and let one pass");
}

/* Signals. */

static sigjmp_buf over;		/* the access of a child */

static void
handler(int sig, siginfo_t *info, void *context)
{
	struct wp_siginfo_perf by;
	int saved = errno;

	(void)sig;
	(void)context;
	if (caught.hits == 0) {
		caught.code = info->si_code;
		caught.fd_reported = info->si_fd;
		caught.tid = wp_libc_tid();
		memcpy(&by, info, sizeof(by));
		caught.addr = by.addr;
		caught.data = by.data;
		caught.value = watched;
	}
	caught.hits++;
	(void)wp_perf_disable(caught.fd);
	errno = saved;
	/* the register stays set, and would trap the access again */
	if (caught.code == WP_TRAP_HWBKPT && wp_cpu_traps_before())
		siglongjmp(over, 1);
}

/* The action and mask of a signal before a probe used it. */
struct borrowed {
	int sig;
	struct sigaction action;
	sigset_t mask;
};

static void
borrow_signal(struct borrowed *from, int sig)
{
	struct sigaction action = {
		.sa_sigaction = handler,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};
	sigset_t set;

	(void)sigemptyset(&action.sa_mask);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	from->sig = sig;
	(void)sigaction(sig, &action, &from->action);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, &from->mask);
	memset(&caught, 0, sizeof(caught));
	caught.fd = -1;
}

static void
return_signal(const struct borrowed *from)
{
	(void)pthread_sigmask(SIG_SETMASK, &from->mask, NULL);
	(void)sigaction(from->sig, &from->action, NULL);
}

/* Some kernels raise the signal from an interrupt that comes a little later. */
static void
await_signal(void)
{
	for (int i = 0; i < 100 && caught.hits == 0; i++)
		wp_clock_sleep(1000000);
}

/* Enable an event that signals, store, and wait.  0 or -errno. */
static int
provoke(int fd, bool *prompt)
{
	int err;

	watched = ~STORED;
	caught.fd = fd;
	if ((err = wp_perf_enable(fd)) < 0)
		return err;
	watched = STORED;
	*prompt = caught.hits > 0;
	await_signal();
	return wp_perf_disable(fd);
}

/* Judge the signal that was expected, and the thread that got it. */
static void
judge_signal(struct wp_probe_result *out, bool right, bool prompt,
    const char *what)
{
	struct wp_proc_status status;

	if (caught.hits == 0 && wp_proc_status(wp_libc_tid(), &status) == 0 &&
	    status.tracer != 0)
		misfired(out, "the store raised no signal", "this process is "
		    "being traced, and a debugger may keep the signal for "
		    "itself: run without it");
	else if (caught.hits == 0)
		misfired(out, "the store raised no signal", never_fires);
	else if (!right || caught.hits != 1 || caught.tid != wp_libc_tid())
		misfired(out, "the signal did not come as it should: once, in "
		    "the thread, naming its watch", "watches inside a program "
		    "cannot know what was hit here");
	else
		worked(out, "%s %s, naming its watch", what, !prompt ?
		    "some time after the store" : caught.value == STORED ?
		    "right after the store" : "before the store");
}

static void
fire_sigtrap(struct wp_probe_result *out)
{
	struct perf_event_attr attr = write_attr();
	struct borrowed from;
	bool prompt = false;
	int err, fd;

	attr.remove_on_exec = 1;	/* the kernel demands it of sigtrap */
	attr.sigtrap = 1;
	attr.sig_data = SIG_DATA;
	fd = wp_perf_open(&attr, 0, -1);
	if (fd < 0) {
		open_failed(out, fd);
		if (fd == -EINVAL || fd == -E2BIG)
			step_failed_because(out, "perf_event_open", fd,
			    "this kernel has no sigtrap events", "watches "
			    "inside a program use O_ASYNC signals instead");
		return;
	}
	borrow_signal(&from, SIGTRAP);
	err = provoke(fd, &prompt);
	(void)close(fd);
	return_signal(&from);
	if (err < 0)
		step_failed(out, "enabling", err, "");
	else
		judge_signal(out, caught.code == WP_TRAP_PERF &&
		    caught.addr == (uintptr_t)&watched &&
		    caught.data == SIG_DATA, prompt, "SIGTRAP");
}

static void
fire_async(struct wp_probe_result *out)
{
	struct perf_event_attr attr = write_attr();
	int err, fd = wp_perf_open(&attr, 0, -1);
	const char *step = "fcntl";
	struct borrowed from;
	bool prompt = false;

	if (fd < 0) {
		open_failed(out, fd);
		return;
	}
	borrow_signal(&from, SIGURG);
	if ((err = wp_perf_signal(fd, wp_libc_tid(), SIGURG)) == 0) {
		step = "enabling";
		err = provoke(fd, &prompt);
	}
	(void)close(fd);
	return_signal(&from);
	if (err < 0)
		step_failed(out, step, err, "");
	else
		judge_signal(out, caught.fd_reported == fd, prompt, "SIGURG");
}

/* ptrace: a child is held, given a debug register, released, and stores. */

/* The child.  It waits for a byte before it stores; if the parent has gone,
   there is none, and it does not store. */
static _Noreturn void
store_when_asked(int go, int back)
{
	struct borrowed from;
	char c;

	borrow_signal(&from, SIGTRAP);
	while (read(go, &c, 1) < 0 && errno == EINTR)
		;
	if (sigsetjmp(over, 1) == 0)
		watched = STORED;
	(void)!write(back, &caught, sizeof(caught));
	_exit(0);
}

/* Set the child's debug register.  0; or -errno, with the name of the step. */
static int
plant(pid_t pid, const char **step)
{
	const struct wp_slot slot[WP_DEBUG_REGISTERS] = {
		{(uintptr_t)&watched, sizeof(watched), HW_BREAKPOINT_W},
	};
	struct wp_hold hold = {0};
	int err;

	*step = "holding a child by ptrace";
	if ((err = wp_hold_process(&hold, pid)) < 0)
		return err;
	*step = "setting its debug register";
	err = wp_trace_registers(pid, slot, 1);
	wp_hold_release(&hold);
	return err;
}

/* Let the child store, and copy what its handler saw to `caught'. */
static int
await_child(int go, int back, const char **step)
{
	struct pollfd answer = {.fd = back, .events = POLLIN};

	*step = "the child's answer";
	(void)!write(go, "", 1);
	while (poll(&answer, 1, 2000) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	memset(&caught, 0, sizeof(caught));
	if (!(answer.revents & POLLIN))
		return answer.revents & POLLHUP ? 0 : -ETIMEDOUT;
	return read(back, &caught, sizeof(caught)) == sizeof(caught) ? 0 : -EIO;
}

static void
reap(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* The parent's side of all that.  0; or -errno, with the name of the step. */
static int
run_child(int go[2], int back[2], const char **step)
{
	pid_t pid;
	int err;

	*step = "fork";
	if ((pid = fork()) < 0)
		return -errno;
	if (pid == 0) {
		(void)close(go[1]);
		(void)close(back[0]);
		store_when_asked(go[0], back[1]);
	}
	(void)close(back[1]);
	back[1] = -1;		/* so that its end is seen */
	if ((err = plant(pid, step)) == 0)
		err = await_child(go[1], back[0], step);
	reap(pid);
	return err;
}

static void
judge_child(struct wp_probe_result *out, int err, const char *step)
{
	if (err == -ENOSPC)
		step_failed(out, step, err, "all debug registers are held: end "
		    "the debugger or the events that hold them");
	else if (err == -ENOTSUP)
		step_failed(out, step, err, "not available on this processor: "
		    "where perf_event_open is refused nothing replaces it");
	else if (err < 0 && !wp_proc_mounted())
		step_failed(out, step, err, "/proc is not mounted, and without "
		    "it no process can be found");
	else if (err < 0)
		step_failed(out, step, err, "threads cannot be held while they "
		    "are attached: see kernel.yama.ptrace_scope, seccomp "
		    "filters, and debuggers that trace this process");
	else if (caught.hits == 0)
		misfired(out, "the register was set and did not fire",
		    never_fires);
	else if (caught.hits != 1 || caught.code != WP_TRAP_HWBKPT ||
	    (caught.value == STORED) == wp_cpu_traps_before())
		misfired(out, "the trap did not come as it should: once, next "
		    "to the store", "debug registers cannot be trusted here");
	else
		worked(out, "a register set in a child trapped after ptrace "
		    "had released it");
}

static void
fire_ptrace(struct wp_probe_result *out)
{
	const char *step = "pipe";
	int go[2], back[2], err;

	if (pipe2(go, O_CLOEXEC) != 0) {
		step_failed(out, step, -errno, "");
		return;
	}
	if (pipe2(back, O_CLOEXEC) != 0) {
		step_failed(out, step, -errno, "");
	} else {
		err = run_child(go, back, &step);
		judge_child(out, err, step);
		(void)close(back[0]);
		if (back[1] >= 0)
			(void)close(back[1]);
	}
	(void)close(go[0]);
	(void)close(go[1]);
}

static const struct {
	const char *name;
	void (*fire)(struct wp_probe_result *);
} kinds[WP_PROBE_KINDS] = {
	[WP_PROBE_WRITE] = {"write", fire_write},
	[WP_PROBE_CPUS] = {"cpus", fire_cpus},
	[WP_PROBE_ACCESS] = {"access", fire_access},
	[WP_PROBE_EXECUTE] = {"execute", fire_execute},
	[WP_PROBE_SIGTRAP] = {"sigtrap", fire_sigtrap},
	[WP_PROBE_ASYNC] = {"async", fire_async},
	[WP_PROBE_KERNEL] = {"kernel", fire_kernel},
	[WP_PROBE_BPF] = {"bpf", fire_bpf},
	[WP_PROBE_PTRACE] = {"ptrace", fire_ptrace},
};

void
wp_probe_fire(enum wp_probe_kind kind, struct wp_probe_result *out)
{
	*out = (struct wp_probe_result){.kind = kind, .name = kinds[kind].name};
	kinds[kind].fire(out);
	if (!out->ok && out->advice[0] == '\0')
		(void)snprintf(out->advice, sizeof(out->advice), "%s",
		    "nothing known explains this: strace(1) shows the call");
}
