/* tracepoint: describes a tracepoint, by the kernel's tracing file system. */
#include "os/tracepoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
wp_tracefs_path(char path[WP_TRACEFS_PATH], unsigned i, const char *file)
{
	static const char *const mounts[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};

	if (i >= sizeof(mounts) / sizeof(mounts[0]))
		return false;
	return snprintf(path, WP_TRACEFS_PATH, "%s/%s", mounts[i], file) <
	    WP_TRACEFS_PATH;
}

/* Open a file of a tracepoint, wherever the file system is mounted. */
static FILE *
open_file(const char *name, const char *file)
{
	char path[WP_TRACEFS_PATH], part[WP_TRACEFS_PATH / 2];
	FILE *f = NULL;

	(void)snprintf(part, sizeof(part), "events/%s/%s", name, file);
	for (unsigned i = 0; f == NULL && wp_tracefs_path(path, i, part); i++)
		f = fopen(path, "re");
	return f;
}

/* Whether a line describes that field:
   "field:int pid;	offset:24;	size:4;". */
static bool
is_field(const char *line, const char *field, uint32_t *offset)
{
	const char *end = strchr(line, ';');
	const size_t len = strlen(field);
	uint32_t size;

	return end != NULL && (size_t)(end - line) > len &&
	    *(end - len - 1) == ' ' && strncmp(end - len, field, len) == 0 &&
	    sscanf(end, "; offset:%" SCNu32 "; size:%" SCNu32, offset,
	    &size) == 2 && size == 4;
}

int
wp_tracepoint_find(struct wp_tracepoint *out, const char *name,
    const char *field)
{
	FILE *id = open_file(name, "id"), *format = open_file(name, "format");
	bool found = id != NULL && format != NULL &&
	    fscanf(id, "%" SCNu64, &out->id) == 1, is = false;
	size_t size = 0;
	char *line = NULL;

	while (found && !is && getline(&line, &size, format) > 0)
		is = is_field(line, field, &out->offset);
	free(line);
	if (id != NULL)
		(void)fclose(id);
	if (format != NULL)
		(void)fclose(format);
	return is ? 0 : -ENOENT;
}
