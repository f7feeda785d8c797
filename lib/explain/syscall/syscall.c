/* syscall: the system call that a kernel sample was taken in. */
#include "syscall/syscall.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "syscall/syscall_number.h"
#include "syscall/syscall_table.h"
#include "proc/proc.h"
#include "unwind/regs.h"

enum {
	ARGS = 6,
	VECTOR_MAX = 1024,	/* UIO_MAXIOV, the kernel's limit */
	READS_MAX = 2048,  /* reads of the process's memory for one sample */
};

/* The state while the parts of a system call are examined. */
struct look {
	const struct ex_syscall_sample *sample;
	uint64_t arg[ARGS];
	unsigned reads;		/* reads of memory so far */
	unsigned found;		/* parts that contain watched bytes */
	bool sure;		/* the part with the byte reached is known */
	bool partial;		/* the end of some part is not known */
	bool narrow;		/* made in the way of 32-bit programs, */
	bool headless;		/* with an unknown first argument */
	struct ex_syscall *out;
};

/* --- names --- */

static bool
begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The name that programs use: newfstat is called fstat, and newuname uname;
   only newfstatat keeps its name.  Functions that a compiler has split off have
   a suffix after a dot.  NULL if the call is not known. */
static const char *
call_name(const char *name, bool narrow)
{
	const struct ex_syscall_row *row;

	if (begins(name, "ia32_"))
		name += strlen("ia32_");
	else if (begins(name, "new") && strcmp(name, "newfstatat") != 0)
		name += strlen("new");
	else if (!narrow && strcmp(name, "sendfile64") == 0)
		name = "sendfile";
	if (strchr(name, '.') == NULL)
		return name;
	row = ex_syscall_row(name, narrow);
	return row != NULL ? row->name : NULL;
}

/*
 * The system call that a kernel function serves, or NULL.  The forms of entry
 * points come first; a call's entry may have jumped to one of the others
 * without leaving a frame. *old: it is for 32-bit programs, which pass
 * arguments in other registers.  *vague: another call may have jumped there.
 */
static const char *
syscall_name(const char *function, bool *old, bool *vague)
{
	static const char *const prefix[] = {
		"__x64_sys_", "__do_sys_", "__se_sys_", "__arm64_sys_",
		"ksys_", "__sys_", "__ia32_sys_", "__ia32_compat_sys_",
		"__do_compat_sys_", "__se_compat_sys_",
	};
	static const char *const jumped[][2] = {
		{"do_readv", "readv"}, {"do_writev", "writev"},
		{"do_preadv", "preadv"}, {"do_pwritev", "pwritev"},
		{"kernel_wait4", "wait4"}, {"kernel_clone", "clone"},
		{"do_sys_openat2", "openat"}, {"do_sys_poll", "poll"},
		{"kern_select", "select"}, {"do_epoll_wait", "epoll_wait"},
		{"do_futex", "futex"}, {"do_pipe2", "pipe2"},
		{"do_msgrcv", "msgrcv"}, {"do_arch_prctl_64", "arch_prctl"},
		{"hrtimer_nanosleep_restart", "restart_syscall"},
		{"do_restart_poll", "restart_syscall"},
		{"io_uring_setup", "io_uring_setup"},
	};

	const size_t len = strcspn(function, ".");

	for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++) {
		if (!begins(function, prefix[i]))
			continue;
		*old |= strstr(prefix[i], "ia32") != NULL ||
		    strstr(prefix[i], "compat") != NULL;
		return call_name(function + strlen(prefix[i]), *old);
	}
	for (size_t i = 0; i < sizeof(jumped) / sizeof(jumped[0]); i++)
		if (strncmp(function, jumped[i][0], len) == 0 &&
		    jumped[i][0][len] == '\0') {
			*vague = true;
			return jumped[i][1];
		}
	/* entry points of 32-bit calls in any program */
	*old |= begins(function, "do_int80_") ||
	    strcmp(function, "do_fast_syscall_32") == 0;
	return NULL;
}

