/* process_filter: filters hits of other processes. */
#include "bpf/process_filter.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/bpf.h"
#include "bpf/code.h"
#include "bpf/stack_counter.h"
#include "bpf/uprobe_guard.h"

enum { WORD = sizeof(uint64_t) };

/* --- programs --- */

/* R7 becomes the address of a word in the map. */
static void
find_word(struct code *c, int map, unsigned word)
{
	set_wide(c, BPF_REG_7, BPF_PSEUDO_MAP_VALUE, (uint32_t)map);
	c->insn[c->n - 1].imm = (int)word * WORD;
}

void
wp_code_own(struct code *c, const struct wp_own *own)
{
	unsigned other[3], go;

	find_word(c, own->map, 0);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, 0);
	other[0] = jump(c, BPF_JEQ, BPF_REG_1, 0);
	wp_code_unless_process(c, own->pid, other + 1);
	go = jump_always(c);
	for (unsigned i = 0; i < 3; i++)
		land(c, other[i]);
	find_word(c, own->map, own->word);
	set(c, BPF_REG_1, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_1, 0,
	    BPF_ADD);
	return_zero(c);
	land(c, go);
}

#if defined(__x86_64__)
/* System call numbers of 64-bit and 32-bit programs. */
enum { EXECVE = 59, EXECVEAT = 322, EXECVE_32 = 11, EXECVEAT_32 = 358 };
enum { CS_32 = 0x23 };

/* linux/bpf.h lacks these functions before Linux 5.15. */
enum { GET_CURRENT_TASK_BTF = 158, TASK_PT_REGS = 175 };

#define SAVED(reg) ((int)offsetof(struct pt_regs, reg))

/* Returns the jump that is taken unless the thread is in execve(2). */
static unsigned
unless_executing(struct code *c)
{
	unsigned is[4], narrow, not;

	call(c, GET_CURRENT_TASK_BTF);
	copy(c, BPF_REG_1, BPF_REG_0);
	call(c, TASK_PT_REGS);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_0, SAVED(cs));
	load(c, BPF_DW, BPF_REG_0, BPF_REG_0, SAVED(orig_rax));
	narrow = jump(c, BPF_JEQ, BPF_REG_1, CS_32);
	is[0] = jump(c, BPF_JEQ, BPF_REG_0, EXECVE);
	is[1] = jump(c, BPF_JEQ, BPF_REG_0, EXECVEAT);
	set(c, BPF_REG_0, -1);
	land(c, narrow);
	is[2] = jump(c, BPF_JEQ, BPF_REG_0, EXECVE_32);
	is[3] = jump(c, BPF_JEQ, BPF_REG_0, EXECVEAT_32);
	not = jump_always(c);
	for (unsigned i = 0; i < 4; i++)
		land(c, is[i]);
	return not;
}

/* At this point the thread has its new name, and the kernel has not stored
   anything for the new program yet; events of threads are removed here as
   well. */
#define EXECUTES "task_rename"
#else
/* The kernel's accesses are not hits here. */
static unsigned
unless_executing(struct code *c)
{
	return jump(c, BPF_JEQ, BPF_REG_7, 0);
}

#define EXECUTES "sched_process_exec"
#endif

/* Attach a program that disables the event when the process executes another
   program.  Returns a descriptor that keeps it attached, or -errno. */
static int
end_at_execution(const struct wp_process_filter *others)
{
	struct code c = {.n = 0};
	unsigned other[2], not;

	find_word(&c, others->map, 0);
	wp_code_unless_process(&c, others->pid, other);
	not = unless_executing(&c);
	emit(&c, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_7, 0, 0, 0);
	land(&c, not);
	land(&c, other[0]);
	land(&c, other[1]);
	return_zero(&c);
	return wp_bpf_trace(EXECUTES, c.insn, c.n);
}

/* --- their memory --- */

static size_t
size_of(const struct wp_process_filter *others)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size = (1 + others->n) * WORD;

	return (size + page - 1) / page * page;
}

/* Returns 0 or -errno. */
static int
share(struct wp_process_filter *others)
{
	void *memory;

	if ((others->map = wp_bpf_shared(size_of(others))) < 0)
		return others->map;
	memory = mmap(NULL, size_of(others), PROT_READ | PROT_WRITE,
	    MAP_SHARED, others->map, 0);
	if (memory == MAP_FAILED)
		return -errno;
	others->word = memory;
	return 0;
}

int
wp_process_filter_open(struct wp_process_filter *others, pid_t pid,
    unsigned counts)
{
	int err;

	*others = (struct wp_process_filter){
		.map = -1, .n = counts, .pid = pid, .execution = -1,
		.process = (int)syscall(SYS_pidfd_open, pid, 0),
	};
	err = others->process < 0 ? -errno : share(others);
	if (err == 0)
		err = others->execution = end_at_execution(others);
	if (err >= 0)
		return 0;
	wp_process_filter_close(others);
	return err;
}

void
wp_process_filter_close(struct wp_process_filter *others)
{
	if (others->word != NULL)
		(void)munmap(others->word, size_of(others));
	if (others->map >= 0)
		(void)close(others->map);
	if (others->process >= 0)
		(void)close(others->process);
	if (others->execution >= 0)
		(void)close(others->execution);
	*others = WP_PROCESS_FILTER_NONE;
}

struct wp_own
wp_process_filter_own(const struct wp_process_filter *others, unsigned count)
{
	return (struct wp_own){others->pid, others->map, 1 + count};
}

static void
turn(struct wp_process_filter *others, bool on)
{
	__atomic_store_n(others->word, on, __ATOMIC_SEQ_CST);
}

void
wp_process_filter_begin(struct wp_process_filter *others)
{
	turn(others, true);
}

void
wp_process_filter_end(struct wp_process_filter *others)
{
	if (others->map < 0 || others->ended)
		return;
	others->ended = !wp_process_filter_executed(others);
	turn(others, false);
	(void)wp_stack_table_settle();
}

uint64_t
wp_process_filter_count(const struct wp_process_filter *others, unsigned count)
{
	return __atomic_load_n(&others->word[1 + count], __ATOMIC_SEQ_CST);
}

bool
wp_process_filter_executed(const struct wp_process_filter *others)
{
	return others->map >= 0 && !others->ended &&
	    __atomic_load_n(others->word, __ATOMIC_SEQ_CST) == 0;
}

bool
wp_process_filter_alive(const struct wp_process_filter *others)
{
	struct pollfd p = {.fd = others->process, .events = POLLIN};

	return !wp_process_filter_executed(others) && !others->ended &&
	    poll(&p, 1, 0) == 0;
}
