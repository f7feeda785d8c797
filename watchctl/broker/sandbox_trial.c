/* sandbox_trial: tries what an explainer could still do. */
#include "broker/sandbox_trial.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "proc/proc.h"
#include "util/complain.h"

enum { PATIENCE_MS = 10000 };

static struct sandbox_trial *tried;

static void
note(const char *text)
{
	(void)snprintf(tried->text, sizeof(tried->text), "%.*s",
	    (int)sizeof(tried->text) - 1, text);
}

/* The number in a line of /proc/PID/status. */
static unsigned long long
status_value(const char *status, const char *name, int base)
{
	const char *at = strstr(status, name);

	return at == NULL ? ~0ull : strtoull(at + strlen(name), NULL, base);
}

/* Whether it has a filter besides those that we have too, such as a
   container's.  If the kernel does not count filters, believe what it
   reports. */
static bool
is_filtered(const struct sandbox_trial *trial, const char *status)
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
look_at(struct sandbox_trial *trial, pid_t pid)
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

/* Have it explain a recording: it first asks for that file. */
static void
brief(struct broker *broker)
{
	struct broker_message message = {.what = BROKER_BEGIN};

	(void)broker_post(broker, &message, -1);
	message.what = BROKER_GO;
	(void)broker_post(broker, &message, -1);
}

static void
await_question(struct sandbox_trial *trial, const struct broker *broker)
{
	struct pollfd p = {.fd = broker->socket, .events = POLLIN};
	struct broker_message message;

	while (!trial->started && poll(&p, 1, PATIENCE_MS) > 0 &&
	    broker_receive(broker->socket, &message, NULL, 0) == 0) {
		if (message.what == BROKER_SAY)
			note(message.text);
		else if (message.what == BROKER_END)
			return;
		else
			look_at(trial, broker->pid);
	}
}

void
sandbox_trial_run(struct sandbox_trial *trial)
{
	static char verb[] = "report", file[] = "/dev/null";
	char *argv[] = {verb, file, NULL};
	struct broker broker = {.argv = argv, .brief = brief};

	*trial = (struct sandbox_trial){0};
	tried = trial;
	complain_to(note);
	if (broker_start(&broker) == 0)
		await_question(trial, &broker);
	broker_close(&broker);
	complain_to(NULL);
}
