/* attr: the perf_event_attr of each event that is opened. */
#include "os/attr.h"

#include <asm/perf_regs.h>
#include <string.h>
#include <time.h>

/* The registers of a user-mode sample, by PERF_REG_*: the general ones, the
   instruction pointer and the flags. */
#if defined(__x86_64__) || defined(__i386__)
/* The segment registers are left out, as the kernel refuses them for 64-bit
   tasks.  32-bit programs have the same set. */
#define USER_REGS (((1ull << PERF_REG_X86_64_MAX) - 1) &		\
    ~(1ull << PERF_REG_X86_DS | 1ull << PERF_REG_X86_ES |		\
      1ull << PERF_REG_X86_FS | 1ull << PERF_REG_X86_GS))
#define USER_PC PERF_REG_X86_IP
#define USER_SP PERF_REG_X86_SP
/* The destination and source of a string copy of the kernel, which show how far
   it has come; and the registers from which functions that store or load one
   number take its address. */
#define KERNEL_REGS (1ull << PERF_REG_X86_DI | 1ull << PERF_REG_X86_SI | \
    1ull << PERF_REG_X86_CX | 1ull << PERF_REG_X86_AX)
#elif defined(__aarch64__)
#define USER_REGS ((1ull << PERF_REG_ARM64_MAX) - 1)
#define USER_PC PERF_REG_ARM64_PC
#define USER_SP PERF_REG_ARM64_SP
#define KERNEL_REGS (1ull << PERF_REG_ARM64_X0)
#endif

void
wp_options_fit(struct wp_options *options, const struct wp_features *features)
{
	options->kernel = options->kernel && features->kernel;
	options->callchain = options->kernel && features->callchain;
	options->remove_on_exec = features->remove_on_exec;
	options->inherit_thread = features->inherit_thread;
	options->format_lost = features->format_lost;
}

unsigned
wp_attr_user_pc(void)
{
	return (unsigned)__builtin_popcountll(USER_REGS &
	    ((1ull << USER_PC) - 1));
}

static void
sample_what(struct perf_event_attr *attr, const struct wp_options *options,
    bool side)
{
	attr->sample_period = 1;
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
	    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
	    PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = USER_REGS;
	if (options->stack > 0) {
		attr->sample_type |= PERF_SAMPLE_STACK_USER;
		attr->sample_stack_user = options->stack;
	}
	if (options->kernel) {
		attr->sample_type |= PERF_SAMPLE_REGS_INTR;
		attr->sample_regs_intr = KERNEL_REGS;
	}
	if (options->callchain || options->for_perf) {
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr->exclude_callchain_user = 1;
		attr->exclude_callchain_kernel = !options->callchain;
	}
	if (options->physical)
		attr->sample_type |= PERF_SAMPLE_PHYS_ADDR;
	if (options->stop || options->tickets)
		attr->sample_type |= PERF_SAMPLE_RAW;
	attr->sample_id_all = 1;
	attr->mmap = attr->mmap2 = attr->mmap_data = side;
	attr->comm = attr->comm_exec = side;
	attr->task = side;
}

static void
common(struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->exclude_hv = 1;
}

static void
never_fires(struct perf_event_attr *attr)
{
	common(attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->exclude_kernel = 1;
}

static void
watch_slot(struct perf_event_attr *attr, const struct wp_slot *slot,
    bool kernel)
{
	common(attr);
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->bp_type = slot->type;
	attr->bp_addr = slot->addr;
	attr->bp_len = slot->len;
	attr->exclude_kernel = !kernel;
}

uint64_t
wp_attr_format(const struct wp_options *options)
{
	return PERF_FORMAT_TOTAL_TIME_RUNNING |
	    (options->format_lost ? PERF_FORMAT_LOST : 0u);
}

/* Set which tasks an event is for, and what is read from it. */
static void
lifetime(struct perf_event_attr *attr, const struct wp_options *options)
{
	attr->read_format = wp_attr_format(options);
	if (options->everywhere)	/* there is nobody to be left */
		return;
	attr->inherit = !options->stop;
	attr->inherit_thread = attr->inherit && options->inherit_thread &&
	    !options->follow;
	attr->remove_on_exec = options->remove_on_exec;
}

void
wp_attr_reference(struct perf_event_attr *attr,
    const struct wp_options *options)
{
	never_fires(attr);
	lifetime(attr, options);
}

void
wp_attr_watch(struct perf_event_attr *attr, const struct wp_slot *slot,
    const struct wp_options *options, bool side)
{
	watch_slot(attr, slot, options->kernel);
	lifetime(attr, options);
	attr->pinned = attr->inherit;	/* uptime.h */
	if (!options->count)
		sample_what(attr, options, side);
	else if (options->threads)
		attr->sample_period = 1;	/* or no program runs */
}

void
wp_attr_inside(struct perf_event_attr *attr, const struct wp_slot *slot,
    uint64_t period, bool kernel)
{
	watch_slot(attr, slot, kernel);
	attr->sample_period = period > 0 ? period : 1;
	attr->read_format = WP_INSIDE_FORMAT;
	attr->disabled = 1;
}

void
wp_attr_fires(struct perf_event_attr *attr)
{
	_Static_assert(USER_SP < USER_PC, "the order that the kernel has");
	attr->sample_type = PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = 1ull << USER_SP | 1ull << USER_PC;
}

void
wp_attr_uprobe(struct perf_event_attr *attr, uint32_t type, const char *path,
    uint64_t offset)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = type;
	attr->uprobe_path = (uintptr_t)path;
	attr->probe_offset = offset;
}

void
wp_attr_named(struct perf_event_attr *attr, uint64_t id, bool inherit)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = id;
	attr->disabled = 1;
	if (!inherit)
		return;
	attr->inherit = attr->remove_on_exec = 1;
	attr->sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID;
}

void
wp_attr_beside(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->bp_type = 0;
	attr->bp_addr = attr->bp_len = 0;
	attr->exclude_kernel = 1;
}

void
wp_attr_ring(struct perf_event_attr *attr, uint32_t watermark)
{
	never_fires(attr);
	attr->watermark = 1;
	attr->wakeup_watermark = watermark;
}

void
wp_attr_side(struct perf_event_attr *attr, bool tasks)
{
	never_fires(attr);
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
	    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
	attr->sample_id_all = 1;
	attr->inherit = attr->remove_on_exec = 1;
	attr->mmap = attr->mmap2 = attr->mmap_data = !tasks;
	attr->task = attr->comm = tasks;
	attr->read_format = PERF_FORMAT_LOST;
}

void
wp_attr_programs(struct perf_event_attr *attr, bool code)
{
	wp_attr_side(attr, true);
	attr->inherit = attr->remove_on_exec = 0;
	attr->comm = attr->comm_exec = 1;
	attr->mmap = attr->mmap2 = code;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
}

void
wp_attr_tracepoint(struct perf_event_attr *attr, uint64_t id)
{
	common(attr);
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = id;
	attr->sample_period = 1;
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
	    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
	    PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	attr->sample_id_all = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
}

void
wp_attr_mappings(struct perf_event_attr *attr)
{
	wp_attr_programs(attr, true);
	attr->mmap_data = 1;
}

void
wp_attr_clock(struct perf_event_attr *attr, bool inherit)
{
	never_fires(attr);
	attr->inherit = attr->inherit_thread = inherit;
	attr->read_format = WP_INSIDE_FORMAT;
}
