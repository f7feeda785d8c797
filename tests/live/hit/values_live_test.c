/*
 * values: the values before and after each write, as watchctl reports them, are
 * compared with the log of the program that wrote them.
 */
#include "test.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "ticketed.h"
#include "watching.h"

/* Watch a victim that writes its log to stdout; the report goes to a file. */
struct watched {
	struct outcome o;	/* of watchctl, with the victim's stdout */
	json_t *lines;		/* of the report */
};

static void
parse_report(struct watched *w, const char *name)
{
	char *text = scratch_read(name, NULL);

	w->lines = json_lines(text);
	assert_non_null(w->lines);
}

/* options and command are NULL-terminated. */
static void
watch_with(struct watched *w, const char *const *options,
    const char *const *command)
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl(), "-o", "json", "-O",
	    scratch_path("report")));

	memset(w, 0, sizeof(*w));
	n = append(argv, append(argv, n, options), LIST("--"));
	(void)append(argv, n, command);
	run(&w->o, argv);
	if (w->o.status != 0)
		fail_msg("status %d: %s", w->o.status, w->o.err);
	parse_report(w, "report");
}

/* The same by a recording of the run. */
static void
record_and_report(struct watched *w, const char *const *command)
{
	const char *argv[ARGS];
	struct outcome o;
	size_t n = append(argv, 0, LIST(watchctl(), "-o", "perf", "-O",
	    scratch_path("recorded"), "-w", "word", "--"));

	memset(w, 0, sizeof(*w));
	(void)append(argv, n, command);
	run(&w->o, argv);
	if (w->o.status != 0)
		fail_msg("status %d: %s", w->o.status, w->o.err);
	run(&o, LIST(watchctl(), "report", "-o", "json", "-O",
	    scratch_path("report"), scratch_path("recorded")));
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.err);
	parse_report(w, "report");
}

static const json_t *
end_of(const struct watched *w)
{
	return json_array_get(w->lines, json_array_size(w->lines) - 1);
}

/* The next hit, by a thread; 0: by any.  NULL: there is none. */
static const json_t *
next_hit(const struct watched *w, size_t *at, json_int_t tid)
{
	const json_t *line;

	while ((line = json_array_get(w->lines, *at)) != NULL) {
		++*at;
		if (is_hit(line) && (tid == 0 || number_of(line, "tid") == tid))
			return line;
	}
	return NULL;
}

/* A hexadecimal member; false: it is not reported. */
static bool
has_value(const json_t *hit, const char *name, uint64_t *value)
{
	const char *text = maybe_text(hit, name);

	*value = strtoull(text, NULL, 16);
	return *text != '\0';
}

static bool
is_later(const json_t *hit)
{
	return strcmp(maybe_text(hit, "value_source"), "later") == 0;
}

/* --- one thread, all forms --- */

/* The touched bytes of the word. */
static uint64_t
part_of(const json_t *hit, uint64_t word, uint64_t addr)
{
	uint64_t at = hex_of(hit, "addr");
	json_int_t len = number_of(hit, "len");

	assert_true(at >= addr && len > 0 && at + (uint64_t)len <= addr + 8);
	word >>= (at - addr) * 8;
	return len == 8 ? word : word & ((UINT64_C(1) << len * 8) - 1);
}

/* What nothing shows, or not always. */
static bool
may_be_unknown(const char *form)
{
	return strcmp(form, "movups") == 0 || strcmp(form, "xchg") == 0 ||
	    strcmp(form, "xadd") == 0 || strncmp(form, "adc", 3) == 0 ||
	    strncmp(form, "sbb", 3) == 0;
}

/* One form: its hit, and what it logged.  Result: whether new is known. */
static bool
check_form(const json_t *hit, char *line, uint64_t addr, bool old_is_known)
{
	const char *name = strtok(line, "|");
	uint64_t old = strtoull(strtok(NULL, "|"), NULL, 16);
	uint64_t new = strtoull(strtok(NULL, "|"), NULL, 16);
	uint64_t said_old = 0, said_new = 0;
	bool has_old = has_value(hit, "old", &said_old);
	bool has_new = has_value(hit, "new", &said_new) && !is_later(hit);

	old = part_of(hit, old, addr);
	new = part_of(hit, new, addr);
	if ((has_old && said_old != old) || (has_new && said_new != new))
		fail_msg("%s: %#llx -> %#llx, not %#llx -> %#llx", name,
		    (unsigned long long)said_old, (unsigned long long)said_new,
		    (unsigned long long)old, (unsigned long long)new);
	if (!has_old && old_is_known)
		fail_msg("%s: old is not told", name);
	if (!has_new && old_is_known && !may_be_unknown(name))
		fail_msg("%s: new is not told", name);
	if ((json_object_get(hit, "unchanged") != NULL) !=
	    (has_old && has_new && old == new))
		fail_msg("%s: unchanged?", name);
	return has_new;
}

/* Result: how many there were. */
static unsigned
check_forms(struct watched *w)
{
	const json_t *start = json_array_get(w->lines, 0), *hit;
	uint64_t addr = strtoull(text_of(json_array_get(json_object_get(start,
	    "watches"), 0), "addr"), NULL, 16);
	bool known = true;
	uint64_t old;
	size_t at = 0;
	unsigned n = 0;
	char *rest = w->o.out, *line;

	/* the first write is not in the log */
	hit = next_hit(w, &at, 0);
	assert_non_null(hit);
	assert_true(has_value(hit, "old", &old));
	assert_int_equal(old, 0);
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		assert_int_equal(strncmp(line, "form ", 5), 0);
		hit = next_hit(w, &at, 0);
		assert_non_null(hit);
		known = check_form(hit, line + 5, addr, known);
		n++;
	}
	assert_null(next_hit(w, &at, 0));
	return n;
}

