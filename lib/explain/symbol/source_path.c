/* source_path: directories and names of source files, put together. */
#include "symbol/source_path.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool
is_part(const char *part, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(part, name, len) == 0;
}

/* Remove the last part of a path of length len.  Returns false if only ".." is
   left. */
static bool
remove_last(const char *path, size_t *len)
{
	size_t start = *len;

	while (start > 0 && path[start - 1] != '/')
		start--;
	if (start == *len || is_part(path + start, *len - start, ".."))
		return false;
	*len = start > 1 ? start - 1 : start;
	return true;
}

/* Append the parts of another path.  Returns the new length. */
static size_t
append_parts(char *path, size_t len, const char *from)
{
	for (size_t n; *from != '\0'; from += n) {
		n = strcspn(from, "/");
		if (n == 0) {
			n = 1;
			continue;
		}
		if (is_part(from, n, ".") ||
		    (is_part(from, n, "..") && (remove_last(path, &len) ||
		    (len == 1 && path[0] == '/'))))
			continue;
		if (len > 0 && path[len - 1] != '/')
			path[len++] = '/';
		memcpy(path + len, from, n);
		len += n;
	}
	return len;
}

/* Whether the name already includes the directory: a prefix map may have made
   both relative ("./nptl", "./nptl/a.c"). */
static bool
has_it(const char *name, const char *directory)
{
	const size_t len = strlen(directory);

	return strncmp(directory, "./", 2) == 0 &&
	    strncmp(name, directory, len) == 0 && name[len] == '/';
}

char *
ex_source_path(const char *directory, const char *name)
{
	char *path;
	size_t len = 0;

	if (directory == NULL || name[0] == '/' || has_it(name, directory))
		directory = "";
	path = calloc(1, strlen(directory) + strlen(name) + 2);
	if (path == NULL)
		return NULL;
	if (directory[0] == '/' || name[0] == '/')
		path[len++] = '/';
	len = append_parts(path, len, directory);
	len = append_parts(path, len, name);
	path[len] = '\0';
	return path;
}
