/* doctor: the report on simulated machines. */
#include "test.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doctor.h"

static const struct doctor healthy = {
	.kernel = "6.12.1", .arch = "x86_64", .processor = "Abacus 9000",
	.cpus = 2, .hypervisor = 0,
	.free_slots = 4, .all_slots = 4,
	.uid = 0, .cap_perfmon = true, .cap_sys_admin = true,
	.cap_sys_ptrace = true,
	.cap_ipc_lock = true,
	.seccomp = 0, .kptr_restrict = 1, .ptrace_scope = DOCTOR_ABSENT,
	.mlock_kb = 516, .memlock = 8 << 20, .nofile = 20000,
	.features = {
		.caps = {.slots = 4, .range = 8},
		.inherit_thread = true, .remove_on_exec = true,
		.sigtrap = true, .format_lost = true, .kernel = true,
		.callchain = true, .paranoid = 2,
	},
	.opened = true, .newcomers = true, .moves = true,
	.probe = {
		{WP_PROBE_WRITE, "write", true, 0, "one hit", ""},
		{WP_PROBE_CPUS, "cpus", true, 0, "both", ""},
		{WP_PROBE_ACCESS, "access", true, 0, "one hit", ""},
		{WP_PROBE_EXECUTE, "execute", true, 0, "one hit", ""},
		{WP_PROBE_SIGTRAP, "sigtrap", true, 0, "SIGTRAP", ""},
		{WP_PROBE_ASYNC, "async", true, 0, "SIGURG", ""},
		{WP_PROBE_KERNEL, "kernel", true, 0, "8 hits", ""},
		{WP_PROBE_BPF, "bpf", true, 0, "filtered", ""},
		{WP_PROBE_PTRACE, "ptrace", true, 0, "trapped", ""},
	},
	.way = {
		{"ring", true, true, "one hit"},
		{"--stop", false, true, "one hit"},
		{"--inside", false, true, "one hit"},
	},
	.broker = {
		.started = true, .filtered = true, .powerless = true,
		.uid = 65534,
	},
	.other = {.known = true, .opened = true},
};

static const char healthy_text[] =
"machine       Linux 6.12.1 x86_64, 2 processors (Abacus 9000), no hypervisor\n"
"user          uid 0, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, seccomp"
" none\n"
"settings      kernel.perf_event_paranoid 2, kptr_restrict 1,"
" yama.ptrace_scope\n"
"              absent\n"
"slots         4 free of 4, each for 8 aligned bytes at most\n"
"limits        ring buffers of any size; 20000 descriptors: one slot in 6666\n"
"              threads\n"
"delivery      bpf\n"
"uprobes       permitted\n"
"newcomers     noticed, also those that are moved to a control group\n"
"features      inherit_thread, remove_on_exec, sigtrap, format_lost, kernel,\n"
"              callchain\n"
"\n"
"ok  write     one hit\n"
"ok  cpus      both\n"
"ok  access    one hit\n"
"ok  execute   one hit\n"
"ok  sigtrap   SIGTRAP\n"
"ok  async     SIGURG\n"
"ok  kernel    8 hits\n"
"ok  bpf       filtered\n"
"ok  ptrace    trapped\n"
"\n"
"ways to watch, each tried on a program\n"
"ok  ring      one hit\n"
"ok  --stop    one hit\n"
"ok  --inside  one hit\n"
"\n"
"what reads executables and recordings of others\n"
"ok  sandbox   started as user 65534, without capabilities, its system calls\n"
"              filtered\n"
"\n"
"who may watch what\n"
"you           every process, with the kernel's accesses\n"
"other users   own processes, without the kernel's accesses\n"
"\n"
"the main job works here: watchctl -w ADDR -p PID\n";

