/*
 * loader: where this program, and others that are held, stop after loading
 * libraries.
 */
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "processes/synthetic_records.h"
#include "pending/loader.h"
#include "ptrace/ptrace.h"
#include "space/space.h"
#include "symbol/symbol.h"

/* A variable of that name is not where to stop. */
__attribute__((used)) static int _dl_debug_state;

static void
learn(void *arg, const struct ex_record *record)
{
	ex_space_learn(arg, record);
}

/* A space that knows what a process has mapped now. */
static struct ex_space *
space_of(pid_t pid)
{
	struct ex_space *space = ex_space_new(EX_LIVE);
	struct synthetic_records e = {0};

	assert_non_null(space);
	assert_int_equal(synthetic_records_take(&e, pid), 0);
	synthetic_records_each(&e, learn, space);
	synthetic_records_free(&e);
	return space;
}

/* A broker that knows the same. */
static void
make_broker(struct live_broker *live, pid_t pid)
{
	struct synthetic_records e = {0};

	live_broker_make(live, 0, NULL);
	assert_int_equal(synthetic_records_take(&e, pid), 0);
	assert_int_equal(live_broker_learn(live, pid, e.bytes, e.len, 0), 0);
	synthetic_records_free(&e);
}

/* What this very process was started with: the loader itself says where
   debuggers are to stop. */
TEST(finds_what_the_loader_says)
{
	struct live_broker live = {0};
	struct loader loader;

	make_broker(&live, getpid());
	assert_int_not_equal(_r_debug.r_brk, 0);
	loader_find(getpid(), &live, &loader);
	assert_int_equal(loader.hook, _r_debug.r_brk);
	assert_int_equal(loader.entry, getauxval(AT_ENTRY));
	live_broker_close(&live);
}

/* The entry point that the ELF file itself names. */
static uint64_t
entry_of(const char *path)
{
	Elf64_Ehdr header;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &header, sizeof(header)), sizeof(header));
	(void)close(fd);
	return header.e_entry;
}

/* At the end of execve nothing but the program and its loader is mapped. */
TEST(finds_them_in_a_held_command)
{
	char path[] = "/bin/true", *const argv[] = {path, NULL};
	struct wp_hold hold = {0};
	struct live_broker live = {0};
	struct ex_space *space;
	struct ex_process *process;
	struct ex_module *module;
	struct ex_symbol symbol;
	struct loader loader;
	uint64_t vaddr;
	pid_t pid;

	assert_int_equal(wp_hold_command(&hold, argv, &pid), 0);
	space = space_of(pid);
	process = ex_space_process(space, pid);
	make_broker(&live, pid);
	loader_find(pid, &live, &loader);
	live_broker_close(&live);
	(void)kill(pid, SIGKILL);
	wp_hold_release(&hold);
	assert_int_equal(waitpid(pid, NULL, 0), pid);

	module = ex_process_module(process, loader.hook, &vaddr);
	assert_non_null(module);
	assert_string_equal(ex_module_name(module), "ld-linux-x86-64.so.2");
	assert_true(ex_symbol_at(module, vaddr, &symbol));
	assert_string_equal(symbol.name, "_dl_debug_state");
	assert_int_equal(symbol.value, vaddr);

	module = ex_process_module(process, loader.entry, &vaddr);
	assert_non_null(module);
	assert_string_equal(ex_module_name(module), "true");
	assert_int_equal(vaddr, entry_of(path));
	ex_space_free(space);
}

TEST(finds_nothing_in_a_process_that_is_gone)
{
	struct live_broker live = {0};
	struct loader loader = {1, 1};
	const pid_t pid = child_gone();

	live_broker_make(&live, 0, NULL);
	loader_find(pid, &live, &loader);
	assert_int_equal(loader.hook, 0);
	assert_int_equal(loader.entry, 0);
	live_broker_close(&live);
}

RUN_TESTS()
