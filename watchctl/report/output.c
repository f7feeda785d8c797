/* output: where a report or a recording goes. */
#include "report/output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/complain.h"
#include "util/origin.h"

/* Open a recording's file, which keeps its content until the recording
   begins. */
static int
open_file(struct output *o, const char *path)
{
	o->file = side_open_path("-O", path, O_RDWR, &o->made);
	o->own = o->file >= 0;
	if (!o->own)
		return o->file;
	if (lseek(o->file, 0, SEEK_CUR) < 0)
		return complain("-O %s: a recording goes into a file, not "
		    "into a pipe or terminal", path);
	return 0;
}

/* The option or argument that names the report's file too; NULL: none does. */
static const char *
other_file(const struct output *o, const struct options *options)
{
	for (size_t i = 0; i < options->nfiles; i++)
		if (side_is_same_file(o->path, options->files[i]))
			return options->nfiles == 1 ? "the recording" :
			    "one of the files";
	for (int i = 0; i < SIDES; i++)
		if (options->side[i] != NULL &&
		    side_is_same_file(o->path, options->side[i]))
			return options_side_name((enum side)i);
	return options->policy_path != NULL &&
	    side_is_same_file(o->path, options->policy_path) ? "the policy" :
	    NULL;
}

static int
open_named(struct output *o, const struct options *options, pid_t pid)
{
	const char *other;
	int err;

	if ((o->path = origin_name(options->output, pid)) == NULL)
		return complain("out of memory");
	if (options->form == FORM_PERF)
		return open_file(o, o->path);
	if ((other = other_file(o, options)) != NULL)
		return complain("-O %s: that is %s%s, which the report would "
		    "overwrite", o->path, *other == '-' ? "the file of " : "",
		    other);
	if ((err = side_open_stream("-O", o->path, &o->stream,
	    &o->made)) == 0)
		o->own = true;
	return err;
}

int
output_open(struct output *o, const struct options *options, FILE *otherwise)
{
	int err = 0;

	*o = (struct output){.file = -1};
	if (options->output == NULL)
		o->stream = options->to_stdout ? stdout : otherwise;
	else if (!origin_name_has_pid(options->output))
		err = open_named(o, options, 0);
	return err < 0 ? err : side_files_open(&o->sides, options, o->path);
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
	int err = side_files_begin(&o->sides);

	o->made = false;
	return err == 0 && o->own ? side_empty(o->file >= 0 ? o->file :
	    fileno(o->stream)) : err;
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
	side_files_close(&o->sides);
	*o = (struct output){.file = -1};
}
