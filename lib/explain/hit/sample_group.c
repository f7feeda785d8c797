/* sample_group: decides which samples belong to one access. */
#include "hit/sample_group.h"

#include <asm/perf_regs.h>
#include <string.h>

#include "space/kernel_symbols.h"

/* The largest distance in ns between two samples of one access: its thread may
   be descheduled in between. */
#define ACCESS_SPAN 100000000u

#define INSN_MAX 15	/* bytes of the longest instruction */

#define HASH_BEGIN 14695981039346656037u	/* the offset basis of FNV-1a */

static uint64_t
hash(uint64_t so_far, uint64_t value)
{
	return (so_far ^ value) * 1099511628211u;
}

bool
ex_group_kernel(const struct ex_record *record)
{
	return (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	    PERF_RECORD_MISC_KERNEL;
}

uint64_t
ex_group_pc(const struct ex_record *record)
{
	uint64_t pc = record->sample.ip;

	if (!ex_group_kernel(record))
		return pc;
#ifdef __x86_64__
	(void)ex_regs_get(&record->sample.user, PERF_REG_X86_IP, &pc);
#elif defined(__aarch64__)
	(void)ex_regs_get(&record->sample.user, PERF_REG_ARM64_PC, &pc);
#endif
	return pc;
}

/* The number of kernel entries in the callchain.  They come first, after a
   marker. */
static uint64_t
kernel_entries(const struct ex_sample *sample)
{
	uint64_t n = 0;

	if (sample->callchain_len == 0 ||
	    ex_callchain_at(sample, 0) != (uint64_t)PERF_CONTEXT_KERNEL)
		return 0;
	while (n + 1 < sample->callchain_len &&
	    ex_callchain_at(sample, n + 1) < (uint64_t)PERF_CONTEXT_MAX)
		n++;
	return n;
}

bool
ex_group_recording(const struct ex_record *record)
{
	uint64_t n = ex_group_kernel(record) ?
	    kernel_entries(&record->sample) : 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t offset;
		const char *function = ex_kernel_symbol(
		    ex_callchain_at(&record->sample, i + 1), &offset);

		if (function != NULL && strcmp(function, "perf_bp_event") == 0)
			return true;
	}
	return false;
}

static uint64_t
hash_registers(const struct ex_perf_regs *regs)
{
	const size_t n = regs->values == NULL ? 0 :
	    (size_t)__builtin_popcountll(regs->mask);
	uint64_t sum = HASH_BEGIN, value;

	for (size_t i = 0; i < n; i++) {
		memcpy(&value, regs->values + i * sizeof(value), sizeof(value));
		sum = hash(sum, value);
	}
	return sum;
}

/* A hash of what stays the same during one system call: the user registers and
   the two outermost kernel frames. */
static uint64_t
moment_of(const struct ex_record *record)
{
	const struct ex_sample *sample = &record->sample;
	uint64_t sum = hash_registers(&sample->user);
	const uint64_t n = kernel_entries(sample);

	for (uint64_t i = n > 2 ? n - 2 : n; i < n; i++)
		sum = hash(sum, ex_callchain_at(sample, i + 1));
	return sum;
}

uint64_t
ex_group_reached(const struct ex_record *record, uint64_t addr, uint64_t len)
{
#ifdef __x86_64__
	static const unsigned copies[] = {PERF_REG_X86_DI, PERF_REG_X86_SI};

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		uint64_t at;

		if (ex_regs_get(&record->sample.intr, copies[i], &at) &&
		    at >= addr && at - addr <= len)
			return at;
	}
#else
	(void)record, (void)addr, (void)len;
#endif
	return 0;
}

/* __put_user_4 and __put_user_nocheck_4 store 4 bytes to the address in rcx;
   __get_user_4 loads them from the one in rax. */
bool
ex_group_single(const struct ex_record *record, const char *function,
    uint64_t *addr, uint64_t *len)
{
#ifdef __x86_64__
	static const struct {
		const char *prefix;
		unsigned reg;
	} kinds[] = {
		{"__put_user_nocheck_", PERF_REG_X86_CX},
		{"__put_user_", PERF_REG_X86_CX},
		{"__get_user_nocheck_", PERF_REG_X86_AX},
		{"__get_user_", PERF_REG_X86_AX},
	};

	for (size_t i = 0; function != NULL &&
	    i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const size_t n = strlen(kinds[i].prefix);

		if (strncmp(function, kinds[i].prefix, n) != 0 ||
		    strchr("1248", function[n]) == NULL ||
		    function[n] == '\0' || function[n + 1] != '\0')
			continue;
		*len = (uint64_t)(function[n] - '0');
		return ex_regs_get(&record->sample.intr, kinds[i].reg, addr);
	}
#else
	(void)record, (void)function, (void)addr, (void)len;
#endif
	return false;
}

char
ex_group_way(const char *function)
{
	static const struct {
		const char *prefix;
		char way;
	} ways[] = {
		{"__put_user_", 'w'}, {"__get_user_", 'r'},
		{"_copy_to_user", 'w'}, {"_copy_from_user", 'r'},
		{"_copy_to_iter", 'w'}, {"_copy_from_iter", 'r'},
	};

	for (size_t i = 0; function != NULL &&
	    i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strncmp(function, ways[i].prefix,
		    strlen(ways[i].prefix)) == 0)
			return ways[i].way;
	return '\0';
}

