/*
 * ptrace: holding threads still, tracing them, and starting commands held.
 *
 * Overview: a thread is SEIZEd, which by itself changes nothing for it, then
 * INTERRUPTed, and waited for.  Either it reports the interruption, or a signal
 * that came first (which it gets when it is released), or a stop of its
 * own (SIGSTOP), in which it stays when it is released.  A thread that sleeps
 * uninterruptibly (a vfork parent, a page being read) cannot report before it
 * wakes, but its stop is pending and comes before its next user instruction:
 * it counts as held, and so does one that is just ending.  The kernel releases
 * it when the holding thread exits.
 *
 * Stops are looked at and not taken (WNOWAIT): of one that was taken the kernel
 * forgets the signal, and it would be lost if the holding thread died before it
 * lets go.
 */
#include "os/ptrace.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/proc.h"

/* How long a thread may take to stop before its state is looked at, and how
   long all may take together, in ms. */
enum { STOP_PATIENCE = 10, STOP_LIMIT = 5000 };

static void
nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static int
held_order(const void *a, const void *b)
{
	pid_t x = ((const struct wp_held *)a)->tid;
	pid_t y = ((const struct wp_held *)b)->tid;

	return (x > y) - (x < y);
}

/* Whether tid is among the first n, which are sorted. */
static bool
is_held(const struct wp_hold *hold, size_t n, pid_t tid)
{
	struct wp_held key = {.tid = tid};

	return n > 0 && bsearch(&key, hold->thread, n, sizeof(key),
	    held_order) != NULL;
}

/* Have room for one more: to be found out before a thread is seized. */
static int
hold_room(struct wp_hold *hold)
{
	size_t cap = hold->cap == 0 ? 64 : hold->cap * 2;
	void *more;

	if (hold->n < hold->cap)
		return 0;
	if ((more = realloc(hold->thread, cap * sizeof(*hold->thread))) == NULL)
		return -ENOMEM;
	hold->thread = more;
	hold->cap = cap;
	return 0;
}

static void
hold_drop(struct wp_hold *hold, size_t i)
{
	hold->thread[i] = hold->thread[--hold->n];
}

/* Whom to hold, and how. */
struct whom {
	pid_t pid;
	pid_t but;		/* not this thread; 0: everybody */
	unsigned options;	/* PTRACE_O_*; not 0: some may be ours */
};

static void
hold_add(struct wp_hold *hold, pid_t tid, bool ours)
{
	hold->thread[hold->n++] = (struct wp_held){.tid = tid, .ours = ours};
	(void)ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}

/* SEIZE and INTERRUPT one thread.  1 held, 0 not; or -errno.  *others counts
   those that need not be and yet are in the list: also of threads that have
   ended the first is, and those whose tracer has not taken notice. */
static int
seize(struct wp_hold *hold, const struct whom *whom, pid_t tid,
    unsigned *others)
{
	struct wp_proc_status status;
	int err = hold_room(hold);

	if (err < 0)
		return err;
	if (tid == whom->but) {
		++*others;
		return 0;
	}
	if (ptrace(PTRACE_SEIZE, tid, 0,
	    (void *)(uintptr_t)whom->options) == 0) {
		hold_add(hold, tid, false);
		return 1;
	}
	err = errno;
	if (wp_proc_status(tid, &status) != 0 || status.state == 'X')
		return 0;
	if (status.state == 'Z') {
		*others += tid == whom->pid || status.tracer != 0;
		return 0;
	}
	if (whom->options != 0 && status.tracer == gettid()) {
		hold_add(hold, tid, true);
		return 1;
	}
	return err == ESRCH ? 0 : -err;
}

/*
 * Seize those of the process's threads that are not held.  0: there are no
 * others; 1: the list has to be looked at again; or -errno.
 *
 * The kernel passes over a thread if the one before it ends while the list is
 * read.  But what it says afterwards of their number is exact: when it equals
 * the number of stopped threads, there are no others.
 */
