/*
 * random: programs access memory at random under watchctl in each of its modes,
 * and each line of the report is compared with their log.  No access may be
 * missing, reported twice, or wrong.
 *
 * RANDOM_HITS is the number of hits for each mode (default: 10,000; 600 where
 * children are followed; 15,000 if THOROUGH is set), RANDOM_SEED the first seed
 * (1), RANDOM_MODE the only mode to test, RANDOM_KINDS the only kinds of access
 * that the programs make.
 */
#include "test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <fcntl.h>

#include "beside.h"
#include "live.h"
#include "random_log.h"
#include "refuse.h"
#include "scratch.h"
#include "os/slot.h"
#include "watching.h"

enum {
	WATCHES = 3,
	ACCESSES = 2500,	/* in one program */
	COMPLAINTS = 5,		/* about one program */
	ALL_BYTES = RANDOM_WINDOW,
};

struct mode {
	const char *name;
	const char *options[6];
	const char *delivery;	/* NULL: not from inside */
	bool refused;		/* perf_event_open(2) is */
	bool kernel_writes;	/* seen, of watches of writes; */
	bool kernel_all;	/* of all watches */
	bool children;		/* of fork and vfork are watched */
	const char *kinds;	/* of what programs do */
};

static const struct mode modes[] = {
	{"ring", {NULL}, NULL, false, true, true, false, "ktcvfs"},
	{"stop", {"--stop"}, NULL, false, true, true, false, "ktcvfs"},
	{"sigtrap", {"--inside"}, "sigtrap", false, true, false, false,
	    "ktcvfs"},
	{"async", {"--inside"}, "async", false, true, false, false, "ktcvfs"},
	{"ptrace", {"--inside"}, "ptrace", false, false, false, false,
	    "ktcvfs"},
	{"perf", {"--delivery=ring"}, NULL, false, true, true, false,
	    "ktcvfs"},
	{"ring -f", {"-f"}, NULL, false, true, true, true, "ktcvfs"},
	{"perf -f", {"-f", "--delivery=ring"}, NULL, false, true, true, true,
	    "ktcvfs"},
	{"stop -f", {"--stop", "-f"}, NULL, false, true, true, true,
	    "ktcvfs"},
	/* children of vfork are never watched from inside */
	{"sigtrap -f", {"--inside", "-f"}, "sigtrap", false, true, false, true,
	    "ktcfs"},
	{"async -f", {"--inside", "-f"}, "async", false, true, false, true,
	    "ktcfs"},
	{"ptrace -f", {"--inside", "-f"}, "ptrace", false, false, false, true,
	    "ktcfs"},
	{"registers", {"--stop"}, NULL, true, false, false, false, "ktcvfs"},
};

struct watch {
	unsigned offset, len;
	char access;
	char spec[48];		/* for watchctl */
	char bytes[24];		/* for the program */
};

/* The word that threads contend for, before or after one access. */
struct word {
	uint32_t phase;
	uint64_t value;
	const struct random_access *access;
};

struct words {
	struct word *of;
	size_t n;
};

/* One program. */
struct trial {
	const struct mode *mode;
	uint64_t seed, random;
	char kinds[8];
	bool writes;		/* no watch sees reads */
	struct watch watch[WATCHES];
	unsigned nwatches;
	json_t *lines;		/* of the report */
	const struct random_log *log;
	size_t log_size;
	const json_t **hit;	/* those of the lines that are hits, */
	bool *matched;		/* and which of them are accounted for */
	size_t nhits;
	struct words old, new;	/* as known by the log, or reported */
	unsigned complaints;
};

static uint64_t
next_random(struct trial *t)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return t->random >> 33;
}

/* --- watches --- */

static uint64_t
mask_of(unsigned offset, unsigned len)
{
	return (len >= 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1) << offset;
}

static unsigned
slots_of(const struct watch *w)
{
	const struct wp_region region = {
		.addr = 4096 + w->offset, .len = w->len,
		.access = (enum wp_access)w->access,
	};
	struct wp_slot slot[WP_SLOTS_MAX];
	const int n = wp_slot_plan(&region, &wp_slot_usual, slot, NULL);

	return n < 0 ? wp_slot_usual.slots + 1 : (unsigned)n;
}

static const char *
setting(const char *name, const char *other)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? value : other;
}

static void
leave_out(struct trial *t, char kind)
{
	char *at = strchr(t->kinds, kind);

	if (at != NULL)
		*at = '-';
}

