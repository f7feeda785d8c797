/* side_files: the files that are written in addition to a report, at its
   end. */
#include "report/side_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/complain.h"
#include "util/replace_file.h"

bool
side_is_same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
	    of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

int
side_open_path(const char *option, const char *path, int flags, bool *made)
{
	int fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	*made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, flags | O_CREAT | O_CLOEXEC, 0666);
	return fd >= 0 ? fd : complain("%s '%s': cannot be written: %s; name "
	    "another file", option, path, strerror(errno));
}

int
side_open_stream(const char *option, const char *path, FILE **stream,
    bool *made)
{
	int fd = side_open_path(option, path, O_WRONLY, made);

	if (fd < 0)
		return fd;
	if ((*stream = fdopen(fd, "w")) != NULL)
		return 0;
	(void)close(fd);
	return complain("out of memory");
}

int
side_empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return ftruncate(fd, 0) < 0 ? -errno : 0;
}

/* Check that the content of a file of --learn is a policy, and that the file
   can be replaced. */
static int
check_learn(const char *path)
{
	struct policy_file old = {.path = NULL};
	struct replace_file file;
	struct buffer text = {0};
	const char *why;
	int err = replace_file_open(&file, path, &why);

	if (err < 0)
		return complain("--learn '%s': cannot be written: %s%s%s; name "
		    "another file", path, why, *why != '\0' ? ": " : "",
		    strerror(-err));
	if ((err = replace_file_read(&file, &text)) < 0)
		err = complain("--learn '%s': cannot be read: %s", path,
		    strerror(-err));
	else
		err = policy_file_parse(&old, path, text.bytes, text.len);
	policy_file_free(&old);
	buffer_free(&text);
	replace_file_close(&file);
	return err;
}

/* The files must differ from that of the report, and from those that are
   read. */
static int
open_side(struct side_files *s, enum side side, const char *report)
{
	const struct options *options = s->options;
	const char *name = options_side_name(side);
	const char *path = options->side[side];
	const char *others[] = {options->file, options->policy_path, report,
	    options->side[SIDE_JUNIT]};

	if (path == NULL)
		return 0;
	for (size_t i = 0; i < 3 + (side == SIDE_SARIF); i++)
		if (others[i] != NULL && side_is_same_file(path, others[i]))
			return complain("%s %s: that is another file of this "
			    "command line, which it would overwrite", name,
			    path);
	if (side == SIDE_LEARN)
		return check_learn(path);
	if (side == SIDE_GITHUB) {
		s->of[side].stream = stderr;
		return 0;
	}
	return side_open_stream(name, path, &s->of[side].stream,
	    &s->of[side].made);
}

int
side_files_open(struct side_files *s, const struct options *options,
    const char *report)
{
	int err = 0;

	*s = (struct side_files){.options = options};
	for (int i = 0; i < SIDES && err == 0; i++)
		err = open_side(s, (enum side)i, report);
	return err;
}

int
side_files_begin(struct side_files *s)
{
	int err = 0;

	for (int i = 0; i < SIDES && err == 0; i++) {
		s->of[i].made = false;
		if (s->of[i].stream != NULL && s->of[i].stream != stderr)
			err = side_empty(fileno(s->of[i].stream));
	}
	return err;
}

/* Add lines to a policy file, unless it has all of them. */
static int
learn(const char *path, const char *bytes, size_t len, const char **why)
{
	struct policy_file old = {.path = NULL}, new = {.path = NULL};
	struct replace_file file;
	struct buffer text = {0};
	int err, added = 0;

	if ((err = replace_file_open(&file, path, why)) < 0)
		return err;
	*why = "";
	if ((err = replace_file_read(&file, &text)) == 0 &&
	    (policy_file_parse(&old, path, text.bytes, text.len) < 0 ||
	    policy_file_parse(&new, "what was learned", bytes, len) < 0))
		err = -EINVAL;
	if (err == 0)
		err = added = policy_file_join(&old, &new);
	text.len = 0;
	if (added > 0) {
		policy_file_put(&old, &text);
		err = text.failed ? -ENOMEM :
		    replace_file_write(&file, text.bytes, text.len);
	}
	policy_file_free(&old);
	policy_file_free(&new);
	buffer_free(&text);
	replace_file_close(&file);
	return err < 0 ? err : 0;
}

static int
write_whole(FILE *out, const char *bytes, size_t len)
{
	if (out != stderr && side_empty(fileno(out)) < 0)
		return -errno;
	return (len > 0 && fwrite(bytes, len, 1, out) != 1) ||
	    fflush(out) != 0 ? -errno : 0;
}

int
side_files_write(struct side_files *s, enum side side, const char *bytes,
    size_t len)
{
	const char *why = "";
	int err = side == SIDE_LEARN ?
	    learn(s->options->side[side], bytes, len, &why) :
	    write_whole(s->of[side].stream, bytes, len);

	return err == 0 ? 0 : complain("%s%s%s: not written: %s%s%s",
	    options_side_name(side), *s->options->side[side] != '\0' ? " " : "",
	    s->options->side[side], why, *why != '\0' ? ": " : "",
	    strerror(-err));
}

void
side_files_close(struct side_files *s)
{
	for (int i = 0; i < SIDES; i++) {
		const struct side_file *side = &s->of[i];

		if (side->stream == NULL || side->stream == stderr)
			continue;
		(void)fclose(side->stream);
		if (side->made)
			(void)unlink(s->options->side[i]);
	}
	*s = (struct side_files){.options = NULL};
}
