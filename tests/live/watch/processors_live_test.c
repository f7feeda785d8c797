/*
 * processors: machines without breakpoints, with processors on which no watch
 * fires, or none can be opened.  They are simulated by changing what watchctl asks of the kernel.
 */
#include "test.h"

#include <sched.h>

#include "live.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"

static const char *guest;		/* the victim */
static int last_cpu;			/* that this test may run on */
static unsigned cpus;

/* What is to be preloaded: watches go elsewhere, all of them or those that are
   set on processor SILENT_CPU; or there are none, and NO_BREAKPOINTS is the errno
   of perf_event_open(2). */
static const char silencer[] =
    "#include <dlfcn.h>\n"
    "#include <errno.h>\n"
    "#include <linux/perf_event.h>\n"
    "#include <sched.h>\n"
    "#include <stdarg.h>\n"
    "#include <stddef.h>\n"
    "#include <stdlib.h>\n"
    "#include <sys/ptrace.h>\n"
    "#include <sys/syscall.h>\n"
    "#include <sys/user.h>\n"
    "static long elsewhere __attribute__((aligned(8)));\n"
    "static int silent(void)\n"
    "{\n"
    "	const char *cpu = getenv(\"SILENT_CPU\");\n"
    "	return cpu == NULL || atoi(cpu) == sched_getcpu();\n"
    "}\n"
    "long syscall(long n, ...)\n"
    "{\n"
    "	long (*real)(long, ...) =\n"
    "	    (long (*)(long, ...))dlsym(RTLD_NEXT, \"syscall\");\n"
    "	long a[6];\n"
    "	va_list ap;\n"
    "	struct perf_event_attr attr;\n"
    "	va_start(ap, n);\n"
    "	for (int i = 0; i < 6; i++) a[i] = va_arg(ap, long);\n"
    "	va_end(ap);\n"
    "	if (n == SYS_perf_event_open) {\n"
    "		attr = *(struct perf_event_attr *)a[0];\n"
    "		const char *none = getenv(\"NO_BREAKPOINTS\");\n"
    "		if (attr.type == PERF_TYPE_BREAKPOINT && none != NULL) {\n"
    "			errno = atoi(none);\n"
    "			return -1;\n"
    "		}\n"
    "		if (attr.type == PERF_TYPE_BREAKPOINT && silent()) {\n"
    "			attr.bp_addr = (long)&elsewhere;\n"
    "			a[0] = (long)&attr;\n"
    "		}\n"
    "	}\n"
    "	return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);\n"
    "}\n"
    "long ptrace(enum __ptrace_request what, ...)\n"
    "{\n"
    "	long (*real)(enum __ptrace_request, ...) =\n"
    "	    (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "
    "\"ptrace\");\n"
    "	va_list ap;\n"
    "	va_start(ap, what);\n"
    "	int pid = va_arg(ap, int);\n"
    "	void *at = va_arg(ap, void *), *data = va_arg(ap, void *);\n"
    "	va_end(ap);\n"
    "	if (what == PTRACE_POKEUSER && (size_t)at == "
    "offsetof(struct user, u_debugreg[7])) {\n"
    "		if (getenv(\"NO_BREAKPOINTS\") != NULL) {\n"
    "			errno = EIO;\n"
    "			return -1;\n"
    "		}\n"
    "		data = NULL;\n"
    "	}\n"
    "	return real(what, pid, at, data);\n"
    "}\n";

static void
watch_guest(struct outcome *o, const char *const *options)
{
	const char *argv[ARGS];
	const size_t n = append(argv, 0, LIST(watchctl(), "-w", "state",
	    "--allow", "guest.c", "--error-exitcode", "66"));

	(void)append(argv, append(argv, n, options), LIST("--", guest,
	    "store"));
	run(o, argv);
}

/* Nothing is watched, and so nothing is run. */
static void
expect_silence_is_told(const char *const *options, const char *why)
{
	struct outcome o;

	(void)setenv("LD_PRELOAD", scratch_path("silencer.so"), 1);
	watch_guest(&o, options);
	(void)unsetenv("LD_PRELOAD");
	if (o.status != 125 || strstr(o.err, why) == NULL ||
	    strstr(o.err, "mark") != NULL)
		fail_msg("%s: status %d: %s", options[0], o.status, o.err);
}

static const char *const *const modes[] = {
	LIST("-n", "9"), LIST("--stop"), LIST("--inside"),
};

