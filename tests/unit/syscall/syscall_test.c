/*
 * syscall: finding the system call and its buffer from the callchain, registers
 * and stack of a sample in the kernel.  The samples are made by hand.
 */
#include "test.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "space/space.h"
#include "syscall/syscall.h"
#include "syscall/syscall_number.h"
#include "syscall/syscall_table.h"
#include "capture.h"

#define WORD	UINT64_C(0x7f0000001000)	/* 8 watched bytes */
#define SP	UINT64_C(0x7ffc00000000)	/* where its copy begins */

/* A sample, and what is asked of it. */
static struct {
	uint64_t user[PERF_REG_X86_64_MAX];
	union {
		uint8_t bytes[4096];
		struct iovec iov[4];
		struct msghdr msg[2];
		struct mmsghdr mmsg[2];
		uint32_t len;
	} stack;
	struct ex_frame frame[4];
	struct ex_stack chain;
	struct ex_record record;
	struct ex_syscall_sample sample;
} made;

static int
begin(void **state)
{
	struct ex_sample *s = &made.record.sample;

	(void)state;
	memset(&made, 0, sizeof(made));
	s->user = (struct ex_perf_regs){PERF_SAMPLE_REGS_ABI_64,
	    (UINT64_C(1) << PERF_REG_X86_64_MAX) - 1,
	    (const uint8_t *)made.user};
	s->stack = made.stack.bytes;
	s->stack_len = sizeof(made.stack);
	made.user[PERF_REG_X86_SP] = SP;
	made.record.pid = made.record.tid = getpid();
	made.chain.frame = made.frame;
	made.sample = (struct ex_syscall_sample){
		.record = &made.record, .stack = &made.chain,
		.addr = WORD, .len = 8, .access = 'w', .number = -1,
	};
	return 0;
}

/* The kernel's functions, innermost first. */
static void
set_chain(const char *const function[4])
{
	made.chain.n = 0;
	while (made.chain.n < 4 && function[made.chain.n] != NULL) {
		made.frame[made.chain.n] = (struct ex_frame){
			.function = function[made.chain.n], .kernel = true,
		};
		made.chain.n++;
	}
}

static void
set_args(const uint64_t arg[6])
{
	static const unsigned reg[] = {
		PERF_REG_X86_DI, PERF_REG_X86_SI, PERF_REG_X86_DX,
		PERF_REG_X86_R10, PERF_REG_X86_R8, PERF_REG_X86_R9,
	};

	for (size_t i = 0; i < 6; i++)
		made.user[reg[i]] = arg[i];
}

static struct ex_syscall
explain(void)
{
	struct ex_syscall call;

	memset(&call, 0xa5, sizeof(call));
	ex_syscall_explain(&made.sample, &call);
	return call;
}

static void
assert_text(const char *what, const char *is, const char *should)
{
	if (is == NULL ? should != NULL : should == NULL ||
	    strcmp(is, should) != 0)
		fail_msg("%s is %s, not %s", what, is == NULL ? "nothing" : is,
		    should == NULL ? "nothing" : should);
}