/* Work of the kernel on a program's memory outside of system calls, by its
   functions. */
static const char *
work_name(const char *function)
{
	static const char *const works[][2] = {
		{"do_exit", "thread exit"},
		{"schedule_tail", "thread start"},
		{"arch_do_signal_or_restart", "signal delivery"},
		{"__rseq_handle_notify_resume", "rseq"},
		{"__rseq_handle_slowpath", "rseq"},
		{"rseq_slowpath_update_usr", "rseq"},
		{"io_wq_worker", "io_uring"}, {"tctx_task_work", "io_uring"},
		{"io_sq_thread", "io_uring"},
	};

	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (strcmp(function, works[i][0]) == 0)
			return works[i][1];
	return NULL;
}

/* The outermost function that names a call determines it.  Work inside a call
   belongs to that call, except io_uring's, which another call has requested. */
static void
name_it(const struct ex_stack *stack, struct ex_syscall *out, bool *old,
    bool *vague)
{
	*vague = true;
	for (unsigned i = 0; stack != NULL && i < stack->n; i++) {
		const char *function = stack->frame[i].function, *found;
		bool jumped = false;

		if (!stack->frame[i].kernel)
			break;
		if (function == NULL)
			continue;
		if ((found = syscall_name(function, old, &jumped)) != NULL) {
			out->name = found;
			*vague = jumped;
		}
		if (out->work == NULL)
			out->work = work_name(function);
	}
	if (out->work != NULL && strcmp(out->work, "io_uring") == 0)
		out->name = NULL;
	if (out->name != NULL)
		out->work = NULL;
}

/* --- arguments --- */

#if defined(__x86_64__)
static const unsigned arg_reg[ARGS] = {
	PERF_REG_X86_DI, PERF_REG_X86_SI, PERF_REG_X86_DX, PERF_REG_X86_R10,
	PERF_REG_X86_R8, PERF_REG_X86_R9,
};
static const unsigned narrow_arg_reg[ARGS] = {
	PERF_REG_X86_BX, PERF_REG_X86_CX, PERF_REG_X86_DX, PERF_REG_X86_SI,
	PERF_REG_X86_DI, PERF_REG_X86_BP,
};
#define STACK_REG PERF_REG_X86_SP
#define RESULT_REG PERF_REG_X86_AX
#elif defined(__aarch64__)
static const unsigned arg_reg[ARGS] = {
	PERF_REG_ARM64_X0, PERF_REG_ARM64_X1, PERF_REG_ARM64_X2,
	PERF_REG_ARM64_X3, PERF_REG_ARM64_X4, PERF_REG_ARM64_X5,
};
#define narrow_arg_reg arg_reg		/* these calls have no table */
#define STACK_REG PERF_REG_ARM64_SP
#define RESULT_REG PERF_REG_ARM64_X0
#endif

/* The number of the call according to the code, for a call that has not
   returned, or has just returned so that no other code of the program can have
   run. */
static int
number_of(const struct ex_syscall_sample *s)
{
	const struct ex_sample *sample = &s->record->sample;
	uint64_t result = 0;

	if (s->number >= 0 || s->process == NULL)
		return s->number;
	if (!s->returned && (!ex_regs_get(&sample->user, RESULT_REG,
	    &result) || (int32_t)result != -ENOSYS))
		return -1;
	return ex_syscall_number(s->process, sample);
}

/* The first argument, whose register was not sampled. */
static bool
first_of(const struct look *look, uint64_t *value)
{
	const struct ex_syscall_sample *s = look->sample;
	uint32_t first;

	if (s->process == NULL || s->returned ||
	    !ex_syscall_first(s->process, &s->record->sample, &first))
		return false;
	*value = first;
	return true;
}

