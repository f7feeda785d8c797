/* live_broker: watchctl's questions to explainers about running processes. */
#include "broker/live_broker.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "attach/target.h"
#include "os/array.h"
#include "util/buffer.h"
#include "util/visible.h"

enum { MODULES_MAX = 65536 };	/* most that are asked for */

/* --- what it knows of processes --- */

/* The length of the first whole records that fit into a message. */
static size_t
next_part(const uint8_t *records, size_t len)
{
	size_t part = 0;

	while (len - part >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;

		memcpy(&header, records + part, sizeof(header));
		if (header.size < sizeof(header) ||
		    header.size > len - part ||
		    part + header.size > BROKER_BYTES_MAX)
			break;
		part += header.size;
	}
	return part;
}

static void
tell(struct broker *broker, const struct live_broker_process *process,
    const uint8_t *records, size_t len)
{
	struct broker_message message;
	size_t part;

	for (size_t at = 0; (part = next_part(records + at, len - at)) > 0;
	    at += part) {
		message = (struct broker_message){
			.what = BROKER_LEARN, .len = (uint32_t)part,
			.value = {(uint64_t)process->pid, process->time},
		};
		memcpy(message.text, records + at, part);
		(void)broker_post(broker, &message, -1);
	}
}

static void
brief(struct broker *broker)
{
	const struct live_broker *live = (const void *)broker;

	for (size_t i = 0; i < live->n; i++) {
		const struct live_broker_process *process = &live->process[i];

		tell(broker, process, process->records, process->len);
	}
}

static struct live_broker_process *
find_process(struct live_broker *live, pid_t pid)
{
	for (size_t i = 0; i < live->n; i++)
		if (live->process[i].pid == pid)
			return &live->process[i];
	if (WP_ARRAY_ROOM(live, process) < 0)
		return NULL;
	live->process[live->n] = (struct live_broker_process){.pid = pid};
	return &live->process[live->n++];
}

int
live_broker_learn(struct live_broker *live, pid_t pid, const void *records,
    size_t len, uint64_t time)
{
	struct live_broker_process *process = find_process(live, pid);
	uint8_t *copy = malloc(len);
	int err;

	if (process == NULL || (copy == NULL && len > 0)) {
		free(copy);
		return -ENOMEM;
	}
	free(process->records);
	process->records = copy;
	process->len = len;
	process->time = time;
	if (len > 0)
		memcpy(copy, records, len);
	if ((err = answers_allow(&live->broker.answers, pid)) < 0)
		return err;
	if (live->broker.pid != 0)
		tell(&live->broker, process, process->records, process->len);
	return 0;
}

void
live_broker_forget(struct live_broker *live, pid_t pid)
{
	size_t i = 0;

	answers_forbid(&live->broker.answers, pid);
	while (i < live->n && live->process[i].pid != pid)
		i++;
	if (i == live->n)
		return;
	free(live->process[i].records);
	live->process[i] = live->process[--live->n];
}

/* No process has that many modules; but the answer shows that everything sent
   before has been learnt. */
static void
wait_until_learnt(struct live_broker *live, pid_t pid)
{
	struct broker_message message = {
		.what = BROKER_MODULE, .value = {(uint64_t)pid, UINT64_MAX},
	};

	(void)broker_ask(&live->broker, &message,
	    "what is mapped from now on is not known");
}

int
live_broker_add(struct live_broker *live, pid_t pid, const void *record,
    size_t len)
{
	struct live_broker_process *process = find_process(live, pid);
	uint8_t *more;

	if (process == NULL || (more = realloc(process->records,
	    process->len + len)) == NULL)
		return -ENOMEM;
	memcpy(more + process->len, record, len);
	process->records = more;
	process->len += len;
	if (live->broker.pid == 0)
		return 0;
	tell(&live->broker, process, record, len);
	wait_until_learnt(live, pid);
	return 0;
}

/* Its task and the command line.  NULL if there is no memory. */
static char **
make_arguments(char **argv)
{
	static char what[] = "live";
	size_t n = 1;
	char **copy;

	while (argv != NULL && argv[0] != NULL && argv[n] != NULL)
		n++;
	if ((copy = calloc(n + 1, sizeof(*copy))) == NULL)
		return NULL;
	copy[0] = what;
	for (size_t i = 1; i < n; i++)
		copy[i] = argv[i];
	return copy;
}