/* A hash of how far the kernel has come in its work. */
static uint64_t
place_of(const struct ex_record *record, unsigned slot, uint64_t reached)
{
	uint64_t sum = hash(HASH_BEGIN, slot);
	uint64_t n = kernel_entries(&record->sample);

	if (reached != 0)
		return hash(sum, reached);
	sum = hash(sum, record->sample.ip);
	for (uint64_t i = 0; i < n; i++)
		sum = hash(sum, ex_callchain_at(&record->sample, i + 1));
	return sum;
}

static unsigned
slot_of(const struct ex_sample_group *a, const struct ex_record *record)
{
	return (unsigned)(record->attr - a->first_attr) & 63;
}

/* Where a copy ends, from the registers of a string instruction, which hold the
   destination and the number of bytes left.  0 if these are not in the
   sample. */
static uint64_t
end_of_copy(const struct ex_record *record, uint64_t *left)
{
	uint64_t at = 0;

	*left = 0;
#ifdef __x86_64__
	if (!ex_regs_get(&record->sample.intr, PERF_REG_X86_DI, &at) ||
	    !ex_regs_get(&record->sample.intr, PERF_REG_X86_CX, left))
		return 0;
#else
	(void)record;
#endif
	return at + *left;
}

static void
note(struct ex_sample_group *a, const struct ex_record *record, uint64_t addr,
    uint64_t len)
{
	unsigned slot = slot_of(a, record);
	uint64_t left;

	a->last = record->time;
	a->slots |= 1ull << slot;
	if (!a->kernel)
		return;
	a->reached = ex_group_reached(record, addr, len);
	a->ip = record->sample.ip;
	a->end = end_of_copy(record, &left);
	a->registers = hash_registers(&record->sample.intr);
	if (a->n < EX_GROUP_PLACES)
		a->place[a->n++] = place_of(record, slot, a->reached);
}

void
ex_group_begin(struct ex_sample_group *a, const struct ex_record *record,
    uint64_t addr, uint64_t len)
{
	*a = (struct ex_sample_group){
		.pc = ex_group_pc(record),
		.moment = moment_of(record),
		.first_attr = record->attr,
		.kernel = ex_group_kernel(record),
	};
	note(a, record, addr, len);
}

bool
ex_group_over(const struct ex_sample_group *a, uint64_t now)
{
	return now == UINT64_MAX ||
	    (now > a->last && now - a->last > ACCESS_SPAN);
}

/* Whether a sample of the same thread, from any watch, can belong to the same
   access. */
static bool
is_of_moment(const struct ex_sample_group *a, const struct ex_record *record)
{
	/* kernel threads have no pc in the program */
	return a->kernel == ex_group_kernel(record) &&
	    (a->kernel || a->pc == ex_group_pc(record)) &&
	    !ex_group_over(a, record->time) &&
	    a->moment == moment_of(record);
}

/* Whether this access had a sample at the same place in the kernel before. */
static bool
was_there(const struct ex_sample_group *a, const struct ex_record *record,
    uint64_t addr, uint64_t len)
{
	uint64_t reached = ex_group_reached(record, addr, len);
	uint64_t place = place_of(record, slot_of(a, record), reached);

	for (unsigned i = 0; i < a->n; i++)
		if (a->place[i] == place)
			return true;
	return a->n == EX_GROUP_PLACES && reached <= a->reached;
}

/* The ip of a string instruction stays at it until the last step, after which
   it points behind it. */
static bool
is_next_step(const struct ex_sample_group *a, const struct ex_record *record,
    uint64_t reached)
{
	uint64_t left;

	return reached > a->reached && a->reached != 0 && a->end != 0 &&
	    end_of_copy(record, &left) == a->end &&
	    record->sample.ip - a->ip <= (left == 0 ? INSN_MAX : 0);
}

static bool
add_step(struct ex_sample_group *a, const struct ex_record *record,
    uint64_t addr, uint64_t len)
{
	const bool other = (a->slots >> slot_of(a, record) & 1) == 0 &&
	    record->sample.ip == a->ip && a->end != 0 &&
	    hash_registers(&record->sample.intr) == a->registers;

	if (!other && !is_next_step(a, record,
	    ex_group_reached(record, addr, len)))
		return false;
	note(a, record, addr, len);
	return true;
}

static bool
add(struct ex_sample_group *a, const struct ex_record *record,
    uint64_t addr, uint64_t len)
{
	const bool before = (a->slots >> slot_of(a, record) & 1) != 0;

	if (addr > UINT64_MAX / 2)
		return add_step(a, record, addr, len);
	if (a->kernel ? was_there(a, record, addr, len) : before)
		return false;
	note(a, record, addr, len);
	return true;
}

bool
ex_group_goes_on(struct ex_sample_group *a, const struct ex_record *record,
    bool same, uint64_t addr, uint64_t len)
{
	return is_of_moment(a, record) &&
	    (!same || add(a, record, addr, len));
}

