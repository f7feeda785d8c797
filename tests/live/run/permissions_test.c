/*
 * permissions: tries what works for which user, at each level of
 * kernel.perf_event_paranoid and under seccomp filters; and checks messages.
 *
 * The machine's level is changed for some tenths of a second at a time; another
 * process restores it whatever happens to the test.  The resulting table,
 * docs/permissions.md, is written if PERMISSIONS names that file.
 */
#include "test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "refuse.h"

#define SYSCTL "/proc/sys/kernel/perf_event_paranoid"

enum { NOBODY = 65534, MESSAGES = 32, LINE = 1024 };

/* --- the level --- */

static char given[16];		/* as it was */
static int keeper[2];		/* the pipe whose end gives it back */
static bool possible;

static bool
set_level(const char *level)
{
	int fd = open(SYSCTL, O_WRONLY | O_CLOEXEC);
	const ssize_t len = (ssize_t)strlen(level);
	const bool set = fd >= 0 && write(fd, level, (size_t)len) == len;

	if (fd >= 0)
		(void)close(fd);
	return set;
}

static _Noreturn void
keep(void)
{
	struct pollfd end = {.fd = keeper[0], .events = POLLIN};

	(void)close(keeper[1]);
	(void)setsid();
	while (poll(&end, 1, -1) < 0)
		;
	_exit(set_level(given) ? 0 : 1);
}

static int
learn_level(void **state)
{
	int fd = open(SYSCTL, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, given, sizeof(given) - 1) : -1;
	pid_t pid;

	(void)state;
	(void)close(fd);
	possible = geteuid() == 0 && n > 0 && set_level(given);
	if (!possible)
		print_message(SYSCTL ": cannot be written: %s\n",
		    strerror(errno));
	if (!possible || pipe2(keeper, O_CLOEXEC) != 0)
		return possible ? -1 : 0;
	if ((pid = fork()) == 0)
		keep();
	return pid < 0 ? -1 : 0;
}

/* --- who --- */

static bool
become(uint64_t capabilities)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = data[i].inheritable =
		    (uint32_t)(capabilities >> (32 * i));
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 ||
	    setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0 ||
	    syscall(SYS_capset, &header, data) != 0)
		return false;
	for (unsigned c = 0; c < 64; c++)
		if ((capabilities >> c & 1) != 0 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0) != 0)
			return false;
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static bool
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool written = fd >= 0 &&
	    write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return written;
}

/* As unshare -Ur: root in a user namespace that an ordinary user made. */
static bool
be_contained(void)
{
	return become(0) && unshare(CLONE_NEWUSER) == 0 &&
	    write_file("/proc/self/setgroups", "deny") &&
	    write_file("/proc/self/uid_map", "0 65534 1") &&
	    write_file("/proc/self/gid_map", "0 65534 1");
}

static bool
refuse_perf(int err)
{
	return refuse_call(SYS_perf_event_open, err, NULL, 0);
}

static bool
refuse_ptrace(void)
{
	return refuse_call(SYS_ptrace, EPERM, NULL, 0);
}

enum who {
	ROOT, NO_BPF, USER, PERFMON, BPF, ADMIN, CONTAINED, NO_PERF, NO_PTRACE,
	NEITHER, WHOS
};

static const char *const names[WHOS] = {
	[ROOT] = "root",
	[NO_BPF] = "... with bpf(2) filtered",
	[USER] = "an ordinary user",
	[PERFMON] = "... with CAP_PERFMON",
	[BPF] = "... with CAP_PERFMON and CAP_BPF",
	[ADMIN] = "... with CAP_SYS_ADMIN",
	[CONTAINED] = "... in a container of their own (`unshare -Ur`)",
	[NO_PERF] = "... with perf_event_open(2) filtered",
	[NO_PTRACE] = "... with ptrace(2) filtered",
	[NEITHER] = "... with both filtered",
};

static bool
be(int who)
{
	switch (who) {
	case ROOT:
		return true;
	case NO_BPF:
		return refuse_call(SYS_bpf, EPERM, NULL, 0);
	case PERFMON:
		return become(1ull << CAP_PERFMON);
	case BPF:
		return become(1ull << CAP_PERFMON | 1ull << CAP_BPF);
	case ADMIN:
		return become(1ull << CAP_SYS_ADMIN);
	case CONTAINED:
		return be_contained();
	case NO_PERF:
		return become(0) && refuse_perf(EPERM);
	case NO_PTRACE:
		return become(0) && refuse_ptrace();
	case NEITHER:
		return become(0) && refuse_perf(EPERM) && refuse_ptrace();
	default:
		return become(0);
	}
}

/* --- what works --- */

enum way { ATTACH, COMMAND, STOP, INSIDE, WAYS };

struct found {
	bool known;		/* it could become that */
	bool kernel;		/* the kernel's accesses are watched too */
	bool bpf;		/* hits are delivered by BPF programs */
	bool works[WAYS];
	char message[WAYS][LINE];	/* of those that do not */
};