void
live_broker_make(struct live_broker *live, uint64_t memory, char **argv)
{
	live->broker.argv = live->argv = make_arguments(argv);
	live->broker.memory = memory;
	live->broker.brief = brief;
}

void
live_broker_close(struct live_broker *live)
{
	broker_close(&live->broker);
	while (live->n > 0)
		free(live->process[--live->n].records);
	free(live->process);
	free(live->argv);
	live->argv = NULL;
	live->process = NULL;
	live->cap = 0;
}

/* --- questions --- */

/* Put the text of a SPEC, and the real path of its module. */
static int
put_spec(struct broker_message *message, const struct spec *spec)
{
	char *real = spec->module == NULL || *spec->module != '/' ? NULL :
	    realpath(spec->module, NULL);
	const int n = snprintf(message->text, sizeof(message->text),
	    "%s%c%s", spec->text, '\0', real != NULL ? real : "");

	free(real);
	if (n < 0 || (size_t)n >= sizeof(message->text))
		return -E2BIG;
	message->len = (uint32_t)n + 1;
	return 0;
}

/* Take the cause of a failure; its text is made visible. */
static int
take_cause(const struct broker_message *answer, struct wp_cause *cause)
{
	const uint64_t code = answer->value[2];
	struct buffer text = {0};

	if (cause == NULL)
		return answer->err;
	visible_put(&text, answer->text);
	cause->code = code > WP_CAUSE_NONE && code <= WP_CAUSE_MISSED ?
	    (enum wp_cause_code)code : WP_CAUSE_SYSTEM;
	cause->err = -answer->err;
	(void)snprintf(cause->text, sizeof(cause->text), "%s",
	    buffer_text(&text));
	buffer_free(&text);
	return answer->err;
}

/* Take the other addresses of a line. */
static int
take_more(const struct broker_message *answer, pid_t pid,
    const struct spec *spec, struct spec_place *place, struct wp_cause *cause)
{
	int err = 0;

	if (answer->value[3] > (spec->allocator != NULL ? 2 :
	    spec->line != 0 || spec->follow || spec->all ? SPEC_MORE_MAX : 0) ||
	    (spec->allocator != NULL && (answer->value[3] != 2 ||
	    answer->value[4] > INT64_MAX)))
		return wp_cause_errno(cause, spec->text, EPROTO);
	place->nmore = (unsigned)answer->value[3];
	place->narrow = (answer->value[2] & PLACE_NARROW) != 0;
	for (unsigned i = 0; i < place->nmore && err == 0; i++) {
		const struct wp_region one = {
			.addr = answer->value[4 + i], .len = 1,
			.access = WP_EXEC,
		};

		place->more[i] = one.addr;
		err = spec->follow || spec->allocator != NULL ? 0 :
		    wp_target_mapped(pid, &one, cause);
	}
	return err;
}

/* Take the place, if it is valid. */
static int
take_place(const struct broker_message *answer, pid_t pid,
    const struct spec *spec, struct spec_place *place, struct wp_cause *cause)
{
	const uint64_t addr = answer->value[0], len = answer->value[1];
	/* whether the whole length fits is checked later */
	const struct wp_region begin = {
		.addr = addr, .len = 1,
		.access = spec->allocator != NULL ? WP_EXEC : spec->access,
	};
	int err = 0;

	if (len == 0 || len - 1 > UINT64_MAX - addr ||
	    (spec->len != 0 && len != spec->len) ||
	    (spec->access == WP_EXEC && len != 1) ||
	    (spec->symbol == NULL && spec->allocator == NULL &&
	    addr != spec->addr))
		return wp_cause_errno(cause, spec->text, EPROTO);
	place->local = answer->value[2] == PLACE_LOCAL;
	place->code = spec->access == WP_EXEC &&
	    (answer->value[2] & PLACE_CODE) != 0;
	if (place->local && (!spec->finds_local ||
	    answer->value[3] != 0))
		return wp_cause_errno(cause, spec->text, EPROTO);
	if ((spec->symbol != NULL || spec->allocator != NULL) &&
	    !place->local &&
	    (err = wp_target_mapped(pid, &begin, cause)) < 0)
		return err;
	place->addr = addr;
	place->len = len;
	place->base = place->local ? answer->value[4] : 0;
	if ((err = take_more(answer, pid, spec, place, cause)) < 0)
		return err;
	if ((answer->value[2] & (PLACE_NAMED | PLACE_LOCAL)) != 0 &&
	    (place->symbol = strdup(answer->text)) == NULL)
		err = wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	return err;
}

