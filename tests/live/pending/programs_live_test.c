/*
 * programs: the command on programs that were not prepared for it, and on the
 * various ways of building, starting and loading programs.
 */
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

static void
start_act(struct target *t, const char *act, const char *argument)
{
	target_start(t, LIST(victim("acts"), act, argument));
}

/* Watch one act from its line to its end.  Result: what it said it did. */
static json_int_t
watch_act(struct outcome *o, const char *act, const char *argument,
    const char *access, const char *spec)
{
	struct target t;
	struct running w;
	json_int_t n;

	start_act(&t, act, argument);
	watch_target(&w, &t, access, spec, NULL);
	n = target_act(&t);
	target_end(&t, 7);
	finish_status(&w, o, 0);
	return n;
}

static bool
is_function(const json_t *hit, int frame, const char *function)
{
	return strcmp(maybe_text(frame_of(hit, frame), "function"),
	    function) == 0;
}

/* The frame, if any, of a function, from a frame on. */
static int
find_function(const json_t *hit, int from, const char *function)
{
	const json_t *frames = json_object_get(hit, "frames");

	for (int i = from; i < (int)json_array_size(frames); i++)
		if (is_function(hit, i, function))
			return i;
	return -1;
}

static bool
is_inlined(const json_t *frame)
{
	return json_is_true(json_object_get(frame, "inlined"));
}

/*
 * --- Debian's own: stripped, with what its dynamic symbols tell ---
 */

/* Complete backtraces, or ended where the stack copy was.  Result: how many
   were complete. */
static size_t
expect_python(const struct outcome *o)
{
	size_t i, complete = 0;
	json_t *line;

	each_hit(o, i, line) {
		const char *end;

		end = maybe_text(line, "truncated");
		assert_string_equal(text_of(line, "access"), "write");
		assert_string_equal(text_of(line, "origin"), "user");
		if (*end != '\0') {
			assert_holds(end, "part of the stack");
			continue;
		}
		complete++;
		expect_complete(line);
		assert_string_equal(text_of(frame_of(line, -2), "module"),
		    "libc.so.6");
		expect_function(line, -2, "__libc_start_main");
		assert_true(find_function(line, 0, "Py_BytesMain") > 0);
	}
	return complete;
}

TEST(python_by_its_process)
{
	static const char script[] =
	    "import os, sys\n"
	    "print('pid', os.getpid(), 'None', hex(id(None)), flush=True)\n"
	    "sys.stdin.readline()\n"
	    "many = [None for i in range(500)]\n"
	    "print('done', len(many), flush=True)\n"
	    "sys.stdin.readline()\n"
	    "os._exit(7)\n";
	struct target t;
	struct running w;
	struct outcome o;

	target_start(&t, LIST("/usr/bin/python3", "-I", "-S", "-c", script));
	watch_target(&w, &t, "-w", "_Py_NoneStruct:8", "--stack=8192");
	assert_int_equal(target_act(&t), 500);
	target_end(&t, 7);
	finish(&w, &o);
	assert_true(number_of(account_of(&o), "hits") > 500);
	assert_true(expect_python(&o) > 0);
	assert_string_equal(t.addr, text_of(first_of(&o, "hit"), "addr"));
}

TEST_WITH(python_as_a_command, scratch_make, scratch_remove)
{
	const char *report = scratch_path("python");
	struct outcome o;

	run_status(&o, 9, LIST(watchctl(), "-w", "_Py_TrueStruct:8", "-o",
	    "json", "-O", report, "--", "/usr/bin/python3", "-I", "-S", "-c",
	    "print([True] * 3); raise SystemExit(9)"));
	assert_string_equal(o.out, "[True, True, True]\n");
	outcome_take(&o, report);
	assert_true(number_of(account_of(&o), "hits") > 100);
	assert_true(expect_python(&o) > 0);
	assert_int_equal(number_of(account_of(&o), "status"), 9);
	assert_null(first_of(&o, "warning"));
}