static bool
get_args(struct look *look)
{
	const struct ex_perf_regs *regs = &look->sample->record->sample.user;

	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return false;
	for (unsigned i = 0; i < ARGS; i++) {
		if (!ex_regs_get(regs, look->narrow ? narrow_arg_reg[i] :
		    arg_reg[i], &look->arg[i]))
			return false;
		if (look->narrow && i == 0 && look->arg[0] == UINT64_MAX)
			look->headless = !first_of(look, &look->arg[0]);
		if (look->narrow)
			look->arg[i] = (uint32_t)look->arg[i];
	}
	return true;
}

/* Memory as it was during the call; see syscall.h. */
static bool
get_memory(struct look *look, uint64_t addr, void *to, size_t len)
{
	const struct ex_record *record = look->sample->record;
	const struct ex_sample *s = &record->sample;
	uint64_t sp;

	if (++look->reads > READS_MAX)
		return false;
	if (s->stack != NULL && ex_regs_get(&s->user, STACK_REG, &sp) &&
	    addr >= sp && addr - sp <= s->stack_len &&
	    len <= s->stack_len - (addr - sp)) {
		memcpy(to, s->stack + (addr - sp), len);
		return true;
	}
	return look->sample->live && look->sample->stopped &&
	    wp_proc_read(record->pid, addr, to, len) == (ssize_t)len;
}

/* --- parts --- */

static bool
overlap(uint64_t a, uint64_t alen, uint64_t b, uint64_t blen)
{
	return a <= b ? b - a < alen : a - b < blen;
}

/* The direction when several parts are possible. */
static void
take_way(struct ex_syscall *out, unsigned way)
{
	out->reads |= (way & EX_SYSCALL_READS) != 0;
	out->writes |= (way & EX_SYSCALL_WRITES) != 0;
}

/* Extend the range that contains everything a returned call has touched. */
static void
bound(struct ex_syscall *out, uint64_t at, uint64_t done)
{
	const uint64_t end = at + done, had = out->buffer + out->done;

	if (out->bounded && out->buffer < at)
		at = out->buffer;
	out->done = (out->bounded && had > end ? had : end) - at;
	out->buffer = at;
	out->bounded = true;
}

/* A part at this address.  known: bytes is its length, otherwise an upper
   bound; at most done bytes were touched.  If several parts contain watched
   bytes, the progress of the copy shows which it is. */
static void
consider_done(struct look *look, unsigned way, uint64_t at, uint64_t bytes,
    uint64_t done, bool known)
{
	const struct ex_syscall_sample *s = look->sample;
	struct ex_syscall *out = look->out;

	if (done == 0 || !overlap(at, done, s->addr, s->len) || look->sure ||
	    (s->access == WP_WRITE && (way & EX_SYSCALL_WRITES) == 0))
		return;
	if (s->reached != 0 && s->reached - 1 - at < bytes) {
		look->sure = true;
		look->found = 0;
		out->reads = out->writes = false;
	}
	take_way(out, way);
	look->partial |= !known;
	out->has_bytes = ++look->found == 1 && known;
	out->bytes = bytes;
	out->each = 0;
	if (s->returned) {
		bound(out, at, done);
		return;
	}
	out->buffer = at;
	out->done = done;
}

static void
consider(struct look *look, unsigned way, uint64_t at, uint64_t bytes,
    bool known)
{
	consider_done(look, way, at, bytes, bytes, known);
}

/* The largest number of bytes that a returned call wrote, if its result is that
   number. */
static uint64_t
written(const struct look *look, unsigned way)
{
	const struct ex_syscall_sample *s = look->sample;
	uint64_t result;

	if (!s->returned || way != EX_SYSCALL_WRITES ||
	    !ex_regs_get(&s->record->sample.user, RESULT_REG, &result))
		return UINT64_MAX;
	if (look->narrow)
		result = (uint64_t)(int64_t)(int32_t)result;
	return result > 0 && result <= INT64_MAX ? result : UINT64_MAX;
}

