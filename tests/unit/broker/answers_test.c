/* answers: what an explainer may be told, and what it may not. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/answers.h"
#include "child.h"
#include "proc/proc.h"
#include "scratch.h"

static struct {
	int ready;
	char memory[3 * BROKER_BYTES_MAX];
} *shared;
SHARED_FIXTURE

static struct answers answers;

static int
begin(void **state)
{
	memset(shared, 0, sizeof(*shared));
	return scratch_make(state);
}

static int
finish(void **state)
{
	answers_free(&answers);
	return children_end(state) + scratch_remove(state);
}

/* Ask, and take what comes.  Result: its error, or a descriptor. */
static int
ask(const struct broker_message *question, struct broker_message *answer)
{
	int pair[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    pair), 0);
	assert_true(answers_give(&answers, pair[0], question));
	assert_int_equal(broker_receive(pair[1], answer, &fd, 0), 0);
	assert_int_equal(answer->what, BROKER_ANSWER);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return answer->err < 0 ? answer->err : fd;
}

static int
ask_file(const char *path)
{
	struct broker_message question = {.what = BROKER_OPEN}, answer;

	(void)snprintf(question.text, sizeof(question.text), "%s", path);
	return ask(&question, &answer);
}

/* What was opened, if that could be; it is closed. */
#define expect_opened(got)						\
	do {								\
		const int fd_ = (got);					\
		assert_true(fd_ >= 0);					\
		(void)close(fd_);					\
	} while (0)

static int
read_from(pid_t pid, const volatile void *addr, uint64_t len,
    struct broker_message *answer)
{
	const struct broker_message question = {
		.what = BROKER_READ,
		.value = {(uint64_t)pid, (uintptr_t)addr, len},
	};

	return ask(&question, answer);
}

static pid_t
start_resting(void)
{
	const int before = shared->ready;
	pid_t pid = child_start(child_rest, &shared->ready);

	await(*(volatile int *)&shared->ready > before);
	return pid;
}

/* After an hour of them, servers are not asked any more. */
TEST_WITH(servers_take_so_long_in_all, begin, finish)
{
	const struct broker_message question = {
		.what = BROKER_FETCH, .text = "0123",
	};
	struct broker_message answer;

	answers.fetched = 3600 * 1000;
	assert_int_equal(ask(&question, &answer), -ETIMEDOUT);
	answers.fetched = 0;
}

TEST_WITH(reads_memory_within_bounds, begin, finish)
{
	pid_t pid = start_resting();
	struct broker_message answer;

	assert_int_equal(answers_allow(&answers, pid), 0);
	memset(shared->memory, 'm', sizeof(shared->memory));
	assert_int_equal(read_from(pid, shared->memory, BROKER_BYTES_MAX,
	    &answer), -1);
	assert_int_equal(answer.err, 0);
	assert_int_equal(answer.len, BROKER_BYTES_MAX);
	assert_memory_equal(answer.text, shared->memory, BROKER_BYTES_MAX);
	assert_int_equal(read_from(pid, shared->memory, BROKER_BYTES_MAX + 1,
	    &answer), -EINVAL);
	assert_int_equal(read_from(pid, shared->memory, 0, &answer), -EINVAL);
	assert_true(read_from(pid, NULL, 8, &answer) < -1);
	assert_int_equal(answer.len, 0);
}

/* Whatever is asked about any other. */
TEST_WITH(says_nothing_of_other_processes, begin, finish)
{
	static const uint32_t kinds[] = {
		BROKER_READ, BROKER_FIRST_PAGE, BROKER_FD_NAME, BROKER_ROOT,
		BROKER_OPEN_MAPPED, BROKER_PERF_MAP, BROKER_OPEN_PERF_MAP,
		BROKER_PROGRAM, BROKER_CODE, BROKER_WORDS, BROKER_MAPS,
	};
	pid_t pid = start_resting();
	const uint64_t pids[] = {
		(uint64_t)getpid(), 1, 0, UINT64_MAX,
		(UINT64_C(1) << 32) + (uint64_t)pid,
	};
	struct broker_message question, answer;

	assert_int_equal(answers_allow(&answers, pid), 0);
	for (size_t i = 0; i < COUNT(kinds); i++)
		for (size_t k = 0; k < COUNT(pids); k++) {
			question = (struct broker_message){
				.what = kinds[i],
				.value = {pids[k], (uintptr_t)shared, 8},
			};
			assert_int_equal(ask(&question, &answer), -EACCES);
		}
	answers_forbid(&answers, pid);
	assert_int_equal(read_from(pid, shared, 8, &answer), -EACCES);
	assert_int_equal(answers_allow(&answers, 0x7ffffff0), -ESRCH);
}