TEST_WITH(the_outermost_function_names_the_call, begin, NULL)
{
	static const struct {
		const char *chain[4], *name, *work;
	} cases[] = {
		{{"vfs_read", "ksys_read", "do_syscall_64"}, "read", NULL},
		{{"ksys_read", "__x64_sys_pread64"}, "pread64", NULL},
		{{"cp_new_stat", "__do_sys_newfstat"}, "fstat", NULL},
		{{"__x64_sys_newfstatat"}, "newfstatat", NULL},
		{{"__do_sys_newuname"}, "uname", NULL},
		{{"do_readv", "do_syscall_64"}, "readv", NULL},
		{{"___sys_recvmsg", "__sys_recvmsg"}, "recvmsg", NULL},
		{{"__sys_recvfrom", "__x64_sys_recvfrom"}, "recvfrom", NULL},
		{{"kernel_wait4", "do_syscall_64"}, "wait4", NULL},
		{{"__x64_sys_bpf"}, "bpf", NULL},
		{{"__se_sys_read.isra.0", "do_syscall_64"}, "read", NULL},
		{{"ksys_msgctl.constprop.0"}, "msgctl", NULL},
		{{"__se_sys_nobody.cold"}, NULL, NULL},
		{{"do_msg_fill", "do_msgrcv", "do_syscall_64"}, "msgrcv", NULL},
		{{"do_splice_direct", "__x64_sys_sendfile64"}, "sendfile",
		    NULL},
		{{"io_uring_setup.cold", "do_syscall_64"}, "io_uring_setup",
		    NULL},
		{{"__do_compat_sys_ia32_fstat64"}, "fstat64", NULL},
		{{"__io_read", "io_sq_thread", "ret_from_fork"}, NULL,
		    "io_uring"},
		{{"do_nanosleep", "hrtimer_nanosleep_restart"},
		    "restart_syscall", NULL},
		{{"vfs_read", "do_syscall_64"}, NULL, NULL},
		{{NULL}, NULL, NULL},
		{{"x64_setup_rt_frame", "arch_do_signal_or_restart",
		    "do_syscall_64"}, NULL, "signal delivery"},
		{{"mm_release", "do_exit", "arch_do_signal_or_restart"}, NULL,
		    "thread exit"},
		{{"mm_release", "do_exit", "__x64_sys_exit"}, "exit", NULL},
		{{"schedule_tail", "ret_from_fork"}, NULL, "thread start"},
		{{"__sys_recvmsg", "io_recvmsg", "io_wq_worker"}, NULL,
		    "io_uring"},
		{{"io_read", "__do_sys_io_uring_enter"}, "io_uring_enter",
		    NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_syscall call;

		set_chain(cases[i].chain);
		call = explain();
		assert_text("the call", call.name, cases[i].name);
		assert_text("the work", call.work, cases[i].work);
	}
	/* what the program called by such a name is none */
	made.frame[0] = (struct ex_frame){.function = "ksys_read"};
	made.chain.n = 1;
	assert_null(explain().name);
	made.sample.stack = NULL;
	assert_null(explain().name);
}

TEST_WITH(a_number_names_the_call, begin, NULL)
{
	static const char *const preadv[4] = {"do_preadv"};
	static const char *const delivery[4] = {"arch_do_signal_or_restart"};

	made.sample.number = SYS_recvfrom;
	assert_text("the call", explain().name, "recvfrom");
	set_chain(preadv);
	made.sample.number = SYS_preadv2;
	assert_text("the call", explain().name, "preadv2");
	made.sample.number = 100000;
	assert_text("the call", explain().name, "preadv");
	set_chain(delivery);
	made.sample.number = SYS_read;
	assert_null(explain().name);
}

/* Calls, where WORD is what they touch; 0 bytes: not known. */
static const struct {
	const char *name;
	uint64_t arg[6];
	uint64_t buffer, bytes;
	int fd;			/* < 0: none */
	char access;		/* the watch's */
	char does;		/* 'r', 'w', 'a': either; 0: not known */
} calls[] = {
	{"read", {3, WORD, 64}, WORD, 64, 3, 'w', 'w'},
	{"read", {3, WORD - 56, 64}, WORD - 56, 64, 3, 'a', 'w'},
	{"read", {3, WORD - 57, 64}, WORD - 57, 64, 3, 'w', 'w'},
	{"read", {3, WORD + 7, 1}, WORD + 7, 1, 3, 'w', 'w'},
	{"read", {3, WORD - 64, 64}, 0, 0, 3, 'w', 0},
	{"read", {3, WORD + 8, 64}, 0, 0, 3, 'w', 0},
	{"read", {3, WORD, UINT64_MAX}, WORD, UINT64_MAX, 3, 'w', 'w'},
	{"read", {UINT32_MAX, WORD, 64}, WORD, 64, -1, 'w', 'w'},
	{"read", {UINT64_C(0x500000003), WORD, 64}, WORD, 64, 3, 'w', 'w'},
	{"write", {4, WORD, 16}, WORD, 16, 4, 'a', 'r'},
	{"write", {4, WORD, 16}, 0, 0, 4, 'w', 0},
	{"pread64", {3, WORD, 8, 100}, WORD, 8, 3, 'w', 'w'},
	{"getrandom", {WORD, 16, 0}, WORD, 16, -1, 'w', 'w'},
	{"fstat", {5, WORD - 48}, WORD - 48, 144, 5, 'w', 'w'},
	{"stat", {WORD, WORD + 4096}, 0, 0, -1, 'r', 'r'},
	{"newfstatat", {5, 1, WORD, AT_EMPTY_PATH}, WORD, 144, 5, 'w', 'w'},
	{"newfstatat", {5, 1, WORD, 0}, WORD, 144, -1, 'w', 'w'},
	{"statx", {(uint64_t)AT_FDCWD, 1, 0, 0, WORD}, WORD, 256, -1, 'w',
	    'w'},
	{"gettimeofday", {1, WORD}, WORD, 8, -1, 'w', 'w'},
	{"nanosleep", {WORD, WORD + 16}, WORD, 16, -1, 'a', 'r'},
	{"nanosleep", {WORD - 16, WORD}, WORD, 16, -1, 'a', 'w'},
	{"nanosleep", {WORD, WORD}, 0, 0, -1, 'a', 'a'},
	{"nanosleep", {WORD, WORD}, WORD, 16, -1, 'w', 'w'},
	{"poll", {WORD - 8, 2, 0}, WORD - 8, 16, -1, 'a', 'a'},
	{"poll", {WORD - 8, 1, 0}, 0, 0, -1, 'a', 0},
	{"select", {65, WORD, 0, 0, 0}, WORD, 16, -1, 'w', 'w'},
	{"select", {64, 0, WORD - 8, 0, 0}, 0, 0, -1, 'w', 0},
	{"epoll_wait", {9, WORD - 12, 2, 0}, WORD - 12, 24, 9, 'w', 'w'},
	{"pipe2", {WORD, 0}, WORD, 8, -1, 'w', 'w'},
	{"wait4", {1, WORD + 4, 0, 0}, WORD + 4, 4, -1, 'w', 'w'},
	{"futex", {1, 5, 1, 1, WORD}, WORD, 4, -1, 'w', 'w'},
	{"clone", {0, 0, WORD, 0}, WORD, 4, -1, 'w', 'w'},
	{"rt_sigaction", {10, 0, WORD, 8}, WORD, 32, -1, 'w', 'w'},
	{"rt_sigprocmask", {0, WORD, 0, 8}, WORD, 8, -1, 'a', 'r'},
	{"prctl", {16, WORD}, 0, 0, -1, 'a', 'a'},
	{"process_vm_readv", {1, SP, 1, 0, 0}, 0, 0, -1, 'w', 0},
	{"ioctl", {3, 0x541b, WORD}, 0, 0, 3, 'a', 'a'},
	{"ioctl", {3, _IOR('T', 0x30, int), WORD}, WORD, 4, 3, 'a', 'w'},
	{"ioctl", {3, _IOW('T', 0x31, int), WORD}, WORD, 4, 3, 'a', 'r'},
	{"ioctl", {3, _IOWR('T', 0x31, int), WORD}, WORD, 4, 3, 'a', 'a'},
	{"accept", {3, WORD, SP - 8}, 0, 0, 3, 'w', 'w'},
	{"msgrcv", {3, WORD - 8, 16}, WORD - 8, 24, -1, 'w', 'w'},
	{"msgrcv", {3, WORD, UINT64_MAX}, WORD, UINT64_MAX, -1, 'w', 'w'},
	{"vmsplice", {3, SP, 1}, 0, 0, 3, 'w', 0},
	{"bpf", {WORD, WORD, WORD}, 0, 0, -1, 'a', 0},
};

static void
expect_call(size_t i, const struct ex_syscall *call)
{
	char does = !call->reads && !call->writes ? 0 :
	    calls[i].access == 'w' || !call->reads ? 'w' :
	    call->writes ? 'a' : 'r';

	if (call->has_bytes != (calls[i].bytes != 0) || (call->has_bytes &&
	    (call->buffer != calls[i].buffer ||
	    call->bytes != calls[i].bytes)))
		fail_msg("%zu, %s: %d, %#llx:%llu", i, calls[i].name,
		    call->has_bytes, (unsigned long long)call->buffer,
		    (unsigned long long)call->bytes);
	if (call->has_fd != (calls[i].fd >= 0) ||
	    (call->has_fd && call->fd != calls[i].fd))
		fail_msg("%zu, %s: fd %d", i, calls[i].name, call->fd);
	if (does != calls[i].does)
		fail_msg("%zu, %s: %c", i, calls[i].name, does);
	assert_string_equal(call->file, "");
}

TEST_WITH(arguments_show_the_buffer, begin, NULL)
{
	char entry[64];

	for (size_t i = 0; i < COUNT(calls); i++) {
		const char *const chain[4] = {entry};
		struct ex_syscall call;

		(void)snprintf(entry, sizeof(entry), "__x64_sys_%s",
		    calls[i].name);
		set_chain(chain);
		set_args(calls[i].arg);
		made.sample.access = (unsigned char)calls[i].access;
		call = explain();
		expect_call(i, &call);
	}
}

TEST_WITH(arguments_of_32_bit_programs_are_others, begin, NULL)
{
	static const char *const old[4] = {"ksys_read", "__ia32_sys_read"};
	static const char *const new[4] = {"ksys_read", "__x64_sys_read"};
	struct ex_syscall call;

	set_args((const uint64_t[6]){3, WORD, 64});
	made.user[PERF_REG_X86_BX] = UINT64_MAX;
	set_chain(old);
	call = explain();
	assert_text("the call", call.name, "read");
	assert_false(call.has_bytes || call.has_fd || call.writes);
	set_chain((const char *const [4]){"ksys_read", "do_int80_emulation"});
	made.sample.number = SYS_accept;	/* as 64-bit programs count */
	call = explain();
	assert_text("the call", call.name, "read");
	assert_false(call.has_bytes || call.has_fd || call.writes);
	made.sample.number = -1;
	set_chain(new);
	assert_true(explain().has_bytes);
	made.record.sample.user.abi = PERF_SAMPLE_REGS_ABI_32;
	assert_false(explain().has_bytes);
	made.record.sample.user = (struct ex_perf_regs){0};
	assert_false(explain().has_bytes);
}

#define NARROW_WORD	UINT64_C(0x8001000)
#define NARROW_SP	UINT64_C(0xff800000)

/* A 32-bit program's call; what is above 4 bytes in registers is not its. */
static struct ex_syscall
explain_narrow(const char *function, const uint32_t arg[6])
{
	static const unsigned reg[] = {
		PERF_REG_X86_BX, PERF_REG_X86_CX, PERF_REG_X86_DX,
		PERF_REG_X86_SI, PERF_REG_X86_DI, PERF_REG_X86_BP,
	};
	const char *const chain[4] = {"copy_to_user", function};

	made.record.sample.user.abi = PERF_SAMPLE_REGS_ABI_32;
	made.sample.addr = NARROW_WORD;
	made.user[PERF_REG_X86_SP] = NARROW_SP;
	for (size_t i = 0; i < 6; i++)
		made.user[reg[i]] = arg[i] | UINT64_C(0xabcd) << 32;
	set_chain(chain);
	return explain();
}

TEST_WITH(calls_of_32_bit_programs, begin, NULL)
{
	static const struct {
		const char *function, *name;
		uint32_t arg[6];
		uint64_t bytes;
		int fd;			/* -1: none */
	} narrow[] = {
		{"__ia32_sys_read", "read", {3, NARROW_WORD, 64}, 64, 3},
		{"__ia32_compat_sys_newfstat", "fstat", {4, NARROW_WORD}, 64,
		    4},
		{"__ia32_compat_sys_ia32_fstat64", "fstat64",
		    {4, NARROW_WORD}, 96, 4},
		{"__ia32_sys_clock_gettime", "clock_gettime", {1, NARROW_WORD},
		    16, -1},
		{"__ia32_sys_clock_gettime32", "clock_gettime",
		    {1, NARROW_WORD}, 8, -1},
		{"__ia32_sys_nanosleep_time32", "nanosleep",
		    {0, NARROW_WORD}, 8, -1},
		{"__ia32_sys_sendfile64", "sendfile64", {1, 2, NARROW_WORD}, 8,
		    -1},
		{"__ia32_compat_sys_sendfile", "sendfile", {1, 2, NARROW_WORD},
		    4, -1},
		{"__ia32_compat_sys_select", "select", {33, NARROW_WORD}, 8,
		    -1},
		{"__ia32_compat_sys_wait4", "wait4", {1, 0, 0, NARROW_WORD}, 72,
		    -1},
	};

	for (size_t i = 0; i < COUNT(narrow); i++) {
		const struct ex_syscall call = explain_narrow(
		    narrow[i].function, narrow[i].arg);

		assert_text("the call", call.name, narrow[i].name);
		assert_true(call.has_bytes);
		assert_int_equal(call.bytes, narrow[i].bytes);
		assert_int_equal(call.has_fd ? call.fd : -1, narrow[i].fd);
	}
	/* numbers are those of such programs, too */
	made.sample.number = 3;
	assert_text("number 3", explain_narrow("do_fast_syscall_32",
	    narrow[0].arg).name, "read");
	made.sample.number = 422;
	assert_text("number 422", explain_narrow("do_fast_syscall_32",
	    (const uint32_t[6]){NARROW_WORD}).name, "futex");
}

TEST_WITH(vectors_and_sockets_of_32_bit_programs, begin, NULL)
{
	uint32_t *const word = (uint32_t *)made.stack.bytes;
	struct ex_syscall call;

	word[4] = 0x8000000, word[5] = 16;
	word[6] = NARROW_WORD, word[7] = 24;
	call = explain_narrow("do_readv", (const uint32_t[6]){3,
	    NARROW_SP + 16, 2});
	assert_text("the call", call.name, "readv");
	assert_true(call.has_bytes && call.writes);
	assert_int_equal(call.bytes, 24);
	/* struct msghdr: name, its length, vector, its length, control, ... */
	memset(word, 0, 64);
	word[10] = NARROW_SP + 16, word[11] = 2;
	word[4] = 0x8000000, word[5] = 16;
	word[6] = NARROW_WORD, word[7] = 24;
	call = explain_narrow("__ia32_compat_sys_recvmsg",
	    (const uint32_t[6]){3, NARROW_SP + 32});
	assert_int_equal(call.bytes, 24);
	/* one call for all, which has its arguments in memory */
	memset(word, 0, 64);
	word[0] = 5, word[1] = NARROW_WORD, word[2] = 100;
	call = explain_narrow("__ia32_compat_sys_socketcall",
	    (const uint32_t[6]){10, NARROW_SP});
	assert_text("the call", call.name, "recvfrom");
	assert_int_equal(call.bytes, 100);
	assert_true(call.writes && call.has_fd);
	assert_int_equal(call.fd, 5);
	call = explain_narrow("__ia32_compat_sys_socketcall",
	    (const uint32_t[6]){99, NARROW_SP});
	assert_text("the call", call.name, "socketcall");
	assert_false(call.has_bytes || call.has_fd);
	call = explain_narrow("__ia32_compat_sys_socketcall",
	    (const uint32_t[6]){17, 16});
	assert_text("the call", call.name, "recvmsg");
	assert_false(call.has_bytes || call.has_fd);
}

TEST_WITH(vectors_are_read_from_the_sampled_stack, begin, NULL)
{
	static const char *const chain[4] = {"do_readv"};
	struct ex_syscall call;

	set_chain(chain);
	set_args((const uint64_t[6]){3, SP + 16, 3});
	made.stack.iov[1] = (struct iovec){(void *)(WORD - 100), 100};
	made.stack.iov[2] = (struct iovec){(void *)WORD, 24};
	made.stack.iov[3] = (struct iovec){(void *)(WORD + 24), 100};
	call = explain();
	assert_true(call.has_bytes && call.writes && !call.reads);
	assert_int_equal(call.buffer, WORD);
	assert_int_equal(call.bytes, 24);
	/* where it reached shows which of two */
	made.stack.iov[1].iov_len = 104;
	made.stack.iov[2] = (struct iovec){(void *)(WORD + 4), 20};
	assert_false(explain().has_bytes);
	made.sample.reached = WORD + 1;
	call = explain();
	assert_true(call.has_bytes);
	assert_int_equal(call.bytes, 104);
	made.sample.reached = WORD + 5;
	assert_int_equal(explain().bytes, 20);
	/* a vector that is not in the copy, in whole or in part */
	made.sample.reached = 0;
	made.record.sample.stack_len = 40;
	call = explain();
	assert_true(call.has_bytes);
	assert_int_equal(call.bytes, 104);
	made.record.sample.stack_len = 24;
	assert_false(explain().has_bytes);
	made.record.sample.stack = NULL;
	assert_false(explain().has_bytes);
	set_args((const uint64_t[6]){3, SP, UINT64_MAX});
	assert_false(explain().has_bytes);
}

TEST_WITH(messages_have_vectors_names_and_control, begin, NULL)
{
	static const char *const recvmsg[4] = {"__sys_recvmsg"};
	static const char *const recvmmsg[4] = {"__x64_sys_recvmmsg"};
	struct iovec iov = {(void *)WORD, 40};
	struct ex_syscall call;

	set_chain(recvmsg);
	set_args((const uint64_t[6]){3, SP + 64, 0});
	memcpy(&made.stack.bytes[1024], &iov, sizeof(iov));
	for (unsigned part = 0; part < 3; part++) {
		struct msghdr m = {
			.msg_iov = (void *)(SP + 1024), .msg_iovlen = part == 0,
			.msg_name = (void *)(WORD - 16),
			.msg_namelen = part == 1 ? 28 : 0,
			.msg_control = (void *)WORD,
			.msg_controllen = part == 2 ? 64 : 0,
		};

		memcpy(&made.stack.bytes[64], &m, sizeof(m));
		call = explain();
		assert_true(call.has_bytes && call.writes);
		assert_int_equal(call.bytes, part == 0 ? 40 : part == 1 ? 28 :
		    64);
	}
	/* the second of an array */
	set_chain(recvmmsg);
	set_args((const uint64_t[6]){3, SP, 2});
	memset(&made.stack, 0, 256);
	memcpy(&made.stack.bytes[1024], &iov, sizeof(iov));
	made.stack.mmsg[1].msg_hdr.msg_iov = (void *)(SP + 1024);
	made.stack.mmsg[1].msg_hdr.msg_iovlen = 1;
	assert_int_equal(explain().bytes, 40);
	/* a count without end ends with the copy, or soon */
	set_args((const uint64_t[6]){3, SP, UINT64_MAX});
	assert_int_equal(explain().bytes, 40);
	/* the header itself is read and written */
	set_chain(recvmsg);
	set_args((const uint64_t[6]){3, WORD - 8, 0});
	made.sample.access = 'a';
	call = explain();
	assert_true(call.reads && call.writes);
	assert_int_equal(call.bytes, sizeof(struct msghdr));
}

TEST_WITH(lengths_are_read_from_the_sampled_stack, begin, NULL)
{
	static const char *const chain[4] = {"__x64_sys_getsockopt"};

	set_chain(chain);
	set_args((const uint64_t[6]){3, SOL_SOCKET, SO_TYPE, WORD, SP});
	made.stack.len = 12;
	assert_int_equal(explain().bytes, 12);
	made.record.sample.stack_len = 3;
	assert_false(explain().has_bytes);
	assert_true(explain().writes);
}

/* This process stands still: it is the one that asks. */
TEST_WITH(a_standing_process_is_asked, begin, NULL)
{
	static const char *const readv[4] = {"do_readv"};
	struct iovec iov = {(void *)WORD, 24};
	char link[64], name[256] = {0};
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ex_syscall call;

	assert_true(fd >= 0);
	set_chain(readv);
	set_args((const uint64_t[6]){(uint64_t)fd, (uintptr_t)&iov, 1});
	made.sample.stopped = true;
	call = explain();
	assert_false(call.has_bytes);	/* it is a recording */
	assert_string_equal(call.file, "");
	made.sample.live = true;
	call = explain();
	assert_int_equal(call.bytes, 24);
	assert_string_equal(call.file, "/");
	assert_false(call.file_later);
	made.sample.stopped = false;	/* it may have gone on */
	call = explain();
	assert_false(call.has_bytes);
	assert_string_equal(call.file, "/");
	assert_true(call.file_later);
	made.record.tid = INT32_MAX;	/* that thread has ended */
	assert_string_equal(explain().file, "/");
	(void)close(fd);
	call = explain();
	assert_true(call.has_fd);
	assert_string_equal(call.file, "");
	assert_false(call.file_later);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", STDERR_FILENO);
	if (readlink(link, name, sizeof(name) - 1) < 0)
		return;
	set_args((const uint64_t[6]){STDERR_FILENO, WORD, 1});
	assert_string_equal(explain().file, name);
}

/* Code that is only looked at: where each call returns to has a name. */
__asm__(".text\n"
    "by_mov: mov $17,%eax; syscall; after_mov: ret\n"
    "by_xor: mov $17,%ecx; xor %eax,%eax; syscall; after_xor: ret\n"
    "by_two_ways: test %edi,%edi; je 1f; mov $17,%eax; jmp 2f\n"
    "1: mov $18,%eax; 2: syscall; after_two_ways: ret\n"
    "by_another: mov $17,%r8d; syscall; after_another: ret\n"
    "by_none: mov %edi,%eax; syscall; after_none: ret\n"
    "by_far: mov $17,%eax; mov %rcx,%r10; syscall; after_far: ret\n"
    "no_call: mov $17,%eax; nop; nop; after_no_call: ret\n"
    ".irp f, by_mov, by_xor, by_two_ways, by_another, by_none, by_far, "
    "no_call\n.type \\f,@function\n.endr\n"
    ".size by_mov, by_xor - by_mov\n"
    ".size by_xor, by_two_ways - by_xor\n"
    ".size by_two_ways, by_another - by_two_ways\n"
    ".size by_another, by_none - by_another\n"
    ".size by_none, by_far - by_none\n"
    ".size by_far, no_call - by_far\n"
    ".size no_call, . - no_call\n");
extern const char after_mov[], after_xor[], after_two_ways[], after_another[],
    after_none[], after_far[], after_no_call[];

TEST_WITH(code_shows_the_number, begin, NULL)
{
	static const struct {
		const char *pc;
		int number;
	} cases[] = {
		{after_mov, 17}, {after_xor, 0}, {after_two_ways, -1},
		{after_another, -1}, {after_none, -1}, {after_far, -1},
		{after_no_call, -1}, {after_mov - 1, -1}, {NULL, -1},
	};
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct ex_process *process;

	capture_maps(space, getpid());
	process = ex_space_process(space, getpid());
	for (size_t i = 0; i < COUNT(cases); i++) {
		made.user[PERF_REG_X86_IP] = (uintptr_t)cases[i].pc;
		assert_int_equal(ex_syscall_number(process,
		    &made.record.sample), cases[i].number);
	}
	made.sample.process = process;
	made.user[PERF_REG_X86_IP] = (uintptr_t)after_mov;
	assert_null(explain().name);		/* it may have gone on */
	made.user[PERF_REG_X86_AX] = (uint64_t)-ENOSYS;
	assert_text("the call", explain().name, "pread64");
	set_chain((const char *const [4]){"do_readv"});
	assert_text("the call", explain().name, "pread64");
	set_chain((const char *const [4]){"__x64_sys_getcpu"});
	assert_text("the call", explain().name, "getcpu");
	ex_space_free(space);
}

/* The same for functions that pass their first argument on as the number, and
   for their callers: where each call of a function returns to has a name. */
__asm__(".text\n"
    ".macro begin f\n.type \\f,@function\n\\f: .cfi_startproc\n.endm\n"
    ".macro end f\n.cfi_endproc\n.size \\f, . - \\f\n.endm\n"
    "begin passes_on; endbr64; mov %rdi,%rax; mov %rsi,%rdi; mov %rdx,%rsi\n"
    "syscall; after_passes_on: ret; end passes_on\n"
    "begin changes; mov %rdi,%rax; mov %rsi,%rax; syscall\n"
    "after_changes: ret; end changes\n"
    "begin enters; mov %rdi,%rax; 1: mov %rsi,%rdi; syscall\n"
    "after_enters: jmp 1b; end enters\n"
    "begin jumps; jmp passes_on; end jumps\n"
    "begin passing\n"
    "mov $17,%edi; push %rbx; mov %ecx,(%rdx); xor %eax,%eax\n"
    "call passes_on; back_mov: xor %edi,%edi; lea 8(%rsp),%rsi\n"
    "call passes_on; back_xor: mov $17,%edi; call jumps\n"
    "back_jumps: mov $17,%edi; call jumps; call passes_on\n"
    "back_called: mov $17,%di; call passes_on\n"
    "back_part: mov $17,%edi; test %eax,%eax; je 2f; nop\n"
    "2: call passes_on; back_ways: mov $17,%edi; call changes\n"
    "back_changes: mov $17,%edi; call enters\n"
    "back_enters: mov %esi,%edi; call passes_on\n"
    "back_argument: ret; end passing\n");
extern const char after_passes_on[], after_changes[], after_enters[],
    back_mov[], back_xor[], back_jumps[], back_called[], back_part[],
    back_ways[], back_changes[], back_enters[], back_argument[];

TEST_WITH(a_callers_code_shows_the_number, begin, NULL)
{
	static const struct {
		const char *name, *pc, *back;
		int number;
	} cases[] = {
		{"mov", after_passes_on, back_mov, 17},
		{"xor", after_passes_on, back_xor, 0},
		{"a tail call", after_passes_on, back_jumps, -1},
		{"a call between", after_passes_on, back_called, -1},
		{"16 bits", after_passes_on, back_part, -1},
		{"two ways", after_passes_on, back_ways, -1},
		{"it changes it", after_changes, back_changes, -1},
		{"it is entered elsewhere", after_enters, back_enters, -1},
		{"an argument", after_passes_on, back_argument, -1},
		{"no caller", after_passes_on, back_mov - 1, -1},
	};
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct ex_process *process;

	capture_maps(space, getpid());
	process = ex_space_process(space, getpid());
	made.user[PERF_REG_X86_SP] = SP;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const uint64_t back = (uintptr_t)cases[i].back;
		int number;

		made.user[PERF_REG_X86_IP] = (uintptr_t)cases[i].pc;
		memcpy(made.stack.bytes, &back, sizeof(back));
		made.record.sample.stack_len = sizeof(back);
		number = ex_syscall_number(process, &made.record.sample);
		if (number != cases[i].number)
			fail_msg("%s: %d", cases[i].name, number);
		made.record.sample.stack_len = sizeof(back) - 1;
		assert_int_equal(ex_syscall_number(process,
		    &made.record.sample), -1);
	}
	ex_space_free(space);
}

