/* pid_table: tables with an entry for each possible process id. */
#ifndef PID_TABLE_H
#define PID_TABLE_H

#include <stdbool.h>
#include <sys/types.h>

enum { PID_TABLE_SIZE = (1 << 22) + 1 };	/* no process has a larger id */

/* Whether a pid is in range; those of records may not be. */
static inline bool
pid_table_has(pid_t pid)
{
	return pid > 0 && pid < PID_TABLE_SIZE;
}

#endif