TEST(reports_all_forms)
{
	static const char *const options[][4] = {
		{"-w", "words+8:8"},
		{"-w", "words+8:8", "--inside"},
		{"-w", "words+8:8", "--stop"},
	};
	const char *const command[] = {victim("forms"), NULL};

	for (size_t i = 0; i < COUNT(options); i++) {
		struct watched w;

		watch_with(&w, options[i], command);
		assert_true(check_forms(&w) > 50);
	}
}

/* A watch that wide stores go beyond has but its own bytes. */
TEST(reports_partial_and_wide_stores)
{
	static const struct {
		const char *spec;
		json_int_t reported;
	} cases[] = {
		/* low: the first half of "mov from below", movups, and
		   cmpxchg16b's; high: of "mov over the end" */
		{"words+4:4", 3}, {"words+16:4", 1},
	};
	const char *const command[] = {victim("forms"), NULL};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const options[] = {"-w", cases[i].spec, NULL};
		struct watched w;
		uint64_t old = 0, new = 0;
		const json_t *hit;
		size_t at = 0;

		watch_with(&w, options, command);
		hit = next_hit(&w, &at, 0);
		assert_non_null(hit);
		assert_true(has_value(hit, "old", &old) &&
		    has_value(hit, "new", &new));
		assert_int_equal(old, 0);
		assert_int_equal(new, i == 0 ? 0xeeff0011 : 0x01020304);
		assert_int_equal(number_of(end_of(&w), "reported"),
		    cases[i].reported);
	}
}

TEST(drops_what_is_unchanged)
{
	const char *const command[] = {victim("forms"), NULL};
	const char *const all[] = {"-w", "words+8:8", NULL};
	const char *const changed[] = {"-w", "words+8:8", "--changed", NULL};
	struct watched w;
	json_int_t hits, unchanged = 0;
	const json_t *hit;
	size_t at = 0;
	char text[64];

	watch_with(&w, all, command);
	hits = number_of(end_of(&w), "reported");
	while ((hit = next_hit(&w, &at, 0)) != NULL)
		unchanged += json_object_get(hit, "unchanged") != NULL;
	assert_true(unchanged >= 4);
	assert_null(json_object_get(end_of(&w), "unchanged"));

	watch_with(&w, changed, command);
	assert_int_equal(number_of(end_of(&w), "hits"), hits);
	assert_int_equal(number_of(end_of(&w), "unchanged"), unchanged);
	assert_int_equal(number_of(end_of(&w), "reported"), hits - unchanged);
	for (at = 0; (hit = next_hit(&w, &at, 0)) != NULL;)
		assert_null(json_object_get(hit, "unchanged"));
	(void)snprintf(text, sizeof(text), " 0 lost, %d unchanged",
	    (int)unchanged);
	assert_holds(w.o.err, text);
}

/* A store and the jump behind it touch the same pointer: the store is the one
   that changed it, or left something else than where the thread is.  The jump,
   which goes on elsewhere, cannot be known. */
TEST(distinguishes_a_store_from_a_jump)
{
	static const struct {
		const char *option, *delivery, *source;
		bool has_old;
	} modes[] = {
		{"--stop", "", "stop", true},
		{NULL, "", "register", true},
		{"--inside", "sigtrap", "stop", false},
		{"--inside", "async", "stop", false},
		{"--inside", "ptrace", "stop", false},
	};
	const char *const command[] = {victim("jumps"), NULL};

	for (size_t i = 0; i < COUNT(modes); i++) {
		const char *const options[] = {"-a", "place", modes[i].option,
		    NULL};
		unsigned stores = 0;
		struct watched w;
		const json_t *hit;
		size_t at = 0;

		(void)setenv("WATCHPOINT_DELIVERY", modes[i].delivery, 1);
		watch_with(&w, options, command);
		(void)unsetenv("WATCHPOINT_DELIVERY");
		while ((hit = next_hit(&w, &at, 0)) != NULL) {
			const json_t *insn = json_object_get(hit, "insn");

			if (json_object_get(insn, "text") == NULL ||
			    strcmp(text_of(insn, "text"),
			    "mov %rdi, (%rdx)") != 0)
				continue;
			stores++;
			assert_string_equal(text_of(insn, "confidence"),
			    "exact");
			assert_string_equal(text_of(hit, "access"), "write");
			assert_int_equal(json_object_get(hit, "old") != NULL,
			    modes[i].has_old);
			assert_non_null(json_object_get(hit, "new"));
			assert_string_equal(text_of(hit, "value_source"),
			    modes[i].source);
		}
		assert_int_equal(stores, 1);
	}
}

/* Where the kernel's accesses are not seen from inside, the only thread's
   additions show what they found. */