static int
seize_new(struct wp_hold *hold, const struct whom *whom, pid_t **tids,
    size_t *cap)
{
	struct wp_proc_status status;
	size_t known = hold->n;
	unsigned others = 0;
	int n = wp_proc_threads(whom->pid, tids, cap), err;

	if (n < 0)
		return n;
	if (known > 0)
		qsort(hold->thread, known, sizeof(*hold->thread), held_order);
	for (int i = 0; i < n; i++)
		if (!is_held(hold, known, (*tids)[i]) && (err = seize(hold,
		    whom, (*tids)[i], &others)) < 0)
			return err;
	if ((err = wp_proc_status(whom->pid, &status)) < 0)
		return err;
	return hold->n > known || status.threads != known + others;
}

/* What a stopped thread is about to get: the signal, or 0 at stops that are not
   a signal's.  code: as si_status has it, or a wait status shifted by 8. */
static int
stop_signal(int code)
{
	return code >> 8 == 0 ? code : 0;
}

/* A thread of the process has ended.  Its zombie would keep an execve(2) of
   another from going on; the first one's is for its parent to reap. */
static void
reap(pid_t pid, pid_t tid)
{
	if (tid != pid)
		(void)waitpid(tid, NULL, __WALL | WNOHANG);
}

/* Whether a traced thread is stopped, though it has nothing to report: its
   stop was taken. */
static bool
stands_already(const struct wp_held *held)
{
	siginfo_t info;

	return held->ours && wp_trace_get_signal(held->tid, &info) != -ESRCH;
}

