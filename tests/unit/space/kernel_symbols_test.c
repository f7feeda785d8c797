/* kallsyms: names of kernel functions agree with /proc/kallsyms. */
#include "test.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mounted.h"
#include "scratch.h"
#include "space/kernel_symbols.h"
#include "space/space.h"

/* A function's address as the kernel lists it; 0: unknown or not shown. */
static uint64_t
address_of(const char *function)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], name[256], type;
	unsigned long long addr, found = 0;

	if (f == NULL)
		return 0;
	while (found == 0 && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%llx %c %255s", &addr, &type, name) == 3 &&
		    strcmp(name, function) == 0)
			found = addr;
	}
	(void)fclose(f);
	return found;
}

/* In a child, before this process has read anything: it is read only once. */
TEST(knows_nothing_when_not_allowed)
{
	pid_t child;
	int status;

	if (geteuid() != 0) {
		print_message("setuid(2) takes root, not tried\n");
		skip();
	}
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		uint64_t addr = address_of("vfs_read"), offset;

		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(126);
		if (address_of("vfs_read") != 0)
			_exit(77);	/* anybody may know them here */
		_exit(ex_kernel_symbol(addr, &offset) == NULL &&
		    ex_kernel_symbol(0, &offset) == NULL ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* In a namespace of its own, a kernel with such a list: 0 if the first is named
   and what is behind the code is not; 126: not tried. */
static int
named_by(const char *kallsyms)
{
	uint64_t offset;

	if (!mounted_text("/proc/kallsyms", kallsyms))
		return 126;
	return ex_kernel_symbol(0xffffffff81000010, &offset) == NULL ||
	    ex_kernel_symbol(0xffffffff81001000, &offset) != NULL ||
	    ex_kernel_symbol(0xffffffff81001008, &offset) != NULL;
}

TEST(names_nothing_behind_the_code)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(named_by("ffffffff81000000 T _text\n"
		    "ffffffff81000000 T startup_64\n"
		    "ffffffff81001000 T __indirect_thunk_end\n"
		    "ffffffff81001000 T _etext\n"
		    "ffffffff82000000 T a_module\n"));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126) {
		print_message("no mount namespace here, not tried\n");
		skip();
	}
	assert_int_equal(status, 0);
}

TEST(names_functions)
{
	static const char *const functions[] = {
		"vfs_read", "ksys_read", "schedule", "do_exit",
	};
	uint64_t offset;

	if (address_of("vfs_read") == 0) {
		print_message("/proc/kallsyms shows no addresses\n");
		skip();
	}
	for (size_t i = 0; i < 4; i++) {
		uint64_t addr = address_of(functions[i]);
		const char *name;

		if (addr == 0)
			continue;
		name = ex_kernel_symbol(addr, &offset);
		assert_non_null(name);
		assert_string_equal(name, functions[i]);
		assert_int_equal(offset, 0);
		assert_ptr_equal(ex_kernel_symbol(addr + 5, &offset), name);
		assert_int_equal(offset, 5);
	}
	assert_null(ex_kernel_symbol(0, &offset));
	assert_null(ex_kernel_symbol((uint64_t)(uintptr_t)&offset, &offset));
	assert_null(ex_kernel_symbol(UINT64_MAX, &offset));
	if (address_of("_etext") != 0)
		assert_null(ex_kernel_symbol(address_of("_etext"), &offset));
}

/* The kernel's build id. */
static size_t
build_id(uint8_t id[20])
{
	FILE *f = fopen("/sys/kernel/notes", "r");
	uint8_t notes[2048];
	size_t len;

	if (f == NULL)
		return 0;
	len = fread(notes, 1, sizeof(notes), f);
	(void)fclose(f);
	for (size_t i = 0; i + 32 <= len; i += 4) {
		/* descsz 20, type 3, "GNU" */
		if (memcmp(notes + i, "\24\0\0\0\3\0\0\0GNU\0", 12) == 0) {
			memcpy(id, notes + i + 12, 20);
			return 20;
		}
	}
	return 0;
}

TEST(knows_its_own_recordings)
{
	uint64_t text = address_of("_text");
	uint8_t id[20], other[20] = {1};
	size_t len = build_id(id);

	if (text == 0 || len == 0) {
		print_message("no address of _text, or no build id\n");
		skip();
	}
	for (unsigned same = 0; same < 4; same++) {
		struct ex_space *space = ex_space_new(EX_RECORDED);
		const struct ex_record record = {
			.type = PERF_RECORD_MMAP, .pid = -1, .tid = 0,
			.mmap = {
				.start = text, .len = 1 << 24,
				.pgoff = text + (same & 1 ? 0 : 1 << 21),
				.prot = 4, .path = "[kernel.kallsyms]_text",
			},
		};

		assert_false(ex_space_kernel(space));
		ex_space_build_id(space, "[kernel.kallsyms]",
		    same & 2 ? id : other, 20);
		assert_false(ex_space_kernel(space));
		ex_space_learn(space, &record);
		assert_int_equal(ex_space_kernel(space), same == 3);
		ex_space_free(space);
	}
	assert_true(ex_kernel_is("_text", text, id, len));
	assert_false(ex_kernel_is("_text", text, id, 0));
	assert_false(ex_kernel_is("no such function", text, id, len));
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
