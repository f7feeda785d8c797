/* on_hit_option: parses the argument of --on-hit. */
#include "option/on_hit_option.h"

#include <string.h>

#include "util/complain.h"

int
on_hit_parse(const char *text, struct on_hit *what)
{
	static const char exec[] = "exec";
	const char *command = text + sizeof(exec) - 1;

	*what = (struct on_hit){.what = ON_HIT_PAUSE};
	if (strcmp(text, "pause") == 0)
		return 0;
	what->what = ON_HIT_CORE;
	if (strcmp(text, "core") == 0)
		return 0;
	if (strncmp(text, exec, sizeof(exec) - 1) != 0 ||
	    strchr(" \t", *command) == NULL)
		return complain("--on-hit '%s': no such action; there are "
		    "pause, core and 'exec COMMAND'", text);
	what->what = ON_HIT_EXEC;
	what->command = command + strspn(command, " \t\n");
	return *what->command != '\0' ? 0 : complain("--on-hit '%s': no "
	    "command: give it in the same argument, such as 'exec date'", text);
}