TEST(watches_that_never_fire)
{
	struct outcome o;

	for (size_t i = 0; i < COUNT(modes); i++)
		expect_silence_is_told(modes[i], "do not fire there (they did "
		    "on 0 of");
	(void)setenv("LD_PRELOAD", scratch_path("silencer.so"), 1);
	run(&o, LIST(watchctl(), "doctor"));
	(void)unsetenv("LD_PRELOAD");
	assert_int_equal(o.status, 1);
	assert_holds(o.out, "the main job does not work here");
}

/* As kernels answer that have no such events, and processors that have none. */
TEST(no_breakpoints_at_all)
{
	const int answers[] = {ENOENT, ENODEV, EOPNOTSUPP};
	struct outcome o;
	char number[16];

	for (size_t e = 0; e < COUNT(answers); e++) {
		(void)snprintf(number, sizeof(number), "%d", answers[e]);
		(void)setenv("NO_BREAKPOINTS", number, 1);
		for (size_t i = 0; i < COUNT(modes); i++)
			expect_silence_is_told(modes[i], "this machine offers "
			    "no hardware breakpoints (");
		(void)setenv("LD_PRELOAD", scratch_path("silencer.so"), 1);
		run(&o, LIST(watchctl(), "doctor"));
		(void)unsetenv("LD_PRELOAD");
		(void)unsetenv("NO_BREAKPOINTS");
		assert_int_equal(o.status, 1);
		assert_holds(o.out, "run on real hardware or under another\n");
		assert_holds(o.out, "the main job does not work here");
	}
}

TEST(a_processor_on_which_none_fires)
{
	char number[16], why[64];

	(void)snprintf(number, sizeof(number), "%d", last_cpu);
	(void)snprintf(why, sizeof(why), "accepted on processor %d and do not "
	    "fire there", last_cpu);
	(void)setenv("SILENT_CPU", number, 1);
	for (size_t i = 0; i < COUNT(modes); i++)
		expect_silence_is_told(modes[i], why);
	(void)unsetenv("SILENT_CPU");
}

/* --- where there are no events --- */

TEST(registers_that_never_fire)
{
	expect_silence_is_told(LIST("--stop"), "did not fire");
}

/* --- a processor for which no event can be had, as one that is offline --- */

static int
refuse_processor(int cpu)
{
	const struct refuse_arg processor = {2, (uint32_t)cpu, false};

	return refuse_call(SYS_perf_event_open, ENODEV, &processor, 1) ? 0 : -1;
}

/* The program may have run there. */
TEST(a_processor_that_is_not_watched)
{
	const char *const *const options[] = {
		LIST("-n", "9"), LIST("-f"), LIST("--stop"),
	};
	struct outcome o;
	char said[64];

	if (cpus < 2) {
		print_message("sched_getaffinity: one processor\n");
		skip();
	}
	(void)snprintf(said, sizeof(said), "processor %d runs and cannot be "
	    "watched", last_cpu);
	for (size_t i = 0; i < COUNT(options); i++) {
		watch_guest(&o, options[i]);
		if (o.status != 120 || strstr(o.err, said) == NULL)
			fail_msg("%zu: status %d: %s", i, o.status, o.err);
	}
}

/* --- the machine --- */

static int
begin(void **state)
{
	cpu_set_t all;

	if (scratch_make(state) < 0 ||
	    sched_getaffinity(0, sizeof(all), &all) != 0)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			last_cpu = cpu;
	cpus = (unsigned)CPU_COUNT(&all);
	guest = victim("guest");
	scratch_write("silencer.c", silencer);
	scratch_run("%s -D_GNU_SOURCE -O1 -shared -fPIC -o silencer.so "
	    "silencer.c", getenv("CC"));
	return 0;
}

static int
begin_refused(void **state)
{
	const uid_t nobody = 65534;

	if (begin(state) < 0 ||
	    (geteuid() == 0 && chown(scratch_dir, nobody, nobody) != 0))
		return -1;
	return be_refused(state);
}

static int
begin_without(void **state)
{
	return begin(state) < 0 ? -1 : refuse_processor(last_cpu);
}

int
main(void)
{
	const CMUnitTestFunction without[] = {
		a_processor_that_is_not_watched, NULL,
	};
	const CMUnitTestFunction refused[] = {registers_that_never_fire, NULL};
	const CMUnitTestFunction others[] = {
		a_processor_that_is_not_watched, registers_that_never_fire,
		NULL,
	};
	int failed = run_live_tests(.except = others, .before_all = begin,
	    .after_all = scratch_remove);

	failed += run_live_tests(.only = without, .before_all = begin_without,
	    .after_all = scratch_remove);
	return failed + run_live_tests(.only = refused,
	    .before_all = begin_refused, .after_all = scratch_remove);
}