TEST(values_from_inside_of_what_sees_reads)
{
	static const char *const deliveries[] = {"sigtrap", "async", "ptrace"};
	const char *const options[] = {"-a", "word", "--inside", NULL};
	const char *const command[] = {scratch_path("adds"), NULL};

	scratch_write("adds.c", "volatile long word;\n"
	    "int main(void)\n"
	    "{\n"
	    "	word = 5;\n"
	    "	for (int i = 0; i < 3; i++)\n"
	    "		__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);\n"
	    "	return 0;\n"
	    "}\n");
	scratch_run("cc -g -O1 -o adds adds.c");
	for (size_t i = 0; i < COUNT(deliveries); i++) {
		uint64_t old, new, is = 5;
		struct watched w;
		const json_t *hit;
		size_t at = 0;

		(void)setenv("WATCHPOINT_DELIVERY", deliveries[i], 1);
		watch_with(&w, options, command);
		(void)unsetenv("WATCHPOINT_DELIVERY");
		assert_true((hit = next_hit(&w, &at, 0)) != NULL &&
		    has_value(hit, "new", &new) && new == is);
		while ((hit = next_hit(&w, &at, 0)) != NULL) {
			assert_true(has_value(hit, "old", &old) &&
			    has_value(hit, "new", &new));
			assert_int_equal(old, is);
			assert_int_equal(new, ++is);
			assert_string_equal(text_of(hit, "value_source"),
			    "stop");
		}
		assert_int_equal(is, 8);
	}
}

/* --- what is no access, and no instruction --- */

static void
act(const char *name, const char *access, const char *more, struct outcome *o)
{
	struct running w;
	struct target t;
	json_int_t n;

	target_start(&t, LIST(victim("acts"), name, "5"));
	watch_target(&w, &t, access, "word", more);
	n = target_act(&t);
	target_end(&t, 7);
	finish(&w, o);
	expect_hits(o, n);
}

/* The sample's copy of the stack is read by the kernel. */
TEST(does_not_count_samples_as_accesses)
{
	struct outcome o;
	json_t *hit;
	size_t i;

	for (int stop = 0; stop <= 1; stop++) {
		act("on_the_stack", "-a", stop ? "--stop" : NULL, &o);
		each_hit(&o, i, hit) {
			assert_string_equal(text_of(hit, "origin"), "user");
			assert_string_equal(text_of(hit, "access"),
			    "read-write");
			if (stop)
				assert_string_equal(text_of(hit,
				    "value_source"), "stop");
		}
	}
}

/* Code that is no longer the file's is not explained by that.  The program
   patches itself when it is told: the hits before that have been explained. */
TEST(does_not_trust_changed_code)
{
	struct running w;
	struct target t;
	struct outcome o;
	char line[8192];
	json_t *hit;
	size_t i;

	target_start(&t, LIST(victim("acts"), "patch_itself"));
	watch_target(&w, &t, "-w", "word", NULL);
	say(&t.run, "store\n");
	for (i = 0; i < 10; i++) {
		hear(&w, line, sizeof(line));
		assert_string_equal(text_of(json_object_get(json_array_get(
		    json_lines(line), 0), "insn"), "confidence"), "exact");
	}
	say(&t.run, "patch, and add\n");
	assert_int_equal(target_done(&t.run), 20);
	target_end(&t, 7);
	finish(&w, &o);
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), 20);
	assert_int_equal(count_of(&o, "hit"), 10);
	each_hit(&o, i, hit)
		assert_string_equal(text_of(json_object_get(hit, "insn"),
		    "confidence"), "unknown");
}

TEST(knows_values_in_32_bit_programs)
{
	struct running victims, w;
	struct outcome o;
	char pid[16];
	json_t *hit;
	size_t i;

	skip_unless_narrow_runs(victim("narrow"));
	start(&victims, LIST(victim("narrow")));
	await_state(victims.pid, "T");
	(void)snprintf(pid, sizeof(pid), "%d", victims.pid);
	watch_start(&w, LIST(watchctl(), "-w", "sum", "--stop", "-n", "10",
	    "-o", "json", "-p", pid));
	(void)kill(victims.pid, SIGCONT);
	finish(&w, &o);
	end(&victims);
	assert_int_equal(count_of(&o, "hit"), 10);
	json_array_foreach(o.lines, i, hit)
		if (is_hit(hit))
			assert_string_equal(maybe_text(hit, "value_source"),
			    "stop");
}

/* --- several threads --- */

/* One write as logged. */
struct write {
	char operation[16];
	uint64_t stored, old;
	bool has_old;
};

/* What was claimed, and who is said to have overwritten each unique value. */
struct access_tally {
	unsigned writes, stores;	/* stores: and additions, which show
					   nothing of the old value */
	unsigned old, new;		/* claimed, of these */
	unsigned noverwritten;
	uint64_t overwritten[32768];
};

static bool
read_write(const char *line, json_int_t *tid, struct write *w)
{
	char old[32];
	int thread;

	if (sscanf(line, "write %d %15[^|]|%" SCNx64 "|%31s", &thread,
	    w->operation, &w->stored, old) != 4)
		return false;
	*tid = thread;
	w->has_old = *old != '-';
	w->old = strtoull(old, NULL, 16);
	return true;
}

/* A value with low byte 0 was stored once, so it is overwritten once. */
static void
note_overwritten(struct access_tally *t, uint64_t value)
{
	if (value == 0 || (value & 0xff) != 0)
		return;
	assert_true(t->noverwritten <
	    COUNT(t->overwritten));
	t->overwritten[t->noverwritten++] = value;
}