/* Of shared memory less can be known: a third of the programs have it.  Where
   the kernel is not seen by watches of reads, there are either watches of
   writes alone or no system calls. */
static void
choose_kinds(struct trial *t)
{
	const char *given = setting("RANDOM_KINDS", "");

	(void)snprintf(t->kinds, sizeof(t->kinds), "%s",
	    *given != '\0' ? given : t->mode->kinds);
	if (*given != '\0')
		return;
	if (t->seed % 3 != 0)
		leave_out(t, 's');
	t->writes = !t->mode->kernel_all && t->mode->kernel_writes &&
	    t->seed % 2 == 0;
	if (!t->mode->kernel_all && !t->writes)
		leave_out(t, 'k');
}

/* One to three, side by side, as many as there are slots for. */
static void
choose_watches(struct trial *t)
{
	static const unsigned lens[] = {8, 8, 8, 4, 4, 2, 1, 16, 24, 32, 5, 3};
	const unsigned wanted = 1 + (unsigned)next_random(t) % WATCHES;
	unsigned slots = 0;
	uint64_t taken = 0;

	while (t->nwatches < wanted) {
		struct watch *w = &t->watch[t->nwatches];
		unsigned n;

		w->len = lens[next_random(t) % 12];
		w->offset = (unsigned)next_random(t) %
		    (RANDOM_WINDOW + 1 - w->len);
		if (w->len <= 8 && (w->len & (w->len - 1)) == 0)
			w->offset &= ~(w->len - 1);
		else if (w->len % 8 == 0)
			w->offset &= ~7u;
		w->access = next_random(t) % 5 < 3 || t->writes ? 'w' : 'a';
		n = slots_of(w);
		if (n > wp_slot_usual.slots || (taken & mask_of(w->offset,
		    w->len)))
			continue;
		if ((slots += n) > wp_slot_usual.slots)
			break;
		taken |= mask_of(w->offset, w->len);
		(void)snprintf(w->spec, sizeof(w->spec), "arena+%u:%u",
		    RANDOM_BEFORE + w->offset, w->len);
		(void)snprintf(w->bytes, sizeof(w->bytes), "%u:%u", w->offset,
		    w->len);
		t->nwatches++;
	}
}

/* --- running --- */

static size_t
put_options(const struct trial *t, const char *argv[])
{
	static const char *const access[] = {"-w", "-a"};
	size_t n = 0;

	for (size_t i = 0; t->mode->options[i] != NULL; i++)
		argv[n++] = t->mode->options[i];
	for (unsigned i = 0; i < t->nwatches; i++) {
		argv[n++] = access[t->watch[i].access == 'a'];
		argv[n++] = t->watch[i].spec;
	}
	return n;
}

static void
read_report(struct trial *t)
{
	char *text = scratch_read("report", NULL);

	t->lines = json_lines(text);
	assert_non_null(t->lines);
	t->hit = calloc(json_array_size(t->lines), sizeof(*t->hit));
	t->matched = calloc(json_array_size(t->lines), sizeof(*t->matched));
	assert_non_null(t->hit);
	assert_non_null(t->matched);
	for (size_t i = 0; i < json_array_size(t->lines); i++)
		if (is_hit(json_array_get(t->lines, i)))
			t->hit[t->nhits++] = json_array_get(t->lines, i);
}

