/*
 * answers: answers an explainer's questions about files and processes.
 *
 * A file is opened for the explainer only if it is a regular file, and then
 * only if it is an ELF file or one of the few that are named here.  Each
 * process that may be asked about is held by a pidfd, because its number is
 * reused when it has ended.
 */
#include "broker/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/synth.h"
#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "proc/regular_file.h"
#include "proc/sharers.h"
#include "util/debuginfod.h"
#include "util/index_cache.h"

enum {
	BUILD_ID_MAX = 128,	/* digits */
	MORE = 16,		/* processes between checks for ended ones */
	FETCHED_MAX_MS = 3600 * 1000,	/* ms that servers may take in total */
};

static struct answers_process *
find_process(const struct answers *answers, uint64_t pid)
{
	for (size_t i = 0; i < answers->n; i++)
		if ((uint64_t)answers->process[i].pid == pid)
			return &answers->process[i];
	return NULL;
}

/* Whether the process has not ended, so its id is still its own. */
static bool
is_there(const struct answers_process *process)
{
	return syscall(SYS_pidfd_send_signal, process->pidfd, 0, NULL, 0) ==
	    0 || errno == EPERM;
}

/* The root of its files has to be known even after its end. */
static void
look_at_roots(struct answers *answers, struct answers_process *process)
{
	int root;

	if (wp_roots_find(&answers->roots, process->pid, &root) < 0)
		return;
	process->rooted = true;
	process->root = root;
}

/* Close the descriptors of processes that have ended. */
static void
leave_ended(struct answers *answers)
{
	size_t left = 0;

	if (answers->n < answers->many)
		return;
	for (size_t i = 0; i < answers->n; i++) {
		struct answers_process *process = &answers->process[i];

		if (process->pidfd >= 0 && !is_there(process)) {
			(void)close(process->pidfd);
			process->pidfd = -1;
		}
		left += process->pidfd >= 0;
	}
	answers->many = answers->n + left + MORE;
}

int
answers_allow(struct answers *answers, pid_t pid)
{
	struct answers_process *known = find_process(answers, (uint64_t)pid);
	int pidfd;

	if (known != NULL && is_there(known))
		return 0;
	answers_forbid(answers, pid);
	leave_ended(answers);
	if ((pidfd = (int)syscall(SYS_pidfd_open, pid, 0)) < 0)
		return -errno;
	if (WP_ARRAY_ROOM(answers, process) < 0) {
		(void)close(pidfd);
		return -ENOMEM;
	}
	answers->process[answers->n] = (struct answers_process){
		.pid = pid, .pidfd = pidfd,
	};
	look_at_roots(answers, &answers->process[answers->n++]);
	return 0;
}

void
answers_allow_child(struct answers *answers, pid_t pid, pid_t parent)
{
	const struct answers_process *from;
	struct answers_process child = {.pid = pid, .pidfd = -1};

	if (answers_allow(answers, pid) != -ESRCH ||
	    (from = find_process(answers, (uint64_t)parent)) == NULL)
		return;
	child.rooted = from->rooted;
	child.root = from->root;
	if (WP_ARRAY_ROOM(answers, process) == 0)
		answers->process[answers->n++] = child;
}

void
answers_forbid(struct answers *answers, pid_t pid)
{
	struct answers_process *process =
	    find_process(answers, (uint64_t)pid);

	if (process == NULL)
		return;
	if (process->pidfd >= 0)
		(void)close(process->pidfd);
	*process = answers->process[--answers->n];
}

void
answers_free(struct answers *answers)
{
	for (size_t i = 0; i < answers->n; i++)
		if (answers->process[i].pidfd >= 0)
			(void)close(answers->process[i].pidfd);
	free(answers->process);
	wp_roots_free(&answers->roots);
	buffer_free(&answers->maps);
	*answers = (struct answers){0};
}

/* --- files --- */

/* An explainer may have only ELF files.  Returns the descriptor or -errno. */
static int
keep_elf(int fd)
{
	char magic[4];

	if (fd < 0 || (pread(fd, magic, sizeof(magic), 0) ==
	    (ssize_t)sizeof(magic) && memcmp(magic, "\177ELF",
	    sizeof(magic)) == 0))
		return fd;
	(void)close(fd);
	return -ESTALE;
}

/* The root at the start of a path, as in "/proc/self/fd/ROOT/usr", and the
   start of the rest; -1 if there is none. */
static int
root_of_path(const char *path, const char **rest)
{
	int root = -1, end = 0;

	*rest = path;
	if (sscanf(path, "/proc/self/fd/%d%n", &root, &end) != 1 ||
	    path[end] != '/')
		return -1;
	*rest = path + end + strspn(path + end, "/");
	return root;
}

/* Open the file named on watchctl's command line.  It may be a FIFO, which is
   opened without waiting for a writer. */