static void
check_write(const struct write *w, const json_t *hit, void *arg)
{
	struct access_tally *t = arg;
	const bool stores = strcmp(w->operation, "mov") == 0 ||
	    strcmp(w->operation, "xchg") == 0;
	uint64_t old = 0, new = 0, truth = stores ? w->stored : w->old + 1;
	bool has_old, has_new;

	assert_non_null(hit);
	has_old = has_value(hit, "old", &old);
	has_new = has_value(hit, "new", &new) && !is_later(hit);
	if (has_old && w->has_old && old != w->old)
		fail_msg("%s: old %#llx, not %#llx", w->operation,
		    (unsigned long long)old, (unsigned long long)w->old);
	if (has_new && (stores || w->has_old) && new != truth)
		fail_msg("%s: new %#llx, not %#llx", w->operation,
		    (unsigned long long)new, (unsigned long long)truth);
	/* the register that it stored is in the record */
	if (stores && !has_new)
		fail_msg("%s of %#llx: no new value", w->operation,
		    (unsigned long long)w->stored);
	/* between its reading and its writing others may come */
	if (has_new && has_old && !stores && new != old + 1 &&
	    strcmp(w->operation, "add") != 0)
		fail_msg("%s: %#llx -> %#llx", w->operation,
		    (unsigned long long)old, (unsigned long long)new);
	t->writes++;
	if (w->has_old)
		note_overwritten(t, w->old);
	else if (has_old)
		note_overwritten(t, old);
	if (strncmp(w->operation, "x", 1) == 0)
		return;
	t->stores++;
	t->old += has_old;
	t->new += has_new;
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Call fn with each write of the log, and its hit. */
static void
each_write(const char *log, const struct watched *w,
    void (*fn)(const struct write *, const json_t *, void *), void *arg)
{
	char *copy = strdup(log), *rest = copy, *line;
	json_int_t tid, last = 0;
	struct write write;
	size_t at = 0;

	while ((line = strsep(&rest, "\n")) != NULL) {
		if (!read_write(line, &tid, &write))
			continue;
		at = tid == last ? at : 0;
		last = tid;
		fn(&write, next_hit(w, &at, tid), arg);
	}
	free(copy);
}

/* All writes of all threads, as the log has them, beside their hits. */
static void
check_race(const char *log, const struct watched *w, struct access_tally *t)
{
	memset(t, 0, sizeof(*t));
	assert_int_equal(number_of(end_of(w), "lost"), 0);
	each_write(log, w, check_write, t);
	assert_int_equal(t->writes, number_of(end_of(w), "reported"));
	qsort(t->overwritten, t->noverwritten, sizeof(t->overwritten[0]),
	    compare);
	for (unsigned i = 1; i < t->noverwritten; i++)
		if (t->overwritten[i] == t->overwritten[i - 1])
			fail_msg("%#llx is said to have been overwritten "
			    "twice", (unsigned long long)t->overwritten[i]);
}

static struct access_tally tally;

TEST(claims_no_wrong_value_in_a_race)
{
	static const char *const options[][4] = {
		{"-w", "word"}, {"-w", "word", "--stop"},
	};
	const char *const command[] = {victim("race"), "hot", "3", "1500",
	    NULL};

	for (size_t i = 0; i < COUNT(options); i++) {
		struct watched w;
		unsigned tries = 10;

		/* threads are alone now and then, though not in each run */
		do {
			watch_with(&w, options[i], command);
			check_race(w.o.out, &w, &tally);
			print_message("%u writes; of %u that do not tell the "
			    "old value: old claimed %u, new %u\n",
			    tally.writes, tally.stores, tally.old, tally.new);
		} while (tally.old == 0 && --tries > 0);
		assert_true(tally.old > 0);
	}
}

/* Threads that write all the time are never alone; yet what they replaced is
   known, unless a write of which nothing is known came in between, as additions
   without a lock are. */
static void
check_flat(const char *threads, bool recorded)
{
	const char *const command[] = {victim("race"), "flat", threads, "2500",
	    NULL};
	unsigned tries = 10;

	do {
		struct watched w;

		if (recorded)
			record_and_report(&w, command);
		else
			watch_with(&w, LIST("-w", "word"), command);
		check_race(w.o.out, &w, &tally);
		print_message("%s threads: of %u, old claimed %u, new %u\n",
		    threads, tally.stores, tally.old, tally.new);
	} while (tally.old < tally.stores / 10 && --tries > 0);
	assert_true(tally.old >= tally.stores / 10);
}

TEST(knows_what_busy_threads_replaced)
{
	struct wp_target *target = ticketed_target();

	if (target == NULL)
		skip();
	wp_target_free(target);
	check_flat("2", false);
	check_flat("4", false);
	check_flat("2", true);
}

/* Two threads write at the same time after a pause, for which each of them is
   settled: the one reported first need not have been it.  And many at once.
   From inside, the program's own counts show it, so pauses need not be long. */
TEST(claims_no_wrong_value_inside)
{
	static const char *const option[] = {"-w", "word", "--inside", NULL};
	static const char *const args[][3] = {
		{"pairs", "1", "200"}, {"hot", "3", "200"},
	};

	for (size_t i = 0; i < COUNT(args); i++) {
		const char *const command[] = {victim("race"), args[i][0],
		    args[i][1], args[i][2], NULL};
		struct watched w;

		watch_with(&w, option, command);
		check_race(w.o.out, &w, &tally);
		print_message("%s: of %u, old claimed %u times, new %u times\n",
		    args[i][0], tally.stores, tally.old, tally.new);
		assert_true(tally.old > 0);
	}
}

/* --- threads that contend, with values that they load --- */

/* Every value that is reported is what the program saw. */
static unsigned
check_contention(const struct watched *w, unsigned n, bool adds)
{
	const bool later_too = strcmp(text_of(json_array_get(w->lines, 0),
	    "mode"), "ring") != 0;
	char *copy = strdup(w->o.out), *rest = copy, *line;
	json_int_t tid, last = 0;
	unsigned told_new = 0;
	size_t at = 0;

	assert_int_equal(number_of(end_of(w), "reported"), n);
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		uint64_t old = 0, new = 0, truth;
		struct write write;
		const json_t *hit;

		assert_true(read_write(line, &tid, &write));
		at = tid == last ? at : 0;
		last = tid;
		hit = next_hit(w, &at, tid);
		assert_non_null(hit);
		assert_true(has_value(hit, "old", &old));
		assert_int_equal(old, write.old);
		truth = adds ? old + write.stored : write.stored;
		if (!has_value(hit, "new", &new) ||
		    (is_later(hit) && !later_too))
			continue;
		if (new != truth)
			fail_msg("%s: %#llx -> %#llx, not %#llx (%s)",
			    write.operation, (unsigned long long)old,
			    (unsigned long long)new,
			    (unsigned long long)truth,
			    text_of(hit, "value_source"));
		told_new++;
	}
	free(copy);
	return told_new;
}