/* Debian's redis-server is redis-check-rdb, by another name. */
static void
start_redis(struct running *r, const char *socket)
{
	struct outcome o;

	scratch_run("ln -sf /usr/bin/redis-check-rdb redis-server");
	start(r, LIST(scratch_path("redis-server"), "--port", "0",
	    "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir",
	    scratch_dir, "--daemonize", "no"));
	await(r->out, "ready to accept connections");
	run(&o, LIST("/usr/bin/redis-cli", "-s", socket, "ping"));
	assert_string_equal(o.out, "PONG\n");
}

/* Have so many commands answered. */
static void
load_redis(const char *socket, const char *n)
{
	struct outcome o;

	run_status(&o, 0, LIST("/usr/bin/redis-benchmark", "-s", socket, "-n",
	    n, "-c", "10", "-t", "set"));
	assert_holds(o.out, " requests completed in ");
	assert_memory_equal(strstr(o.out, " requests completed in ") -
	    strlen(n), n, strlen(n));
}

/* A program's variables: its file's writable mappings, and what follows. */
struct data {
	uint64_t start, end;
};

static int
add_mapping(void *arg, const struct wp_proc_map *map)
{
	struct data *data = arg;
	bool own = strstr(map->path, "redis") != NULL;

	if ((map->prot & PROT_WRITE) == 0)
		return 0;
	if (data->end == 0 && own)
		*data = (struct data){map->start, map->end};
	else if (map->start == data->end && (own || map->path[0] == '\0'))
		data->end = map->end;
	return 0;
}

static uint64_t *
read_data(pid_t pid, const struct data *data)
{
	size_t size = data->end - data->start;
	uint64_t *words = malloc(size);

	assert_non_null(words);
	assert_int_equal(wp_proc_read(pid, data->start, words, size), size);
	return words;
}

/* Whether a word has grown by one for each of n commands, and few others. */
static bool
has_counted(uint64_t before, uint64_t after, uint64_t n)
{
	return after - before >= n && after - before < n + 5;
}

/* A variable that commands are counted in. */
static uint64_t
find_counter(pid_t pid, const char *socket)
{
	struct data data = {0};
	uint64_t *was[3], addr = 0;

	assert_int_equal(wp_proc_maps(pid, add_mapping, &data), 0);
	assert_true(data.end > data.start);
	was[0] = read_data(pid, &data);
	load_redis(socket, "100");
	was[1] = read_data(pid, &data);
	load_redis(socket, "237");
	was[2] = read_data(pid, &data);
	for (size_t i = 0; i < (data.end - data.start) / 8 && addr == 0; i++)
		if (has_counted(was[0][i], was[1][i], 100) &&
		    has_counted(was[1][i], was[2][i], 237))
			addr = data.start + i * 8;
	for (size_t i = 0; i < 3; i++)
		free(was[i]);
	assert_true(addr != 0);
	return addr;
}

static uint64_t
word_at(pid_t pid, uint64_t addr)
{
	uint64_t word;

	assert_int_equal(wp_proc_read(pid, addr, &word, sizeof(word)),
	    sizeof(word));
	return word;
}

TEST_WITH(redis_under_load, scratch_make, scratch_remove)
{
	const char *socket = scratch_path("socket");
	struct running r, w;
	struct outcome o;
	char pid[16], spec[256];
	uint64_t addr, before, after;
	json_t *watch, *line;
	size_t i;

	start_redis(&r, socket);
	(void)snprintf(pid, sizeof(pid), "%d", r.pid);
	addr = find_counter(r.pid, socket);

	/* what is it called? */
	(void)snprintf(spec, sizeof(spec), "%#llx", (unsigned long long)addr);
	run(&o, LIST(watchctl(), "-w", spec, "-t", "0.01", "-o", "json", "-p",
	    pid));
	expect_hits(&o, 0);
	watch = json_array_get(json_object_get(first_of(&o, "start"),
	    "watches"), 0);
	assert_non_null(strchr(text_of(watch, "symbol"), '+'));
	(void)snprintf(spec, sizeof(spec), "%s:8", text_of(watch, "symbol"));

	before = word_at(r.pid, addr);
	watch_start(&w, LIST(watchctl(), "-w", spec, "-o", "json", "-p", pid));
	load_redis(socket, "5000");
	after = word_at(r.pid, addr);
	(void)kill(w.pid, SIGINT);
	finish(&w, &o);
	assert_true(after - before >= 5000);
	expect_hits(&o, (json_int_t)(after - before));
	each_hit(&o, i, line) {
		assert_int_equal(hex_of(line, "addr"), addr);
		expect_function(line, 0, "call");
		assert_true(find_function(line, 1, "aeMain") > 0);
		assert_true(find_function(line, 1, "main") > 0);
		expect_complete(line);
	}

	/* alive and well: it ends when it is asked to */
	load_redis(socket, "100");
	(void)kill(r.pid, SIGTERM);
	finish_status(&r, &o, 0);
	assert_int_equal(access(socket, F_OK), -1);
}

