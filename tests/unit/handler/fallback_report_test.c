/* fallback_report: the lines of a hit without a helper. */
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "scratch.h"
#include "handler/trap.h"

enum { PAGE = 4096 };

/* What the program said since the last time. */
static char said[65536];

static int
take_output(void **state)
{
	static int fds[2];

	(void)state;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	wp_state.output = fds[1];
	return fds[0];
}

static int from;

static int
begin(void **state)
{
	from = take_output(state);
	return from < 0 || scratch_make(state) != 0 ||
	    prctl(PR_SET_NAME, "a\tname") != 0 ? -1 : 0;
}

static const char *
heard(void)
{
	ssize_t n = read(from, said, sizeof(said) - 1);

	said[n > 0 ? n : 0] = '\0';
	return said;
}

TEST(a_line_gets_its_prefix_and_newline)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"a line", "watchpoint: a line\n"},
		{"a line\n", "watchpoint: a line\n"},
		{"watchpoint: a line", "watchpoint: a line\n"},
		{"watchpoint: one\nwatchpoint: two\n",
		    "watchpoint: one\nwatchpoint: two\n"},
		{"", "watchpoint: \n"},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		wp_fallback_line(cases[i].text);
		assert_string_equal(heard(), cases[i].line);
	}
}

/* The program is not killed; a SIGPIPE of its own is left to it. */
TEST(a_pipe_without_reader_kills_nobody)
{
	const int out = wp_state.output;
	sigset_t set, pending;
	int fds[2], sig;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)close(fds[0]);
	wp_state.output = fds[1];
	wp_fallback_line("nobody hears this");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	wp_fallback_line("nor this");
	(void)sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
	(void)raise(SIGPIPE);
	wp_fallback_line("nor this");
	(void)sigpending(&pending);
	assert_true(sigismember(&pending, SIGPIPE));
	assert_int_equal(sigwait(&set, &sig), 0);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)close(fds[1]);
	wp_state.output = out;
}

/* A hit of a made watch; its context has that pc and frame pointer, and the
   stack pointer low. */
static struct wp_watch *made = &wp_state.watch[3];
static ucontext_t context;

static struct wp_hit
hit_at(uint64_t pc, const void *low, uint64_t fp)
{
	memset(&context, 0, sizeof(context));
#if defined(__x86_64__)
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	context.uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)low;
	context.uc_mcontext.gregs[REG_RBP] = (greg_t)fp;
#elif defined(__aarch64__)
	context.uc_mcontext.pc = pc;
	context.uc_mcontext.sp = (uintptr_t)low;
	context.uc_mcontext.regs[29] = fp;
#endif
	(void)strcpy(made->label, "config");
	made->region = (struct wp_region){0x404060, 8, WP_WRITE};
	return (struct wp_hit){
		.watch = made, .label = made->label, .tid = 124, .nth = 1,
		.context = &context, .text = "",
	};
}

/* The lines without their number, which goes on: N. */
static const char *
without_number(void)
{
	static char text[sizeof(said)];
	char *to = text, number[32];
	const char *at = heard();

	assert_int_equal(strncmp(at, "watchpoint: #", 13), 0);
	(void)snprintf(number, sizeof(number), "#%.*s ",
	    (int)strcspn(at + 13, " "), at + 13);
	while (*at != '\0')
		if (strncmp(at, number, strlen(number)) == 0) {
			to += sprintf(to, "#N ");
			at += strlen(number);
		} else
			*to++ = *at++;
	*to = '\0';
	return text;
}

/* The line of a frame in this program; behind is how much is its instruction's
   or call's. */
static const char *
frame_line(unsigned i, const void *pc)
{
	static char line[4][PATH_MAX + 256];
	Dl_info info;
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_in_range(n, 1, sizeof(exe) - 1);
	exe[n] = '\0';
	assert_int_not_equal(dladdr(pc, &info), 0);
	(void)snprintf(line[i % 4], sizeof(line[0]),
	    "watchpoint:   #N frame %u %#lx %s+%#lx\n", i, (uintptr_t)pc, exe,
	    (uintptr_t)pc - (uintptr_t)info.dli_fbase);
	return line[i % 4];
}