/* How many new values are known by other hits. */
static unsigned
count_proved(const struct watched *w)
{
	const json_t *hit;
	unsigned n = 0;

	for (size_t at = 0; (hit = next_hit(w, &at, 0)) != NULL;)
		n += strcmp(maybe_text(hit, "value_source"), "proved") == 0;
	return n;
}

static unsigned
contend_once(const char *const *options, const char *const *command, unsigned n,
    unsigned *proved)
{
	const bool adds = strcmp(command[1], "swaps") != 0;
	struct watched w;
	unsigned new;

	watch_with(&w, options, command);
	new = check_contention(&w, n, adds);
	*proved = count_proved(&w);
	print_message("%s: of %u, new told %u times\n", command[1], n, new);
	return new;
}

/* All on the processor where this runs: that shows in which order they came. */
static void
contend_in_order(const char *const *options, const char *const *command,
    unsigned n)
{
	const int cpu = sched_getcpu();
	unsigned new, proved;
	cpu_set_t before, one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	new = contend_once(options, command, n, &proved);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	/* one waits for the others of its crowd, but not for long */
	if (new < n / 2 || proved == 0)
		fail_msg("%u of %u are told, %u proved", new, n, proved);
}

/* The operand of an addition and what it loaded give the new value; where the
   operand is lost, it may be what the next one loads.  Threads that stop at
   their hits show which one that is, if not too many orders are possible. */
static void
contend(const char *const *options, bool stops)
{
	static const struct {
		const char *what, *threads, *writes;
		bool lost;		/* the operand */
	} args[] = {
		{"adds", "4", "3", false}, {"adds", "4", "150", false},
		{"copies", "4", "150", false},
		{"swaps", "4", "3", true}, {"swaps", "4", "150", true},
		{"sums", "4", "3", true}, {"sums", "4", "150", true},
	};

	for (size_t i = 0; i < COUNT(args); i++) {
		const char *const command[] = {victim("race"), args[i].what,
		    args[i].threads, args[i].writes, NULL};
		const unsigned n = 4 * (unsigned)atoi(args[i].writes);
		unsigned proved;
		const unsigned new = contend_once(options, command, n, &proved);

		if (!args[i].lost)
			assert_int_equal(new, n);
		else if (stops && n > 100)
			contend_in_order(options, command, n);
	}
}

/* Each way in which the inside hears of hits. */
static const char *const deliveries[] = {"sigtrap", "async", "ptrace"};

TEST(reports_what_contending_threads_left_inside)
{
	static const char *const options[] = {"-w", "word", "--inside", NULL};

	for (size_t i = 0; i < COUNT(deliveries);
	    i++) {
		(void)setenv("WATCHPOINT_DELIVERY", deliveries[i], 1);
		contend(options, false);
		(void)unsetenv("WATCHPOINT_DELIVERY");
	}
}

TEST(reports_what_contending_threads_left)
{
	static const char *const options[][5] = {
		{"-w", "word"}, {"-w", "word", "--stop"},
		{"-w", "word", "--stop", "--user-only"},
	};

	for (size_t i = 0; i < COUNT(options); i++)
		contend(options[i], i == 1);
}

/* --- what is written unseen --- */

static bool
is_watched(const struct watched *w, json_int_t pid)
{
	const json_t *hit;
	size_t at = 0;

	while ((hit = next_hit(w, &at, 0)) != NULL)
		if (number_of(hit, "pid") == pid)
			return true;
	return false;
}

/* The hits of a program, and of its child if that is watched, beside what they
   logged: each changed the value.  Result: how many old values were
   reported. */
