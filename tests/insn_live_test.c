/*
 * insn, live: programs are stepped one instruction at a time, so that each
 * access's true instruction is known, while the processor's own watchpoint
 * tells whether the access took place.  What the sample alone then tells must
 * agree.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "capture.h"
#include "insn.h"

#define STEPS	100000		/* at most, in one program */
#define WANTED	10000		/* accesses seen in one program */

typedef struct user_regs_struct regs_t;

struct access {
	uint64_t addr;		/* of the operand */
	uint32_t size;
	bool writes;
	uint64_t watch;		/* some of its bytes, as a watch may be */
	uint32_t len;
	char access;		/* what the watch is on: 'w' or 'a' */
	bool jump;		/* by a jump or return: where it stood is lost */
};

struct stepper {
	pid_t pid;
	struct ex_space *space;
	struct ex_process *process;
	ZydisDecoder decoder;
	struct capture capture;
	unsigned random;
	unsigned accesses, count[EX_EXACT + 1], values, wrong;
	unsigned lost;		/* not named, though no jumps */
};

static unsigned
next_random(struct stepper *s)
{
	s->random = s->random * 1103515245 + 12345;
	return s->random >> 16;
}

/* A register's value before the step; the test's own, so that a mistake of the
   library's is not made twice. */
static uint64_t
value_of(const regs_t *r, ZydisRegister reg, uint64_t next)
{
	const unsigned long long value[16] = {
		r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
		r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
	};

	if (reg == ZYDIS_REGISTER_NONE)
		return 0;
	if (reg == ZYDIS_REGISTER_RIP)
		return next;
	return value[ZydisRegisterGetId(reg) & 15];
}

/* An operand's bytes by the registers before the step; false: not memory, or
   not to be told. */
static bool
operand_bytes(const ZydisDecodedInstruction *insn,
    const ZydisDecodedOperand *op, const regs_t *r, struct access *a)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	const uint64_t next = r->rip + insn->length;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->size == 0 ||
	    m->type != ZYDIS_MEMOP_TYPE_MEM)
		return false;
	a->size = op->size / 8;
	a->writes = (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	a->addr = value_of(r, m->base, next) +
	    value_of(r, m->index, next) * m->scale + (uint64_t)m->disp.value;
	if (m->segment == ZYDIS_REGISTER_FS)
		a->addr += r->fs_base;
	if (m->base == ZYDIS_REGISTER_RSP && a->writes &&
	    op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
		a->addr -= a->size;		/* push, call, enter */
	return true;
}

/* One of the stepped instruction's accesses, and a watch on a part of it. */
static bool
choose_access(struct stepper *s, const regs_t *r, struct access *a)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
	unsigned first, i;
	size_t n;

	n = capture_read(s->pid, r->rip, code, sizeof(code));
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&s->decoder, code, n, &insn,
	    op)))
		return false;
	first = next_random(s);
	for (i = 0; i < insn.operand_count; i++) {
		if (!operand_bytes(&insn, &op[(first + i) %
		    insn.operand_count], r, a))
			continue;
		a->len = 1U << next_random(s) % 4;
		a->watch = (a->addr + next_random(s) % a->size) &
		    ~(uint64_t)(a->len - 1);
		a->jump = insn.meta.category == ZYDIS_CATEGORY_RET ||
		    insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
		a->access = a->writes && next_random(s) % 2 ? 'w' : 'a';
		return true;
	}
	return false;
}

static bool
poke_debug(pid_t pid, unsigned n, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, pid,
	    offsetof(struct user, u_debugreg[n]), value) == 0;
}

static bool
plant(pid_t pid, const struct access *a)
{
	const uint64_t type = a->access == 'w' ? 1 : 3;
	const uint64_t len = a->len == 8 ? 2 : a->len - 1;

	return poke_debug(pid, 7, 0) && poke_debug(pid, 6, 0) &&
	    poke_debug(pid, 0, a->watch) &&
	    poke_debug(pid, 7, 1 | type << 16 | len << 18);
}

static bool
triggered(pid_t pid)
{
	long status = ptrace(PTRACE_PEEKUSER, pid,
	    offsetof(struct user, u_debugreg[6]), NULL);

	return (status & 1) != 0;
}