/* The result shows how many bytes were written. */
TEST_WITH(a_call_that_is_done_has_a_result, begin, NULL)
{
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct ex_syscall call;

	capture_maps(space, getpid());
	made.sample.process = ex_space_process(space, getpid());
	made.sample.returned = true;
	set_args((const uint64_t[6]){3, WORD, 64});
	made.user[PERF_REG_X86_IP] = (uintptr_t)after_mov;
	made.user[PERF_REG_X86_AX] = 3;
	call = explain();
	assert_text("the call", call.name, "pread64");
	assert_int_equal(call.bytes, 64);
	assert_int_equal(call.done, 3);
	made.user[PERF_REG_X86_AX] = (uint64_t)-EINTR;
	assert_int_equal(explain().done, 64);
	ex_space_free(space);
}

/* Of several parts it is known from where to where they were touched. */
TEST_WITH(a_vector_that_is_done_is_bounded_by_its_result, begin, NULL)
{
	static const char *const chain[4] = {"do_readv"};
	struct ex_syscall call;

	set_chain(chain);
	set_args((const uint64_t[6]){3, SP, 3});
	made.stack.iov[0] = (struct iovec){(void *)(WORD - 10), 12};
	made.stack.iov[1] = (struct iovec){(void *)(WORD + 4), 40};
	made.stack.iov[2] = (struct iovec){(void *)(WORD + 2), 2};
	made.user[PERF_REG_X86_AX] = 15;
	assert_false(explain().bounded);	/* that is no result */
	made.sample.returned = true;
	call = explain();
	assert_true(call.bounded && !call.has_bytes);
	assert_int_equal(call.buffer, WORD - 10);
	assert_int_equal(call.done, 17);
	made.user[PERF_REG_X86_AX] = 12;
	call = explain();
	assert_true(call.bounded && call.has_bytes);
	assert_int_equal(call.bytes, 12);
	assert_int_equal(call.done, 12);
	/* a part that is not known may lie anywhere */
	made.record.sample.stack_len = 24;
	made.user[PERF_REG_X86_AX] = 15;
	assert_false(explain().bounded);
}

