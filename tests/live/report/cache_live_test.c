/*
 * cache: the second run reads what the first one found out, live and from a
 * recording, unless it is told not to.  Whether it does shows when the index
 * lies.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "units.h"

/* A program with more than a megabyte of debug information. */
static int
make_program(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	write_much(16000);
	scratch_write("main.c", "struct { int limit; } config;\n"
	    "int\nmain(void)\n{\n	config.limit = 7;\n"
	    "	return 0;\n}\n");
	scratch_run("cc -g -fno-eliminate-unused-debug-types -o p much.c "
	    "main.c -Wl,--build-id,--compress-debug-sections=zlib");
	return setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
}

static int
empty_cache(void **state)
{
	(void)state;
	return scratch_try("rm -rf cache");
}

/* What is kept of the program. */
#define INDEX "cache/watchctl/$(readelf -n p | "			\
	"sed -n 's/.*Build ID: //p').index"

static bool
is_kept(void)
{
	return scratch_try("test -s " INDEX) == 0;
}

/* Have the index say that the member has another name. */
static void
lie(void)
{
	scratch_run("sed -i s/limit/limbo/ " INDEX);
}

/* Have a command report a hit with this name. */
static void
expect(const char *name, const char *const argv[])
{
	struct outcome o;

	run(&o, argv);
	if (o.status != 0 || (strstr(o.out, name) == NULL &&
	    strstr(o.err, name) == NULL))
		fail_msg("no %s: %s%s", name, o.out, o.err);
}

#define WATCH(...)							\
	(const char *[]){watchctl(), "-w", "config:4", __VA_ARGS__, "--", \
	    scratch_path("p"), NULL}
#define REPORT(...)							\
	(const char *[]){watchctl(), "report", __VA_ARGS__,		\
	    scratch_path("recording"), NULL}

TEST_WITH(live, empty_cache, NULL)
{
	expect("config.limit", WATCH("--no-cache"));
	scratch_run("test ! -e cache");
	expect("config.limit", WATCH("-f"));
	assert_true(is_kept());
	expect("config.limit", WATCH("-f"));
	lie();
	expect("config.limbo", WATCH("-f"));
	expect("config.limit", WATCH("--no-cache"));
}

TEST_WITH(of_a_recording, empty_cache, NULL)
{
	expect("1 hit", WATCH("-o", "perf", "-O", scratch_path("recording")));
	scratch_run("rm -rf cache");
	expect("config", REPORT("--no-cache"));
	scratch_run("test ! -e cache");
	expect("main.c:5", REPORT("-n", "1"));
	assert_true(is_kept());
	expect("main.c:5", REPORT("-n", "1"));
	lie();
	expect("limbo", REPORT("-n", "1"));
	expect("limit", REPORT("--no-cache"));
}

/* A hit with a frame in main. */
static void
write_log(void)
{
	scratch_run("printf 'watchpoint: #1 write x (1 bytes at 0x1) by p[1/1]"
	    "\\nwatchpoint:   #1 frame 1 0x1 %%s+0x%%x\\n' $PWD/p "
	    "$((0x$(nm p | sed -n 's/ T main$//p') + 1)) > recording");
}

TEST_WITH(of_a_log, empty_cache, NULL)
{
	write_log();
	expect("main.c:", REPORT("--no-cache"));
	scratch_run("test ! -e cache");
	expect("main.c:", REPORT("-O", "-"));
	assert_true(is_kept());
	expect("main.c:", REPORT("-O", "-"));
}

/* Without a place for it all is as it was. */
TEST_WITH(nowhere, empty_cache, NULL)
{
	(void)setenv("XDG_CACHE_HOME", "/dev/null", 1);
	expect("config.limit", WATCH("-f"));
	(void)setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
	scratch_run("mkdir -m 777 cache && chmod 777 cache");
	expect("config.limit", WATCH("-f"));
	scratch_run("test -z \"$(ls cache)\"");
}

RUN_LIVE_TESTS(.before_all = make_program, .after_all = scratch_remove)