/* Collect stops that have come.  Result: how many are still to come. */
static size_t
collect(struct wp_hold *hold, pid_t pid)
{
	size_t missing = 0;

	for (size_t i = 0; i < hold->n; i++) {
		struct wp_held *held = &hold->thread[i];
		siginfo_t info = {0};

		if (held->stopped)
			continue;
		if (waitid(P_PID, (id_t)held->tid, &info, WSTOPPED | WEXITED |
		    WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid == 0) {
			held->stopped = stands_already(held);
			missing += !held->stopped;
		} else if (info.si_code == CLD_TRAPPED ||
		    info.si_code == CLD_STOPPED) {
			held->stopped = true;
			held->signal = stop_signal(info.si_status);
		} else {
			if (!held->ours)
				reap(pid, held->tid);
			hold_drop(hold, i--);
		}
	}
	return missing;
}

/* Whether none of those that have not stopped can run: they sleep where no stop
   reaches them, or are ending. */
static bool
rest_asleep(const struct wp_hold *hold)
{
	for (size_t i = 0; i < hold->n; i++) {
		struct wp_proc_status status;

		if (!hold->thread[i].stopped &&
		    wp_proc_status(hold->thread[i].tid, &status) == 0 &&
		    strchr("DZX", status.state) == NULL)
			return false;
	}
	return true;
}

static int
await_stops(struct wp_hold *hold, pid_t pid, long limit)
{
	long began = wp_clock_ms();

	while (collect(hold, pid) > 0) {
		long now = wp_clock_ms();

		if (now - began > STOP_PATIENCE && rest_asleep(hold))
			return 0;
		if (now > limit)
			return -ETIMEDOUT;
		nap();
	}
	return 0;
}

static int
hold_all(struct wp_hold *hold, const struct whom *whom)
{
	const long limit = wp_clock_ms() + STOP_LIMIT;
	pid_t *tids = NULL;
	size_t cap = 0;
	int again, err;

	do {
		again = seize_new(hold, whom, &tids, &cap);
		/* also before giving up: only a stopped thread can be
		   released */
		err = await_stops(hold, whom->pid, limit);
		if (again < 0)
			err = again;
		else if (err == 0 && again > 0 && wp_clock_ms() > limit)
			err = -ETIMEDOUT;
	} while (err == 0 && again > 0);
	free(tids);
	if (err == 0 && hold->n == 0 && whom->but == 0)
		err = -ESRCH;
	if (err != 0)
		wp_hold_release(hold);
	return err;
}

int
wp_hold_process(struct wp_hold *hold, pid_t pid)
{
	const struct whom whom = {.pid = pid};

	return hold_all(hold, &whom);
}

int
wp_hold_others(struct wp_hold *hold, pid_t pid, pid_t tid)
{
	const struct whom whom = {.pid = pid, .but = tid};

	return hold_all(hold, &whom);
}

void
wp_hold_release(struct wp_hold *hold)
{
	for (size_t i = 0; i < hold->n; i++) {
		const struct wp_held *held = &hold->thread[i];

		if (!held->ours)
			wp_trace_let_go(held->tid, held->signal);
	}
	free(hold->thread);
	*hold = (struct wp_hold){0};
}

/* The new process: wait to be seized, then become the command; what execve
   answers otherwise goes back through the pipe. */
static _Noreturn void
become(char *const argv[], const int go[2], int result)
{
	ssize_t n;
	char c;
	int err;

	/* ours would keep the pipe open should the launcher die */
	(void)close(go[1]);
	/* a process that the launcher starts may trace it, too: Yama asks */
	(void)prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
	while ((n = read(go[0], &c, 1)) < 0 && errno == EINTR)
		;
	if (n != 1)
		_exit(127);
	(void)execvp(argv[0], argv);
	err = errno;
	(void)!write(result, &err, sizeof(err));
	_exit(127);
}

static bool
is_group_stop(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP &&
	    WSTOPSIG(status) != SIGTRAP;
}

/* Wait until a thread stops by itself or ends; in the meantime it may be
   stopped and continued with its process.  0 or -errno. */
static int
next_stop(pid_t tid, int *status)
{
	for (;;) {
		if (waitpid(tid, status, __WALL) < 0) {
			if (errno != EINTR)
				return -errno;
		} else if (!is_group_stop(*status)) {
			return 0;
		} else if (ptrace(PTRACE_LISTEN, tid, 0, 0) != 0 &&
		    errno != ESRCH) {
			return -errno;
		}
	}
}

/* Wait for the stop at the end of execve; signals on the way are delivered.
   0, or -ECHILD when the process ended instead. */
static int
await_exec(pid_t pid)
{
	int status, err;

	for (;;) {
		if ((err = next_stop(pid, &status)) < 0)
			return err;
		if (!WIFSTOPPED(status))
			return -ECHILD;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return 0;
		if (ptrace(PTRACE_CONT, pid, 0,
		    (void *)(intptr_t)stop_signal(status >> 8)) != 0 &&
		    errno != ESRCH)
			return -errno;
	}
}

static int
seize_command(const struct wp_command *command)
{
	int err = 0;

	if (ptrace(PTRACE_SEIZE, command->pid, 0, PTRACE_O_TRACEEXEC) != 0)
		return -errno;
	(void)!write(command->go, "", 1);
	if ((err = await_exec(command->pid)) == -ECHILD &&
	    read(command->result, &err, sizeof(err)) == sizeof(err))
		err = -err;
	return err;
}

int
wp_command_start(struct wp_command *command, char *const argv[])
{
	int go[2], result[2], err;

	if (pipe2(go, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(result, O_CLOEXEC) != 0) {
		err = -errno;
		(void)close(go[0]);
		(void)close(go[1]);
		return err;
	}
	*command = (struct wp_command){fork(), go[1], result[0]};
	err = errno;
	if (command->pid == 0)
		become(argv, go, result[1]);
	(void)close(go[0]);
	(void)close(result[1]);
	if (command->pid > 0)
		return 0;
	wp_command_leave(command);
	return -err;
}

void
wp_command_leave(struct wp_command *command)
{
	(void)close(command->go);
	(void)close(command->result);
	command->go = command->result = -1;
}

int
wp_command_hold(struct wp_command *command, struct wp_hold *hold)
{
	int err = hold_room(hold);

	if (err == 0)
		err = seize_command(command);
	wp_command_leave(command);
	if (err == 0)
		hold->thread[hold->n++] = (struct wp_held){
			.tid = command->pid, .stopped = true,
		};
	else
		wp_hold_release(hold);
	return err;
}

int
wp_hold_command(struct wp_hold *hold, char *const argv[], pid_t *pid)
{
	struct wp_command command = {.pid = -1};
	int err = wp_command_start(&command, argv);

	if (err < 0)
		return err;
	*pid = command.pid;
	if ((err = wp_command_hold(&command, hold)) < 0)
		wp_command_end(*pid);
	return err;
}

void
wp_command_end(pid_t pid)
{
	if (waitpid(pid, NULL, WNOHANG) != 0)
		return;
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int
wp_hold_continue(struct wp_hold *hold, struct wp_stop *stop)
{
	struct wp_held *held = &hold->thread[0];
	siginfo_t info;
	int status, err;

	if (ptrace(PTRACE_CONT, held->tid, 0,
	    (void *)(intptr_t)held->signal) != 0 && errno != ESRCH)
		return -errno;
	if ((err = next_stop(held->tid, &status)) < 0)
		return err;
	*stop = (struct wp_stop){.fd = -1};
	if (!WIFSTOPPED(status)) {
		stop->ended = true;
		stop->status = status;
		hold->n = 0;
		return 0;
	}
	stop->signal = held->signal = stop_signal(status >> 8);
	if (stop->signal != 0 &&
	    ptrace(PTRACE_GETSIGINFO, held->tid, 0, &info) == 0 &&
	    info.si_code > 0 && info.si_code != SI_KERNEL)
		stop->fd = info.si_fd;
	return 0;
}

/* Threads that are made are traced; execve(2) is reported, because it ends
   everything. */
#define TRACE_OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

int
wp_trace_process(struct wp_hold *hold, pid_t pid)
{
	return wp_trace_family(hold, pid, false);
}

int
wp_trace_family(struct wp_hold *hold, pid_t pid, bool children)
{
	const struct whom whom = {
		.pid = pid, .options = TRACE_OPTIONS | (children ?
		    PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK : 0),
	};

	for (size_t i = 0; i < hold->n; i++)
		if (ptrace(PTRACE_SETOPTIONS, hold->thread[i].tid, 0,
		    (void *)(uintptr_t)whom.options) != 0 && errno != ESRCH)
			return -errno;
	return hold_all(hold, &whom);
}

int
wp_trace_thread(pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, (void *)TRACE_OPTIONS) != 0 ||
	    ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
		return -errno;
	return 0;
}

static enum wp_trace_what
stop_kind(int event, int sig)
{
	switch (event) {
	case 0:
		return WP_TRACE_SIGNAL;
	case PTRACE_EVENT_STOP:
		return sig == SIGTRAP ? WP_TRACE_STOP : WP_TRACE_GROUP;
	case PTRACE_EVENT_EXEC:
		return WP_TRACE_EXEC;
	default:
		return WP_TRACE_STOP;
	}
}

/* Whom a thread has made that stopped for this event; 0: nobody. */
static pid_t
made_by(pid_t tid, int event)
{
	unsigned long made = 0;

	if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
	    event == PTRACE_EVENT_VFORK)
		(void)ptrace(PTRACE_GETEVENTMSG, tid, 0, &made);
	return (pid_t)made;
}

/* An execve(2) is taken: the thread may be another than the one that had this
   id before, and the kernel refuses everything to a tracer that may not know
   this. */
int
wp_trace_next(pid_t tid, struct wp_trace *trace)
{
	siginfo_t info = {0};

	if (waitid(tid == 0 ? P_ALL : P_PID, (id_t)tid, &info, WSTOPPED |
	    WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) != 0)
		return errno == ECHILD ? 0 : -errno;
	if (info.si_pid == 0)
		return 0;
	*trace = (struct wp_trace){.tid = info.si_pid, .what = WP_TRACE_END};
	if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) {
		trace->signal = info.si_status & 0xff;
		trace->what = stop_kind(info.si_status >> 8, trace->signal);
		trace->made = made_by(trace->tid, info.si_status >> 8);
	}
	if (trace->what == WP_TRACE_EXEC)
		wp_trace_take(trace->tid);
	return 1;
}

