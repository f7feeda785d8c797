/*
 * hard: programs that watch themselves under difficult conditions
 * (victim/hard.c), by each delivery, with the helper and without one.  They end
 * as they would without a watch, and each access is reported.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>

#include "command.h"
#include "live.h"
#include "scratch.h"

enum { ANY = -1, AT_A_TIME = 4 };

static const struct scene {
	const char *name;
	int status;		/* its exit status, or 128 + signal */
	int hits;		/* ANY: as many as it says it counted */
} scenes[] = {
	{"in_free", 0, ANY},
	{"in_printf", 0, ANY},
	{"in_dlopen", 0, ANY},
	{"in_thread_start_and_end", 0, ANY},
	{"in_atexit", 0, 1},
	{"in_handlers", 0, 8},
	{"beside_other_traps", 0, 1},
	{"under_timers", 0, ANY},
	{"on_a_nearly_full_stack", 0, 1},
	{"in_deep_recursion", 0, 1},
	{"without_a_stack", 0, 5},
	{"keeping_registers", 0, 1},
	{"on_a_broken_heap", 0, 2},
	{"before_an_illegal_instruction", 128 + SIGILL, 1},
	{"before_exit", 3, 1},
	{"before_being_killed", 128 + SIGKILL, 1},
	{"before_abort", 128 + SIGABRT, 1},
	{"before_execve", 0, 1},
	{"before_a_stack_overflow", 128 + SIGSEGV, 1},
	{"with_children", 0, 1},
	{"with_few_descriptors", 0, 1},
	{"in_many_threads", 0, 200},
	{"in_cancelled_threads", 0, ANY},
	{"ending_threads_in_a_handler", 0, 4},
};

/* The number behind a text; the test fails where it is not found. */
static int
number_behind(const char *in, const char *text)
{
	const char *at = strstr(in, text);
	int n = 0;

	if (at == NULL || sscanf(at + strlen(text), "%d", &n) != 1)
		fail_msg("no '%sN' in: %s", text, in);
	return n;
}

/* What the helper says last: how many it reported; no hit is lost. */
static int
account(const char *err)
{
	assert_int_equal(number_behind(err, " reported, "), 0);
	return number_behind(err, "\nwatchctl: ");
}

/* How many times a text stands there. */
static int
times_in(const char *in, const char *text)
{
	int n = 0;

	for (; (in = strstr(in, text)) != NULL; in += strlen(text))
		n++;
	return n;
}

/* Reported; and, of those that the program counted, all. */
static void
expect(const struct scene *scene, const struct outcome *o, bool helped)
{
	int hits, reported;

	if (o->status != scene->status)
		fail_msg("%s: status %d\n%s%s", scene->name, o->status, o->out,
		    o->err);
	hits = scene->hits != ANY ? scene->hits :
	    number_behind(o->out, "counted ");
	reported = helped ? account(o->err) : times_in(o->err, " frame 0 ");
	if (reported != hits)
		fail_msg("%s: %d hits, %d reported\n%s%s", scene->name, hits,
		    reported, o->out, o->err);
}

/* A few at a time: what takes long is the helpers' work. */
static void
play(const char *helper, const char *delivery)
{
	struct running programs[AT_A_TIME];
	struct outcome o;

	assert_int_equal(setenv("WATCHPOINT_HELPER", helper, 1), 0);
	assert_int_equal(setenv("WATCHPOINT_DELIVERY", delivery, 1), 0);
	for (size_t i = 0; i < COUNT(scenes); i += AT_A_TIME) {
		size_t n = COUNT(scenes) - i;

		if (n > AT_A_TIME)
			n = AT_A_TIME;
		for (size_t j = 0; j < n; j++)
			start(&programs[j], LIST(victim("hard"), scenes[i +
			    j].name));
		for (size_t j = 0; j < n; j++) {
			finish(&programs[j], &o);
			expect(&scenes[i + j], &o, *helper != '\0');
		}
	}
}

TEST(by_sigtrap)
{
	play(watchctl(), "sigtrap");
}

TEST(by_async)
{
	play(watchctl(), "async");
}

TEST(by_ptrace)
{
	play(watchctl(), "ptrace");
}

TEST(without_a_helper)
{
	play("", "sigtrap");
}