TEST(the_first_line_says_what_and_who)
{
	static const struct {
		enum wp_access access;
		bool stray, late;
		const char *label, *says;
	} cases[] = {
		{WP_WRITE, false, false, "config", "write config (%s"},
		{WP_READ, false, false, "config", "read config (%s"},
		{WP_ACCESS, false, false, "config", "access config (%s"},
		{WP_EXEC, false, false, "config", "execute config (%s"},
		{WP_WRITE, true, false, "config", "write config (%s (stray)"},
		{WP_WRITE, true, true, "a b", "write a b (%s (stray) (late)"},
		{WP_WRITE, false, true, "\033[31m\n\\", "write "
		    "\\x1b[31m\\x0a\\x5c (%s (late)"},
	};
	char who[128], line[256], want[512];

	(void)snprintf(who, sizeof(who), "8 bytes at 0x404060) by a\\x09name"
	    "[%d/124]", getpid());
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct wp_hit hit = hit_at(1, NULL, 0);

		(void)strcpy(made->label, cases[i].label);
		made->region.access = cases[i].access;
		hit.stray = cases[i].stray;
		hit.late = cases[i].late;
		wp_fallback_hit(made, &hit, true);
		(void)snprintf(line, sizeof(line), cases[i].says, who);
		(void)snprintf(want, sizeof(want), "watchpoint: #N %s\n"
		    "watchpoint:   #N frame 0 0x1\n", line);
		assert_string_equal(without_number(), want);
	}
}

TEST(numbers_go_on)
{
	const struct wp_hit hit = hit_at(1, NULL, 0);
	unsigned first, second;

	wp_fallback_hit(made, &hit, true);
	assert_int_equal(sscanf(heard(), "watchpoint: #%u", &first), 1);
	wp_fallback_hit(made, &hit, true);
	assert_int_equal(sscanf(heard(), "watchpoint: #%u", &second), 1);
	assert_int_equal(second, first + 1);
}

/* Frames: the caller's, the return address. */
TEST(callers_are_found_by_frame_pointers)
{
	/* upwards, as on a stack */
	uint64_t stack[16] = {0};
	struct wp_hit hit = hit_at((uintptr_t)hit_at, stack,
	    (uintptr_t)&stack[2]);
	char want[4 * (PATH_MAX + 256)];

	stack[2] = (uintptr_t)&stack[8];
	stack[3] = (uintptr_t)heard + 4;
	stack[8] = 0;			/* the outermost */
	stack[9] = (uintptr_t)without_number + 4;
	wp_fallback_hit(made, &hit, true);
	(void)snprintf(want, sizeof(want), "%s%s%s",
	    frame_line(0, (void *)(uintptr_t)hit_at),
	    frame_line(1, (char *)(uintptr_t)heard + 4),
	    frame_line(2, (char *)(uintptr_t)without_number + 4));
	assert_string_equal(strchr(without_number(), '\n') + 1, want);
}

/* A chain that makes no sense ends where it does not. */
TEST(bad_chains_end)
{
	uint64_t stack[64];
	const uint64_t code = (uintptr_t)hit_at + 4, at = (uintptr_t)stack;
	const struct {
		const char *what;
		uint64_t fp, next, pc;	/* of the first frame */
		unsigned frames;
	} cases[] = {
		{"good", at + 64, 0, code, 2},
		{"below the stack pointer", at - 8, 0, code, 1},
		{"not aligned", at + 65, 0, code, 1},
		{"not mapped", 0x10, 0, code, 1},
		{"not an address", 1ull << 63, 0, code, 1},
		{"far away", at + (1ull << 40), 0, code, 1},
		{"to itself", at + 64, at + 64, code, 2},
		{"downwards", at + 64, at + 8, code, 2},
		{"no code", at + 64, 0, at, 1},
		{"nothing mapped", at + 64, 0, 8, 1},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct wp_hit hit = hit_at((uintptr_t)hit_at, stack,
		    cases[i].fp);
		unsigned frames = 0;

		memset(stack, 0, sizeof(stack));
		stack[8] = cases[i].next;
		stack[9] = cases[i].pc;
		wp_fallback_hit(made, &hit, true);
		for (const char *p = heard(); (p = strstr(p, " frame ")) !=
		    NULL; p++)
			frames++;
		if (frames != cases[i].frames)
			fail_msg("%s: %u frames", cases[i].what, frames);
	}
}