/* Its number may be another's by then. */
TEST_WITH(says_nothing_of_one_that_ended, begin, finish)
{
	pid_t pid = start_resting();
	struct broker_message answer;

	assert_int_equal(answers_allow(&answers, pid), 0);
	assert_int_equal(answers_allow(&answers, pid), 0);
	assert_int_equal(answers.n, 1);
	child_kill(pid);
	assert_true(read_from(pid, shared, 8, &answer) < 0);
	/* as if the number were given out at once */
	answers.process[0].pid = getpid();
	assert_int_equal(read_from(getpid(), shared->memory, 8, &answer),
	    -ESRCH);
	assert_int_equal(answer.len, 0);
	assert_int_equal(answers_allow(&answers, getpid()), 0);
	assert_int_equal(read_from(getpid(), shared->memory, 8, &answer), -1);
	assert_int_equal(answers.n, 1);
}

TEST_WITH(opens_elf_files_only, begin, finish)
{
	char path[64];
	int root = open("/", O_PATH | O_CLOEXEC);

	expect_opened(ask_file("/proc/self/exe"));
	expect_opened(ask_file("/proc/kallsyms"));
	scratch_write("text", "secret");
	assert_int_equal(ask_file(scratch_path("text")), -ESTALE);
	assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
	assert_int_equal(ask_file(scratch_path("fifo")), -ESTALE);
	assert_int_equal(ask_file("/dev/null"), -ESTALE);
	assert_int_equal(ask_file("/"), -ESTALE);
	assert_int_equal(ask_file("/proc/self/mem"), -ESTALE);
	assert_int_equal(ask_file(scratch_path("none")), -ENOENT);
	/* a directory of ours is no root of a process's */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/proc/self/exe",
	    root);
	assert_int_equal(ask_file(path), -EACCES);
	(void)close(root);
	/* but what the user named is opened, whatever it is */
	answers.file = scratch_path("text");
	expect_opened(ask_file(answers.file));
	assert_int_equal(answers.size, 6);
}

static int
note_executable(void *arg, const struct wp_proc_map *map)
{
	*(struct wp_proc_map *)arg = *map;
	return strstr(map->path, "answers_test") != NULL;
}

TEST_WITH(opens_what_is_mapped, begin, finish)
{
	pid_t pid = start_resting();
	struct broker_message question, answer;
	struct wp_proc_map map;

	assert_int_equal(answers_allow(&answers, pid), 0);
	assert_int_equal(wp_proc_maps(pid, note_executable, &map), 1);
	question = (struct broker_message){
		.what = BROKER_ROOT, .value = {(uint64_t)pid},
	};
	assert_int_equal(ask(&question, &answer), -1);
	assert_int_equal(answer.value[0], UINT64_MAX);
	question = (struct broker_message){
		.what = BROKER_OPEN_MAPPED,
		.value = {(uint64_t)pid, UINT64_MAX, map.start, map.end,
		    map.maj, map.min, map.ino},
	};
	(void)snprintf(question.text, sizeof(question.text), "%s", map.path);
	expect_opened(ask(&question, &answer));
	question.value[6]++;
	assert_int_equal(ask(&question, &answer), -ESTALE);
	question.value[6]--;
	question.value[1] = 0;	/* no root that was given out */
	assert_int_equal(ask(&question, &answer), -EINVAL);
	/* a file is known by its inode, whatever became of the process */
	question.value[1] = UINT64_MAX;
	child_kill(pid);
	expect_opened(ask(&question, &answer));
	question.value[6] = 0;
	assert_int_equal(ask(&question, &answer), -ESRCH);
	question = (struct broker_message){
		.what = BROKER_ROOT, .value = {(uint64_t)pid},
	};
	assert_int_equal(ask(&question, &answer), -1);
	assert_int_equal(answer.err, 0);
	answers.process[0].rooted = false;
	assert_int_equal(ask(&question, &answer), -ESRCH);
	answers_forbid(&answers, pid);
	pid = start_resting();
	assert_int_equal(answers_allow(&answers, pid), 0);
	assert_int_equal(wp_proc_maps(pid, note_executable, &map), 1);
	question = (struct broker_message){
		.what = BROKER_FIRST_PAGE,
		.value = {(uint64_t)pid, map.start},
	};
	assert_int_equal(ask(&question, &answer), -1);
	assert_int_equal(answer.value[0], map.start);
}

