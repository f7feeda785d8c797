/*
 * made_hits: makes hits by hand, and catches a report of them in memory.
 *
 * Modules here are a name and a build id; the functions of libexplain that
 * reports call are replaced below, so these tests do not need it.
 */
#ifndef MADE_HITS_H
#define MADE_HITS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "type/declared_object.h"

/* Text that a hostile program may contain. */
#define HOSTILE	"a\033[2Jb\n\"\\c\xff\xc0\xaf\t\x7f\xe2\x80\xae;d e"

struct ex_module {
	const char *name, *build_id, *problem;
};

const char *
ex_module_name(const struct ex_module *module)
{
	return module->name;
}

const char *
ex_module_problem(const struct ex_module *module)
{
	return module->problem;
}

const char *
ex_module_build_id(const struct ex_module *module)
{
	return module->build_id;
}

const char *
ex_end_text(enum ex_end end)
{
	return end == EX_END_OUTERMOST ? NULL : "stack truncated: end of copy";
}

const char *
ex_confidence_text(enum ex_confidence confidence)
{
	static const char *const text[] = {
		"unknown", "ambiguous", "address-unverified", "exact",
	};

	return text[confidence];
}

/* The one object with a type, for hits with a process. */
static struct ex_object made_object = {
	.path = "counter", .type = "long", .size = 8,
};
#define MADE_PROCESS ((struct ex_process *)(uintptr_t)&made_object)

const struct ex_object *
ex_object_at(struct ex_process *process, uint64_t addr, uint64_t len)
{
	(void)addr;
	return process == MADE_PROCESS && len > 0 ? &made_object : NULL;
}

bool
ex_object_text(struct ex_process *process, const struct ex_object *object,
    const uint8_t *bytes, char *text, size_t size)
{
	(void)process;
	if (strncmp(object->type, "struct", 6) == 0)
		return false;
	(void)snprintf(text, size, "<%u%s>", bytes[0],
	    strcmp(object->type, HOSTILE) == 0 ? HOSTILE : "");
	return true;
}

/* The number of the object, without its bits. */
static struct ex_number made_number = {
	.size = sizeof(long), .is_signed = true,
};
static bool is_number = true;

bool
ex_object_number(const struct ex_object *object, const uint8_t *bytes,
    struct ex_number *out)
{
	uint64_t bits = 0;

	(void)object;
	memcpy(&bits, bytes, made_number.size);
	*out = ex_number_integer(bits, made_number.size,
	    made_number.is_signed);
	return is_number;
}

static const struct ex_module made_victim = {"victim", "c0ffee"};
static const struct ex_module made_libc = {"libc.so.6", ""};
static const struct ex_module made_hostile = {HOSTILE, ""};

static const struct ex_frame made_plain_frames[] = {
	{.pc = 0x401320, .function = "bump", .module = &made_victim,
	 .vaddr = 0x1320, .file = "victim.c", .line = 10, .column = 3},
	{.pc = 0x401355, .function = "ns::level<int, long>", .offset = 0x15,
	 .module = &made_victim, .file = "victim.c", .line = 11,
	 .inlined = true},
	{.pc = 0x401355, .function = "main", .offset = 0x25,
	 .module = &made_victim, .file = "victim.c", .line = 13},
	{.pc = 0x7f0000027249, .function = "__libc_start_call_main",
	 .offset = 0x79, .module = &made_libc, .vaddr = 0x27249},
};
static const struct ex_frame made_kernel_frames[] = {
	{.pc = 0xffffffff81000010, .function = "ksys_read", .offset = 0x10,
	 .kernel = true},
	{.pc = 0x7f00000f0010, .module = &made_libc, .vaddr = 0xf0010},
	{.pc = 0x12340, .signal = true},
};
static const struct ex_frame made_hostile_frames[] = {
	{.pc = 0x401320, .function = HOSTILE, .module = &made_hostile,
	 .file = HOSTILE, .line = 1},
	{.pc = 0x401340, .module = &made_hostile, .vaddr = 0x340},
};

/* A function that ended in a tail call has no address unless its jump is
   known. */
static const struct ex_frame made_tail_frames[] = {
	{.pc = 0x401320, .function = "set", .module = &made_victim,
	 .file = "victim.c", .line = 3},
	{.pc = 0x401355, .function = "reload", .offset = 0x15,
	 .module = &made_victim, .tail = true},
	{.function = "either", .module = &made_victim, .tail = true,
	 .gap = true, .file = "victim.c"},
	{.pc = 0x401365, .function = "main", .module = &made_victim},
};

#define MADE_STACK(id_, i, frames, end_) {.id = (id_), .index = (i),	\
	.n = COUNT(frames), .frame = (frames), .end = (end_)}
static const struct ex_stack made_plain =
    MADE_STACK(0x9f3c000000000001, 0, made_plain_frames, EX_END_OUTERMOST);
static const struct ex_stack made_kernel =
    MADE_STACK(0x2b, 1, made_kernel_frames, EX_END_STACK);
static const struct ex_stack made_evil =
    MADE_STACK(0x3c, 70, made_hostile_frames, EX_END_OUTERMOST);

static const struct ex_stack made_tails = {
	.id = 1, .n = COUNT(made_tail_frames), .frame = made_tail_frames,
	.gap = true,
};