TEST(the_chain_has_a_limit)
{
	uint64_t stack[256] = {0};
	struct wp_hit hit = hit_at((uintptr_t)hit_at, stack, (uintptr_t)stack);
	unsigned lines = 0;

	for (unsigned i = 0; i < 256; i += 2) {
		stack[i] = i < 254 ? (uintptr_t)&stack[i + 2] : 0;
		stack[i + 1] = (uintptr_t)hit_at + 4;
	}
	wp_fallback_hit(made, &hit, true);
	for (const char *p = heard(); *p != '\0'; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 33);
}

/* A file that is mapped in parts, whose name is hostile. */
TEST(modules_are_shown_visibly)
{
	const char *name = "a\033b\\c+0x1";
	char want[PATH_MAX + 256];
	struct wp_hit hit;
	char *at;
	int fd;

	fd = open(scratch_path(name), O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	at = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	/* its code, and its variables without a file */
	if (mprotect(at + PAGE, PAGE, PROT_READ | PROT_EXEC) != 0)
		skip();		/* a file system without execution */
	assert_true(mmap(at + 2 * PAGE, PAGE, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	assert_int_equal(mprotect(at + 3 * PAGE, PAGE, PROT_READ | PROT_EXEC),
	    0);
	for (unsigned page = 1; page < 4; page += 2) {
		hit = hit_at((uintptr_t)at + page * PAGE + 0x23, NULL, 0);
		wp_fallback_hit(made, &hit, true);
		(void)snprintf(want, sizeof(want), " %s/a\\x1bb\\x5cc+0x1+"
		    "%#x\n", scratch_dir, page * PAGE + 0x23);
		if (strstr(without_number(), want) == NULL)
			fail_msg("%s instead of %s", said, want);
	}
	hit = hit_at((uintptr_t)at + 2 * PAGE, NULL, 0);
	wp_fallback_hit(made, &hit, true);
	(void)snprintf(want, sizeof(want), " frame 0 %#lx\n",
	    (uintptr_t)at + 2 * PAGE);
	assert_holds(heard(), want);
	(void)munmap(at, 4 * PAGE);
	(void)close(fd);
}

TEST(a_stray_hit_is_kept)
{
	struct wp_hit hit = hit_at(1, NULL, 0);

	wp_stray_reset();
	hit.stray = 1;
	wp_fallback_hit(made, &hit, false);
	assert_string_equal(heard(), "");
	assert_int_equal(wp_stray_count(), 1);
	wp_fallback_hit(made, &hit, true);
	assert_string_equal(heard(), wp_stray_text());
	assert_int_equal(wp_stray_count(), 2);
	hit.stray = 0;
	wp_fallback_hit(made, &hit, true);
	assert_string_not_equal(heard(), wp_stray_text());
	assert_int_equal(wp_stray_count(), 2);
}

/* By the helper, if it lives. */
TEST(a_warning_goes_to_the_helper)
{
	struct wp_channel *channel = mmap(NULL, sizeof(*channel), PROT_READ |
	    PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char longer[WP_LABEL_MAX];

	assert_true(channel != MAP_FAILED);
	(void)hit_at(1, NULL, 0);
	wp_fallback_warning(made, " is odd");
	assert_string_equal(heard(), "watchpoint: config is odd\n");
	atomic_store(&wp_state.channel, channel);
	wp_fallback_warning(made, " is odd");
	assert_string_equal(heard(), "watchpoint: config is odd\n");
	atomic_store(&channel->ready, 1);
	atomic_store(&channel->helper, (uint32_t)gettid());
	atomic_store(&channel->program, getpid());
	memset(longer, '\n', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	memcpy(made->label, longer, sizeof(longer));
	wp_fallback_warning(made, " is odd");
	assert_string_equal(heard(), "");
	assert_int_equal(atomic_load(&channel->warned), 1);
	assert_int_equal(strnlen(channel->warning, sizeof(channel->warning)),
	    sizeof(channel->warning) - 1);
	assert_int_equal(strncmp(channel->warning, "\\x0a\\x0a", 8), 0);
	atomic_store(&wp_state.channel, NULL);
	(void)munmap(channel, sizeof(*channel));
}

RUN_TESTS(.before_all = begin, .after_all = scratch_remove)