/* Is a value said to be at the watch there? */
static bool
value_holds(const struct stepper *s, const struct access *a,
    const struct ex_insn *insn)
{
	uint64_t value = 0;

	return capture_read(s->pid, a->watch, &value, a->len) == a->len &&
	    value == insn->value;
}

static void
check(struct stepper *s, const struct access *a, uint64_t pc)
{
	struct ex_insn insn;
	bool wrong;

	ex_insn_explain(s->process, &s->capture.sample, a->watch, a->len,
	    a->access, &insn);
	s->accesses++;
	s->count[insn.confidence]++;
	s->values += insn.has_value;
	s->lost += insn.confidence < EX_ADDRESS_UNVERIFIED && !a->jump;
	wrong = insn.confidence == EX_EXACT && (insn.pc != pc ||
	    (a->writes && !insn.writes) || (!a->writes && !insn.reads) ||
	    insn.addr != a->addr || insn.size != a->size);
	if (insn.has_value && !value_holds(s, a, &insn))
		wrong = true;
	/* The right one is also the best guess, unless all is lost. */
	if (insn.confidence == EX_ADDRESS_UNVERIFIED && insn.pc != pc)
		wrong = true;
	if (!wrong)
		return;
	s->wrong++;
	print_error("%s, '%c' at %#llx: %s at %#llx, not %#llx; "
	    "touches %#llx+%u, not %#llx+%u; value %#llx\n",
	    ex_confidence_text(insn.confidence), a->access,
	    (unsigned long long)a->watch, insn.text,
	    (unsigned long long)insn.pc, (unsigned long long)pc,
	    (unsigned long long)insn.addr, insn.size,
	    (unsigned long long)a->addr, a->size,
	    (unsigned long long)insn.value);
}

/* One step of the stopped program; false: it is no longer stopped, or done. */
static bool
step(struct stepper *s)
{
	regs_t before, after;
	struct access a;
	uint64_t vaddr;
	bool watched;
	int status;

	if (ptrace(PTRACE_GETREGS, s->pid, NULL, &before) != 0)
		return false;
	watched = choose_access(s, &before, &a) && plant(s->pid, &a);
	if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, NULL) != 0 ||
	    waitpid(s->pid, &status, 0) != s->pid || !WIFSTOPPED(status))
		return false;
	if (!watched || WSTOPSIG(status) != SIGTRAP || !triggered(s->pid) ||
	    ptrace(PTRACE_GETREGS, s->pid, NULL, &after) != 0)
		return true;
	if (ex_process_module(s->process, after.rip, &vaddr) == NULL)
		capture_maps(s->space, s->pid);
	capture_take(&s->capture, s->pid, &after, 64);
	s->capture.regs[PERF_REG_X86_FLAGS] = after.eflags;
	check(s, &a, before.rip);
	return true;
}

/* Steps until so many accesses have been seen. */
static void
steps(struct stepper *s, unsigned wanted)
{
	for (unsigned i = 0; i < STEPS && s->accesses < wanted && step(s); i++)
		;
}

static int
setup(void **state)
{
	struct stepper *s = calloc(1, sizeof(*s));

	*state = s;
	if (s == NULL || (s->space = ex_space_new(EX_LIVE)) == NULL)
		return -1;
	ZydisDecoderInit(&s->decoder, ZYDIS_MACHINE_MODE_LONG_64,
	    ZYDIS_STACK_WIDTH_64);
	return 0;
}

static int
teardown(void **state)
{
	struct stepper *s = *state;

	ex_space_free(s->space);
	free(s);
	return 0;
}

/* Begin with a child that stopped itself, or at its exec. */
static void
begin(struct stepper *s)
{
	const struct access probe = { .watch = 4096, .len = 8 };
	int status;

	assert_true(s->pid > 0);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_true(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, s->pid, NULL, PTRACE_O_EXITKILL);
	s->process = ex_space_process(s->space, s->pid);
	assert_non_null(s->process);
	capture_maps(s->space, s->pid);
	if (!plant(s->pid, &probe)) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, &status, 0);
		print_message("no watchpoints by ptrace here\n");
		skip();
	}
}

