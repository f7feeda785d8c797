/*
 * executable: finding commands, and recognizing those that cannot load a
 * library.
 */
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/executable.h"
#include "command.h"
#include "said.h"
#include "scratch.h"

TEST(finds_commands)
{
	char path[PATH_MAX], dirs[3 * PATH_MAX];

	scratch_run("mkdir one two two/three && cp /bin/true two/tool && "
	    "cp /bin/true two/hidden && chmod 644 two/hidden && "
	    "ln -s tool two/link");
	(void)snprintf(dirs, sizeof(dirs), "%s:%s", scratch_path("one"),
	    scratch_path("two"));
	(void)setenv("PATH", dirs, 1);
	assert_int_equal(executable_find("tool", path), 0);
	assert_string_equal(path, scratch_path("two/tool"));
	assert_int_equal(executable_find("link", path), 0);
	assert_int_equal(executable_find("hidden", path), -EACCES);
	assert_int_equal(executable_find("three", path), -EACCES);
	assert_int_equal(executable_find("nothing", path), -ENOENT);
	assert_int_equal(executable_find("", path), -ENOENT);
	assert_int_equal(executable_find(scratch_path("two/tool"), path), 0);
	assert_int_equal(executable_find(scratch_path("two"), path), -EACCES);
	assert_int_equal(executable_find("./tool", path), -ENOENT);
	assert_int_equal(chdir(scratch_path("two")), 0);
	(void)setenv("PATH", "", 1);	/* where we are */
	assert_int_equal(executable_find("tool", path), 0);
	assert_string_equal(path, "tool");
	(void)setenv("PATH", "/nowhere:", 1);
	assert_int_equal(executable_find("tool", path), 0);
	assert_int_equal(chdir("/"), 0);
	(void)setenv("PATH", "/bin:/usr/bin", 1);
}

static void
expect(const char *name, const char *why)
{
	bool narrow;
	char *said;
	int err;

	said_begin(STDERR_FILENO);
	err = executable_check(scratch_path(name), &narrow);
	said = said_end(STDERR_FILENO);
	if (why == NULL ? err != 0 || said[0] != '\0' :
	    err != -ENOEXEC || strstr(said, why) == NULL ||
	    strchr(said, '\n') != said + strlen(said) - 1)
		fail_msg("%s: %d: %s", name, err, said);
}

/* Change bytes of a copy. */
static void
patch(const char *name, off_t at, const void *bytes, size_t len)
{
	int fd = open(scratch_path(name), O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), len);
	assert_int_equal(close(fd), 0);
}

TEST(finds_what_takes_no_library)
{
	const uint16_t machine = EM_SPARCV9, many = 65535;
	const uint64_t far = UINT64_MAX - 8;
	const unsigned char class32 = ELFCLASS32;

	scratch_write("main.c", "int main(void) { return 0; }\n");
	scratch_run("%s -o plain main.c && %s -static -o static main.c && "
	    "cp plain other && cp plain class && cp plain many && "
	    "cp plain far && head -c 100 plain > cut && "
	    "printf 'text' > text && : > empty && echo 'void _start(void) "
	    "{ for (;;); }' > alone.c && %s -nostdlib -pie -fPIE "
	    "-Wl,--dynamic-linker=/lib/ld.so -o alone alone.c", getenv("CC"),
	    getenv("CC"), getenv("CC"));
	patch("other", offsetof(Elf64_Ehdr, e_machine), &machine, 2);
	patch("class", EI_CLASS, &class32, 1);
	patch("many", offsetof(Elf64_Ehdr, e_phnum), &many, 2);
	patch("far", offsetof(Elf64_Ehdr, e_phoff), &far, 8);
	expect("plain", NULL);
	expect("many", NULL);
	expect("static", "statically linked");
	expect("alone", "needs no library");
	expect("other", "not a 64-bit program of this processor");
	expect("class", "not a 64-bit program of this processor");
	expect("far", "statically linked");
	expect("cut", "statically linked");
	/* what the kernel says of these is enough */
	expect("text", NULL);
	expect("empty", NULL);
	expect("missing", NULL);
	expect(".", NULL);
}

/* A 32-bit program takes a library of its own. */
TEST(knows_32_bit_programs)
{
	bool narrow = false;

	if (access(victim("narrow_libc"), X_OK) != 0)
		skip();
	assert_int_equal(executable_check(victim("narrow_libc"), &narrow), 0);
	assert_true(narrow);
	assert_int_equal(executable_check(victim("counter"), &narrow), 0);
	assert_false(narrow);
}

/* Of a script its interpreter counts, and of that, if it is one, too. */
TEST(looks_behind_scripts)
{
	char text[PATH_MAX + 32];

	(void)snprintf(text, sizeof(text), "#! \t%s -x\n",
	    scratch_path("static"));
	scratch_write("first", text);
	(void)snprintf(text, sizeof(text), "#!%s\n", scratch_path("first"));
	scratch_write("second", text);
	(void)snprintf(text, sizeof(text), "#!%s\n", scratch_path("loop"));
	scratch_write("loop", text);
	scratch_write("shell", "#!/bin/sh");
	scratch_write("nobody", "#!\n");
	expect("first", "statically linked");
	expect("second", "statically linked");
	expect("loop", NULL);
	expect("shell", NULL);
	expect("nobody", NULL);
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
