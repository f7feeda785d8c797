/* cgroup: a control group of version 2, and the freezers of both versions. */
#include "processes/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "proc/proc.h"
#include "util/buffer.h"
#include "util/complain.h"
#include "util/visible.h"

/* The initial PID namespace has the same inode on every machine. */
#define FIRST_NAMESPACE 0xeffffffc

/* A mount of the cgroup file system. */
struct mounted {
	char root[PATH_MAX];	/* the group mounted there, as written in
				   /proc/PID/cgroup */
	char at[PATH_MAX];
};

/* Replace the kernel's \040 and similar escapes in a path. */
static void
unescape(char *text)
{
	char *to = text;

	while (*text != '\0') {
		unsigned c;

		if (*text == '\\' && sscanf(text + 1, "%3o", &c) == 1 &&
		    strlen(text) >= 4) {
			*to++ = (char)c;
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/* Whether a path is in a directory; *rest is set to where the rest of it
   starts. */
static bool
is_below(const char *path, const char *directory, size_t *rest)
{
	*rest = strcmp(directory, "/") == 0 ? 0 : strlen(directory);
	return strncmp(path, directory, *rest) == 0 &&
	    (path[*rest] == '/' || path[*rest] == '\0');
}

/* What /proc calls the groups of version 2, and those that have the freezer of
   version 1. */
#define VERSION_2 ""
#define FREEZER_1 "freezer"

/* Whether a line of /proc/self/mountinfo, from its " - ", has such groups. */
static bool
mounts(const char *type, const char *controller)
{
	if (strcmp(controller, VERSION_2) == 0)
		return strncmp(type, " - cgroup2 ", 11) == 0;
	return strncmp(type, " - cgroup ", 10) == 0 &&
	    (type = strstr(type, controller)) != NULL && type[-1] == ',' &&
	    strchr(",\n", type[strlen(controller)]) != NULL;
}

/* Find the innermost mount of such groups that contains the path; if path is
   NULL, any of them.  Returns false if there is none. */
static bool
find_mount(const char *controller, const char *path, struct mounted *out)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	struct mounted one;
	size_t size = 0, rest;
	char *line = NULL;
	bool found = false;

	while (f != NULL && (path != NULL || !found) &&
	    getline(&line, &size, f) > 0) {
		const char *type = strstr(line, " - ");

		if (type == NULL || !mounts(type, controller) ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", one.root,
		    one.at) != 2)
			continue;
		unescape(one.root);
		unescape(one.at);
		if (path != NULL && (!is_below(path, one.at, &rest) ||
		    (found && strlen(one.at) < strlen(out->at))))
			continue;
		*out = one;
		found = true;
	}
	free(line);
	if (f != NULL)
		(void)fclose(f);
	return found;
}

/* Find the group's directory: the first of these that is one.  Returns 0;
   -ENOTDIR if only something else is there; or -ENOENT. */
static int
find_directory(const char *path, const struct mounted *mount,
    char found[PATH_MAX])
{
	const char *const parent[] = {"", mount->at, "/sys/fs/cgroup"};
	int err = -ENOENT;

	for (size_t i = *path == '/' ? 0 : 1;
	    i < sizeof(parent) / sizeof(parent[0]); i++) {
		char name[2 * PATH_MAX];
		struct statfs fs;
		struct stat st;

		(void)snprintf(name, sizeof(name), "%s/%s", parent[i], path);
		if (realpath(name, found) == NULL || stat(found, &st) != 0) {
			if (errno != ENOENT && err == -ENOENT)
				err = -errno;
			continue;
		}
		if (S_ISDIR(st.st_mode) && statfs(found, &fs) == 0 &&
		    fs.f_type == CGROUP2_SUPER_MAGIC)
			return 0;
		err = -ENOTDIR;
	}
	return err;
}

/* Whether the group only has threads of processes that are in another group. */
static bool
is_threaded(const char *directory)
{
	char path[PATH_MAX + 16], type[32] = "";
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/cgroup.type", directory);
	if ((f = fopen(path, "re")) == NULL)
		return false;	/* the root, which has no type */
	(void)fgets(type, sizeof(type), f);
	(void)fclose(f);
	return strcmp(type, "threaded\n") == 0;
}

static int
refuse(const char *path, const char *why)
{
	struct buffer shown = {0};

	visible_put(&shown, path);
	(void)complain("--cgroup '%s': %s", buffer_text(&shown), why);
	buffer_free(&shown);
	return -EINVAL;
}

int
cgroup_find(struct cgroup *group, const char *path)
{
	char directory[PATH_MAX], why[256];
	struct mounted mount;
	size_t rest;
	int err;

	if (*path == '\0' || strlen(path) >= PATH_MAX)
		return refuse(path, "not a path: give that of a control group, "
		    "as behind 0:: in /proc/PID/cgroup");
	if (!find_mount(VERSION_2, NULL, &mount))
		return refuse(path, "no control groups of version 2 are "
		    "mounted: mount -t cgroup2 none /sys/fs/cgroup");
	if ((err = find_directory(path, &mount, directory)) == -ENOTDIR)
		return refuse(path, "not a control group of version 2: give "
		    "its directory, or what is behind 0:: in "
		    "/proc/PID/cgroup");
	if (err < 0) {
		(void)snprintf(why, sizeof(why), "%s: give the directory of a "
		    "control group, or what is behind 0:: in /proc/PID/cgroup",
		    strerror(-err));
		return refuse(path, why);
	}
	if (is_threaded(directory))
		return refuse(path, "this group has only threads (cgroup.type "
		    "is threaded): give the one above it, which has their "
		    "processes");
	if (!find_mount(VERSION_2, directory, &mount) ||
	    !is_below(directory, mount.at, &rest))
		return refuse(path, "its mount is not in "
		    "/proc/self/mountinfo");
	if (asprintf(&group->name, "%s%s", strcmp(mount.root, "/") == 0 ? "" :
	    mount.root, directory + rest) < 0) {
		group->name = NULL;
		return complain("out of memory");
	}
	return 0;
}

void
cgroup_free(struct cgroup *group)
{
	free(group->name);
	group->name = NULL;
}

/* The text after ":CONTROLLER:" in /proc/PID/cgroup, up to the end of the line,
   or NULL. */
static const char *
name_of(pid_t pid, const char *controller, char text[2 * PATH_MAX])
{
	const size_t len = strlen(controller);
	const char *line = text;

	if (wp_proc_text(pid, "cgroup", text, 2 * PATH_MAX) <= 0)
		return NULL;
	while ((line = strchr(line, ':')) != NULL) {
		if (strncmp(++line, controller, len) == 0 && line[len] == ':')
			return line + len + 1;
		if ((line = strchr(line, '\n')) == NULL)
			break;
	}
	return NULL;
}

bool
cgroup_has(const struct cgroup *group, pid_t pid)
{
	const size_t len = strlen(group->name);
	char text[2 * PATH_MAX];
	const char *name = name_of(pid, VERSION_2, text);

	return name != NULL && strncmp(name, group->name, len) == 0 &&
	    strchr("/\n", name[len]) != NULL;
}

/* Whether the file of a process's group has a text. */
static bool
group_says(pid_t pid, const char *controller, const char *file,
    const char *wanted)
{
	char text[2 * PATH_MAX], path[4 * PATH_MAX], found[256];
	const char *name = name_of(pid, controller, text);
	struct mounted mount;
	size_t rest, len;
	FILE *f;

	if (name == NULL || !find_mount(controller, NULL, &mount) ||
	    !is_below(name, mount.root, &rest))
		return false;
	(void)snprintf(path, sizeof(path), "%s%.*s/%s", mount.at,
	    (int)strcspn(name + rest, "\n"), name + rest, file);
	if ((f = fopen(path, "re")) == NULL)
		return false;	/* the root is never frozen */
	len = fread(found, 1, sizeof(found) - 1, f);
	(void)fclose(f);
	found[len] = '\0';
	return strstr(found, wanted) != NULL;
}

/* Freezing a group freezes the groups below it. */
const char *
cgroup_frozen_by(pid_t pid)
{
	return group_says(pid, VERSION_2, "cgroup.events", "frozen 1") ?
	    "cgroup.freeze" :
	    group_says(pid, FREEZER_1, "freezer.state", "FROZEN") ?
	    "freezer.state" : NULL;
}

/* The tracepoint reports pids of the initial PID namespace. */
int
cgroup_moves(struct wp_tracepoint *point)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 &&
	    st.st_ino == FIRST_NAMESPACE ? wp_tracepoint_find(point,
	    "cgroup/cgroup_attach_task", "pid") : -ENOENT;
}