static unsigned
check_unseen(const struct watched *w, const char *log)
{
	char *copy = strdup(log), *rest = copy, *line;
	unsigned told_old = 0;
	const json_t *hit;
	size_t at = 0;

	while ((line = strsep(&rest, "\n")) != NULL) {
		uint64_t old = 0, new = 0;
		struct write write;
		json_int_t pid;
		bool has_old;

		if (!read_write(line, &pid, &write) || !is_watched(w, pid))
			continue;
		do
			hit = next_hit(w, &at, 0);
		while (hit != NULL && (number_of(hit, "pid") != pid ||
		    strcmp(text_of(hit, "origin"), "user") != 0 ||
		    strcmp(text_of(hit, "access"), "read") == 0));
		if (hit == NULL)
			fail_msg("no hit for: %s", line);
		assert_null(json_object_get(hit, "unchanged"));
		has_old = has_value(hit, "old", &old);
		if (has_old && old != write.old)
			fail_msg("%s: old %#llx, not %#llx", line,
			    (unsigned long long)old,
			    (unsigned long long)write.old);
		if (has_value(hit, "new", &new) && !is_later(hit) && new !=
		    (strcmp(write.operation, "mov") == 0 ? write.stored :
		    write.old + 1))
			fail_msg("%s: new %#llx (%s)", line,
			    (unsigned long long)new,
			    text_of(hit, "value_source"));
		if (strcmp(write.operation, "xadd") == 0)
			assert_true(has_old);
		told_old += has_old;
	}
	free(copy);
	return told_old;
}

/* Modes in which values are found, each in its own way. */
static const char *const found_by[][4] = {
	{NULL}, {"--stop"}, {"-f"}, {"--stop", "-f"}, {"--user-only"},
	{"--stop", "--user-only"},
};

static void
watch_unseen(struct watched *w, const char *const *by, const char *access,
    bool changed, const char *mode)
{
	const char *options[8] = {access, "word:8"};
	size_t n = 2;

	for (; *by != NULL; by++)
		options[n++] = *by;
	if (changed)
		options[n++] = "--changed";
	watch_with(w, options, LIST(victim("unseen"), mode, "12"));
}

/* What others left is never reported as what the program's last access did; and
   a write that changed something is not left out. */
TEST(claims_nothing_after_unseen_writes)
{
	static const char *const modes[] = {"vfork", "kernel", "alias",
	    "peers", "past"};

	for (size_t m = 0; m < COUNT(modes); m++)
		for (size_t i = 0; i < COUNT(found_by);
		    i++) {
			struct watched w;

			watch_unseen(&w, found_by[i], "-w", i < 2, modes[m]);
			(void)check_unseen(&w, w.o.out);
		}
}

/* An addition shows what it found by what it left. */
TEST(knows_at_a_stop_what_was_added_to)
{
	struct watched w;

	watch_unseen(&w, found_by[1], "-w", false, "past");
	assert_int_equal(check_unseen(&w, w.o.out), 12);
}

TEST(claims_nothing_after_unseen_writes_inside)
{
	static const char *const modes[] = {"vfork", "kernel", "alias",
	    "peers", "past"};
	static const char *const inside[] = {"--inside", NULL};

	for (size_t m = 0; m < COUNT(modes); m++)
		for (size_t i = 0; i < 6; i++) {
			struct watched w;

			(void)setenv("WATCHPOINT_DELIVERY", deliveries[i / 2],
			    1);
			watch_unseen(&w, inside, i % 2 == 0 ? "-w" : "-a",
			    i % 2 == 0, modes[m]);
			(void)unsetenv("WATCHPOINT_DELIVERY");
			(void)check_unseen(&w, w.o.out);
		}
}

/* Two processes that take turns, each watched from when they shared it. */
TEST(claims_nothing_of_shared_memory)
{
	static const char *const modes[][2] = {
		{NULL, NULL}, {"--stop", NULL}, {"--user-only", NULL},
	};

	for (size_t i = 0; i < 6; i++) {
		struct target t;
		struct running w;
		struct outcome o;
		struct watched report;
		char line[64], peer[16], log[8192] = "";
		int child;

		/* the report has room in the pipe */
		target_start(&t, LIST(victim("unseen"), "wait", "peers", "8"));
		hear(&t.run, line, sizeof(line));
		assert_int_equal(sscanf(line, "pid %d peer", &child), 1);
		(void)snprintf(peer, sizeof(peer), "%d", child);
		watch_start(&w, LIST(watchctl(), "-w", "word:8", "-o", "json",
		    "-p", t.pid, i % 2 == 0 ? "-p" : modes[i / 2][0], i % 2 == 0
		    ? peer : NULL, modes[i / 2][0]));
		say(&t.run, "go\n");
		while (hear(&t.run, line, sizeof(line)),
		    strncmp(line, "write", 5) == 0) {
			(void)strcat(log, line);
			(void)strcat(log, "\n");
		}
		assert_string_equal(line, "done 16");
		target_end(&t, 0);
		finish(&w, &o);
		assert_int_equal(count_of(&o, "hit"), i % 2 == 0 ? 16 : 8);
		report = (struct watched){.lines = o.lines};
		assert_int_equal(check_unseen(&report, log), 0);
	}
}

/* Watch what has another process beside it that has the memory already; both:
   watch that, too.  recording: NULL, none.  The log is as check_unseen takes
   it. */
static void
watch_beside_other(const char *option, bool both, const char *recording,
    struct outcome *o, char log[8192])
{
	struct target t;
	struct running w;
	const char *argv[ARGS];
	char line[256], peer[16];
	struct stat st = {.st_size = 0};
	size_t n;
	int other;