/* Whether set-user-ID programs get root's privileges there: probed. */
static bool
privileges_work(void)
{
	if (geteuid() == 0 && scratch_try("cp /usr/bin/id id && chmod 4755 id "
	    "&& setpriv --reuid=65534 --regid=65534 --clear-groups ./id -u | "
	    "grep -qx 0") == 0)
		return true;
	print_message("no set-user-ID program can be made here\n");
	return false;
}

/* What who starts it has set up is not executed, nor written to: neither where
   its environment says, nor beside what it is called. */
TEST(with_privileges_of_its_file)
{
	struct outcome o;

	if (!privileges_work())
		skip();
	scratch_run("chmod 755 . && mkdir -p lib bin && install -d -m 1777 out "
	    "&& cp '%s' lib/hard && chmod 4755 lib/hard", victim("hard"));
	scratch_write("bin/watchctl", "#!/bin/sh\n: > \"${0%/*}\"/../out/it\n");
	scratch_run("chmod 755 bin/watchctl && cp bin/watchctl out/helper");
	assert_int_equal(setenv("WATCHPOINT_HELPER",
	    scratch_path("out/helper"), 1), 0);
	assert_int_equal(setenv("WATCHPOINT_OUTPUT",
	    scratch_path("out/it"), 1), 0);
	run(&o, LIST("/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
	    "--clear-groups", scratch_path("lib/hard"), "before_exit"));
	assert_int_equal(unsetenv("WATCHPOINT_OUTPUT"), 0);
	assert_int_equal(o.status, 3);
	if (scratch_try("[ ! -e out/it ]") != 0)
		fail_msg("it was made to: %s", o.err);
	/* there may be one that is installed */
	if (strstr(o.err, "#1") == NULL)
		fail_msg("nothing reported: %s", o.err);
}

/* The object has a watch open when it is closed: on a word of its own, with a
   handler of its own, or on the program's. */
static const char unloads[] =
    "#include <dlfcn.h>\n"
    "#include <stdio.h>\n"
    "long word, *at = &word;\n"
    "int hits;\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "	void *object = dlopen(argv[1], RTLD_NOW), (*begin)(void);\n"
    "	if (object == NULL)\n"
    "		return puts(dlerror()), 1;\n"
    "	*(void **)&begin = dlsym(object, \"begin\");\n"
    "	begin();\n"
    "	if (dlclose(object) != 0)\n"
    "		return 1;\n"
    "	*at = argc;\n"
    "	printf(\"%d hits\\n\", hits);\n"
    "	return 0;\n"
    "}\n";

static const char unloaded[] =
    "#include <watchpoint.h>\n"
    "extern long word, *at;\n"
    "extern int hits;\n"
    "static long own;\n"
    "static void note(const struct wp_hit *hit, void *arg) { ++*(int *)arg; }\n"
    "void begin(void)\n"
    "{\n"
    "	struct wp_attr attr = {.size = sizeof(attr), .len = sizeof(own),\n"
    "	    .handler = note, .arg = &hits};\n"
    "	struct wp_watch *w;\n"
    "#ifdef OWN\n"
    "	at = &own;\n"
    "#endif\n"
    "	attr.addr = at;\n"
    "	wp_open(&attr, &w);\n"
    "}\n";

TEST(in_an_object_that_is_unloaded)
{
	static const struct {
		const char *name, *object, *program;
	} cases[] = {
		{"the library in it", "$lib", ""},
		{"and its own word", "-DOWN $lib", ""},
		{"the library in the program", "-DOWN",
		    "-Wl,--whole-archive $lib -Wl,--no-whole-archive"},
	};
	struct outcome o;

	assert_int_equal(setenv("WATCHPOINT_HELPER", "", 1), 0);
	scratch_write("program.c", unloads);
	scratch_write("object.c", unloaded);
	for (size_t i = 0; i < COUNT(cases); i++) {
		scratch_run("from='%s/lib/watchpoint'; "
		    "lib=\"$from/libwatchpoint.a\"; "
		    "cc -shared -fPIC -I\"$from\" -o object.so object.c %s && "
		    "cc -rdynamic -o program program.c %s", getenv("TOP"),
		    cases[i].object, cases[i].program);
		run(&o, LIST(scratch_path("program"),
		    scratch_path("object.so")));
		if (o.status != 0 || strcmp(o.out, "1 hits\n") != 0)
			fail_msg("%s: status %d\n%s%s", cases[i].name, o.status,
			    o.out, o.err);
	}
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