void
wp_trace_interrupt(pid_t tid)
{
	(void)ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}

void
wp_trace_continue(pid_t tid, int sig)
{
	(void)ptrace(PTRACE_CONT, tid, 0, (void *)(intptr_t)sig);
}

void
wp_trace_listen(pid_t tid)
{
	(void)ptrace(PTRACE_LISTEN, tid, 0, 0);
}

void
wp_trace_let_go(pid_t tid, int sig)
{
	(void)ptrace(PTRACE_DETACH, tid, 0, (void *)(intptr_t)sig);
}

void
wp_trace_take(pid_t tid)
{
	(void)waitpid(tid, NULL, __WALL | __WNOTHREAD | WNOHANG);
}

int
wp_trace_reap(pid_t tid)
{
	int status;

	return waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG) == tid ?
	    status : -1;
}

int
wp_trace_get_signal(pid_t tid, siginfo_t *info)
{
	return ptrace(PTRACE_GETSIGINFO, tid, 0, info) != 0 ? -errno : 0;
}

int
wp_trace_set_signal(pid_t tid, const siginfo_t *info)
{
	return ptrace(PTRACE_SETSIGINFO, tid, 0, info) != 0 ? -errno : 0;
}

bool
wp_trace_pending(pid_t tid, int sig, int code)
{
	struct __ptrace_peeksiginfo_args some = {.nr = 8};
	siginfo_t info[8];
	long n;

	for (; (n = ptrace(PTRACE_PEEKSIGINFO, tid, &some, info)) > 0;
	    some.off += (uint64_t)n)
		for (long i = 0; i < n; i++)
			if (info[i].si_signo == sig && info[i].si_code == code)
				return true;
	return false;
}