TEST_WITH(the_end_of_a_long_path_is_reported, begin, NULL)
{
	static const char *const read[4] = {"ksys_read"};
	char name[NAME_MAX + 1], path[] = "/tmp/call_test.XXXXXX";
	struct ex_syscall call;
	int dir, fd;

	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	set_chain(read);
	set_args((const uint64_t[6]){(uint64_t)fd, WORD, 8});
	made.sample.live = true;
	call = explain();
	assert_memory_equal(call.file, "...nnn", 6);
	assert_int_equal(strlen(call.file), sizeof(call.file) - 1);
	assert_int_equal(unlinkat(dir, name, 0), 0);
	assert_int_equal(rmdir(path), 0);
	call = explain();
	assert_holds(call.file, "nnn (deleted)");
	(void)close(fd);
	(void)close(dir);
}

static void
find_rows(bool narrow)
{
	unsigned found = 0;

	assert_null(ex_syscall_row("no_such", narrow));
	assert_null(ex_syscall_row_number(-1, narrow));
	assert_null(ex_syscall_row_number(100000, narrow));
	for (int number = 0; number < 1000; number++) {
		const struct ex_syscall_row *row =
		    ex_syscall_row_number(number, narrow);
		char name[64];

		if (row == NULL)
			continue;
		found++;
		assert_int_equal(row->number, number);
		(void)snprintf(name, sizeof(name), "%s%s", row->name,
		    row->old ? "_time32" : "");
		assert_ptr_equal(ex_syscall_row(name, narrow), row);
		for (unsigned i = 0; i < EX_SYSCALL_PARTS; i++)
			assert_true(row->part[i].at < 6 &&
			    row->part[i].len < 6);
	}
	assert_true(found > 100);
}

TEST(rows_are_found_by_name_and_number)
{
	find_rows(false);
	find_rows(true);
}

RUN_TESTS()