/* Up to the first that cannot be read. */
TEST_WITH(reads_words, begin, finish)
{
	pid_t pid = start_resting();
	uint64_t addr[WP_PROC_WORDS + 1] = {
		(uintptr_t)shared->memory, (uintptr_t)shared->memory + 8, 0,
	};
	struct broker_message answer, question = {
		.what = BROKER_WORDS, .value = {(uint64_t)pid},
		.len = 3 * sizeof(*addr),
	};

	assert_int_equal(answers_allow(&answers, pid), 0);
	memset(shared->memory, 'w', 16);
	memcpy(question.text, addr, sizeof(addr));
	assert_int_equal(ask(&question, &answer), -1);
	assert_int_equal(answer.err, 0);
	assert_int_equal(answer.len, 16);
	assert_memory_equal(answer.text, shared->memory, 16);
	question.len = sizeof(addr);
	assert_int_equal(ask(&question, &answer), -EINVAL);
}

/* In pieces; and numbers that change with it. */
TEST_WITH(says_what_is_mapped, begin, finish)
{
	pid_t pid = start_resting();
	struct broker_message answer, question = {
		.what = BROKER_MAPS, .value = {(uint64_t)pid},
	};
	uint64_t number;
	bool named = false;

	assert_int_equal(answers_allow(&answers, pid), 0);
	do {
		assert_int_equal(ask(&question, &answer), -1);
		assert_int_equal(answer.err, 0);
		named |= memmem(answer.text, answer.len, "answers_test",
		    12) != NULL;
		question.value[1] += answer.len;
	} while (answer.len > 0);
	assert_true(named);
	question.value[1]++;
	assert_int_equal(ask(&question, &answer), -EINVAL);
	question.what = BROKER_CODE;
	assert_int_equal(ask(&question, &answer), -1);
	assert_int_equal(wp_proc_code(pid, &number), 0);
	assert_int_equal(answer.value[0], number);
	question.what = BROKER_PROGRAM;
	assert_int_equal(ask(&question, &answer), -1);
	assert_int_equal(wp_proc_program(pid, &number), 0);
	assert_int_equal(answer.value[0], number);
}

/* Only the name is asked for first, and then what it names. */
TEST_WITH(opens_the_names_of_code, begin, finish)
{
	pid_t pid = start_resting();
	struct broker_message answer, question = {
		.what = BROKER_OPEN_PERF_MAP, .value = {(uint64_t)pid},
	};
	char path[64];
	FILE *f;

	assert_int_equal(answers_allow(&answers, pid), 0);
	assert_int_equal(ask(&question, &answer), -EINVAL);
	question.what = BROKER_PERF_MAP;
	question.value[1] = UINT64_MAX;
	assert_int_equal(ask(&question, &answer), -1);
	(void)snprintf(path, sizeof(path), "perf-%d.map", pid);
	assert_string_equal(answer.text, path);
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fclose(f);
	question.what = BROKER_OPEN_PERF_MAP;
	expect_opened(ask(&question, &answer));
	child_kill(pid);
	expect_opened(ask(&question, &answer));
	(void)remove(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(ask(&question, &answer), -ESTALE);
	(void)remove(path);
}

/* Of a child that has ended before it was known, a file is had by its inode,
   and nothing else. */
TEST_WITH(a_child_may_have_ended, begin, finish)
{
	const pid_t parent = start_resting();
	struct broker_message question, answer;
	pid_t child = fork();
	struct stat st;

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	question = (struct broker_message){
		.what = BROKER_OPEN_MAPPED,
		.value = {(uint64_t)child, UINT64_MAX, 0x1000, 0x2000,
		    major(st.st_dev), minor(st.st_dev), st.st_ino},
	};
	assert_true(readlink("/proc/self/exe", (char *)question.text,
	    sizeof(question.text) - 1) > 0);
	answers_allow_child(&answers, child, parent);
	assert_int_equal(ask(&question, &answer), -EACCES);
	assert_int_equal(answers_allow(&answers, parent), 0);
	answers_allow_child(&answers, child, parent);
	(void)close(ask(&question, &answer));
	assert_int_equal(answer.err, 0);
	assert_int_equal(read_from(child, shared, 8, &answer), -ESRCH);
	answers_forbid(&answers, child);
	assert_int_equal(ask(&question, &answer), -EACCES);
}

TEST_WITH(says_nothing_of_memory_where_it_must_not, begin, finish)
{
	const pid_t pid = start_resting();
	struct broker_message answer;

	assert_int_equal(answers_allow(&answers, pid), 0);
	answers.no_memory = true;
	assert_int_equal(read_from(pid, shared, 8, &answer), -EACCES);
	assert_int_equal(answer.len, 0);
}

TEST(leaves_other_messages_alone)
{
	const struct broker_message said = {.what = BROKER_SAY};

	assert_false(answers_give(&answers, -1, &said));
}

RUN_TESTS()