uint64_t
wp_trace_blocked(pid_t tid)
{
	uint64_t mask = 0;

	(void)ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask);
	return mask;
}

ssize_t
wp_trace_regset(pid_t tid, unsigned set, void *to, size_t len)
{
	struct iovec io = {to, len};

	return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &io) != 0 ?
	    -errno : (ssize_t)io.iov_len;
}

#ifdef __x86_64__
uint64_t
wp_trace_pc(pid_t tid)
{
	const size_t at = offsetof(struct user, regs.rip);
	long pc;

	errno = 0;
	pc = ptrace(PTRACE_PEEKUSER, tid, (void *)at, NULL);
	return errno != 0 ? 0 : (uint64_t)pc;
}

int
wp_trace_call(pid_t tid, int64_t *result)
{
	struct user_regs_struct regs;

	/* that of a 32-bit program is shorter */
	if (wp_trace_regset(tid, NT_PRSTATUS, &regs, sizeof(regs)) !=
	    (ssize_t)sizeof(regs) || (int64_t)regs.orig_rax < 0 ||
	    regs.orig_rax > INT_MAX)
		return -1;
	*result = (int64_t)regs.rax;
	return (int)regs.orig_rax;
}

/* Intel SDM vol. 3, 17.2.4: DR7 has a local enable bit and four condition bits
   (write = 1; length 1, 2, 8, 4 = 0..3) for each register. */
static unsigned long
debug_control(unsigned n, unsigned len)
{
	static const unsigned char code[] = {[1] = 0, [2] = 1, [4] = 3, [8] = 2};

	return 1ul << (2 * n) | (1ul | (unsigned long)code[len] << 2) <<
	    (16 + 4 * n);
}