static void
read_log(struct trial *t)
{
	int fd = open(scratch_path("log"), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	t->log_size = (size_t)lseek(fd, 0, SEEK_END);
	t->log = mmap(NULL, t->log_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(t->log != MAP_FAILED);
	(void)close(fd);
	t->old.of = calloc(t->log->n, sizeof(*t->old.of));
	t->new.of = calloc(t->log->n, sizeof(*t->new.of));
	assert_non_null(t->old.of);
	assert_non_null(t->new.of);
}

static void
run_trial(struct trial *t)
{
	const char *argv[48] = {watchctl(), "-o", "json", "--stack", "512",
	    "-O", scratch_path("report")};
	char seed[32], accesses[16];
	struct outcome o;
	size_t n = 7;

	n += put_options(t, argv + n);
	(void)snprintf(seed, sizeof(seed), "%llu", (unsigned long long)t->seed);
	(void)snprintf(accesses, sizeof(accesses), "%u", ACCESSES);
	argv[n++] = "--";
	argv[n++] = victim("random");
	argv[n++] = scratch_path("log");
	argv[n++] = seed;
	argv[n++] = accesses;
	argv[n++] = t->kinds;
	for (unsigned i = 0; i < t->nwatches; i++)
		argv[n++] = t->watch[i].bytes;
	if (t->mode->delivery != NULL)
		(void)setenv("WATCHPOINT_DELIVERY", t->mode->delivery, 1);
	run(&o, argv);
	(void)unsetenv("WATCHPOINT_DELIVERY");
	if (o.status != 0)
		fail_msg("%s, seed %s: status %d: %s", t->mode->name, seed,
		    o.status, o.err);
	read_report(t);
	read_log(t);
}

static void
trial_end(struct trial *t)
{
	(void)munmap((void *)(uintptr_t)t->log, t->log_size);
	free(t->hit);
	free(t->matched);
	free(t->old.of);
	free(t->new.of);
	test_frees_now();
}

/* --- complaints --- */

static void
print_bytes(const char *name, const uint8_t *bytes, const struct watch *w)
{
	print_error("  %s", name);
	for (unsigned i = w->len; i > 0; i--)
		print_error("%02x", bytes[w->offset + i - 1]);
	print_error("\n");
}

static void
complain(struct trial *t, const char *what, const struct random_access *a,
    const struct watch *w, const json_t *hit)
{
	char *text;

	if (t->complaints++ >= COMPLAINTS)
		return;
	print_error("%s, seed %llu", t->mode->name,
	    (unsigned long long)t->seed);
	for (unsigned i = 0; i < t->nwatches; i++)
		print_error(" -%c %s", t->watch[i].access, t->watch[i].spec);
	print_error(": %s\n", what);
	if (a != NULL)
		print_error("  access %u: %s, thread %d, flags %u, pc "
		    "%#llx..%#llx, loads %#llx, stores %#llx, maybe %#llx\n",
		    (unsigned)(a - t->log->access), a->form, a->tid, a->flags,
		    (unsigned long long)a->pc, (unsigned long long)a->end,
		    (unsigned long long)a->loads, (unsigned long long)a->stores,
		    (unsigned long long)a->maybe);
	if (a != NULL && w != NULL) {
		print_bytes("before 0x", a->before, w);
		print_bytes("after  0x", a->after, w);
	}
	if (hit == NULL)
		return;
	text = json_dumps(hit, 0);
	print_error("  %.700s\n", text);
	free(text);
}

/* --- one hit --- */

static uint64_t
maybe_hex(const json_t *object, const char *name)
{
	return strtoull(maybe_text(object, name), NULL, 16);
}

static const char *
confidence(const json_t *hit)
{
	return maybe_text(json_object_get(hit, "insn"), "confidence");
}

static bool
is_exact(const json_t *hit)
{
	return strcmp(confidence(hit), "exact") == 0;
}

/* The bytes that it says were touched, if they are in the window. */
static uint64_t
extent_of(const struct trial *t, const json_t *hit)
{
	const uint64_t at = maybe_hex(hit, "addr") - t->log->arena;
	const json_int_t len = number_of(hit, "len");

	return at >= RANDOM_WINDOW || len < 1 ||
	    (uint64_t)len > RANDOM_WINDOW - at ? 0 :
	    mask_of((unsigned)at, (unsigned)len);
}

/* From the first of these bytes to the last. */
static uint64_t
hull(uint64_t mask)
{
	unsigned first, last;

	if (mask == 0)
		return 0;
	first = (unsigned)__builtin_ctzll(mask);
	last = 63 - (unsigned)__builtin_clzll(mask);
	return mask_of(first, last - first + 1);
}

/* A value's bytes, as they lie in memory; false: it is not reported. */
static bool
value_of(const json_t *hit, const char *name, uint8_t bytes[ALL_BYTES])
{
	const char *text = maybe_text(hit, name);
	size_t n = strlen(text);

	memset(bytes, 0, ALL_BYTES);
	if (n < 3)
		return false;
	for (size_t i = 0; i + 2 < n; i++) {
		const char digit[] = {text[n - 1 - i], '\0'};

		bytes[i / 2] |= (uint8_t)(strtoul(digit, NULL, 16) <<
		    4 * (i % 2));
	}
	return true;
}

/* Whether a value is what the bytes were, as far as that is known. */
static bool
is_value(const struct trial *t, const json_t *hit,
    const uint8_t reported[ALL_BYTES], const uint8_t *bytes, uint64_t known)
{
	const uint64_t at = maybe_hex(hit, "addr") - t->log->arena;

	for (uint64_t i = 0; i < (uint64_t)number_of(hit, "len"); i++)
		if ((known >> (at + i) & 1) != 0 &&
		    reported[i] != bytes[at + i])
			return false;
	return true;
}

static bool
is_later(const json_t *hit)
{
	return strcmp(maybe_text(hit, "value_source"), "later") == 0;
}

/* Whether the bytes were so after the access, or after one that came later. */
static bool
is_value_ever(const struct trial *t, const struct random_access *a,
    const json_t *hit, const uint8_t reported[ALL_BYTES])
{
	const struct random_access *end = t->log->access + t->log->n;

	while (a < end && !is_value(t, hit, reported, a->after, a->known_after))
		a++;
	return a < end;
}

/* One that was interrupted is known as a whole: before the first of its hits,
   and after the last. */
static void
check_values(struct trial *t, const struct random_access *a,
    const struct watch *w, const json_t *hit, bool first, bool last)
{
	uint8_t old[ALL_BYTES], new[ALL_BYTES];
	const bool has_old = value_of(hit, "old", old);
	const bool has_new = value_of(hit, "new", new);

	if (has_old && first && !is_value(t, hit, old, a->before,
	    a->known_before))
		complain(t, "wrong old value", a, w, hit);
	if (has_new && last && (is_later(hit) ? !is_value_ever(t, a, hit, new) :
	    !is_value(t, hit, new, a->after, a->known_after)))
		complain(t, "wrong new value", a, w, hit);
	if (json_object_get(hit, "unchanged") != NULL && (!has_old ||
	    !has_new || memcmp(old, new, sizeof(old)) != 0))
		complain(t, "wrong \"unchanged\"", a, w, hit);
}

/* The bytes that an access touched, as a watch asks. */
static uint64_t
touched(const struct random_access *a, const struct watch *w)
{
	return (a->stores | (w->access == 'a' ? a->loads : 0)) &
	    mask_of(w->offset, w->len);
}

/* Whether the kernel's accesses are only known by slots: behind a call nothing
   shows how much this one writes. */
static bool
is_vague(const struct trial *t, const struct random_access *a)
{
	return t->mode->delivery != NULL && strcmp(a->form, "ioctl") == 0;
}

static void
check_extent(struct trial *t, const struct random_access *a,
    const struct watch *w, const json_t *hit)
{
	const uint64_t all = mask_of(w->offset, w->len);
	const uint64_t said = extent_of(t, hit), stores = hull(a->stores & all);
	const uint64_t really = hull(touched(a, w));
	const bool exact = is_exact(hit) ||
	    ((a->flags & RANDOM_BY_KERNEL) != 0 && !is_vague(t, a));

	if ((a->flags & RANDOM_REPEATED) != 0 ? (said & ~all) != 0 ||
	    (said & really) == 0 : exact && a->maybe == 0 ? said != really &&
	    (said != stores || stores == 0) :
	    (said & ~all) != 0 || (really & ~said) != 0)
		complain(t, "wrong extent", a, w, hit);
}

static void
check_access(struct trial *t, const struct random_access *a,
    const struct watch *w, const json_t *hit)
{
	const uint64_t all = mask_of(w->offset, w->len);
	const bool reads = (a->loads & all) != 0,
	    writes = (a->stores & all) != 0;
	const char *said = text_of(hit, "access");

	if (w->access == 'w' || strcmp(said, "access") == 0 ||
	    (a->flags & RANDOM_REPEATED) != 0 || a->maybe != 0)
		return;
	if (strcmp(said, reads && writes ? "read-write" : writes ? "write" :
	    "read") != 0)
		complain(t, "wrong access", a, w, hit);
}

static void
check_hit(struct trial *t, const struct random_access *a,
    const struct watch *w, const json_t *hit)
{
	const bool kernel = strcmp(text_of(hit, "origin"), "kernel") == 0;

	if (kernel != ((a->flags & RANDOM_BY_KERNEL) != 0))
		complain(t, "wrong origin", a, w, hit);
	if (json_object_get(hit, "late") != NULL)
		complain(t, "late", a, w, hit);
	check_extent(t, a, w, hit);
	check_access(t, a, w, hit);
}

/* --- threads that contend --- */

static void
add_word(struct words *words, const struct random_access *a,
    const uint8_t bytes[8])
{
	struct word *w = &words->of[words->n++];

	w->phase = a->phase;
	w->access = a;
	memcpy(&w->value, bytes, sizeof(w->value));
}

/* The contended word as one access found it and left it, by the log or else by
   its hit, if that is of all of it (NULL: none is). */
static void
note_words(struct trial *t, const struct random_access *a, const json_t *hit)
{
	const unsigned at = (unsigned)__builtin_ctzll(a->stores);
	uint8_t reported[ALL_BYTES];

	/* what a comparison that failed leaves is what was there */
	if (a->known_before != 0 && a->known_after != 0 &&
	    memcmp(a->before + at, a->after + at, 8) == 0)
		return;
	if (a->known_before != 0)
		add_word(&t->old, a, a->before + at);
	else if (hit != NULL && value_of(hit, "old", reported))
		add_word(&t->old, a, reported);
	if (a->known_after != 0)
		add_word(&t->new, a, a->after + at);
	else if (hit != NULL && !is_later(hit) &&
	    value_of(hit, "new", reported))
		add_word(&t->new, a, reported);
}

static int
compare_words(const void *a_, const void *b_)
{
	const struct word *a = a_, *b = b_;

	if (a->phase != b->phase)
		return a->phase < b->phase ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

/* The word never is again what it was: so nothing is found, or made, twice. */
static void
check_words(struct trial *t, struct words *words, const char *what)
{
	qsort(words->of, words->n, sizeof(*words->of), compare_words);
	for (size_t i = 1; i < words->n; i++)
		if (compare_words(&words->of[i - 1], &words->of[i]) == 0)
			complain(t, what, words->of[i].access, NULL, NULL);
}

/* --- a thread's hits, beside its accesses --- */

/* Whether the place that a hit names is that of an access. */
static bool
is_place(const struct random_access *a, const json_t *hit)
{
	const json_t *insn = json_object_get(hit, "insn");
	const uint64_t pc = maybe_hex(hit, "pc");

	if (is_exact(hit) || strcmp(confidence(hit), "address-unverified") == 0)
		return maybe_hex(insn, "pc") == a->pc;
	return pc == a->end ||
	    ((a->flags & RANDOM_REPEATED) != 0 && pc == a->pc);
}

/* The next one of the thread, from *at on; NULL: none. */
static const json_t *
next_hit(const struct trial *t, size_t *at, pid_t tid)
{
	for (; *at < t->nhits; ++*at)
		if (!t->matched[*at] && number_of(t->hit[*at], "tid") == tid)
			return t->hit[*at];
	return NULL;
}

/* Whether watchctl sees such an access, if it touches the watch. */
static bool
is_seen(const struct trial *t, const struct random_access *a,
    const struct watch *w)
{
	if ((a->flags & RANDOM_CHILD) != 0 && !t->mode->children)
		return false;
	return (a->flags & RANDOM_BY_KERNEL) == 0 || (w->access == 'w' ?
	    t->mode->kernel_writes : t->mode->kernel_all);
}

/* The hits of one access, of any of its watches, each once; one that may be
   interrupted may have more. */
static void
match(struct trial *t, const struct random_access *a, size_t *at)
{
	const json_t *hit, *last[WATCHES] = {NULL};
	bool first[WATCHES] = {false};

	while ((hit = next_hit(t, at, a->tid)) != NULL) {
		const unsigned i = (unsigned)number_of(hit, "watch") - 1;
		const struct watch *w = &t->watch[i % WATCHES];
		const uint64_t may = touched(a, w) |
		    (a->maybe & mask_of(w->offset, w->len));

		if (i >= t->nwatches || !is_seen(t, a, w) || may == 0 ||
		    !is_place(a, hit) || (last[i] != NULL &&
		    (a->flags & RANDOM_REPEATED) == 0))
			break;
		if (last[i] != NULL)
			check_values(t, a, w, last[i], first[i], false);
		first[i] = last[i] == NULL;
		last[i] = hit;
		t->matched[*at] = true;
		check_hit(t, a, w, hit);
	}
	hit = NULL;
	for (unsigned i = 0; i < t->nwatches; i++) {
		const struct watch *w = &t->watch[i];

		if (last[i] != NULL)
			check_values(t, a, w, last[i], first[i], true);
		else if (is_seen(t, a, w) && touched(a, w) != 0)
			complain(t, "missed", a, w, next_hit(t, at, a->tid));
		if (last[i] != NULL && number_of(last[i], "len") == 8)
			hit = last[i];
	}
	if ((a->flags & RANDOM_CONTENDED) != 0)
		note_words(t, a, hit);
}

static void
match_all(struct trial *t)
{
	enum { THREADS = 4096 };
	static struct {
		pid_t tid;
		size_t at;
	} thread[THREADS];
	unsigned nthreads = 0;

	for (uint32_t i = 0; i < t->log->n; i++) {
		const struct random_access *a = &t->log->access[i];
		unsigned k = 0;

		while (k < nthreads && thread[k].tid != a->tid)
			k++;
		assert_true(k < THREADS);
		if (k == nthreads) {
			thread[nthreads].tid = a->tid;
			thread[nthreads++].at = 0;
		}
		match(t, a, &thread[k].at);
	}
	for (size_t i = 0; i < t->nhits; i++)
		if (!t->matched[i])
			complain(t, "nobody did this", NULL, NULL, t->hit[i]);
	check_words(t, &t->old, "the same old value twice");
	check_words(t, &t->new, "the same new value twice");
}

/* --- the whole --- */

static void
check_account(struct trial *t)
{
	const json_t *end = json_array_get(t->lines,
	    json_array_size(t->lines) - 1);

	assert_string_equal(text_of(end, "type"), "end");
	if (number_of(end, "reported") != (json_int_t)t->nhits ||
	    number_of(end, "hits") != number_of(end, "reported") +
	    number_of(end, "lost") || number_of(end, "lost") != 0)
		complain(t, "the account", NULL, NULL, end);
}

/* What the report says besides hits. */
static void
print_rest(const struct trial *t)
{
	for (size_t i = 0; i < json_array_size(t->lines); i++) {
		const json_t *line = json_array_get(t->lines, i);
		char *text;

		if (is_hit(line))
			continue;
		text = json_dumps(line, 0);
		print_error("  %.700s\n", text);
		free(text);
	}
}

/* Result: how many hits there were. */
static size_t
try(const struct mode *mode, uint64_t seed)
{
	struct trial t = {
		.mode = mode, .seed = seed, .random = seed,
	};
	size_t hits;

	choose_kinds(&t);
	choose_watches(&t);
	run_trial(&t);
	match_all(&t);
	check_account(&t);
	hits = t.nhits;
	if (t.complaints > 0)
		print_rest(&t);
	trial_end(&t);
	if (t.complaints > 0)
		fail_msg("%u complaints; again by RANDOM_SEED=%llu "
		    "RANDOM_HITS=1 RANDOM_MODE='%s' RANDOM_KINDS=%s",
		    t.complaints, (unsigned long long)seed, mode->name,
		    t.kinds);
	return hits;
}

static void
tells_the_truth(void **state)
{
	const struct mode *mode = *state;
	const size_t wanted = strtoul(setting("RANDOM_HITS",
	    getenv("THOROUGH") != NULL ? "15000" : mode->children ? "600" :
	    "10000"), NULL, 0);
	uint64_t seed = strtoull(setting("RANDOM_SEED", "1"), NULL, 0);
	size_t hits = 0;

	if (strcmp(setting("RANDOM_MODE", mode->name), mode->name) != 0)
		skip();
	while (hits < wanted)
		hits += try(mode, seed++);
	print_message("%zu hits\n", hits);
}

static int
end_mode(void **state)
{
	return test_end(state, NULL, NULL);
}

static int
begin_refused(void **state)
{
	return be_refused(state) != 0 ? -1 : scratch_make(state);
}

/* The last one has the modes for where events are refused, the others each one
   of the rest in turn. */
enum { PARTS = 3 };

static int
run_part(unsigned part)
{
	const bool refused = part == PARTS - 1;

	for (size_t i = 0; i < COUNT(modes); i++)
		if (modes[i].refused == refused &&
		    (refused || i % (PARTS - 1) == part))
			test_add((int)i, (struct CMUnitTest){
				.name = modes[i].name,
				.test_func = tells_the_truth,
				.initial_state = (void *)(uintptr_t)&modes[i],
			}, end_mode);
	return run_live_tests(
	    .before_all = refused ? begin_refused : scratch_make,
	    .after_all = scratch_remove);
}

int
main(void)
{
	return run_beside(PARTS, run_part);
}