/*
 * --- C++ ---
 */

/* Whether a function is meant by a demangled symbol, "void f<int>(int)". */
static bool
same_function(const char *name, const char *symbol)
{
	const char *at = strstr(symbol, name);

	return at != NULL && (at == symbol || at[-1] == ' ') &&
	    strchr("(", at[strlen(name)]) != NULL;
}

/* addr2line completes relative paths. */
static bool
same_file(const char *ours, const char *theirs)
{
	size_t n = strlen(ours), len = strlen(theirs);

	return n <= len && strcmp(theirs + len - n, ours) == 0;
}

/* One level of addr2line -fiC, two lines.  It names an inlined function without
   a linkage name by the function around it: those names are not compared. */
static bool
same_level(const json_t *frame, const char *function, char *place)
{
	json_int_t line = json_integer_value(json_object_get(frame, "line"));
	char *colon = strrchr(place, ':');

	assert_non_null(colon);
	*colon = '\0';
	if (atoi(colon + 1) != line ||
	    (line != 0 && !same_file(maybe_text(frame, "file"), place)))
		return false;
	return is_inlined(frame) ||
	    same_function(maybe_text(frame, "function"), function);
}

/* Compare the levels at one address of a program with addr2line's. */
static size_t
compare_levels(const json_t *hit, int first, const char *program)
{
	const char *pc = text_of(frame_of(hit, first), "pc");
	unsigned long long lookup = strtoull(pc, NULL, 16) - (first > 0);
	char text[32], *rest, *function, *place;
	struct outcome o;
	size_t n = 0;

	(void)snprintf(text, sizeof(text), "%#llx", lookup);
	run(&o, LIST("/usr/bin/addr2line", "-fiC", "-e", program, text));
	rest = o.out;
	while ((function = strsep(&rest, "\n")) != NULL && *function != '\0') {
		const json_t *frame = frame_of(hit, first + (int)n++);

		place = strsep(&rest, "\n");
		assert_non_null(place);
		if (!same_level(frame, function, place))
			fail_msg("%s: %s at %s:%d, addr2line: %s at %s", pc,
			    maybe_text(frame, "function"),
			    maybe_text(frame, "file"),
			    (int)json_integer_value(json_object_get(frame,
			    "line")), function, place);
		assert_int_equal(is_inlined(frame), *rest != '\0');
	}
	return n;
}

/* Compare each distinct address of a program's frames; those seen before are in
   known.  A frame's inlined levels follow each other with the same pc. */
static void
compare_frames(const json_t *hit, const char *program, json_t *known)
{
	int n = (int)json_array_size(json_object_get(hit, "frames"));

	for (int i = 0; i < n; i++) {
		const json_t *frame = frame_of(hit, i);
		const char *pc = text_of(frame, "pc");

		if (strcmp(maybe_text(frame, "module"),
		    strrchr(program, '/') + 1) != 0)
			continue;
		if (json_object_get(known, pc) == NULL)
			(void)json_object_set_new(known, pc, json_integer(
			    (json_int_t)compare_levels(hit, i, program)));
		i += (int)number_of(known, pc) - 1;
	}
}

