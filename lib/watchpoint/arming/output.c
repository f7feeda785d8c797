/*
 * output: where lines are written without a helper: to a file of the user's
 * choice, or to a duplicate of standard error, because descriptor 2 may be
 * another file later.
 */
#include <fcntl.h>
#include <unistd.h>

#include "arming/helper.h"
#include "program/table.h"

void
wp_output_open(void)
{
	const char *path = wp_setting("WATCHPOINT_OUTPUT");
	int fd = -1;

	if (wp_state.output != STDERR_FILENO)
		return;
	if (path != NULL && *path != '\0')
		/* do not block on a FIFO that has no reader */
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
		    O_NOCTTY | O_NONBLOCK, 0666);
	if (fd >= 0)
		(void)fcntl(fd, F_SETFL, O_APPEND);
	if (fd < 0 && fstat(STDERR_FILENO, &wp_state.standard) == 0)
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	wp_state.output = fd >= 0 ? wp_descriptor_high(fd) : -1;
}