	target_start(&t, LIST(victim("unseen"), "wait", "other", "12"));
	hear(&t.run, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %d other", &other), 1);
	(void)snprintf(peer, sizeof(peer), "%d", other);
	n = append(argv, 0, LIST(watchctl(), "-w", "word:8", "-p", t.pid));
	if (both)
		n = append(argv, n, LIST("-p", peer));
	n = append(argv, n, recording == NULL ? LIST("-o", "json") :
	    LIST("-o", "perf", "-O", recording));
	(void)append(argv, n, LIST(option));
	if (recording == NULL)
		watch_start(&w, argv);
	else
		start(&w, argv);
	while (recording != NULL && (stat(recording, &st) != 0 ||
	    st.st_size == 0))	/* it is armed before */
		(void)usleep(1000);
	say(&t.run, "go\n");
	*log = '\0';
	while (hear(&t.run, line, sizeof(line)),
	    strncmp(line, "write", 5) == 0) {
		(void)strcat(log, line);
		(void)strcat(log, "\n");
	}
	assert_string_equal(line, "done 12");
	target_end(&t, 0);
	finish_status(&w, o, 0);
}

static bool
warns_of_another(const struct outcome *o)
{
	return strstr(o->err, "seems to share the memory of process") != NULL;
}

/* What the other one writes is seen only if that is watched, and then by
   another watch. */
TEST(claims_nothing_of_memory_shared_beforehand)
{
	static const char *const by[] = {NULL, "--stop", "-f",
	    "--delivery=ring", NULL};

	for (size_t i = 0; i < COUNT(by); i++) {
		struct watched report;
		const bool both = i == COUNT(by) - 1;
		struct outcome o;
		char log[8192];

		watch_beside_other(by[i], both, NULL, &o, log);
		report = (struct watched){.lines = o.lines};
		assert_int_equal(check_unseen(&report, log), 0);
		assert_int_equal(warns_of_another(&o), !both);
	}
}

/* A program that is being executed is given a moment; on a machine with no time
   it may take longer. */
TEST(does_not_warn_of_what_is_about_to_execute)
{
	struct target t;
	bool silent = false;

	target_start(&t, LIST(victim("unseen"), "wait", "spawn", "0"));
	for (unsigned i = 0; i < 10 && !silent; i++) {
		struct outcome o;

		run(&o, LIST(watchctl(), "-w", "word:8", "-p", t.pid, "-t",
		    "0.01", "--error-exitcode", "9"));
		silent = o.status == 0 && !warns_of_another(&o);
	}
	end(&t.run);
	assert_true(silent);
}

TEST(claims_nothing_of_memory_shared_beforehand_in_a_recording)
{
	static const char *const by[] = {NULL, "-f"};
	const char *recording = scratch_path("beside");

	for (size_t i = 0; i < COUNT(by); i++) {
		struct watched report = {.lines = NULL};
		struct outcome o, later;
		char log[8192];

		(void)unlink(recording);
		watch_beside_other(by[i], false, recording, &o, log);
		run_status(&later, 0, LIST(watchctl(), "report", "-o", "json",
		    "-O", scratch_path("report"), recording));
		parse_report(&report, "report");
		assert_int_equal(check_unseen(&report, log), 0);
		assert_true(warns_of_another(&o));
	}
}

/* Who stored a unique value. */
struct stored {
	uint64_t value;
	const json_t *hit;
};

static int
compare_stored(const void *a, const void *b)
{
	return compare(&((const struct stored *)a)->value,
	    &((const struct stored *)b)->value);
}

static struct {
	struct stored at[8192];
	size_t n;
	unsigned pairs;		/* on one processor, or of one thread */
} stores;

static void
note_store(const struct write *write, const json_t *hit, void *arg)
{
	(void)arg;
	assert_non_null(hit);
	if ((write->stored & 0xff) != 0 || write->stored == 0)
		return;
	assert_true(stores.n < COUNT(stores.at));
	stores.at[stores.n++] = (struct stored){write->stored, hit};
}

/* What an exchange found was stored before, and by its time so. */
static void
check_order(const struct write *write, const json_t *hit, void *arg)
{
	const struct stored key = {.value = write->old};
	const struct stored *found;
	double before, after;

	(void)arg;
	found = !write->has_old ? NULL : bsearch(&key, stores.at, stores.n,
	    sizeof(key), compare_stored);
	if (found == NULL || (number_of(found->hit, "cpu") !=
	    number_of(hit, "cpu") && number_of(found->hit, "tid") !=
	    number_of(hit, "tid")))
		return;
	before = json_real_value(json_object_get(found->hit, "time"));
	after = json_real_value(json_object_get(hit, "time"));
	if (before >= after)
		fail_msg("%#llx was found at %.9f, and stored at %.9f",
		    (unsigned long long)write->old, after, before);
	stores.pairs++;
}

/* Times show the order of what one processor or one thread does. */
TEST(one_processor_is_in_order)
{
	static const char *const options[] = {"-w", "word", NULL};
	const char *const command[] = {victim("race"), "hot", "4", "1000",
	    NULL};
	struct watched w;

	watch_with(&w, options, command);
	each_write(w.o.out, &w, note_store, NULL);
	qsort(stores.at, stores.n, sizeof(stores.at[0]), compare_stored);
	each_write(w.o.out, &w, check_order, NULL);
	assert_true(stores.pairs > 0);
}

/* A recording has no memory to be read. */
TEST(claims_no_wrong_value_in_a_recording)
{
	struct outcome o, report;
	struct watched w = {.lines = NULL};

	run_status(&o, 0, LIST(watchctl(), "-w", "word", "-o", "perf", "-O",
	    scratch_path("recording"), "--", victim("race"), "hot", "2",
	    "500"));
	run_status(&report, 0, LIST(watchctl(), "report", "-o", "json", "-O",
	    scratch_path("report"), scratch_path("recording")));
	parse_report(&w, "report");
	check_race(o.out, &w, &tally);
	assert_true(tally.new > 0);
}

/* Where the samples of a recording end. */
static size_t
find_samples(const char *data, size_t size, size_t *end, size_t max)
{
	struct perf_event_header header;
	uint64_t at, n = 0;

	assert_true(size > 64);
	memcpy(&at, data + 40, sizeof(at));	/* of what follows the header */
	while (at + sizeof(header) <= size && n < max) {
		memcpy(&header, data + at, sizeof(header));
		if (header.size < sizeof(header))
			break;
		at += header.size;
		if (header.type == PERF_RECORD_SAMPLE)
			end[n++] = at;
	}
	return n;
}

/* So much of a recording; hole: and the rest, of which the beginning is
   lost. */
static void
expect_no_old(const char *data, size_t size, size_t kept, bool hole,
    size_t hits)
{
	struct watched w = {.lines = NULL};
	const json_t *hit, *last = NULL;
	size_t at = 0, n = 0;
	struct outcome o;
	uint64_t old;
	FILE *file = fopen(scratch_path("cut"), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, kept, file), kept);
	for (size_t i = kept; hole && i < size; i++)
		assert_true(fputc(i < kept + 64 ? 0 : data[i], file) != EOF);
	assert_int_equal(fclose(file), 0);
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "json", "-O",
	    scratch_path("report"), scratch_path("cut")));
	assert_holds(o.err, "the rest is missing");
	parse_report(&w, "report");
	for (; (hit = next_hit(&w, &at, 0)) != NULL; n++)
		last = hit;
	assert_int_equal(n, hits);
	if (has_value(last, "old", &old))
		fail_msg("hit %zu, behind which %zu bytes are %s, claims to "
		    "have found %#llx", n, size - kept, hole ? "damaged" :
		    "cut off", (unsigned long long)old);
}