/* What a hit's first frames may be. */
static bool
is_expected_writer(const json_t *hit)
{
	static const struct {
		const char *inlined, *around;
	} writers[] = {
		{"ledger::add<int>", "ledger::Account::~Account"},
		{"ledger::add<long>", "ledger::Account::deposit"},
		{"ledger::add<double>", "ledger::Account::withdraw<double>"},
		{"ledger::add<long>", "ledger::attempt"},
	};
	int around = 1;

	/* the lambda, with whatever the compiler calls it */
	if (find_function(hit, 2, "ledger::attempt") == 2 &&
	    is_inlined(frame_of(hit, 1)))
		around = 2;
	if (!is_inlined(frame_of(hit, 0)) || is_inlined(frame_of(hit, around)))
		return false;
	for (size_t i = 0; i < COUNT(writers); i++)
		if (is_function(hit, 0, writers[i].inlined) &&
		    is_function(hit, around, writers[i].around))
			return true;
	return false;
}

/* What the ledger says after its line. */
static void
hear_ledger(struct outcome *o)
{
	struct running r;

	start(&r, LIST(victim("ledger")));
	hear(&r, (char [256]){0}, 256);
	say(&r, "go\n");
	finish(&r, o);
}

TEST(exceptions_on_threads)
{
	struct outcome alone, beside, o;
	struct running w;
	struct target t;
	json_t *line, *known = json_object();
	long writes;
	size_t i;

	hear_ledger(&alone);
	assert_int_equal(alone.status, 3);
	assert_int_equal(sscanf(alone.out, "writes %ld", &writes), 1);

	target_start(&t, LIST(victim("ledger")));
	watch_target(&w, &t, "-w", "balance", NULL);
	say(&t.run, "go\n");
	finish(&t.run, &beside);
	finish(&w, &o);
	assert_string_equal(alone.out, beside.out);
	assert_int_equal(alone.status, beside.status);
	expect_hits(&o, writes);
	each_hit(&o, i, line) {
		if (!is_expected_writer(line))
			fail_msg("a write by %s in %s",
			    maybe_text(frame_of(line, 0), "function"),
			    maybe_text(frame_of(line, 1), "function"));
		assert_null(json_object_get(line, "truncated"));
		assert_true(find_function(line, 1, "ledger::attempt") > 0);
		assert_true(find_function(line, 1, "work") > 0);
		compare_frames(line, victim("ledger"), known);
	}
	assert_true(json_object_size(known) > 10);
	json_decref(known);
}

/*
 * --- how a program is made ---
 */

/* Watch a process of the counter, which writes ten times on each of two
   threads, by its symbol.  What was done to it meanwhile must not show. */
static void
watch_counter(struct target *t)
{
	struct running w;
	struct outcome o;
	char line[64];
	size_t i;
	json_t *hit;

	watch_target(&w, t, "-w", "counter", NULL);
	say(&t->run, "go\n");
	hear(&t->run, line, sizeof(line));
	assert_string_equal(line, "done");
	target_end(t, 7);
	finish(&w, &o);
	expect_hits(&o, 20);
	each_hit(&o, i, hit) {
		assert_string_equal(text_of(hit, "addr"), t->addr);
		expect_chain(hit);
	}
}

/* Without .debug_aranges, for one. */
TEST_WITH(made_by_clang, scratch_make, scratch_remove)
{
	struct target t;

	scratch_run("clang -g -O1 -pthread -o by_clang "
	    "%s/tests/victim/counter.c", getenv("TOP"));
	target_start(&t, LIST(scratch_path("by_clang"), "2", "10"));
	watch_counter(&t);
}

TEST(statically_linked)
{
	struct target t;

	target_start(&t, LIST(victim("counter_static"), "2", "10"));
	watch_counter(&t);
}

/*
 * --- where its file is ---
 */

TEST_WITH(its_file_is_gone, scratch_make, scratch_remove)
{
	struct target t;

	scratch_run("cp %s gone", victim("counter"));
	target_start(&t, LIST(scratch_path("gone"), "2", "10"));
	scratch_run("rm gone");
	watch_counter(&t);
}

/* The new one has a counter as well, elsewhere. */
TEST_WITH(its_file_is_another_now, scratch_make, scratch_remove)
{
	struct target t;

	scratch_run("cp %s other && cp %s newer", victim("counter"),
	    victim("idle"));
	target_start(&t, LIST(scratch_path("other"), "2", "10"));
	scratch_run("mv newer other");
	watch_counter(&t);
}