/* Run a program as somebody.  False: that is not possible here. */
static bool
run_as(bool (*be_so)(int), enum who who, const char *const argv[],
    struct outcome *o)
{
	struct running w;

	start_prepared(&w, argv, be_so, (int)who);
	finish(&w, o);
	if (o->status != UNPREPARED && o->status != 127)
		return true;
	return false;
}

/* The length of a path of watchctl's own at the start of a text. */
static size_t
own_path(const char *text)
{
	const char *const paths[] = {"/proc/self/exe", watchctl()};

	for (size_t i = 0; i < COUNT(paths); i++)
		if (strncmp(text, paths[i], strlen(paths[i])) == 0)
			return strlen(paths[i]);
	return 0;
}

/* The same words for whichever process it was, and wherever watchctl is. */
static void
copy_message(char to[LINE], const char *text)
{
	size_t n = 0;

	while (*text != '\0' && *text != '\n' && n + 8 < LINE) {
		const bool number = n >= 2 && to[n - 1] == ' ' &&
		    (to[n - 2] == 's' || to[n - 2] == 'd') &&
		    strspn(text, "0123456789") > 1;

		if (own_path(text) != 0) {
			n += (size_t)sprintf(to + n, "COMMAND");
			text += own_path(text);
		} else if (number) {
			n += (size_t)sprintf(to + n, "PID");
			text += strspn(text, "0123456789");
		} else {
			to[n++] = *text++;
		}
	}
	to[n] = '\0';
}

/* The first line on stderr that is no warning. */
static const char *
refusal_of(const struct outcome *o)
{
	const char *line = o->err;

	while (strncmp(line, "watchctl: warning", 17) == 0 &&
	    strchr(line, '\n') != NULL)
		line = strchr(line, '\n') + 1;
	return strncmp(line, "watchctl: ", 10) == 0 ? line + 10 : line;
}

static void
find_command(bool (*be_so)(int), enum who who, struct found *found)
{
	struct outcome o;

	if (!run_as(be_so, who, LIST(watchctl(), "-w", "doctor_word", "-O",
	    "/dev/null", "--", watchctl(), "doctor", "--fire"), &o))
		return;
	found->works[COMMAND] = o.status == 0 &&
	    strstr(o.err, "1 hit, 1 reported, 0 lost") != NULL;
	if (!found->works[COMMAND])
		copy_message(found->message[COMMAND], refusal_of(&o));
}

/* As doctor tried them; with what it says in words. */
static bool
find_ways(bool (*be_so)(int), enum who who, struct found *found)
{
	static const enum way order[] = {ATTACH, STOP, INSIDE};
	const json_t *doctor, *ways;
	struct outcome o;
	bool any = false;

	if (!run_as(be_so, who, LIST(watchctl(), "doctor", "-o", "json"), &o))
		return false;
	doctor = json_array_get(o.lines, 0);
	assert_non_null(doctor);
	ways = json_object_get(doctor, "ways");
	for (size_t i = 0; i < COUNT(order); i++) {
		const json_t *way = json_array_get(ways, i);
		const enum way k = order[i];

		found->works[k] = json_is_true(json_object_get(way, "ok"));
		any = any || found->works[k];
		if (!found->works[k])
			copy_message(found->message[k], text_of(way,
			    "detail"));
	}
	found->kernel = json_is_true(json_object_get(json_object_get(doctor,
	    "features"), "kernel"));
	found->bpf = found->works[ATTACH] &&
	    strcmp(text_of(doctor, "delivery"), "bpf") == 0;
	assert_int_equal(o.status, any ? 0 : 1);
	return true;
}

static void
find(bool (*be_so)(int), enum who who, const char *level,
    struct found *found)
{
	*found = (struct found){0};
	assert_true(set_level(level));
	found->known = find_ways(be_so, who, found);
	if (found->known)
		find_command(be_so, who, found);
	assert_true(set_level(given));
}

/* --- what has to be --- */

/* Whatever this kernel makes of the level. */
static void
check(enum who who, const struct found *found)
{
	const bool *works = found->works;
	const bool traces = who != NO_PTRACE && who != NEITHER;
	const bool opens = works[ATTACH];

	for (int i = 0; i < WAYS; i++)
		if (!works[i] && found->message[i][0] == '\0')
			fail_msg("way %d of %s: no reason", i, names[who]);
	if (who == ROOT || who == NO_BPF || who == ADMIN)
		assert_true(opens && found->kernel);
	if (who == NO_BPF || who == USER || who == PERFMON || who == CONTAINED)
		assert_false(found->bpf);
	if (who == NO_PERF || who == NEITHER)
		assert_false(opens);
	assert_int_equal(works[COMMAND], opens && traces);
	assert_int_equal(works[STOP], traces);
	assert_int_equal(works[INSIDE], opens || traces);
	/* what is named as a way out is one */
	for (int i = 0; i < WAYS; i++) {
		if (strstr(found->message[i], "add --stop") != NULL)
			assert_true(works[STOP]);
		if (strstr(found->message[i], "--inside does without") != NULL)
			assert_true(works[INSIDE]);
		if (!works[i] && (works[STOP] || works[INSIDE]) &&
		    strstr(found->message[i], "--") == NULL)
			fail_msg("%s: no way out in: %s", names[who],
			    found->message[i]);
	}
}