/* An ordinary user whom the sysctl refuses everything but ptrace. */
static struct doctor
ptrace_refused(void)
{
	struct doctor d = healthy;

	d.uid = 1000;
	d.cap_perfmon = d.cap_sys_admin = d.cap_sys_ptrace = false;
	d.cap_ipc_lock = false;
	d.way[DOCTOR_RING].ok = false;
	(void)strcpy(d.way[DOCTOR_RING].detail, "perf_event_open: refused");
	d.other = (struct doctor_other){0};
	d.ptrace_scope = 1;
	d.hypervisor = 1;
	d.features = (struct wp_features){.paranoid = 4};
	d.opened = false;
	d.free_slots = 0;
	(void)wp_cause_set(&d.refusal, WP_CAUSE_DENIED_PARANOID, 4);
	d.no_uprobe = d.refusal;
	for (unsigned k = 0; k < WP_PROBE_PTRACE; k++) {
		d.probe[k].ok = false;
		d.probe[k].err = EACCES;
		(void)strcpy(d.probe[k].detail, "perf_event_open: refused");
		(void)strcpy(d.probe[k].advice, "ask an administrator to set "
		    "kernel.perf_event_paranoid to 2, and tell them why you "
		    "need it");
	}
	return d;
}

static const char refused_text[] =
"machine       Linux 6.12.1 x86_64, 2 processors (Abacus 9000), under a\n"
"              hypervisor\n"
"user          uid 1000, no CAP_PERFMON, no CAP_SYS_ADMIN, no"
" CAP_SYS_PTRACE,\n"
"              seccomp none\n"
"settings      kernel.perf_event_paranoid 4, kptr_restrict 1,"
" yama.ptrace_scope\n"
"              1\n"
"limits        ring buffers of 4096 KiB a processor at most\n"
"              (kernel.perf_event_mlock_kb 516, ulimit -l 8192); 20000\n"
"              descriptors: one slot in 6666 threads\n"
"delivery      ptrace\n"
"\n"
"NO  write     perf_event_open: refused\n"
"              ask an administrator to set kernel.perf_event_paranoid to 2,"
" and\n"
"              tell them why you need it\n"
"NO  cpus      perf_event_open: refused\n"
"NO  access    perf_event_open: refused\n"
"NO  execute   perf_event_open: refused\n"
"NO  sigtrap   perf_event_open: refused\n"
"NO  async     perf_event_open: refused\n"
"NO  kernel    perf_event_open: refused\n"
"NO  bpf       perf_event_open: refused\n"
"ok  ptrace    trapped\n"
"\n"
"ways to watch, each tried on a program\n"
"NO  ring      perf_event_open: refused\n"
"ok  --stop    one hit\n"
"ok  --inside  one hit\n"
"\n"
"what reads executables and recordings of others\n"
"ok  sandbox   started as user 65534, without capabilities, its system calls\n"
"              filtered\n"
"\n"
"who may watch what\n"
"you           own processes, without the kernel's accesses, with --stop or\n"
"              --inside\n"
"other users   the same, each their own\n"
"attaching     kernel.yama.ptrace_scope keeps a process from being held still\n"
"              while it is attached, unless watchctl started it\n"
"\n"
"the main job works here with --stop: watchctl --stop -w ADDR -p PID\n";

static const char *
kept(struct buffer *b)
{
	const char *text = buffer_text(b);

	test_frees(b->bytes, free);
	return text;
}

static const char *
json_of(const struct doctor *d)
{
	struct buffer b = {0};

	doctor_json(d, &b);
	return kept(&b);
}

static const char *
said_of(const struct doctor *d, bool colour)
{
	struct buffer b = {0};

	doctor_text(d, colour, &b);
	return kept(&b);
}

TEST(reports_a_healthy_machine)
{
	const char *said;

	assert_true(doctor_ok(&healthy));
	said = said_of(&healthy, false);
	assert_string_equal(said, healthy_text);
}

TEST(reports_a_refusal_once)
{
	struct doctor d = ptrace_refused();
	const char *said;

	assert_true(doctor_ok(&d));
	said = said_of(&d, false);
	assert_string_equal(said, refused_text);
}