static bool
may_unshare(void)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWNS) != 0);
	(void)waitpid(pid, &status, 0);
	return status == 0;
}

/* The same path is another program here. */
TEST_WITH(in_another_mount_namespace, scratch_make, scratch_remove)
{
	static const char script[] = "mount -t tmpfs none \"$1/inner\" && "
	    "cp \"$2\" \"$1/inner/prog\" && exec \"$1/inner/prog\" 2 10";
	struct target t;

	if (!may_unshare()) {
		print_message("a mount namespace is not permitted\n");
		skip();
	}
	scratch_run("mkdir inner && cp %s inner/prog", victim("idle"));
	target_start(&t, LIST("/usr/bin/unshare", "-m", "/bin/sh", "-c", script,
	    "sh", scratch_dir, victim("counter")));
	watch_counter(&t);
}

/*
 * --- libraries, and what calls from there ---
 */

static void
make_plug(void)
{
	scratch_run("%s -g -O1 -shared -fPIC -o libplug.so "
	    "%s/tests/victim/plug.c", getenv("CC"), getenv("TOP"));
}

TEST_WITH(a_library_loaded_later, scratch_make, scratch_remove)
{
	struct outcome o;
	size_t i;
	json_t *hit;

	make_plug();
	expect_hits(&o, watch_act(&o, "load_library",
	    scratch_path("libplug.so"), "-w", "word"));
	each_hit(&o, i, hit) {
		const json_t *frame;

		expect_function(hit, 0, "plug_write");
		frame = frame_of(hit, 0);
		assert_string_equal(text_of(frame, "module"), "libplug.so");
		assert_holds(text_of(frame, "file"), "plug.c");
		expect_function(hit, 1, "load_library");
		expect_complete(hit);
	}
}

/* Before the program's first instruction, in a library that the dynamic loader
   has yet to map when the command is started. */
TEST_WITH(a_constructor_writes, scratch_make, scratch_remove)
{
	const char *report = scratch_path("plugged.json");
	struct outcome o;
	json_t *watches;
	size_t i;
	json_t *hit;

	make_plug();
	scratch_write("plugged.c", "extern volatile long plug_state;\n"
	    "int main(void) { return (int)plug_state; }\n");
	scratch_run("%s -o plugged plugged.c -L. -lplug -Wl,-rpath,%s",
	    getenv("CC"), scratch_dir);
	run(&o, LIST(watchctl(), "-w", "libplug.so!plug_table+16:8", "-w",
	    "libplug!plug_table+20:4", "-o", "json", "-O", report, "--",
	    scratch_path("plugged")));
	if (o.status != 42)
		fail_msg("status %d: %s", o.status, o.err);
	outcome_take(&o, report);
	expect_hits(&o, 2);
	watches = json_object_get(first_of(&o, "start"), "watches");
	assert_string_equal(text_of(json_array_get(watches, 0), "symbol"),
	    "plug_table+16");
	assert_int_equal(number_of(json_array_get(watches, 1), "len"), 4);
	each_hit(&o, i, hit) {
		expect_function(hit, 0, "plug_prepare");
		assert_string_equal(text_of(hit, "new"),
		    number_of(hit, "watch") == 1 ? "0x7" : "0x0");
		assert_string_equal(text_of(frame_of(hit, -1), "module"),
		    "ld-linux-x86-64.so.2");
	}
}

/* main -> qsort -> compare -> memcpy, memset, strcpy: two of these are called
   through the PLT. */
TEST(functions_of_the_c_library)
{
	static const char *const by[] = {"by_memcpy", "by_memset", "by_strcpy"};
	unsigned seen[3] = {0};
	struct outcome o;
	size_t i;
	json_t *hit;

	assert_true(watch_act(&o, "library", NULL, "-w", "word") >= 9);
	assert_true(number_of(account_of(&o), "hits") >= 9);
	each_hit(&o, i, hit) {
		assert_string_equal(text_of(frame_of(hit, 0), "module"),
		    "libc.so.6");
		for (size_t k = 0; k < 3; k++)
			seen[k] += find_function(hit, 1, by[k]) == 1;
		expect_function(hit, 2, "compare");
		assert_string_equal(text_of(frame_of(hit, 3), "module"),
		    "libc.so.6");
		assert_true(find_function(hit, 4, "library") > 3);
		assert_true(find_function(hit, 4, "main") > 4);
		expect_complete(hit);
	}
	assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}