static int
open_named(struct answers *answers)
{
	int fd = open(answers->file,
	    O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		answers->size = st.st_size;
	return fd < 0 ? -errno : fd;
}

/* The policy as watchctl has read it; its file may have changed. */
static int
open_policy(const struct policy_file *policy)
{
	int fd = memfd_create("watchctl-policy", MFD_CLOEXEC);

	for (size_t at = 0; fd >= 0 && at < policy->len;) {
		const ssize_t n = write(fd, policy->text + at,
		    policy->len - at);

		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR) {
			(void)close(fd);
			return -ENOMEM;
		}
	}
	return fd < 0 ? -errno : fd;
}

static int
open_file(struct answers *answers, const char *path)
{
	const char *rest;
	int root;

	if (answers->file != NULL && strcmp(path, answers->file) == 0)
		return open_named(answers);
	if (answers->policy != NULL && answers->policy->path != NULL &&
	    strcmp(path, answers->policy->path) == 0)
		return open_policy(answers->policy);
	if (strcmp(path, "/proc/kallsyms") == 0 ||
	    strcmp(path, "/sys/kernel/notes") == 0)
		return wp_open_regular(path);
	if ((root = root_of_path(path, &rest)) >= 0)
		return !wp_roots_have(&answers->roots, root) ? -EACCES :
		    keep_elf(wp_proc_open_same(root, rest, 0, 0, 0));
	return keep_elf(wp_open_regular(path));
}

/* Whether the name is that of a source file: lines of other files must not get
   into a report that may be published. */
static bool
is_source(const char *path)
{
	static const char *const endings[] = {
		"c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "c++", "h++",
		"C", "H", "inc", "inl", "ipp", "tcc", "def", "s", "S", "asm",
		"f", "F", "for", "f90", "F90", "f95", "F95", "f03", "F03",
		"f08", "F08", "rs", "go", "d", "zig", "nim", "cr", "v", "pas",
		"pp", "adb", "ads", "m", "mm", "cu", "cuh", "cl", "y", "l",
		"yy", "ll", "swift", "ml", "hs", "jl", "kt", "vala", "cob",
	};
	const char *name = strrchr(path, '/');
	const char *dot = strrchr(name != NULL ? name + 1 : path, '.');

	for (size_t i = 0; dot != NULL &&
	    i < sizeof(endings) / sizeof(*endings); i++)
		if (strcmp(dot + 1, endings[i]) == 0)
			return true;
	return false;
}

/* watchctl must not read what the user could not: with privileges of its own it
   reads no source file. */
static int
open_source(const struct answers *answers, const char *path)
{
	return !answers->sources || !is_source(path) ||
	    getauxval(AT_SECURE) != 0 ? -EACCES : wp_open_regular(path);
}

/* The answer is sent when fetching is done. */
static int
begin_to_fetch(struct answers *answers, const char *build_id)
{
	const size_t len = strlen(build_id);

	if (len == 0 || len > BUILD_ID_MAX ||
	    strspn(build_id, "0123456789abcdef") != len)
		return -EINVAL;
	if (answers->fetching.begun)
		return -EBUSY;
	/* an explainer that asks again and again could otherwise delay us
	   forever */
	if (answers->fetched >= FETCHED_MAX_MS)
		return -ETIMEDOUT;
	answers->fetching_since = wp_clock_ms();
	return debuginfod_begin(&answers->fetching, build_id);
}

/* Store a part of an index, or complete it.  Keys, sizes and their order are
   checked where it is stored. */
static int
keep_index(struct answers *answers, const struct broker_message *question)
{
	if (answers->no_cache ||
	    (!answers->keeping && question->what != BROKER_KEEP))
		return -EPERM;
	answers->keeping = question->what != BROKER_KEEP_END;
	if (question->what == BROKER_KEEP)
		return index_cache_begin(question->text);
	if (question->what == BROKER_KEEP_END)
		return index_cache_end(question->err == 0);
	return question->value[0] > sizeof(answers->shared->report) ? -EINVAL :
	    index_cache_put(answers->shared->report, question->value[0]);
}

void
answers_abandon(struct answers *answers)
{
	if (answers->keeping)
		(void)index_cache_end(false);
	answers->keeping = false;
	debuginfod_abandon(&answers->fetching);
}

/* --- processes --- */

/* The number of a root in a question; -1 is our own.  Returns false if there is
   no such root. */
static bool
take_root(const struct answers *answers, uint64_t number, int *root)
{
	*root = number == UINT64_MAX ? -1 : (int)number;
	return number == UINT64_MAX || (number <= INT_MAX &&
	    wp_roots_have(&answers->roots, *root));
}