/* Two threads store at the same time: what one found, the other's hit shows, or
   a mark behind both.  Where that is lost, the first one's old value is not
   known. */
TEST(a_damaged_recording_proves_no_order)
{
	static const char *const by[] = {NULL, "--delivery=ring"};
	enum { PAIRS = 2 };

	for (size_t i = 0; i < COUNT(by); i++) {
		size_t size, end[2 * PAIRS], n;
		const char *argv[ARGS];
		struct outcome o;
		char *data;

		n = append(argv, 0, LIST(watchctl(), "-w", "word", "-o",
		    "perf", "-O", scratch_path("recorded"), by[i]));
		(void)append(argv, n, LIST("--", victim("race"), "pairs",
		    "110", "2"));
		run_status(&o, 0, argv);
		data = scratch_read("recorded", &size);
		assert_int_equal(find_samples(data, size, end, COUNT(end)),
		    COUNT(end));
		for (size_t k = 0; k < PAIRS; k++) {
			expect_no_old(data, size, end[2 * k], false, 2 * k + 1);
			expect_no_old(data, size, end[2 * k], true, 2 * k + 1);
		}
	}
}

/* Writes that are 10 ms apart are in order, whoever makes them. */
TEST(reports_values_of_threads_that_rarely_hit)
{
	static const char *const options[][4] = {
		{"-w", "word"}, {"-w", "word", "--inside"},
	};
	const char *const command[] = {victim("race"), "calm", "3", "20",
	    NULL};

	for (size_t i = 0; i < COUNT(options); i++) {
		struct watched w;

		watch_with(&w, options[i], command);
		check_race(w.o.out, &w, &tally);
		print_message("of %u, old told %u times, new %u times\n",
		    tally.stores, tally.old, tally.new);
		assert_true(tally.old >= tally.stores / 10 * 7);
		assert_true(tally.new >= tally.stores / 10 * 7);
	}
}

/* --- a process that ran before --- */

TEST(knows_initial_values)
{
	const char *const argv[] = {victim("counter"), "1", "50", NULL};
	struct running v, w;
	struct outcome o, victims;
	char pid[16], addr[32], line[64];
	const json_t *hit;
	size_t at = 0, i = 0;
	struct watched report;

	start(&v, argv);
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	watch_start(&w, LIST(watchctl(), "-w", addr, "-o", "json", "-p", pid));
	say(&v, "go\n");
	hear(&v, line, sizeof(line));
	say(&v, "end\n");
	finish(&v, &victims);
	finish(&w, &o);
	report = (struct watched){.lines = o.lines};
	for (; (hit = next_hit(&report, &at, 0)) != NULL; i++) {
		uint64_t old = 0, new = 0;

		assert_true(has_value(hit, "old", &old) &&
		    has_value(hit, "new", &new));
		assert_int_equal(old, i);
		assert_int_equal(new, i + 1);
	}
	assert_int_equal(i, 50);
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