/* The kernel's code in the process; or the kernel's own, on machines whose
   clock only it can read. */
TEST(the_vdso_writes)
{
	struct outcome o;
	size_t i;
	json_t *hit;

	expect_hits(&o, watch_act(&o, "tell_time", "20", "-w", "moment:8"));
	each_hit(&o, i, hit) {
		if (strcmp(text_of(hit, "origin"), "user") == 0) {
			assert_string_equal(text_of(frame_of(hit, 0),
			    "module"), "[vdso]");
			assert_holds(text_of(frame_of(hit, 0), "function"),
			    "clock_gettime");
		} else {
			assert_string_equal(text_of(hit, "syscall"),
			    "clock_gettime");
		}
		assert_true(find_function(hit, 1, "tell_time") > 0);
		expect_complete(hit);
	}
}

/* handler, the signal frame, raise, handle; from another stack the copy does
   not reach the interrupted function's callers. */
TEST(a_signal_handler_writes)
{
	unsigned complete = 0, other_stack = 0;
	struct outcome o;
	size_t i;
	json_t *hit;

	expect_hits(&o, watch_act(&o, "handle", "10", "-w", "word"));
	each_hit(&o, i, hit) {
		expect_function(hit, 0, "store");
		expect_function(hit, 1, "handler");
		assert_true(json_is_true(json_object_get(frame_of(hit, 2),
		    "signal")));
		assert_null(json_object_get(frame_of(hit, 1), "signal"));
		assert_string_equal(text_of(frame_of(hit, 3), "module"),
		    "libc.so.6");
		if (json_object_get(hit, "truncated") != NULL) {
			other_stack++;
			continue;
		}
		complete++;
		expect_complete(hit);
		assert_true(find_function(hit, 4, "handle") > 3);
	}
	assert_int_equal(complete, 5);
	assert_int_equal(other_stack, 5);
}

/*
 * --- kinds of access ---
 */

TEST(executions_of_a_function)
{
	struct outcome o;
	size_t i;
	json_t *hit;

	expect_hits(&o, watch_act(&o, "call", "1000", "-x", "called"));
	each_hit(&o, i, hit) {
		const json_t *frame;

		frame = frame_of(hit, 0);
		assert_string_equal(text_of(hit, "access"), "execute");
		assert_string_equal(text_of(frame, "function"), "called");
		assert_int_equal(number_of(frame, "offset"), 0);
		assert_string_equal(text_of(frame, "pc"),
		    text_of(hit, "addr"));
		expect_function(hit, 1, "call");
		expect_complete(hit);
	}
}

/* Of N each: stores, loads twice, and instructions that do both three times. */
TEST(reads_and_writes)
{
	static const struct {
		const char *access;
		json_int_t stores, loads, both;
	} cases[] = {
		{"-a", 1, 2, 3}, {"-r", 0, 2, 3}, {"-w", 1, 0, 3},
	};

	for (size_t c = 0; c < COUNT(cases); c++) {
		json_int_t stores = 0, loads = 0, both = 0, n;
		struct outcome o;
		size_t i;
		json_t *hit;

		n = watch_act(&o, "mix", "50", cases[c].access, "word");
		expect_hits(&o, n * (cases[c].stores + cases[c].loads +
		    cases[c].both));
		each_hit(&o, i, hit) {
			stores += find_function(hit, 0, "store") == 0 &&
			    strcmp(text_of(hit, "access"), "write") == 0;
			loads += find_function(hit, 0, "load") == 0 &&
			    strcmp(text_of(hit, "access"), "read") == 0;
			both += find_function(hit, 0, "increment") == 0 &&
			    strcmp(text_of(hit, "access"),
			    strcmp(cases[c].access, "-w") == 0 ? "write" :
			    "read-write") == 0;
		}
		assert_int_equal(stores, n * cases[c].stores);
		assert_int_equal(loads, n * cases[c].loads);
		assert_int_equal(both, n * cases[c].both);
	}
}