static void
end(struct stepper *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	print_message("%u accesses: %u exact, %u address-unverified, "
	    "%u ambiguous, %u unknown, %u of both no jumps; %u values known\n",
	    s->accesses, s->count[EX_EXACT], s->count[EX_ADDRESS_UNVERIFIED],
	    s->count[EX_AMBIGUOUS], s->count[EX_UNKNOWN], s->lost, s->values);
	assert_int_equal(s->wrong, 0);
	assert_true(s->accesses >= WANTED);
	assert_true(s->count[EX_EXACT] >= s->accesses / 10 * 8);
	assert_true(s->lost <= s->accesses / 1000);
}

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* What programs do, and a few instructions that compilers seldom make. */
static void
work(void)
{
	char text[64], copy[4096], name[100][16];
	atomic_long shared = 0;
	long expected = 3;
	char *heap;

	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "%u %g", i * 7919 % 97,
		    i / 8.0);
		heap = malloc(i * 3 + 1);
		if (heap != NULL)
			memset(heap, (int)i, i * 3 + 1);
		free(heap);
		(void)strncpy(text, name[i], sizeof(text) - 1);
		memmove(copy + i, copy + 2 * i, 8 * i);
		atomic_fetch_add(&shared, i);
		(void)atomic_compare_exchange_strong(&shared, &expected, i);
	}
	qsort(name, 100, sizeof(name[0]), compare);
	__asm__ volatile(
	    "	lea %0,%%rdi\n	mov $40,%%ecx\n	mov $7,%%eax\n"
	    "	rep stosl\n"
	    "	lea %0,%%rsi\n	mov $10,%%ecx\n	rep movsq\n"
	    "	lea %0,%%rdi\n	mov $10,%%ecx\n	repne scasb\n"
	    "	lea %0,%%rdi\n	mov %%rdi,%%rsi\n	mov $10,%%ecx\n"
	    "	repe cmpsb\n	lodsq\n"
	    "	std\n	lea 64+%0,%%rdi\n	mov $20,%%ecx\n	rep stosb\n"
	    "	cld\n"
	    "	pushf\n	pushq %%rsp\n	pushq 8(%%rsp)\n	popq (%%rsp)\n"
	    "	popq %%rcx\n	popf\n"
	    "	enter $64,$0\n	leave\n	xlat\n"
	    "	lea %0,%%rax\n	mov %%rax,(%%rax)\n	mov (%%rax),%%rax\n"
	    "	mov $-70,%%rcx\n	bts %%rcx,64+%0\n"
	    "	fxsave 1024+%0\n	fnstenv 8+%0\n	fldenv 8+%0\n"
	    : "=m"(copy) : : "rax", "rbx", "rcx", "rsi", "rdi", "cc",
	    "memory");
}

static void
our_own_code(void **state)
{
	struct stepper *s = *state;

	s->pid = fork();
	if (s->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		for (;;)
			work();
	}
	begin(s);
	steps(s, WANTED);
	end(s);
}

static const char script[] =
    "import json\nwhile True: json.dumps({'a': [1, 2.5, 'x' * 100]})";

static void
an_interpreter(void **state)
{
	struct stepper *s = *state;
	int status;

	if (access("/usr/bin/python3", X_OK) != 0) {
		print_message("no /usr/bin/python3 here\n");
		skip();
	}
	s->pid = fork();
	if (s->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl("/usr/bin/python3", "python3", "-Sc", script, NULL);
		_exit(127);
	}
	begin(s);
	steps(s, WANTED / 2);		/* the dynamic linker */
	poke_debug(s->pid, 7, 0);
	ptrace(PTRACE_CONT, s->pid, NULL, NULL);
	usleep(300000);
	kill(s->pid, SIGSTOP);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	capture_maps(s->space, s->pid);
	steps(s, WANTED);
	end(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(our_own_code, setup, teardown),
		cmocka_unit_test_setup_teardown(an_interpreter, setup,
		    teardown),
	};

	return cmocka_run_group_tests_name("insn_live", tests, NULL, NULL);
}