/* Read n words of the program's memory. */
static bool
get_words(struct look *look, uint64_t addr, uint64_t *to, size_t n)
{
	uint32_t narrow[ARGS];

	if (!look->narrow)
		return get_memory(look, addr, to, n * sizeof(*to));
	if (n > ARGS || !get_memory(look, addr, narrow, n * sizeof(*narrow)))
		return false;
	for (size_t i = 0; i < n; i++)
		to[i] = narrow[i];
	return true;
}

/* left: the largest number of bytes written to all elements. */
static void
consider_vector(struct look *look, unsigned way, uint64_t at, uint64_t n,
    uint64_t left)
{
	const uint64_t each = look->narrow ? 8 : 16;

	if (n > VECTOR_MAX)
		return;
	consider(look, EX_SYSCALL_READS, at, n * each, true);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t iov[2], done;

		look->partial |= !get_words(look, at + i * each, iov, 2);
		if (look->partial)
			break;
		done = iov[1] < left ? iov[1] : left;
		consider_done(look, way, iov[0], iov[1], done, true);
		left -= done;
	}
}

/* The size of a struct msghdr. */
static uint64_t
message_size(const struct look *look)
{
	return look->narrow ? 7 * sizeof(uint32_t) : sizeof(struct msghdr);
}

static bool
get_message(struct look *look, uint64_t at, struct msghdr *m)
{
	uint64_t word[ARGS];

	if (!look->narrow)
		return get_memory(look, at, m, sizeof(*m));
	if (!get_words(look, at, word, ARGS))
		return false;
	*m = (struct msghdr){
		.msg_name = (void *)(uintptr_t)word[0],
		.msg_namelen = (socklen_t)word[1],
		.msg_iov = (void *)(uintptr_t)word[2], .msg_iovlen = word[3],
		.msg_control = (void *)(uintptr_t)word[4],
		.msg_controllen = word[5],
	};
	return true;
}

static void
consider_message(struct look *look, unsigned way, uint64_t at, uint64_t left)
{
	struct msghdr m;

	consider(look, EX_SYSCALL_READS | way, at, message_size(look), true);
	look->partial |= !get_message(look, at, &m);
	if (look->partial)
		return;
	consider_vector(look, way, (uintptr_t)m.msg_iov, m.msg_iovlen,
	    left);
	consider(look, way, (uintptr_t)m.msg_name, m.msg_namelen, true);
	consider(look, way, (uintptr_t)m.msg_control, m.msg_controllen, true);
}

static void
consider_messages(struct look *look, unsigned way, uint64_t at, uint64_t n)
{
	for (uint64_t i = 0; i < n && i < VECTOR_MAX &&
	    look->reads < READS_MAX; i++) {
		const uint64_t size = message_size(look), rest = look->narrow ?
		    4 : sizeof(struct mmsghdr) - sizeof(struct msghdr);
		const uint64_t each = at + i * (size + rest);

		consider_message(look, way, each, UINT64_MAX);
		consider(look, EX_SYSCALL_WRITES, each + size, rest, true);
	}
}

/* A request's number encodes its direction, as seen by the program, and its
   size, except in old requests. */
static void
consider_ioctl(struct look *look, const struct ex_syscall_part *part,
    uint64_t at,
    uint32_t request)
{
	unsigned way = ((_IOC_DIR(request) & _IOC_READ) != 0 ?
	    EX_SYSCALL_WRITES : 0u) | ((_IOC_DIR(request) & _IOC_WRITE) != 0 ?
	    EX_SYSCALL_READS : 0u);

	if (way != 0 && _IOC_SIZE(request) > 0)
		consider(look, way, at, _IOC_SIZE(request), true);
	else
		consider(look, part->way, at, part->size, false);
}

static uint64_t
times(uint64_t n, uint64_t size)
{
	uint64_t product;

	return __builtin_mul_overflow(n, size, &product) ? UINT64_MAX : product;
}

/* The result of a returned call may show how many bytes it wrote. */
static void
take_result(struct look *look, const struct ex_syscall_part *part, uint64_t at)
{
	struct ex_syscall *out = look->out;
	const uint64_t result = written(look, part->way);

	if (part->size == 1 && out->has_bytes && out->buffer == at &&
	    result < out->bytes)
		out->done = result;
}