/* Code that a program makes is called what the program calls it; and this
   allows nothing. */
TEST(code_made_at_run_time)
{
	static const char *const names[] = {
		"made \033[1mat run time", "made beside it",
	};
	struct running w;
	struct target t;
	struct outcome o;
	size_t i, n = 0;
	char map[64];
	json_t *line;

	target_start(&t, LIST(victim("jit")));
	(void)snprintf(map, sizeof(map), "/tmp/perf-%s.map", t.pid);
	watch_target(&w, &t, "-w", "jit", "--allow=made*");
	assert_int_equal(target_act(&t), 2);
	target_end(&t, 7);
	finish(&w, &o);
	assert_int_equal(unlink(map), 0);
	each_hit(&o, i, line) {
		const json_t *frame;

		assert_true(n < 2);
		frame = frame_of(line, 0);
		assert_string_equal(maybe_text(frame, "function"), names[n++]);
		assert_string_equal(text_of(frame, "module"), map + 5);
		assert_true(is_function(line, 1, "call"));
		assert_true(is_function(line, 2, "main"));
		assert_true(json_is_true(json_object_get(line, "stray")));
	}
	assert_int_equal(n, 2);
}

/*
 * --- what a hostile one has for who looks at it ---
 */

/* Hits named by symbols, and no lines. */
static void
expect_symbols(struct outcome *o, int status)
{
	size_t i, hits = 0;
	json_t *line;

	assert_int_equal(o->status, status);
	each_hit(o, i, line) {
		hits++;
		assert_non_null(json_object_get(frame_of(line, 0), "function"));
		assert_null(json_object_get(frame_of(line, 0), "line"));
	}
	assert_true(hits > 0);
}

/* Watched from its start, while it runs, and afterwards: in a recording. */
static void
expect_symbols_everywhere(const char *path, const char *said)
{
	const char *recording = scratch_path("recording");
	struct running w;
	struct target t;
	struct outcome o;

	run_status(&o, 7, LIST(watchctl(), "-w", "config", "--", path,
	    "scribble"));
	assert_holds(o.err, "\n     0  scribble");
	assert_lacks(o.err, "config.c");
	assert_holds(o.err, said);
	target_start(&t, LIST(path, "scribble"));
	watch_target(&w, &t, "-w", "config", NULL);
	(void)target_act(&t);
	target_end(&t, 7);
	finish(&w, &o);
	expect_symbols(&o, 0);
	assert_holds(o.err, said);
	run_status(&o, 7, LIST(watchctl(), "-w", "config", "-o", "perf", "-O",
	    recording, "--", path, "scribble"));
	run(&o, LIST(watchctl(), "report", "-o", "json", recording));
	expect_symbols(&o, 0);
	assert_holds(o.err, said);
}

/* Nobody writes into the FIFO: who opens it waits for ever. */
TEST_WITH(a_fifo_where_its_debug_file_should_be, scratch_make, scratch_remove)
{
	scratch_run("cp '%s' trap && objcopy --only-keep-debug trap trap.debug "
	    "&& objcopy --strip-debug --add-gnu-debuglink=trap.debug trap && "
	    "rm trap.debug && mkfifo trap.debug", victim("config"));
	expect_symbols_everywhere(scratch_path("trap"), "");
}

/* In a few bytes. */
TEST_WITH(debug_information_that_claims_gigabytes, scratch_make, scratch_remove)
{
	scratch_run("objcopy --compress-debug-sections=zlib '%s' trap && "
	    "at=$(readelf -SW trap | sed -n 's/.* \\.debug_info *PROGBITS "
	    "*[0-9a-f]* \\([0-9a-f]*\\) .*/\\1/p') && "
	    "printf '\\0\\0\\0\\300\\0\\0\\0\\0' | dd of=trap bs=1 "
	    "seek=$((0x$at + 8)) conv=notrunc 2>dd", victim("config"));
	expect_symbols_everywhere(scratch_path("trap"),
	    "debug information is not used: ");
}

RUN_LIVE_TESTS()