static int
poke_register(pid_t tid, unsigned n, unsigned long value)
{
	const size_t base = offsetof(struct user, u_debugreg);

	return ptrace(PTRACE_POKEUSER, tid, (void *)(base + n * sizeof(value)),
	    (void *)value) != 0 ? -errno : 0;
}

static bool
fits_register(uint64_t len)
{
	return len == 1 || len == 2 || len == 4 || len == 8;
}

/* Bits of DR7 for a slot.  The condition is 0 for execution, which has no
   length, 1 for writes, 3 for reads too. */
static unsigned long
slot_control(unsigned n, const struct wp_slot *slot)
{
	if (slot->type == HW_BREAKPOINT_X)
		return 1ul << (2 * n);
	return debug_control(n, (unsigned)slot->len) |
	    (slot->type == HW_BREAKPOINT_W ? 0ul : 2ul) << (16 + 4 * n);
}

/* What each holds is free to change once none is enabled. */
int
wp_trace_registers(pid_t tid, const struct wp_slot slot[WP_DEBUG_REGISTERS],
    unsigned on)
{
	unsigned long control = 0;
	int err = poke_register(tid, 7, 0);

	for (unsigned n = 0; n < WP_DEBUG_REGISTERS && err == 0; n++) {
		if (slot[n].len == 0)
			continue;
		if (!fits_register(slot[n].len))
			return -EINVAL;
		if ((on >> n & 1) != 0)
			control |= slot_control(n, &slot[n]);
		err = poke_register(tid, n, slot[n].addr);
	}
	if (err == 0 && control != 0 &&
	    (err = poke_register(tid, 7, control)) < 0)
		(void)poke_register(tid, 7, 0);
	return err;
}

/* The kernel makes DR6 anew for each trap. */
unsigned
wp_trace_registers_hit(pid_t tid)
{
	const size_t base = offsetof(struct user, u_debugreg);
	long status;

	errno = 0;
	status = ptrace(PTRACE_PEEKUSER, tid,
	    (void *)(base + 6 * sizeof(status)), 0);
	return errno == 0 ? (unsigned)status & 15 : 0;
}

int
wp_hold_debug_register(pid_t tid, unsigned n, uint64_t addr, unsigned len)
{
	const size_t base = offsetof(struct user, u_debugreg);
	unsigned long control;
	int err;

	if (n >= WP_DEBUG_REGISTERS || !fits_register(len))
		return -EINVAL;
	errno = 0;
	control = (unsigned long)ptrace(PTRACE_PEEKUSER, tid,
	    (void *)(base + 7 * sizeof(control)), 0);
	if (errno != 0)
		return -errno;
	control &= ~debug_control(n, 8) & ~(15ul << (16 + 4 * n));
	if ((err = poke_register(tid, 7, control)) < 0 ||
	    (err = poke_register(tid, n, addr)) < 0 || addr == 0)
		return err;
	return poke_register(tid, 7, control | debug_control(n, len));
}
#else
uint64_t
wp_trace_pc(pid_t tid)
{
	struct user_regs_struct regs;

	return wp_trace_regset(tid, NT_PRSTATUS, &regs, sizeof(regs)) ==
	    (ssize_t)sizeof(regs) ? regs.pc : 0;
}

int
wp_trace_call(pid_t tid, int64_t *result)
{
	(void)tid;
	(void)result;
	return -1;
}

int
wp_trace_registers(pid_t tid, const struct wp_slot slot[WP_DEBUG_REGISTERS],
    unsigned on)
{
	(void)tid;
	(void)slot;
	(void)on;
	return -ENOTSUP;
}

unsigned
wp_trace_registers_hit(pid_t tid)
{
	(void)tid;
	return 0;
}

int
wp_hold_debug_register(pid_t tid, unsigned n, uint64_t addr, unsigned len)
{
	(void)tid;
	(void)n;
	(void)addr;
	(void)len;
	return -ENOTSUP;
}
#endif