/* --- the table --- */

static char messages[MESSAGES][LINE];
static unsigned nmessages;

static unsigned
number_of_message(const char *text)
{
	unsigned i = 0;

	while (i < nmessages && strcmp(messages[i], text) != 0)
		i++;
	assert_true(i < MESSAGES);
	if (i == nmessages)
		strcpy(messages[nmessages++], text);
	return i + 1;
}

static void
put_row(FILE *out, const char *level, enum who who, const struct found *found)
{
	(void)fprintf(out, "| %s | %s |", level, names[who]);
	for (int i = 0; i < WAYS; i++)
		if (!found->known)
			(void)fprintf(out, " not possible here |");
		else if (found->works[i])
			(void)fprintf(out, " yes |");
		else
			(void)fprintf(out, " no (%u) |",
			    number_of_message(found->message[i]));
	(void)fprintf(out, " %s | %s |\n", found->kernel ? "yes" : "no",
	    !found->works[ATTACH] ? "-" : found->bpf ? "BPF" : "ring");
}

static void
put_head(FILE *out)
{
	struct utsname name;

	(void)uname(&name);
	(void)fprintf(out, "# Permissions\n\n"
	    "This table shows what works for which user. `permissions_test` "
	    "tried each row on\nLinux %.*s. Kernels that refuse more, such as "
	    "Debian's at level 3, give other\nresults. The numbers refer to "
	    "watchctl's messages, which are listed below the\ntable.\n\n"
	    "| kernel.perf_event_paranoid | who | `-p PID` | `-- COMMAND` | "
	    "`--stop` | `--inside` | the kernel's accesses too | hits come by "
	    "|\n|---|---|---|---|---|---|---|---|\n",
	    (int)strspn(name.release, "0123456789."), name.release);
}

/* An item of a list, in lines of at most 80 columns. */
static void
put_item(FILE *out, unsigned number, const char *text)
{
	int column = fprintf(out, "%u. `", number);

	for (int len; *text != '\0'; text += len) {
		const int space = *text == ' ';

		len = space + (int)strcspn(text + space, " ");
		if (column + len + (text[len] == '\0') > 80)
			column = fprintf(out, "\n  ") - 1;
		column += fprintf(out, "%.*s", len, text);
	}
	(void)fprintf(out, "`\n");
}

static void
put_messages(FILE *out)
{
	(void)fprintf(out, "\n");
	for (unsigned i = 0; i < nmessages; i++)
		put_item(out, i + 1, messages[i]);
}

TEST(what_works_for_whom)
{
	static const char *const levels[] = {"4", "3", "2", "1", "0", "-1"};
	const char *path = getenv("PERMISSIONS");
	FILE *out = path == NULL ? tmpfile() : fopen(path, "w");
	struct found found;

	if (!possible)
		skip();
	assert_non_null(out);
	put_head(out);
	for (size_t l = 0; l < COUNT(levels); l++) {
		for (enum who who = 0; who < WHOS; who++) {
			find(be, who, levels[l], &found);
			if (found.known)
				check(who, &found);
			put_row(out, levels[l], who, &found);
		}
	}
	put_messages(out);
	assert_int_equal(fclose(out), 0);
}

/* A kernel that wants CAP_SYS_ADMIN at level 3, as Debian's do. */
static bool
be_refused_in_spite(int who)
{
	return be(who) && refuse_perf(EACCES);
}

TEST(cap_perfmon_that_is_not_enough)
{
	struct found found;

	if (!possible)
		skip();
	find(be_refused_in_spite, PERFMON, "3", &found);
	assert_false(found.works[ATTACH]);
	assert_true(found.works[STOP] && found.works[INSIDE]);
	assert_holds(found.message[ATTACH], "perf_event_paranoid is "
	    "3, and this kernel does not let CAP_PERFMON pass");
	assert_holds(found.message[ATTACH], "add CAP_SYS_ADMIN");
	find(be_refused_in_spite, USER, "3", &found);
	assert_holds(found.message[ATTACH], "perf_event_paranoid is "
	    "3; run as root (sudo)");
	assert_holds(found.message[ATTACH],
	    "sysctl kernel.perf_event_paranoid=2");
	assert_holds(found.message[ATTACH], "add --stop");
}

static int
end_keeper(void **state)
{
	(void)state;
	return possible && !set_level(given) ? -1 : 0;
}

RUN_LIVE_TESTS(.before_all = learn_level, .after_all = end_keeper)
