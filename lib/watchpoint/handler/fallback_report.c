/*
 * fallback_report: the lines of a hit where there is no helper to explain it.
 *
 *	watchpoint: #3 write config (8 bytes at 0x404060) by prog[12/13] (stray)
 *	watchpoint:   #3 frame 0 0x55d4c0de1139 /path/to/prog+0x1139
 *	watchpoint:   #3 frame 1 0x7f0c5a229d90 /lib/libc.so.6+0x29d90
 *
 * for `watchctl report` to resolve.  Lines:
 *
 *	"watchpoint: #" NUMBER " " ACCESS " " LABEL " (" LEN " bytes at "
 *	    ADDRESS ") by " COMM "[" PID "/" TID "]" { " (" REMARK ")" }
 *	"watchpoint:   #" NUMBER " frame " INDEX " " PC
 *	    [ " " MODULE "+" OFFSET ]
 *
 * NUMBER counts the hits that this process has reported in this way.  ACCESS is
 * write, read, access or execute: what was watched for.  REMARK is "stray", or
 * "late": the signal had been blocked.  ADDRESS, PC and OFFSET are 0x and
 * hexadecimal digits, LEN and the rest decimal.  Frame 0 is where the thread
 * goes on (behind the instruction, but for execute), the others are return
 * addresses.  OFFSET is counted from where the first mapping of the file
 * begins.  In LABEL, COMM and MODULE control characters and \ are shown as
 * \xNN.
 *
 * Callers are found by frame pointers, as far as they make sense: upwards, and
 * return addresses in code.
 *
 * Signal safety: everything here is async-signal-safe, and no point of
 * cancellation.  All lines of a hit are written at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "handler/capture.h"
#include "handler/trap.h"
#include "os/libc.h"

enum {
	FRAMES = 32,
	LINES = 16384,		/* bytes of text for one hit */
	PATH_SHOWN = 4096,
	STACK_SPAN = 64 << 20,	/* no frame is larger */
};

/* A text under construction; whatever does not fit is cut off. */
struct text {
	char *at, *end;
};

struct frame {
	uint64_t pc;
	bool in_code;
	uint64_t offset;	/* from the start of its module */
	char module[PATH_SHOWN];	/* "": not known */
};

/* The mappings of a file follow one another, possibly with anonymous mappings
   in between. */
struct module {
	uint64_t start;		/* of its first mapping */
	char path[PATH_SHOWN];
};

/* Allocated by mmap(2): too large for a stack that may be nearly full. */
struct scratch {
	char lines[LINES];
	char input[4096];		/* read from /proc/self/maps */
	char line[PATH_SHOWN + 256];
	struct module module;		/* of the current line */
	struct frame frames[FRAMES];
};

static void
put_char(struct text *text, char c)
{
	if (text->at < text->end)
		*text->at++ = c;
}

static void
put(struct text *text, const char *s)
{
	while (*s != '\0')
		put_char(text, *s++);
}

static void
put_visible(struct text *text, const char *s)
{
	static const char digits[] = "0123456789abcdef";

	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= ' ' && c != 0x7f && c != '\\') {
			put_char(text, *s);
			continue;
		}
		put(text, "\\x");
		put_char(text, digits[c >> 4]);
		put_char(text, digits[c & 15]);
	}
}

