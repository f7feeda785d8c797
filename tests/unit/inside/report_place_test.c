/* report_place: the source line in a report's text. */
#include "test.h"

#include <string.h>

#include "watchpoint.h"

static const struct {
	const char *text, *function, *file;
	int line;
} reports[] = {
	{"", "", "", 0},
	{"#1   stray write  config (8 bytes at 0x404090)  -> 7\n"
	    "     server[4335/4340] cpu 1  +12.003417s\n"
	    "     reload+0x7  movl $0x7,0x2d69(%rip)   config.c:31\n"
	    "     0  reload   config.c:31\n"
	    "     1  main     server.c:9\n", "reload", "config.c", 31},
	/* the innermost frame that has a line, wherever it is */
	{"     0  __memcpy_avx_unaligned+0x1a  (libc.so.6)\n"
	    "     1  copy                         ./lib/a file.c:7\n",
	    "copy", "./lib/a file.c", 7},
	{"     0  __memset+0x1a  (libc.so.6)\n     1  0x55d4c0de1139  "
	    "(a+0x39)\n", "__memset+0x1a", "", 0},
	{"     0  apply  ./cfg.c:5 (inlined)\n", "apply", "./cfg.c", 5},
	{"     10 apply  cfg.c:999999999 (signal frame)\n", "apply", "cfg.c",
	    999999999},
	/* rather one whose source can be read: not in the C library */
	{"     0  __memcpy_avx_unaligned  ../sysdeps/x86/memcpy.S:7\n"
	    "     1  copy                    /proc/self/status:3\n"
	    "     2  main                    /proc/self/stat:5\n",
	    "copy", "/proc/self/status", 3},
	/* names with spaces end where the columns do */
	{"     0  std::map<int, char>::at(int const&)  map.h:12\n",
	    "std::map<int, char>::at(int const&)", "map.h", 12},
	{"     0  run\\x0a  odd\\x1b.c:3\n", "run\\x0a", "odd\\x1b.c", 3},
	/* no frames, or no line in them */
	{"     0", "", "", 0},
	{"     0 ", "", "", 0},
	{"     0  run", "run", "", 0},
	{"     0  run  run.c", "run", "", 0},
	{"     0  run  run.c:", "run", "", 0},
	{"     0  run  :12", "run", "", 0},
	{"     0  run  run.c:12345678901", "run", "", 0},
	{"     0  run  run.c:0", "run", "", 0},
	{"0  run  run.c:1\n", "", "", 0},
	{"     stack truncated\n", "", "", 0},
};

TEST(the_innermost_source_line)
{
	struct wp_place place;

	for (size_t i = 0; i < COUNT(reports); i++) {
		memset(&place, 0x55, sizeof(place));
		wp_report_place(reports[i].text, &place);
		assert_string_equal(place.function, reports[i].function);
		assert_string_equal(place.file, reports[i].file);
		assert_int_equal(place.line, reports[i].line);
	}
}

TEST(long_names_are_cut)
{
	char text[2048] = "     0  ";
	struct wp_place place;

	memset(text + strlen(text), 'f', 500);
	(void)strcat(text, "  ");
	memset(text + strlen(text), 'p', 1000);
	(void)strcat(text, ":12\n");
	wp_report_place(text, &place);
	assert_int_equal(place.line, 12);
	assert_int_equal(strspn(place.function, "f"),
	    sizeof(place.function) - 1);
	assert_int_equal(strspn(place.file, "p"), sizeof(place.file) - 1);
	assert_int_equal(strlen(place.file), sizeof(place.file) - 1);
}

RUN_TESTS()