static const struct ex_watch made_watches[] = {
	{.id = 1, .spec = "counter", .symbol = "counter", .addr = 0x404090,
	 .len = 8, .access = 'w', .slots = 1},
	{.id = 2, .spec = "0x4040c0:64", .addr = 0x4040c0, .len = 64,
	 .access = 'a', .slots = 8},
	{.id = 3, .spec = HOSTILE, .symbol = HOSTILE, .addr = 0x404200,
	 .len = 4, .access = 'r'},
};
static const struct ex_watch *const made_list[] = {
	&made_watches[0], &made_watches[1], &made_watches[2],
};

static const struct report_start made_start = {
	.pid = 4335, .comm = "victim", .mode = "ring", .threads = 3,
	.frozen_ms = 0.8, .watches = made_list, .nwatches = 3,
	.time = 1000000000,
};

/* A store to counter by bump, 12.003417 s after the start. */
static inline struct ex_hit
made_hit(uint64_t seq)
{
	return (struct ex_hit){
		.seq = seq, .watch = &made_watches[0], .time = 13003417000,
		.pid = 4335, .tid = 4340, .comm = "victim", .cpu = 1,
		.access = "write", .addr = 0x404090, .len = 8,
		.pc = 0x401327, .samples = 1, .stack = &made_plain,
		.insn = {.confidence = EX_EXACT, .pc = 0x401320, .len = 7,
		    .text = "mov %rdi,0x2d69(%rip)", .writes = true,
		    .addr = 0x404090, .size = 8},
		.old = {.byte = {0x29}, .known = 0xff},
		.new = {.byte = {0x2a}, .known = 0xff},
		.source = EX_VALUE_REGISTER,
	};
}

/* A store after tail calls, which is therefore not judged. */
static inline struct ex_hit
made_tail_hit(uint64_t seq)
{
	struct ex_hit hit = made_hit(seq);

	hit.stack = &made_tails;
	hit.unjudged = true;
	return hit;
}

/* Eight bytes of the table, written by read(2). */
static inline struct ex_hit
made_kernel_hit(uint64_t seq)
{
	return (struct ex_hit){
		.seq = seq, .watch = &made_watches[1], .time = 13003417500,
		.pid = 4335, .tid = 4335, .cpu = UINT32_MAX,
		.access = "write", .kernel = true, .call = {.name = "read"},
		.addr = 0x4040c8, .len = 8, .pc = 0x7f00000f0010,
		.samples = 8, .stack = &made_kernel,
	};
}

/* A read by a program all of whose names are hostile. */
static inline struct ex_hit
made_evil_hit(uint64_t seq)
{
	return (struct ex_hit){
		.seq = seq, .watch = &made_watches[2], .time = 1,
		.pid = 1, .tid = 1, .comm = HOSTILE, .access = "read",
		.addr = 0x404200, .len = 4, .pc = 0x401323, .samples = 1,
		.stack = &made_evil,
		.insn = {.confidence = EX_AMBIGUOUS, .pc = 0x401320,
		    .text = HOSTILE},
	};
}

/* Two stray writers, one possibly stray, and the run in which they were
   found. */
static const struct finding made_writer = {
	.watch = &made_watches[0], .stack = &made_plain,
	.culprit = &made_plain_frames[0], .access = "write", .count = 12,
	.first_seq = 2,
};
static const struct finding made_call = {
	.watch = &made_watches[1], .stack = &made_kernel,
	.culprit = &made_kernel_frames[1], .access = "write", .count = 1,
	.first_seq = 5, .incomplete = true,
};
static const struct finding made_unknown = {
	.watch = &made_watches[0], .access = "write", .count = 1,
	.first_seq = 9,
};
static const struct finding *const made_findings[] = {
	&made_writer, &made_unknown,
};
static const struct finding *const made_doubts[] = {&made_call};
static const struct report_end made_judged = {
	.hits = 20, .reported = 20, .reason = "exit", .status = 66,
	.judged = true, .stray = 13, .findings = made_findings, .nfindings = 2,
	.unjudged = 1, .doubts = made_doubts, .ndoubts = 1,
};

/* A report in memory. */
struct made_report {
	struct report report;
	char *text;		/* the output, once closed, until the test
				   ends */
	size_t len;
};

static inline void
made_open(struct made_report *m, const struct report_ops *ops)
{
	memset(m, 0, sizeof(*m));
	m->report.ops = ops;
	m->report.out = open_memstream(&m->text, &m->len);
	assert_non_null(m->report.out);
}

static inline void
made_hits(struct made_report *m, const struct ex_hit *hits, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ex_hit hit = hits[i];

		ex_hit_change(&hit);
		assert_int_equal(m->report.ops->hit(&m->report, &hit), 0);
	}
}

static inline void
made_close(struct made_report *m, const struct report_end *end)
{
	assert_int_equal(m->report.ops->end(&m->report, end), 0);
	assert_int_equal(fclose(m->report.out), 0);
	test_frees(m->text, free);
}

/* Write a complete report of n hits. */
static inline void
made_write(struct made_report *m, const struct report_ops *ops,
    const struct report_start *start, const struct ex_hit *hits, size_t n,
    const struct report_end *end)
{
	made_open(m, ops);
	assert_int_equal(ops->start(&m->report, start), 0);
	made_hits(m, hits, n);
	made_close(m, end);
}

/* Check that there is no byte that controls a terminal, except newlines. */
static inline void
assert_visible(const char *text)
{
	assert_lacks(text, "\xe2\x80\xae");
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c != '\n' && (c < 0x20 || c == 0x7f))
			fail_msg("byte 0x%02x in \"%s\"", c, text);
	}
}

#endif