/* Breakpoints do not fire: execution can be watched all the same. */
TEST(names_uprobes_where_they_are_all_there_is)
{
	struct doctor d = ptrace_refused();
	const char *said;

	for (int k = 0; k < DOCTOR_WAYS; k++)
		d.way[k].ok = false;
	said = said_of(&d, false);
	assert_lacks(said, "uprobes");
	d.no_uprobe = (struct wp_cause){0};
	said = said_of(&d, false);
	assert_holds(said, "uprobes       permitted: they watch execution (-x), "
	    "since breakpoints cannot\n");
	assert_holds(said, "does not work here: ");
	assert_holds(said, "execution can be watched, by uprobes: "
	    "watchctl -x FUNCTION -p PID\n");
}

/* Any way that works is one; the best is named. */
TEST(names_the_way_that_works)
{
	static const struct {
		bool ok[DOCTOR_WAYS];
		const char *end;
	} cases[] = {
		{{true, false, false}, "works here: watchctl -w ADDR -p PID"},
		{{true, true, true}, "works here: watchctl -w ADDR -p PID"},
		{{false, true, true}, "works here with --stop: "},
		{{false, false, true}, "works here with --inside: "},
		{{false, false, false}, "does not work here: refused"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doctor d = ptrace_refused();
		const char *said;

		for (int k = 0; k < DOCTOR_WAYS; k++) {
			d.way[k].ok = cases[i].ok[k];
			(void)strcpy(d.way[k].detail, "refused");
		}
		assert_int_equal(doctor_ok(&d), i < COUNT(cases) - 1);
		said = said_of(&d, false);
		assert_holds(said, cases[i].end);
	}
}

TEST(reports_what_the_sandbox_lacks)
{
	static const struct {
		struct sandbox_trial broker;
		bool confined, ok;
		const char *told;
	} cases[] = {
		{{true, true, true, 65534, ""}, false, true, "ok  sandbox"},
		{{true, true, true, 0, ""}, false, false, "as user 0, without"},
		{{true, true, true, 0, ""}, true, true, "as user 0, without"},
		{{true, false, true, 65534, "no\033 seccomp"}, false, false,
		    "not filtered: no\\x1b seccomp"},
		{{true, true, false, 65534, ""}, false, false, "with capab"},
		{{false, false, false, 0, "not there"}, false, false,
		    "NO  sandbox   not there"},
		{{false, false, false, 0, ""}, true, false, "did not start"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doctor d = healthy;
		const char *said;
		json_t *root;

		d.broker = cases[i].broker;
		d.confined = cases[i].confined;
		said = said_of(&d, false);
		if (strstr(said, cases[i].told) == NULL)
			fail_msg("no \"%s\" in: %s", cases[i].told,
			    said);
		said = json_of(&d);
		root = json_loads(said, JSON_REJECT_DUPLICATES,
		    NULL);
		assert_int_equal(json_is_true(json_object_get(json_object_get(
		    root, "sandbox"), "ok")), cases[i].ok);
		json_decref(root);
	}
}

/* Every watchpoint fires, and yet watchctl will not begin. */
TEST(reports_that_proc_is_of_no_use)
{
	struct doctor d = healthy;
	const char *said;

	(void)wp_cause_set(&d.no_proc, WP_CAUSE_NO_PROC);
	assert_false(doctor_ok(&d));
	said = said_of(&d, false);
	assert_holds(said, "the main job does not work "
	    "here: /proc is not mounted");
	said = json_of(&d);
	assert_holds(said, "\"ok\":false,\"advice\":"
	    "\"/proc is not mounted");
}

TEST(colours_only_when_wanted)
{
	struct doctor d = ptrace_refused();
	const char *said;

	said = said_of(&d, true);
	assert_holds(said, "\033[32mok\033[0m  ptrace");
	assert_holds(said, "\033[31mNO\033[0m  write");
}

/* What a hypervisor writes into a processor's name is not obeyed. */
TEST(makes_foreign_text_visible)
{
	struct doctor d = healthy;
	const char *said;
	json_t *root;

	(void)strcpy(d.processor, "A\033[2J\"\\\xff\nB");
	(void)strcpy(d.probe[WP_PROBE_WRITE].detail, "one\nhit\a");
	said = said_of(&d, false);
	assert_null(strchr(said, '\033'));
	assert_holds(said, "A\\x1b[2J\"\\\\xff\\nB");
	assert_holds(said, "one\\nhit\\x07");
	said = json_of(&d);
	root = json_loads(said, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root,
	    "processor")), "A\033[2J\"\\\xef\xbf\xbd\nB");
	json_decref(root);
}

