/*
 * A test suite that CMake (CMakeLists.txt) or Meson (meson.build) builds and
 * runs.  Only config_load may write g_config; with "reset" another function
 * does, which the program itself does not notice.
 */
#include <string.h>

long g_config;

static void
config_load(long value)
{
	g_config = value;
}

static void
reset_cache(void)
{
	g_config = 3;	/* stray */
}

int
main(int argc, char **argv)
{
	config_load(3);
	if (argc > 1 && strcmp(argv[1], "reset") == 0)
		reset_cache();
	return g_config == 3 ? 0 : 1;
}
