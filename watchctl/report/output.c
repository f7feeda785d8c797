/* output: where a report or a recording goes. */
#include "report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/complain.h"
#include "util/origin.h"

/* Whether both are names of one file, which is there. */
static bool
is_same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
	    of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Open a file of -O, or make it.  The descriptor, or -EINVAL after a line on
   stderr. */
static int
open_path(struct output *o, const char *path, int flags)
{
	int fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	o->made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, flags | O_CREAT | O_CLOEXEC, 0666);
	return fd >= 0 ? fd : complain("-O '%s': cannot be written: %s; name "
	    "another file", path, strerror(errno));
}

/* A recording's file.  It stays as it is until the recording begins. */
static int
open_file(struct output *o, const char *path)
{
	o->file = open_path(o, path, O_RDWR);
	o->own = o->file >= 0;
	if (!o->own)
		return o->file;
	if (lseek(o->file, 0, SEEK_CUR) < 0)
		return complain("-O %s: a recording goes into a file, not "
		    "into a pipe or terminal", path);
	return 0;
}

/* A report's file, likewise. */
static int
open_stream(struct output *o, const char *path)
{
	int fd = open_path(o, path, O_WRONLY);

	if (fd < 0)
		return fd;
	o->stream = fdopen(fd, "w");
	o->own = o->stream != NULL;
	if (o->own)
		return 0;
	(void)close(fd);
	return complain("out of memory");
}

/* Have a file forget what it held; others than files hold nothing.  0 or
   -errno. */
static int
empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return ftruncate(fd, 0) < 0 ? -errno : 0;
}

static int
open_named(struct output *o, const struct options *options, pid_t pid)
{
	if ((o->path = origin_name(options->output, pid)) == NULL)
		return complain("out of memory");
	if (options->form == FORM_PERF)
		return open_file(o, o->path);
	for (size_t i = 0; i < options->nfiles; i++)
		if (is_same_file(o->path, options->files[i]))
			return complain("-O %s: that is %s, which the report "
			    "would overwrite", o->path, options->nfiles == 1 ?
			    "the recording" : "one of the files");
	return open_stream(o, o->path);
}

int
output_open(struct output *o, const struct options *options, FILE *otherwise)
{
	*o = (struct output){.file = -1};
	if (options->output == NULL)
		o->stream = options->to_stdout ? stdout : otherwise;
	return options->output == NULL || origin_name_has_pid(options->output) ?
	    0 : open_named(o, options, 0);
}

int
output_open_of(struct output *o, const struct options *options, pid_t pid)
{
	return o->path == NULL && options->output != NULL ?
	    open_named(o, options, pid) : 0;
}

int
output_begin(struct output *o)
{
	o->made = false;
	return o->own ? empty(o->file >= 0 ? o->file : fileno(o->stream)) : 0;
}

struct output_screen
output_screen(FILE *out)
{
	const char *term = getenv("TERM");
	const char *none = getenv("NO_COLOR");
	struct winsize size = {0};

	if (isatty(fileno(out)) != 1)
		return (struct output_screen){0};
	(void)ioctl(fileno(out), TIOCGWINSZ, &size);
	return (struct output_screen){
		.colour = (none == NULL || *none == '\0') && term != NULL &&
		    *term != '\0' && strcmp(term, "dumb") != 0,
		.columns = size.ws_col,
	};
}

void
output_close(struct output *o)
{
	if (o->own && o->file >= 0)
		(void)close(o->file);
	else if (o->own)
		(void)fclose(o->stream);
	if (o->made)	/* what failed leaves nothing behind */
		(void)unlink(o->path);
	free(o->path);
	*o = (struct output){.file = -1};
}