/* Undo the folding of lines. */
static void
unfold(const char *text, char *to, size_t size)
{
	static const char fold[] = "\n              ";
	size_t n = 0;

	for (; *text != '\0'; text++) {
		assert_true(n + 1 < size);
		if (strncmp(text, fold, sizeof(fold) - 1) == 0) {
			to[n++] = ' ';
			text += sizeof(fold) - 2;
		} else {
			to[n++] = *text;
		}
	}
	to[n] = '\0';
}

/* Whether a line of text begins with the heading and goes on as told. */
static bool
tells(const char *text, const char *heading, const char *told)
{
	char want[256];

	(void)snprintf(want, sizeof(want), "\n%-14s%s", heading, told);
	return strstr(text, want) != NULL;
}

/* What users may do turns on privileges, what was refused, and which ways
   work. */
TEST(reports_permissions)
{
	static const struct {
		const char *name;
		bool privileged, opened, kernel, stop, inside;
		enum wp_cause_code refusal;
		struct doctor_other other;
		const char *you, *others;	/* NULL: not told */
	} cases[] = {
		{"root at 2", true, true, true, true, true, WP_CAUSE_NONE,
		    {true, true, false}, "every process, with",
		    "own processes, without the kernel's accesses\n"},
		{"user at 2", false, true, false, true, true, WP_CAUSE_NONE,
		    {0}, "own processes, without", "the same"},
		{"user at 1", false, true, true, true, true, WP_CAUSE_NONE,
		    {0}, "own processes, with the", "the same"},
		{"user at 3, refused", false, false, false, true, true,
		    WP_CAUSE_DENIED_PARANOID, {0}, "own processes, without the "
		    "kernel's accesses, with --stop or --inside", "the same"},
		{"user at 3, no library", false, false, false, true, false,
		    WP_CAUSE_DENIED_PARANOID, {0}, "own processes, without the "
		    "kernel's accesses, with --stop\n", "the same"},
		{"root at 1", true, true, true, true, true, WP_CAUSE_NONE,
		    {true, true, true}, "every process", "own processes, with "
		    "the"},
		{"root at 3", true, true, true, true, true, WP_CAUSE_NONE,
		    {true, false, false}, "every process", "own processes, "
		    "without the kernel's accesses, with --stop or"},
		{"root who cannot try", true, true, true, true, true,
		    WP_CAUSE_NONE, {0}, "every process", "not known"},
		{"no slot", true, false, false, false, false,
		    WP_CAUSE_NO_SLOT, {true, true, false},
		    "nothing while no slot is free", "own processes"},
		{"no breakpoints", true, false, false, false, false,
		    WP_CAUSE_NO_BREAKPOINTS, {true, false, false}, NULL, NULL},
		{"seccomp, of both", true, false, false, false, false,
		    WP_CAUSE_DENIED_SECCOMP, {true, false, false}, NULL, NULL},
		{"seccomp", false, false, false, false, true,
		    WP_CAUSE_DENIED_SECCOMP, {0}, "own commands", "the same"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doctor d = healthy;
		const char *said;
		char text[8192];

		print_message("%s\n", cases[i].name);
		d.uid = cases[i].privileged ? 0 : 1000;
		d.cap_perfmon = d.cap_sys_admin = d.cap_sys_ptrace =
		    cases[i].privileged;
		d.opened = d.way[DOCTOR_RING].ok = cases[i].opened;
		d.way[DOCTOR_STOP].ok = cases[i].stop;
		d.way[DOCTOR_INSIDE].ok = cases[i].inside;
		d.other = cases[i].other;
		d.features.kernel = cases[i].kernel;
		d.refusal.code = cases[i].refusal;
		said = said_of(&d, false);
		unfold(said, text, sizeof(text));
		if (cases[i].you == NULL) {
			assert_lacks(text, "who may");
		} else {
			assert_true(tells(text, "you", cases[i].you));
			assert_true(tells(text, "other users",
			    cases[i].others));
		}
	}
}

/* Slots are told when they are known: by opening, or by ENOSPC. */
TEST(reports_slots_only_when_known)
{
	static const struct {
		bool opened;
		enum wp_cause_code refusal;
		bool told;
	} cases[] = {
		{true, WP_CAUSE_NONE, true},
		{false, WP_CAUSE_NO_SLOT, true},
		{false, WP_CAUSE_DENIED_SECCOMP, false},
		{false, WP_CAUSE_NO_BREAKPOINTS, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doctor d = healthy;
		const char *said;
		json_t *root, *slots;

		d.opened = cases[i].opened;
		d.refusal.code = cases[i].refusal;
		said = said_of(&d, false);
		assert_int_equal(strstr(said, " free of 4") != NULL,
		    cases[i].told);
		said = json_of(&d);
		root = json_loads(said, 0, NULL);
		assert_non_null(root);
		slots = json_object_get(root, "slots");
		assert_int_equal(json_object_get(slots, "free") != NULL,
		    cases[i].told);
		assert_int_equal(json_object_get(slots, "range") != NULL,
		    cases[i].opened);
		assert_int_equal(json_integer_value(json_object_get(slots,
		    "all")), 4);
		json_decref(root);
	}
}

TEST(estimates_rings)
{
	static const struct {
		int mlock_kb;
		unsigned cpus;
		uint64_t memlock;
		int paranoid;
		bool cap_ipc_lock;
		uint64_t kb;
	} cases[] = {
		{516, 2, 8 << 20, 2, false, 4096},
		{516, 2, 64 << 10, 2, false, 512},
		{516, 128, 8 << 20, 2, false, 512},
		{516, 2, 8 << 20, 2, true, UINT64_MAX},
		{516, 2, 8 << 20, -1, false, UINT64_MAX},
		{516, 2, UINT64_MAX, 2, false, UINT64_MAX},
		{DOCTOR_ABSENT, 2, 8 << 20, 2, false, 2048},
		{0, 4, 0, 2, false, 0},
		{7, 1, 0, 2, false, 0},
		{8, 1, 0, 2, false, 4},
		{516, 0, 0, INT_MIN, false, 512},
	};

	if (sysconf(_SC_PAGESIZE) != 4096)
		skip();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doctor d = healthy;

		d.mlock_kb = cases[i].mlock_kb;
		d.cpus = cases[i].cpus;
		d.memlock = cases[i].memlock;
		d.features.paranoid = cases[i].paranoid;
		d.cap_ipc_lock = cases[i].cap_ipc_lock;
		assert_true(doctor_ring_kb(&d) == cases[i].kb);
	}
}

TEST(json_of_a_healthy_machine)
{
	const char *type, *schema, *kernel, *arch, *seccomp;
	json_int_t cpus, free_slots, all_slots, range, uid, paranoid, kptr,
	    nofile;
	int ok, perfmon, sigtrap, hypervisor, works[3], sandboxed;
	const char *way[3], *detail;
	json_t *root, *probes, *user, *ring;
	struct buffer b = {0};

	doctor_json(&healthy, &b);
	assert_ptr_equal(strchr(buffer_text(&b), '\n'),
	    buffer_text(&b) + b.len - 1);
	root = json_loads(buffer_text(&b), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(json_unpack(root, "{s:s s:s s:b s:s s:s s:I s:b "
	    "s:{s:I s:I s:I} s:{s:I s:b s:s s:I s:I} s:{s:I s:o} s:{s:b}"
	    "s:[{s:s s:b} {s:s s:b} {s:s s:b}] s:{s:b s:s} s:o s:o}",
	    "type", &type, "schema", &schema, "ok", &ok, "kernel", &kernel,
	    "arch", &arch, "cpus", &cpus, "hypervisor", &hypervisor,
	    "slots", "free", &free_slots, "all", &all_slots, "range", &range,
	    "user", "uid", &uid, "cap_perfmon", &perfmon,
	    "seccomp", &seccomp, "perf_event_paranoid", &paranoid,
	    "kptr_restrict", &kptr,
	    "limits", "nofile", &nofile, "ring_kb", &ring,
	    "features", "sigtrap", &sigtrap, "ways",
	    "name", &way[0], "ok", &works[0], "name", &way[1], "ok",
	    &works[1], "name", &way[2], "ok", &works[2],
	    "sandbox", "ok", &sandboxed, "detail", &detail,
	    "probes", &probes, "user", &user), 0);
	assert_string_equal(type, "doctor");
	assert_string_equal(schema, "watchctl/1");
	assert_string_equal(kernel, "6.12.1");
	assert_string_equal(arch, "x86_64");
	assert_string_equal(seccomp, "none");
	assert_true(ok && perfmon && sigtrap && !hypervisor);
	assert_string_equal(way[0], "ring");
	assert_string_equal(way[1], "stop");
	assert_string_equal(way[2], "inside");
	assert_true(works[0] && works[1] && works[2] && sandboxed);
	assert_holds(detail, "user 65534");
	assert_true(cpus == 2 && free_slots == 4 && all_slots == 4 &&
	    range == 8 && uid == 0 && paranoid == 2 && kptr == 1 &&
	    nofile == 20000);
	assert_true(json_is_null(ring));
	assert_null(json_object_get(user, "ptrace_scope"));
	assert_int_equal(json_array_size(probes), WP_PROBE_KINDS);
	assert_null(json_object_get(json_array_get(probes, 0), "errno"));
	assert_null(json_object_get(json_array_get(probes, 0), "advice"));
	json_decref(root);
	buffer_free(&b);
}

TEST(says_whether_execution_needs_slots)
{
	struct doctor d = healthy;
	const char *said;

	said = json_of(&d);
	assert_holds(said, "\"uprobes\":true,");
	assert_lacks(said, "uprobes_reason");
	assert_holds(said, "\"newcomers\":true,"
	    "\"cgroup_moves\":true,");
	(void)wp_cause_set(&d.no_uprobe, WP_CAUSE_NO_UPROBE, 4096ull, "made");
	said = json_of(&d);
	assert_holds(said, "\"uprobes\":false,"
	    "\"uprobes_reason\":\"no slot is left for 0x1000, and no uprobe "
	    "can be there: made\"");
	said = said_of(&d, false);
	assert_holds(said, "\nuprobes       no slot is " "left");
}

/* How hits come, and why not in a better way. */
TEST(names_the_delivery)
{
	struct doctor d = healthy;
	const char *said;

	said = json_of(&d);
	assert_holds(said, "\"delivery\":\"bpf\"");
	assert_lacks(said, "delivery_reason");
	(void)wp_cause_set(&d.no_bpf, WP_CAUSE_NO_BPF, "making", "refused");
	said = json_of(&d);
	assert_holds(said, "\"delivery\":\"ring\","
	    "\"delivery_reason\":\"making: refused; ");
	said = said_of(&d, false);
	assert_holds(said, "\ndelivery      ring: making: "
	    "refused; ");
	d = ptrace_refused();
	said = json_of(&d);
	assert_holds(said, "\"delivery\":\"ptrace\","
	    "\"delivery_reason\":\"not permitted: ");
	d.way[DOCTOR_STOP].ok = false;
	said = json_of(&d);
	assert_lacks(said, "delivery");
}

TEST(json_of_a_refusal)
{
	struct doctor d = ptrace_refused();
	const char *name, *err, *advice, *refusal;
	json_int_t scope, ring;
	const char *said;
	json_t *root;
	int ok, first;

	said = json_of(&d);
	root = json_loads(said, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(json_unpack(root, "{s:b s:s s:{s:I} s:{s:I}"
	    "s:[{s:s s:b s:s s:s}]}", "ok", &ok, "refusal", &refusal,
	    "user", "ptrace_scope", &scope, "limits", "ring_kb", &ring,
	    "probes", "name", &name, "ok", &first, "errno", &err,
	    "advice", &advice), 0);
	assert_true(ok && !first && scope == 1 && ring == 4096);
	assert_string_equal(name, "write");
	assert_string_equal(err, "EACCES");
	assert_string_equal(advice, d.probe[WP_PROBE_WRITE].advice);
	assert_string_equal(refusal, d.refusal.text);
	assert_null(json_object_get(root, "features"));
	json_decref(root);
}

/* Run the command, its stderr into text.  Result: its status. */
static int
run_doctor(char **argv, FILE *out, char text[512])
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), saved = dup(2), status;
	int argc = 0;
	ssize_t n;

	while (argv[argc] != NULL)
		argc++;
	assert_true(fd >= 0 && saved >= 0);
	(void)fflush(stderr);
	(void)dup2(fd, 2);
	status = doctor(argc, argv, getenv("WATCHCTL"), out);
	(void)dup2(saved, 2);
	n = pread(fd, text, 511, 0);
	text[n < 0 ? 0 : n] = '\0';
	(void)close(fd);
	(void)close(saved);
	return status;
}

TEST(refuses_bad_usage)
{
	static char doctor_name[] = "doctor", o[] = "-o", xml[] = "xml",
	    q[] = "-q", pid[] = "4711", bad[] = "-o\n\033[2J",
	    json[] = "--json";
	char *cases[][4] = {
		{doctor_name, o, xml}, {doctor_name, o}, {doctor_name, q},
		{doctor_name, pid}, {doctor_name, bad}, {doctor_name, json},
	};
	char text[512];

	for (size_t i = 0; i < COUNT(cases); i++) {
		FILE *out = tmpfile();

		assert_non_null(out);
		assert_int_equal(run_doctor(cases[i], out, text), 125);
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		assert_holds(text, "watchctl doctor [-o");
		assert_null(strchr(text, '\033'));
		assert_lacks(text, "'doctor'");
		assert_int_equal(ftell(out), 0);
		(void)fclose(out);
	}
}

/* On whatever machine this is: status, JSON and text are of one mind. */
TEST(agrees_with_itself)
{
	static char doctor_name[] = "doctor", o[] = "-o", json[] = "json";
	char *as_json[] = {doctor_name, o, json, NULL};
	char *as_text[] = {doctor_name, NULL};
	char text[512], *told = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&told, &len);
	json_t *root;
	int status;

	assert_non_null(out);
	status = run_doctor(as_json, out, text);
	(void)fclose(out);
	assert_string_equal(text, "");
	root = json_loads(told, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(status,
	    json_is_true(json_object_get(root, "ok")) ? 0 : 1);
	json_decref(root);
	free(told);

	out = open_memstream(&told, &len);
	assert_non_null(out);
	assert_int_equal(run_doctor(as_text, out, text), status);
	(void)fclose(out);
	assert_int_equal(strstr(told, "the main job works here") != NULL,
	    status == 0);
	assert_null(strchr(told, '\033'));
	free(told);
}

TEST(says_when_it_cannot_write)
{
	static char doctor_name[] = "doctor";
	char *argv[] = {doctor_name, NULL}, text[512];
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	assert_int_equal(run_doctor(argv, full, text), 125);
	assert_holds(text, "No space left");
	(void)fclose(full);
}

RUN_TESTS()