static int
read_memory(const struct answers *answers,
    const struct broker_message *question, struct broker_message *answer)
{
	const uint64_t len = question->value[2];
	ssize_t n = -ENOENT;

	if (len == 0 || len > BROKER_BYTES_MAX)
		return -EINVAL;
	if (answers->read != NULL)
		n = answers->read(answers->read_arg,
		    (pid_t)question->value[0], question->value[1],
		    answer->text, len);
	if (n == -ENOENT)
		n = wp_proc_read((pid_t)question->value[0], question->value[1],
		    answer->text, len);
	answer->len = n > 0 ? (uint32_t)n : 0;
	return n < 0 ? (int)n : n == 0 ? -EFAULT : 0;
}

static int
open_mapped(const struct answers *answers,
    const struct broker_message *question)
{
	const uint64_t *value = question->value;
	int root;

	if (!take_root(answers, value[1], &root) || value[4] > UINT_MAX ||
	    value[5] > UINT_MAX)
		return -EINVAL;
	return keep_elf(wp_proc_open_mapped((pid_t)value[0], root, value[2],
	    value[3], question->text, (unsigned)value[4], (unsigned)value[5],
	    value[6]));
}

/* A root that was found once outlives its process. */
static int
number_root(struct answers *answers, struct answers_process *process,
    struct broker_message *answer)
{
	int root, err = wp_roots_find(&answers->roots, process->pid, &root);

	if (err == 0 && is_there(process)) {
		process->rooted = true;
		process->root = root;
	} else if (!process->rooted) {
		return !is_there(process) ? -ESRCH : err == -EMFILE ||
		    err == -ENFILE || err == -ENOMEM ? err : -EPERM;
	}
	answer->value[0] = process->root < 0 ? UINT64_MAX :
	    (uint64_t)process->root;
	return 0;
}

/* The same. */
static int
name_perf_map(const struct answers *answers, struct answers_process *process,
    const struct broker_message *question, struct broker_message *answer)
{
	struct wp_perf_map map;
	int root;

	if (!take_root(answers, question->value[1], &root))
		return -EINVAL;
	if (wp_perf_map_find(&map, process->pid, root) == 0 &&
	    is_there(process))
		process->perf_map = map;
	else if (process->perf_map.pid == 0)
		return -ESRCH;
	(void)snprintf(answer->text, sizeof(answer->text), "%s",
	    process->perf_map.name);
	return 0;
}

/* A message has room for as many words as can be read at once. */
static int
read_words(const struct broker_message *question, struct broker_message *answer)
{
	uint64_t addr[WP_PROC_WORDS], word[WP_PROC_WORDS];
	size_t n = question->len / sizeof(*addr);

	if (n > WP_PROC_WORDS)
		return -EINVAL;
	memcpy(addr, question->text, n * sizeof(*addr));
	n = wp_proc_read_words((pid_t)question->value[0], addr, word, n);
	memcpy(answer->text, word, n * sizeof(*word));
	answer->len = (uint32_t)(n * sizeof(*word));
	return 0;
}

static int
keep_record(void *arg, const struct perf_event_header *record)
{
	struct buffer *records = arg;

	buffer_put(records, record, record->size);
	return records->failed ? -ENOMEM : 0;
}

/* The mappings are read once, and returned in pieces. */
static int
read_maps(struct answers *answers, const struct broker_message *question,
    struct broker_message *answer)
{
	const uint64_t from = question->value[1];
	struct buffer *maps = &answers->maps;
	size_t len;
	int err = 0;

	if (from == 0) {
		buffer_free(maps);
		*maps = (struct buffer){0};
		err = wp_synth_process((pid_t)question->value[0], keep_record,
		    maps);
	}
	if (err < 0 || from > maps->len)
		return err < 0 ? err : -EINVAL;
	len = maps->len - from < BROKER_BYTES_MAX ? maps->len - from :
	    BROKER_BYTES_MAX;
	if (len > 0)
		memcpy(answer->text, maps->bytes + from, len);
	answer->len = (uint32_t)len;
	return 0;
}

/* Answer a question that needs the process itself.  Returns a descriptor, 0 or
   -errno. */
static int
ask_process(struct answers *answers, struct answers_process *process,
    const struct broker_message *question, struct broker_message *answer)
{
	const pid_t pid = process->pid;

	if (answers->gone && (question->what == BROKER_READ ||
	    question->what == BROKER_FD_NAME))
		return -ESRCH;
	if (answers->no_memory && (question->what == BROKER_READ ||
	    question->what == BROKER_WORDS))
		return -EACCES;
	switch (question->what) {
	case BROKER_READ:
		return read_memory(answers, question, answer);
	case BROKER_FIRST_PAGE:
		return wp_proc_first_page(pid, question->value[1],
		    &answer->value[0]);
	case BROKER_PROGRAM:
		return wp_proc_program(pid, &answer->value[0]);
	case BROKER_CODE:
		return wp_proc_code(pid, &answer->value[0]);
	case BROKER_WORDS:
		return read_words(question, answer);
	case BROKER_MAPS:
		return read_maps(answers, question, answer);
	case BROKER_FD_NAME:
		return question->value[1] > INT_MAX ||
		    question->value[2] > INT_MAX ? -EINVAL :
		    wp_proc_fd(pid, (pid_t)question->value[1],
		    (int)question->value[2], answer->text,
		    sizeof(answer->text));
	case BROKER_ROOT:
		return number_root(answers, process, answer);
	case BROKER_PERF_MAP:
		return name_perf_map(answers, process, question, answer);
	default:
		return open_mapped(answers, question);
	}
}