static void
put_number(struct text *text, uint64_t n, unsigned base)
{
	char digits[20];
	unsigned i = 0;

	do {
		digits[i++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n > 0);
	while (i > 0)
		put_char(text, digits[--i]);
}

static void
put_hex(struct text *text, uint64_t n)
{
	put(text, "0x");
	put_number(text, n, 16);
}

/* The library's own descriptor.  If the program has closed it, with
   closefrom(3) for example, standard error, provided that it is still the same
   file as at the start. */
static int
where(void)
{
	const struct stat *was = &wp_state.standard;
	struct stat st;

	if (wp_state.output < 0 ||
	    syscall(SYS_fcntl, wp_state.output, F_GETFD) >= 0)
		return wp_state.output;
	return was->st_ino != 0 &&
	    syscall(WP_SYS_FSTAT, STDERR_FILENO, &st) == 0 &&
	    st.st_dev == was->st_dev && st.st_ino == was->st_ino ?
	    STDERR_FILENO : -1;
}

/* libc's functions are cancellation points, hence syscall(2).  Writing to a
   pipe without a reader raises SIGPIPE, which the program did not cause: it is
   taken back. */
static void
output(const struct iovec *parts, unsigned n)
{
	static const struct timespec zero;
	const uint64_t pipe = wp_signal_bit(SIGPIPE);
	uint64_t before = 0, pending = 0;
	long written;
	int err, fd = where();

	(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &pipe, &before,
	    sizeof(pipe));
	(void)syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	written = syscall(SYS_writev, fd, parts, n);
	err = written < 0 ? errno : 0;
	if (err == EPERM || err == ENOSYS)	/* writev may be denied by a
						   seccomp filter */
		for (unsigned i = 0; i < n; i++)
			(void)syscall(SYS_write, fd, parts[i].iov_base,
			    parts[i].iov_len);
	if (err == EPIPE && (pending & pipe) == 0)
		(void)syscall(SYS_rt_sigtimedwait, &pipe, NULL, &zero,
		    sizeof(pipe));
	wp_signal_mask_set(before);
}

/* Written immediately, in one call. */
void
wp_fallback_line(const char *text)
{
	static const char prefix[] = "watchpoint: ";
	const size_t len = strlen(text);
	const bool plain = strncmp(text, prefix, sizeof(prefix) - 1) == 0;
	const bool whole = len > 0 && text[len - 1] == '\n';
	const struct iovec parts[] = {
		{(void *)(uintptr_t)prefix, plain ? 0 : sizeof(prefix) - 1},
		{(void *)(uintptr_t)text, len},
		{(void *)(uintptr_t)"\n", whole ? 0 : 1},
	};
	const int saved = errno;

	output(parts, sizeof(parts) / sizeof(parts[0]));
	errno = saved;
}

/*
 * Frames.
 */

/* Follows the chain of frame pointers: each points to the caller's frame
   pointer and the return address. */
static unsigned
find_frames(const ucontext_t *context, struct frame frames[FRAMES])
{
	uint64_t fp = wp_cpu_fp(context), last = wp_cpu_sp(context), pair[2];
	unsigned n = 0;

	frames[n++].pc = wp_cpu_pc(context);
	while (n < FRAMES && fp >= last && fp - last < STACK_SPAN &&
	    fp % sizeof(fp) == 0 &&
	    wp_peek(pair, fp, sizeof(pair)) == sizeof(pair) && pair[1] != 0) {
		frames[n++].pc = pair[1];
		last = fp + sizeof(pair);
		fp = pair[0];
	}
	return n;
}

/* One line of /proc/self/maps. */
struct map {
	uint64_t start, end;
	bool code;
	const char *path;	/* "" if there is none */
};

static uint64_t
take_hex(const char **at)
{
	uint64_t n = 0;

	for (;; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			n = n << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n << 4 | (uint64_t)(c - 'a' + 10);
		else
			return n;
	}
}

/* Expects "START-END PERM OFFSET DEVICE INODE   PATH". */
static bool
parse_map(const char *at, struct map *map)
{
	map->start = take_hex(&at);
	if (*at++ != '-')
		return false;
	map->end = take_hex(&at);
	if (*at++ != ' ' || strnlen(at, 4) < 4)
		return false;
	map->code = at[2] == 'x';
	for (unsigned i = 0; i < 4; i++) {
		while (*at != ' ' && *at != '\0')
			at++;
		while (*at == ' ')
			at++;
	}
	map->path = at;
	return true;
}

static void
copy_path(char to[PATH_SHOWN], const char *from)
{
	size_t len = strnlen(from, PATH_SHOWN - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static void
place_frames(struct scratch *scratch, const struct map *map, unsigned n)
{
	struct module *module = &scratch->module;

	if (map->path[0] != '\0' && strcmp(map->path, module->path) != 0) {
		copy_path(module->path, map->path);
		module->start = map->start;
	}
	for (unsigned i = 0; map->code && i < n; i++) {
		struct frame *f = &scratch->frames[i];
		/* a return address may be just past the end of the mapping */
		uint64_t pc = f->pc - (i > 0);

		if (pc < map->start || pc >= map->end)
			continue;
		f->in_code = true;
		f->offset = f->pc - module->start;
		if (map->path[0] != '\0')
			copy_path(f->module, module->path);
	}
}

/* Place the frames in each mapping.  Lines that are too long are cut. */
static void
read_maps(struct scratch *scratch, unsigned nframes)
{
	const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
	    O_RDONLY | O_CLOEXEC);
	struct map map;
	size_t len = 0;
	long n;

	if (fd < 0)
		return;
	while ((n = syscall(SYS_read, fd, scratch->input,
	    sizeof(scratch->input))) > 0)
		for (long i = 0; i < n; i++) {
			if (scratch->input[i] != '\n') {
				if (len < sizeof(scratch->line) - 1)
					scratch->line[len++] =
					    scratch->input[i];
				continue;
			}
			scratch->line[len] = '\0';
			len = 0;
			if (parse_map(scratch->line, &map))
				place_frames(scratch, &map, nframes);
		}
	(void)syscall(SYS_close, fd);
}

/*
 * Lines.
 */

static void
put_hit(struct text *text, uint64_t number, const struct wp_watch *w,
    const struct wp_hit *hit)
{
	char comm[16] = "";

	(void)prctl(PR_GET_NAME, comm);
	put(text, "watchpoint: #");
	put_number(text, number, 10);
	put(text, w->region.access == WP_READ ? " read " :
	    w->region.access == WP_ACCESS ? " access " :
	    w->region.access == WP_EXEC ? " execute " : " write ");
	put_visible(text, w->label);
	put(text, " (");
	put_number(text, w->region.len, 10);
	put(text, " bytes at ");
	put_hex(text, w->region.addr);
	put(text, ") by ");
	put_visible(text, comm);
	put(text, "[");
	put_number(text, (uint64_t)getpid(), 10);
	put(text, "/");
	put_number(text, (uint64_t)hit->tid, 10);
	put(text, "]");
	put(text, hit->stray ? " (stray)" : "");
	put(text, hit->late ? " (late)" : "");
	put(text, "\n");
}

static void
put_frame(struct text *text, uint64_t number, unsigned i, const struct frame *f)
{
	put(text, "watchpoint:   #");
	put_number(text, number, 10);
	put(text, " frame ");
	put_number(text, i, 10);
	put(text, " ");
	put_hex(text, f->pc);
	if (f->module[0] != '\0') {
		put(text, " ");
		put_visible(text, f->module);
		put(text, "+");
		put_hex(text, f->offset);
	}
	put(text, "\n");
}

/* Whole lines only: the first line that does not fit is left out, with all that
   follow. */
static void
put_lines(struct scratch *scratch, uint64_t number, const struct wp_watch *w,
    const struct wp_hit *hit)
{
	struct text text = {scratch->lines, scratch->lines + LINES - 1};
	unsigned n = find_frames(hit->context, scratch->frames);
	char *end;

	read_maps(scratch, n);
	put_hit(&text, number, w, hit);
	end = text.at;
	for (unsigned i = 0; i < n; i++) {
		if (i > 0 && !scratch->frames[i].in_code)
			break;
		put_frame(&text, number, i, &scratch->frames[i]);
		if (text.at == text.end)
			break;
		end = text.at;
	}
	*end = '\0';
}

void
wp_fallback_hit(const struct wp_watch *w, const struct wp_hit *hit, bool print)
{
	static _Atomic uint64_t said;
	struct scratch *scratch = mmap(NULL, sizeof(*scratch),
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (scratch == MAP_FAILED) {
		if (print)
			wp_fallback_line("watchpoint: a hit, and no memory to "
			    "report it\n");
		if (hit->stray)
			wp_stray_note("");
		return;
	}
	put_lines(scratch, atomic_fetch_add(&said, 1) + 1, w, hit);
	if (print)
		wp_fallback_line(scratch->lines);
	if (hit->stray)
		wp_stray_note(scratch->lines);
	(void)munmap(scratch, sizeof(*scratch));
}

void
wp_fallback_unwatched(void)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	if (channel != NULL)
		(void)atomic_fetch_add(&channel->unwatched, 1);
}

void
wp_fallback_warning(const struct wp_watch *w, const char *what)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	char line[sizeof(channel->warning)];
	struct text text = {line, line + sizeof(line) - 1};

	put_visible(&text, w->label);
	put(&text, what);
	*text.at = '\0';
	if (channel == NULL || !wp_channel_alive(channel)) {
		wp_fallback_line(line);
		return;
	}
	memcpy(channel->warning, line, sizeof(line));
	(void)atomic_fetch_add(&channel->warned, 1);
	wp_channel_ring(channel);
}
