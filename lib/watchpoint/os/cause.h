/*
 * cause: the reason why a call failed, as text.
 *
 * Calls that can fail for reasons that concern the user return 0 or -errno and,
 * through a struct wp_cause, the reason and the way out in one line.  Code,
 * errno and text of each cause are one line of one list.
 *
 * Thread-safe on distinct objects; wp_cause_set is not async-signal-safe.
 */
#ifndef WP_CAUSE_H
#define WP_CAUSE_H

#include <errno.h>

#pragma GCC visibility push(default)

/* X(code, errno, format): format takes the arguments that its callers give. */
#define WP_CAUSES(X)							\
	X(NONE, 0, "no error")						\
	X(NO_MEMORY, ENOMEM, "out of memory")				\
	X(SYSTEM, EIO, "%s: %s")					\
	X(SPEC_SYNTAX, EINVAL, "'%s': %s at %s (column %zu); "	\
	    "write ADDR[:LEN], SYMBOL[+OFF][:LEN], "			\
	    "MODULE!SYMBOL[+OFF][:LEN] or a C expression")		\
	X(SYMBOL_UNKNOWN, ENOENT, "'%s': no symbol '%s' in %s%s")	\
	X(MODULE_UNKNOWN, ENOENT, "'%s': no module '%s' is mapped by "	\
	    "the process%s%s")						\
	X(NO_SIGNAL, EBUSY, "process %d handles both SIGURG and SIGWINCH, "\
	    "and one of them is needed to stop it when its loader maps " \
	    "a module: watch once the module is mapped")		\
	X(STATIC, ENOTSUP, "'%s': process %d has no dynamic loader that "\
	    "could map '%s': its program is static")			\
	X(SYMBOL_AMBIGUOUS, ENOTUNIQ, "'%s': %zu symbols are called "	\
	    "'%s': %s; name one by %sits address")			\
	X(SYMBOL_TLS, ENOTSUP, "'%s' is thread-local: every thread "	\
	    "has its own; with -p, name one by its thread: SYMBOL@TID")	\
	X(NO_LOCALS, ENOTSUP, "'%s': its place in the threads cannot "	\
	    "be found: %s")						\
	X(NO_LOCAL, ENOTSUP, "'%s': its place in thread %d cannot be "	\
	    "found: %s")						\
	X(LINE_UNKNOWN, ENOENT, "'%s': %s")				\
	X(SPEC_RANGE, ERANGE, "'%s': %s")				\
	X(SPEC_EXPRESSION, EINVAL, "'%s': %s (column %zu)")		\
	X(LENGTH, E2BIG, "%llu bytes at %#llx take %u slots, and "	\
	    "this processor has %u free: watch %s (SPEC:LEN)")	\
	X(TOO_MANY, ENOSPC, "the watches take %u slots together, and "	\
	    "this processor has %u free: watch fewer, or shorter and "	\
	    "aligned regions")						\
	X(TOO_WIDE, E2BIG, "slots that rotate over %llu bytes are " \
	    "rarely at any one of them: give at most %llu (SPEC:LEN)")	\
	X(RUN_FULL, ENOSPC, "%u watches have been made in this run, "	\
	    "and there can be no more: begin another one")		\
	X(ACCESS, EINVAL, "an execution watch is on one instruction: "	\
	    "leave out the length")					\
	X(UNMAPPED, EFAULT, "%#llx is not mapped in process %d: see "	\
	    "/proc/%d/maps for what is")				\
	X(NON_CANONICAL, EFAULT, "%#llx is not an address: this "	\
	    "processor's user addresses end at %#llx")			\
	X(KERNEL_ADDRESS, EPERM, "%#llx lies in the kernel: watchctl "	\
	    "watches a program's memory, below %#llx")			\
	X(NO_PROCESS, ESRCH, "no process %d: it does not exist, or "	\
	    "has ended")						\
	X(NO_PROC, ENOENT, "/proc is not mounted here, and without "	\
	    "it no process can be found: mount it (mount -t proc "	\
	    "proc /proc)")						\
	X(OTHER_PROC, ENOENT, "/proc is another PID namespace's, "	\
	    "where processes have other numbers: mount this one's "	\
	    "(mount -t proc proc /proc)")				\
	X(HIDDEN, ESRCH, "process %d is there, but /proc does not "	\
	    "show it: it is another user's and the mount option "	\
	    "hidepid is set, or /proc is another PID namespace's; "	\
	    "run as root, in the process's namespace")			\
	X(NOT_A_PROCESS, ESRCH, "%d is a thread of process %d: give "	\
	    "-p %d")							\
	X(GONE, ESRCH, "process %d has ended just now")			\
	X(ZOMBIE, ESRCH, "process %d has ended and only waits for "	\
	    "its parent (a zombie): nothing is left to watch")		\
	X(KERNEL_THREAD, EPERM, "process %d is a kernel thread: it "	\
	    "has no memory of its own to watch")			\
	X(NARROW, ENOTSUP, "process %d is a 32-bit program, which is "	\
	    "not watched on this processor: use a 64-bit build of it")	\
	X(SELF, EINVAL, "process %d is this one: watchctl cannot "	\
	    "attach to itself")						\
	X(NO_SLOT, ENOSPC, "no free slot in thread %d: %u of the "	\
	    "processor's %u are wanted, %s")				\
	X(NO_UPROBE, EPERM, "no slot is left for %#llx, and no uprobe "	\
	    "can be there: %s")						\
	X(NO_OBJECTS, EPERM, "objects are watched by uprobes on the function " \
	    "and on what frees them: %s")				\
	X(DENIED_PARANOID, EACCES, "not permitted: "			\
	    "kernel.perf_event_paranoid is %d; run as root (sudo), or "	\
	    "have processes of your own permitted: "			\
	    "sysctl kernel.perf_event_paranoid=2")			\
	X(DENIED_PERFMON, EACCES, "not permitted: "			\
	    "kernel.perf_event_paranoid is %d, and this kernel does "	\
	    "not let CAP_PERFMON pass there, which is held: add "	\
	    "CAP_SYS_ADMIN, run as root (sudo), or "			\
	    "sysctl kernel.perf_event_paranoid=2")			\
	X(DENIED_OTHER, EACCES, "not permitted: process %d belongs "	\
	    "to another user or is not dumpable; run as root (sudo) or " \
	    "with CAP_PERFMON and CAP_SYS_PTRACE")			\
	X(DENIED_ROOT, EACCES, "not permitted: process %d cannot be "	\
	    "looked into though this is root: a container or user "	\
	    "namespace has fewer capabilities than it, or a security "	\
	    "module forbids it; run as root of the machine, or start the " \
	    "container with --cap-add SYS_PTRACE --cap-add PERFMON")	\
	X(DENIED_SECCOMP, EPERM, "not permitted: perf_event_open is "	\
	    "refused here with EPERM, as container seccomp filters "	\
	    "do; start the container with --security-opt "		\
	    "seccomp=unconfined, or run outside")			\
	X(DENIED_KERNEL, EACCES, "not permitted to watch the "		\
	    "kernel's accesses (kernel.perf_event_paranoid is %d): "	\
	    "use --user-only, or run as root (sudo) or with CAP_PERFMON") \
	X(NO_BREAKPOINTS, ENODEV, "this machine offers no hardware "	\
	    "breakpoints (%s): `watchctl doctor` shows more")		\
	X(SILENT, ENODEV, "breakpoints are accepted on processor %d "	\
	    "and do not fire there (they did on %u of %u tried), as "	\
	    "under some hypervisors and emulators: accesses would go "	\
	    "unseen; use real hardware or another hypervisor")		\
	X(NO_PERF, ENOSYS, "this kernel has no perf_event_open: it "	\
	    "was built without CONFIG_PERF_EVENTS")			\
	X(DESCRIPTORS, EMFILE, "%u more descriptors are needed "	\
	    "(threads x processors x slots), and the limit is %u: "	\
	    "raise it (ulimit -n, or LimitNOFILE=)")			\
	X(RING, ENOMEM, "no ring buffer could be allocated, down to "	\
	    "%zu KiB for each processor: raise "			\
	    "kernel.perf_event_mlock_kb or ulimit -l")			\
	X(RING_INSIDE, ENOMEM, "thread %d cannot have a page of its "	\
	    "own that the kernel writes to: raise "			\
	    "kernel.perf_event_mlock_kb or ulimit -l")			\
	X(NO_BPF, EPERM, "%s: %s; that takes root, or CAP_BPF and "	\
	    "CAP_PERFMON, no seccomp filter against bpf(2), a kernel "	\
	    "with CONFIG_BPF_EVENTS, and up to Linux 5.10 ulimit -l "	\
	    "unlimited")						\
	X(NO_COUNTER, ENODEV, "this machine does not count %s (%s)%s: "	\
	    "leave it out")						\
	X(NOT_EXECUTABLE, EACCES, "%s: cannot be executed: %s")		\
	X(NOT_FOUND, ENOENT, "'%s': no such command")			\
	X(NO_INTERPRETER, ENOENT, "%s: cannot be executed: the "	\
	    "interpreter or dynamic loader that it names is not "	\
	    "there")							\
	X(EXEC, ENOEXEC, "%s: %s")					\
	X(ENDED_EARLY, ESRCH, "the command ended before the watch "	\
	    "could be armed")						\
	X(LOADER_LATE, ETIMEDOUT, "its dynamic loader was not done "	\
	    "after %d s: it is stopped, or waits for a file")		\
	X(ATTR, EINVAL, "%s")						\
	X(ATTR_NEWER, E2BIG, "struct wp_attr has %zu bytes here, and "	\
	    "this libwatchpoint knows %zu of them: the others need a "	\
	    "newer one")						\
	X(WATCH_LENGTH, E2BIG, "%zu bytes at %#llx take more than "	\
	    "the %u debug registers of this processor: watch a part "	\
	    "of at most %u bytes, aligned to 8")			\
	X(WATCHES, EMFILE, "%u watches are open, and there can be "	\
	    "no more: close one")					\
	X(NO_DESCRIPTOR, EMFILE, "a watch takes %u descriptors for "	\
	    "each thread, and no more are available (the limit is "	\
	    "%llu): raise it (ulimit -n)")				\
	X(NO_THREAD, EAGAIN, "a watch is opened by a thread that "	\
	    "ends at once, and none can be created: raise the limit "	\
	    "of processes (ulimit -u, pids.max), or have clone(2) "	\
	    "permitted")						\
	X(CLOSED, EINVAL, "the watch is not open")			\
	X(MOVE, EINVAL, "%#llx: there the watch would take %u debug "	\
	    "registers and not %u: move it to an address of the same "	\
	    "alignment, or with another length")			\
	X(DELIVERY, ENOTSUP, "WATCHPOINT_DELIVERY=%s: %s")		\
	X(NO_DELIVERY, EACCES, "%s; and without it, %s")		\
	X(VALGRIND, ENOTSUP, "this program runs under valgrind, "	\
	    "which executes its instructions again after a trap, for "	\
	    "ever: watch without it, or use `watch` in gdb with its "	\
	    "--vgdb=full")						\
	X(HELPER_OFF, ENOENT, "no helper: WATCHPOINT_HELPER is empty")	\
	X(HELPER_EXEC, ENOENT, "the helper %s cannot be started: %s; "	\
	    "name another in WATCHPOINT_HELPER")			\
	X(HELPER_PRIVILEGED, EPERM, "the helper %s cannot be "		\
	    "started: %s; a program that runs with privileges of its "	\
	    "file takes no other")					\
	X(HELPER_SILENT, EPIPE, "the helper %s does not work: %s")	\
	X(TRACED, EPERM, "thread %d is already traced by process %d "	\
	    "(%s), and a thread has one tracer only: end that one")	\
	X(TRACE_YAMA, EPERM, "not permitted to trace process %d: "	\
	    "kernel.yama.ptrace_scope is %d, so %s; run as root "	\
	    "(sudo), or sysctl kernel.yama.ptrace_scope=%d")		\
	X(TRACE_REFUSED, EPERM, "not permitted to trace process %d: "	\
	    "ptrace(2) is refused here, as container seccomp filters "	\
	    "do%s")							\
	X(TRACE_DENIED, EPERM, "not permitted to trace process %d: it "	\
	    "belongs to another user or is not dumpable; run as root "	\
	    "(sudo) or with CAP_SYS_PTRACE")				\
	X(HOLD_DENIED, EPERM, "%s: ptrace(2) is refused here, as "	\
	    "container seccomp filters do, and holding it before its "	\
	    "first instruction needs that")				\
	X(TRACE_NO_HELPER, ENOTSUP, "debug registers are set by the "	\
	    "helper, and there is none: %s")				\
	X(TRACE_INDEX, EMFILE, "more than %u watches by ptrace")	\
	X(TRACE_BUSY, EBUSY, "the threads cannot be held still while "	\
	    "watches by ptrace are open")				\
	X(HELPER_GONE, EPIPE, "accesses to %s may go unreported: the "	\
	    "helper, which arms the program's threads, has ended")	\
	X(HELPER_DIED, EPIPE, "the helper has ended: hits are no "	\
	    "longer explained")						\
	X(TRAP_TAKEN, EBUSY, "%s is %s: hits do not arrive; leave "	\
	    "the signal to libwatchpoint while it watches")		\
	X(TRAP_BLOCKED, EBUSY, "%s is blocked in this thread: its "	\
	    "hits are reported only when it is unblocked")		\
	X(EVENTS_CLOSED, EBADF, "the watch on %s ended when the "	\
	    "program closed its descriptors, as closefrom(3) does: "	\
	    "accesses since then are not reported")			\
	X(MISSED, EINTR, "no signal came for %llu access%s to %s: it "	\
	    "was blocked, ignored or taken by another handler")

enum wp_cause_code {
#define X(code, err, text) WP_CAUSE_##code,
	WP_CAUSES(X)
#undef X
};

struct wp_cause {
	enum wp_cause_code code;
	int err;		/* the errno value, positive */
	char text[512];		/* one line, no newline */
};

/* Fill *cause (unless NULL) from the list, with the format's arguments.
   Result: the cause's errno, negated, for `return wp_cause_set(...)`. */
int wp_cause_set(struct wp_cause *cause, enum wp_cause_code code, ...);

/* Fill *cause with the reason why this user may not inspect a process.  Result:
   the cause's errno, negated. */
int wp_cause_denied(struct wp_cause *, int pid);

/* The name of a code ("NO_PROCESS"), for tests and logs. */
const char *wp_cause_name(enum wp_cause_code);

/* Fill *cause with SYSTEM and a given errno: "what: strerror", and the remedy,
   if it is known.  Result: -err. */
int wp_cause_errno(struct wp_cause *cause, const char *what, int err);

#pragma GCC visibility pop

#endif