/* Whether the answer is valid whichever process has the id now: a file is
   identified by its inode. */
static bool
outlives(const struct broker_message *question)
{
	return question->what == BROKER_ROOT ||
	    question->what == BROKER_PERF_MAP ||
	    (question->what == BROKER_OPEN_MAPPED && question->value[6] != 0);
}

/* The same, provided that it may ask about the process, and that this has not
   ended meanwhile if that matters. */
static int
answer_about(struct answers *answers, const struct broker_message *question,
    struct broker_message *answer)
{
	struct answers_process *process =
	    find_process(answers, question->value[0]);
	int got;

	if (process == NULL)
		return -EACCES;
	if (question->what == BROKER_OPEN_PERF_MAP)
		return process->perf_map.pid == 0 ? -EINVAL :
		    wp_perf_map_open(&process->perf_map);
	got = ask_process(answers, process, question, answer);
	if (got < 0 || outlives(question) || is_there(process))
		return got;
	if (question->what == BROKER_OPEN_MAPPED)
		(void)close(got);
	*answer = (struct broker_message){.what = BROKER_ANSWER};
	return -ESRCH;
}

static bool
gives_descriptor(uint32_t what)
{
	return what == BROKER_OPEN || what == BROKER_SOURCE ||
	    what == BROKER_FETCH || what == BROKER_INDEX ||
	    what == BROKER_OPEN_MAPPED || what == BROKER_OPEN_PERF_MAP;
}

/* got is a descriptor, 0 or -errno.  If the explainer has died, that will be
   noticed soon. */
static void
give(struct answers *answers, int socket, const struct broker_message *question,
    struct broker_message *answer, int got)
{
	const int fd = got >= 0 && gives_descriptor(question->what) ? got : -1;

	answers->starved = answers->starved || got == -EMFILE;
	answer->err = got < 0 ? got : 0;
	if (broker_send(socket, answer, fd) == -EAGAIN &&
	    answers->later != NULL)
		answers->later(answers, answer, fd);
	if (fd >= 0)
		(void)close(fd);
}

int
answers_fd(const struct answers *answers)
{
	return answers->fetching.begun ? answers->fetching.from : -1;
}

void
answers_go_on(struct answers *answers, int socket)
{
	const struct broker_message question = {.what = BROKER_FETCH};
	struct broker_message answer = {.what = BROKER_ANSWER};
	int got;

	if (!answers->fetching.begun ||
	    (got = debuginfod_look(&answers->fetching)) == -EAGAIN)
		return;
	answers->fetched += wp_clock_ms() - answers->fetching_since;
	give(answers, socket, &question, &answer, keep_elf(got));
}

bool
answers_give(struct answers *answers, int socket,
    const struct broker_message *question)
{
	struct broker_message answer = {.what = BROKER_ANSWER};
	int got;

	switch (question->what) {
	case BROKER_OPEN:
		got = open_file(answers, question->text);
		break;
	case BROKER_SOURCE:
		got = open_source(answers, question->text);
		break;
	case BROKER_FETCH:
		got = begin_to_fetch(answers, question->text);
		if (got == 0)
			return true;
		break;
	case BROKER_INDEX:
		got = answers->no_cache ? -EPERM :
		    index_cache_open(question->text);
		break;
	case BROKER_KEEP:
	case BROKER_KEEP_BYTES:
	case BROKER_KEEP_END:
		got = keep_index(answers, question);
		break;
	case BROKER_READ:
	case BROKER_FIRST_PAGE:
	case BROKER_FD_NAME:
	case BROKER_ROOT:
	case BROKER_OPEN_MAPPED:
	case BROKER_PERF_MAP:
	case BROKER_OPEN_PERF_MAP:
	case BROKER_PROGRAM:
	case BROKER_CODE:
	case BROKER_WORDS:
	case BROKER_MAPS:
		got = answer_about(answers, question, &answer);
		break;
	case BROKER_SHARES:
		answer.value[0] = wp_sharers_has(
		    (pid_t)question->value[0], (pid_t)question->value[1]);
		got = 0;
		break;
	default:
		return false;
	}
	give(answers, socket, question, &answer, got);
	return true;
}
