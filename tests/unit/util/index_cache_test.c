/* index_cache: a directory of one's own, and no more in it than it may hold. */
#include "test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/index_cache.h"
#include "scratch.h"

#define KEY "0123456789abcdef0123"

static int
own_place(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	return setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
}

/* 0 or -errno. */
static int
keep(const char *key, const char *text)
{
	int err = index_cache_begin(key);

	if (err == 0) {
		err = index_cache_put(text, strlen(text));
		err = index_cache_end(err == 0);
	}
	return err;
}

static bool
is_kept(const char *key, const char *text)
{
	int fd = index_cache_open(key);
	char bytes[64] = "";
	bool is;

	if (fd < 0)
		return false;
	is = read(fd, bytes, sizeof(bytes) - 1) == (ssize_t)strlen(text) &&
	    strcmp(bytes, text) == 0;
	(void)close(fd);
	return is;
}

static mode_t
mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(scratch_path(name), &st), 0);
	return st.st_mode & 07777;
}

TEST(keeps_and_replaces)
{
	assert_true(index_cache_open(KEY) < 0);
	assert_int_equal(access(scratch_path("cache"), F_OK), -1);
	assert_int_equal(keep(KEY, "one"), 0);
	assert_true(is_kept(KEY, "one"));
	assert_int_equal(keep(KEY, "another"), 0);
	assert_true(is_kept(KEY, "another"));
	assert_int_equal(mode_of("cache"), 0700);
	assert_int_equal(mode_of("cache/watchctl"), 0700);
	assert_int_equal(mode_of("cache/watchctl/" KEY ".index"), 0600);
}

/* One that is not finished is not there, and leaves nothing. */
TEST(forgets)
{
	assert_int_equal(index_cache_begin(KEY), 0);
	assert_int_equal(index_cache_put("x", 1), 0);
	assert_true(index_cache_open(KEY) < 0);
	assert_true(index_cache_end(false) < 0);
	assert_true(index_cache_put("x", 1) < 0);
	assert_true(index_cache_end(true) < 0);
	assert_int_equal(index_cache_begin(KEY), 0);
	assert_int_equal(index_cache_begin("abcd"), 0);
	assert_true(index_cache_end(false) < 0);
	scratch_run("test -z \"$(ls cache/watchctl)\"");
}

TEST(takes_build_ids_only)
{
	static const char *const bad[] = {"", "../x", "a/b", "ABCD", "12 ",
	    ".", "-", "x"};
	char text[200];

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_true(keep(bad[i], "one") < 0);
		assert_true(index_cache_open(bad[i]) < 0);
	}
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_true(keep(text, "one") < 0);
}

/* Nothing is kept in, or read from, what others may write, and no link is
   followed. */
TEST(stays_in_the_users_directory)
{
	assert_int_equal(keep(KEY, "one"), 0);
	scratch_run("chmod g+w cache/watchctl");
	assert_true(keep(KEY, "another") < 0);
	assert_true(index_cache_open(KEY) < 0);
	scratch_run("chmod g-w cache/watchctl && chmod o+w cache");
	assert_true(keep(KEY, "another") < 0);
	scratch_run("chmod o-w cache && mv cache/watchctl other && "
	    "ln -s ../other cache/watchctl");
	assert_true(keep(KEY, "another") < 0);
	assert_true(index_cache_open(KEY) < 0);
	scratch_run("rm cache/watchctl && mv other cache/watchctl && "
	    "mv cache real && ln -s real cache");
	assert_true(keep(KEY, "another") < 0);
	assert_true(index_cache_open(KEY) < 0);
	scratch_run("rm cache && mv real cache");
	assert_true(is_kept(KEY, "one"));
	scratch_run("cd cache/watchctl && mv " KEY ".index it && "
	    "ln -s it " KEY ".index");
	assert_true(index_cache_open(KEY) < 0);
	/* the link is replaced, and not written through */
	assert_int_equal(keep(KEY, "another"), 0);
	assert_true(is_kept(KEY, "another"));
	scratch_run("test \"$(cat cache/watchctl/it)\" = one");
	scratch_run("rm cache/watchctl/" KEY ".index && "
	    "mkfifo cache/watchctl/" KEY ".index");
	assert_true(index_cache_open(KEY) < 0);
}

/* Root leaves the directories of others alone. */
TEST(belongs_to_the_user)
{
	if (geteuid() != 0) {
		print_message("geteuid() is not 0: this is for root\n");
		skip();
	}
	assert_int_equal(keep(KEY, "one"), 0);
	scratch_run("chown 65534 cache/watchctl");
	assert_true(keep(KEY, "another") < 0);
	assert_true(index_cache_open(KEY) < 0);
	scratch_run("chown 0 cache/watchctl && chown 65534 cache");
	assert_true(keep(KEY, "another") < 0);
	assert_true(index_cache_open(KEY) < 0);
	scratch_run("chown 0 cache && chown 65534 cache/watchctl/*");
	assert_true(index_cache_open(KEY) < 0);
}

TEST(removes_the_oldest)
{
	assert_int_equal(keep("aa", "oldest"), 0);
	assert_int_equal(keep("bb", "used"), 0);
	assert_int_equal(keep("cc", "newer"), 0);
	scratch_run("cd cache/watchctl && touch keep.txt && "
	    "truncate -s 250M aa.index bb.index cc.index && "
	    "touch -d '3 hours ago' bb.index && "
	    "touch -d '2 hours ago' aa.index && "
	    "touch -d '1 hour ago' cc.index && "
	    "touch -d '2 hours ago' 12.new && touch 13.new");
	/* it is used */
	assert_false(is_kept("bb", ""));
	assert_int_equal(keep("dd", "new"), 0);
	scratch_run("cd cache/watchctl && test \"$(echo *)\" = "
	    "'13.new bb.index cc.index dd.index keep.txt'");
}

TEST(is_never_too_large)
{
	static char much[1 << 20];
	int err = index_cache_begin(KEY), n;

	assert_int_equal(err, 0);
	for (n = 0; err == 0 && n < 1000; n++)
		err = index_cache_put(much, sizeof(much));
	assert_int_equal(n, 257);
	assert_true(index_cache_end(err == 0) < 0);
	scratch_run("test -z \"$(ls cache/watchctl)\"");
}

/* There it would be a signal. */
TEST(minds_the_limit_of_files)
{
	struct rlimit old, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){1, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_true(keep(KEY, "one") < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

TEST(finds_its_place)
{
	assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
	assert_int_equal(setenv("HOME", scratch_path(""), 1), 0);
	assert_int_equal(keep(KEY, "one"), 0);
	scratch_run("test -f .cache/watchctl/" KEY ".index");
	assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
	assert_true(is_kept(KEY, "one"));
	assert_int_equal(setenv("XDG_CACHE_HOME", "/dev/null", 1), 0);
	assert_true(keep(KEY, "another") < 0);
}

RUN_TESTS(.before_each = own_place, .after_each = scratch_remove)