/* Some files could not be opened because there were no descriptors.  That is
   the likely reason, so similar names are not suggested. */
static void
say_starved(struct live_broker *live, struct wp_cause *cause)
{
	const char *why = ", but no descriptor was left to read all by: raise "
	    "the limit (ulimit -n)";
	const size_t room = sizeof(cause->text) - strlen(why) - 1;
	const char *near = strstr(cause->text, ", nearest: ");
	size_t len = near != NULL ? (size_t)(near - cause->text) :
	    strlen(cause->text);

	if (live->broker.answers.starved)
		(void)snprintf(cause->text + (len < room ? len : room),
		    strlen(why) + 1, "%s", why);
}

/* Why no explainer reads symbols.  What kept it from being started has a line
   of its own. */
static const char *
why_none(const struct broker *broker)
{
	if (broker->ran)
		return "reading symbols ends the process that does it; give an "
		    "address";
	return broker->deaths > 0 ? "watchctl-explain, which reads symbols, "
	    "does not run here: see watchctl doctor" : "watchctl-explain, "
	    "which reads symbols, was not started; give an address";
}

int
live_broker_resolve(struct live_broker *live, pid_t pid,
    const struct spec *spec,
    bool early, struct spec_place *place, struct wp_cause *cause)
{
	static const char lost[] = "symbols are not looked up any more";
	struct broker_message message = {
		.what = BROKER_RESOLVE,
		.value = {(uint64_t)pid, spec->access, (early ? BROKER_EARLY :
		    0) | (spec->unborn ? BROKER_UNBORN : 0) |
		    (spec->follow ? BROKER_FOLLOW : 0) |
		    (spec->finds_local ? BROKER_LOCAL : 0) |
		    (spec->all ? BROKER_ALL : 0), cause != NULL},
	};
	int err;

	*place = (struct spec_place){0};
	if ((err = put_spec(&message, spec)) < 0)
		return wp_cause_errno(cause, "a SPEC", -err);
	live->broker.answers.starved = false;
	err = broker_ask(&live->broker, &message, lost);
	if (err == -ECHILD) {
		(void)spec_refuse(spec, why_none(&live->broker), cause);
		if (cause != NULL)
			cause->err = ECHILD;
		return err;
	}
	if (err == 0)
		return take_place(&message, pid, spec, place, cause);
	(void)take_cause(&message, cause);
	if (err == -ENOENT && cause != NULL)
		say_starved(live, cause);
	return err;
}

uint64_t
live_broker_loader_hook(struct live_broker *live, pid_t pid)
{
	struct broker_message message = {
		.what = BROKER_LOADER_HOOK, .value = {(uint64_t)pid},
	};
	struct wp_region region = {.len = 1, .access = WP_EXEC};

	if (broker_ask(&live->broker, &message,
	    "libraries are not waited for") < 0)
		return 0;
	region.addr = message.value[0];
	return region.addr != 0 && wp_target_mapped(pid, &region, NULL) == 0 ?
	    region.addr : 0;
}

void
live_broker_modules(struct live_broker *live, pid_t pid, void (*fn)(void *,
    const char *, const char *), void *arg)
{
	for (uint64_t i = 0; i < MODULES_MAX; i++) {
		struct broker_message message = {
			.what = BROKER_MODULE, .value = {(uint64_t)pid, i},
		};
		const char *path;

		if (broker_ask(&live->broker, &message,
		    "build ids are left out") < 0)
			return;
		path = memchr(message.text, '\0', message.len);
		if (path != NULL && message.text[message.len - 1] == '\0' &&
		    path + 1 < message.text + message.len)
			fn(arg, path + 1, message.text);
	}
}