/* Whether the part cannot be found without the first argument. */
static bool
needs_first(const struct ex_syscall_part *part)
{
	switch ((enum ex_syscall_kind)part->kind) {
	case EX_SYSCALL_NO_PART:
		return false;
	case EX_SYSCALL_FIXED:
	case EX_SYSCALL_UPTO:
	case EX_SYSCALL_MESSAGE:
		return part->at == 0;
	case EX_SYSCALL_SET:
		return true;
	default:
		return part->at == 0 || part->len == 0;
	}
}

/* Its length is in memory at another argument; if that cannot be read, it is
   the room for it at most. */
static void
consider_pointed(struct look *look, const struct ex_syscall_part *part,
    uint64_t at, uint64_t counted_at)
{
	uint32_t count;

	if (get_memory(look, counted_at, &count, sizeof(count)))
		consider(look, part->way, at, count, true);
	else
		consider(look, part->way, at, part->size, false);
}

/* Only revents of each element is written. */
static void
consider_poll(struct look *look, const struct ex_syscall_part *part,
    uint64_t at, uint32_t count)
{
	consider(look, part->way, at, times(count, part->size), true);
	if (look->out->has_bytes && look->out->buffer == at) {
		look->out->each = sizeof(struct pollfd);
		look->out->from = offsetof(struct pollfd, revents);
	}
}

/* Bits, in whole words of the program. */
static void
consider_set(struct look *look, const struct ex_syscall_part *part, uint64_t at)
{
	const uint64_t bits = (uint32_t)look->arg[0];

	consider(look, part->way, at, look->narrow ? (bits + 31) / 32 * 4 :
	    (bits + 63) / 64 * 8, true);
}

static void
consider_part(struct look *look, const struct ex_syscall_part *part)
{
	const uint64_t at = look->arg[part->at], n = look->arg[part->len];
	const uint32_t count = (uint32_t)n;

	if (look->headless && needs_first(part)) {
		look->partial = true;
		return;
	}
	switch ((enum ex_syscall_kind)part->kind) {
	case EX_SYSCALL_NO_PART:
		break;
	case EX_SYSCALL_FIXED:
		consider(look, part->way, at, part->size, true);
		break;
	case EX_SYSCALL_COUNTED:
	case EX_SYSCALL_COUNTED_INT:
		consider(look, part->way, at, times(part->kind ==
		    EX_SYSCALL_COUNTED ? n : count, part->size), true);
		take_result(look, part, at);
		break;
	case EX_SYSCALL_HEADED:
		consider(look, part->way, at, n > UINT64_MAX - part->size ?
		    UINT64_MAX : n + part->size, true);
		break;
	case EX_SYSCALL_UPTO:
		consider(look, part->way, at, part->size, false);
		break;
	case EX_SYSCALL_POINTED:
		consider_pointed(look, part, at, n);
		break;
	case EX_SYSCALL_VECTOR:
		consider_vector(look, part->way, at, n,
		    written(look, part->way));
		break;
	case EX_SYSCALL_MESSAGE:
		consider_message(look, part->way, at,
		    written(look, part->way));
		break;
	case EX_SYSCALL_MESSAGES:
		consider_messages(look, part->way, at, count);
		break;
	case EX_SYSCALL_POLL:
		consider_poll(look, part, at, count);
		break;
	case EX_SYSCALL_SET:
		consider_set(look, part, at);
		break;
	case EX_SYSCALL_IOCTL:
		consider_ioctl(look, part, at, count);
		break;
	}
}

/* --- the descriptor --- */

/* The end of a long path is more useful. */
static void
take_file(struct ex_syscall *out, const char *file)
{
	static const char more[] = "...";
	size_t len = strlen(file), room = sizeof(out->file) - sizeof(more);

	if (len < sizeof(out->file))
		memcpy(out->file, file, len + 1);
	else
		(void)stpcpy(stpcpy(out->file, more), file + (len - room));
}

