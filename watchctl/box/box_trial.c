/* box_trial: what an explainer could still do. */
#include "box/box_trial.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box/box.h"
#include "proc/proc.h"
#include "util/complain.h"

enum { PATIENCE_MS = 10000 };

static struct box_trial *tried;

static void
note(const char *text)
{
	(void)snprintf(tried->text, sizeof(tried->text), "%.*s",
	    (int)sizeof(tried->text) - 1, text);
}

/* The value of a line of /proc/PID/status, as a number. */
static unsigned long long
status_value(const char *status, const char *name, int base)
{
	const char *at = strstr(status, name);

	return at == NULL ? ~0ull : strtoull(at + strlen(name), NULL, base);
}

/* Whether it has a filter of its own: a container's it has in common with us.
   Kernels that do not count them leave what it said. */
static bool
is_filtered(const struct box_trial *trial, const char *status)
{
	static const char filters[] = "\nSeccomp_filters:";
	unsigned long long has = status_value(status, filters, 10);
	char ours[8192];

	if (status_value(status, "\nSeccomp:", 10) != 2)
		return false;
	if (has == ~0ull ||
	    wp_proc_text(getpid(), "status", ours, sizeof(ours)) < 0)
		return trial->text[0] == '\0';
	return has > status_value(ours, filters, 10);
}

static void
look_at(struct box_trial *trial, pid_t pid)
{
	char status[8192];

	if (wp_proc_text(pid, "status", status, sizeof(status)) < 0)
		return;
	trial->started = true;
	trial->filtered = is_filtered(trial, status);
	trial->powerless = status_value(status, "\nCapEff:", 16) == 0 &&
	    status_value(status, "\nNoNewPrivs:", 10) == 1;
	trial->uid = (uid_t)status_value(status, "\nUid:", 10);
}

/* It is to explain a recording, for which it asks first. */
static void
brief(struct box *box)
{
	struct box_message message = {.what = BOX_BEGIN};

	(void)box_tell(box, &message, -1);
	message.what = BOX_GO;
	(void)box_tell(box, &message, -1);
}

static void
await_question(struct box_trial *trial, const struct box *box)
{
	struct pollfd p = {.fd = box->socket, .events = POLLIN};
	struct box_message message;

	while (!trial->started && poll(&p, 1, PATIENCE_MS) > 0 &&
	    box_receive(box->socket, &message, NULL, 0) == 0) {
		if (message.what == BOX_SAY)
			note(message.text);
		else if (message.what == BOX_END)
			return;
		else
			look_at(trial, box->pid);
	}
}

void
box_try(struct box_trial *trial)
{
	static char verb[] = "report", file[] = "/dev/null";
	char *argv[] = {verb, file, NULL};
	struct box box = {.argv = argv, .brief = brief};

	*trial = (struct box_trial){0};
	tried = trial;
	complain_to(note);
	if (box_start(&box) == 0)
		await_question(trial, &box);
	box_close(&box);
	complain_to(NULL);
}