static void
take_fd(const struct look *look, const struct ex_syscall_row *row)
{
	const struct ex_syscall_sample *s = look->sample;
	struct ex_syscall *out = look->out;
	char file[PATH_MAX];
	int fd;

	if (row->fd < 0 || (row->fd == 0 && look->headless) ||
	    (row->flags >= 0 &&
	    (look->arg[row->flags] & AT_EMPTY_PATH) == 0))
		return;
	fd = (int)look->arg[row->fd];
	if (fd < 0)
		return;
	out->has_fd = true;
	out->fd = fd;
	if (s->live && wp_proc_fd(s->record->pid, s->record->tid, fd, file,
	    sizeof(file)) == 0)
		take_file(out, file);
	out->file_later = out->file[0] != '\0' && !s->stopped;
}

/* 32-bit programs may make the calls of sockets through one, whose first
   argument is the call and whose second points to its arguments.  NULL if that
   is not known. */
static const struct ex_syscall_row *
socket_call(struct look *look)
{
	static const struct {
		const char *name;
		uint8_t args;
	} calls[] = {
		{"socket", 3}, {"bind", 3}, {"connect", 3}, {"listen", 2},
		{"accept", 3}, {"getsockname", 3}, {"getpeername", 3},
		{"socketpair", 4}, {"sendto", 4}, {"recvfrom", 4},
		{"sendto", 6}, {"recvfrom", 6}, {"shutdown", 2},
		{"setsockopt", 5}, {"getsockopt", 5}, {"sendmsg", 3},
		{"recvmsg", 3}, {"accept4", 4}, {"recvmmsg_time32", 5},
		{"sendmmsg", 4},
	};
	const uint64_t number = look->arg[0] - 1, at = look->arg[1];

	if (look->headless || number >= sizeof(calls) / sizeof(calls[0]))
		return NULL;
	look->out->name = calls[number].name;
	consider(look, EX_SYSCALL_READS, at, calls[number].args * 4u, true);
	memset(look->arg, 0, sizeof(look->arg));
	if (!get_words(look, at, look->arg, calls[number].args))
		return NULL;
	return ex_syscall_row(calls[number].name, true);
}

/* A number is one of the program's own calls: 64-bit programs that make a call
   as others do have it by name alone. */
static const struct ex_syscall_row *
row_of(struct look *look, bool vague)
{
	const struct ex_syscall_sample *sample = look->sample;
	struct ex_syscall *out = look->out;
	const bool other = look->narrow &&
	    sample->record->sample.user.abi == PERF_SAMPLE_REGS_ABI_64;
	const struct ex_syscall_row *row = NULL;

	if (sample->number >= 0 || (vague && out->work == NULL && !other))
		row = ex_syscall_row_number(number_of(sample), look->narrow);
	if (row != NULL && out->work == NULL && !other)
		out->name = row->name;
	else if (out->name != NULL)
		row = ex_syscall_row(out->name, look->narrow);
	return row;
}

void
ex_syscall_explain(const struct ex_syscall_sample *sample,
    struct ex_syscall *out)
{
	struct look look = {.sample = sample, .out = out};
	const struct ex_syscall_row *row = NULL;
	bool vague;

	memset(out, 0, sizeof(*out));
	look.narrow = sample->record->sample.user.abi ==
	    PERF_SAMPLE_REGS_ABI_32;
	name_it(sample->stack, out, &look.narrow, &vague);
	row = row_of(&look, vague);
	if (row == NULL || out->name == NULL)
		return;
	out->name = row->name;
	if (!get_args(&look))
		return;
	if (look.narrow && strcmp(row->name, "socketcall") == 0 &&
	    (row = socket_call(&look)) == NULL)
		return;
	out->name = row->name;
	for (unsigned i = 0; i < EX_SYSCALL_PARTS && !sample->kernels; i++)
		consider_part(&look, &row->part[i]);
	out->bounded &= !look.partial;
	take_fd(&look, row);
}
