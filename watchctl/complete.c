/*
 * complete: completes an unfinished word of a command line.
 *
 * The words are looked at from the left, by the table of options, to find out
 * what the unfinished one is; and further, since -w is about what -p or COMMAND
 * behind it says.  Symbols are read by an explainer, as for every SPEC.
 */
#include "complete.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/live_broker.h"
#include "os/array.h"
#include "processes/synthetic_records.h"
#include "processes/selected.h"
#include "option/option_table.h"
#include "option/options.h"
#include "util/buffer.h"
#include "util/executable.h"

/* s that symbols may take: a user does not wait longer for a completion. */
enum { PATIENCE = 2 };

/* A command line that is being typed. */
struct typed {
	const char *word;	/* the unfinished one */
	size_t begun;		/* what precedes its last part: "--each=",
				   "a," */
	const struct option_entry *option;	/* whose argument it is; NULL:
						   none's */
	bool first;		/* nothing precedes it */
	bool of_command;	/* it belongs to COMMAND */
	const char *doctor;	/* what may be there, behind doctor; NULL: it
				   is not */
	unsigned forms;		/* that it may have */
	const char *process;	/* -p; NULL: none */
	const char *program;	/* --exe or COMMAND; NULL: none */
	/* what the word may become, malloc'd: n of them */
	char **candidate;
	size_t n, cap;
};

/* --- what is typed --- */

static const struct option_entry *
by_letter(char letter, unsigned forms)
{
	const struct option_entry *e = option_table;

	while (e->help != NULL && (e->letter != letter ||
	    !option_is_for(e, forms)))
		e++;
	return e->help != NULL ? e : NULL;
}

static const struct option_entry *
by_name(const char *name, size_t len, unsigned forms)
{
	const struct option_entry *e = option_table;

	while (e->help != NULL && (e->name == NULL ||
	    !option_is_for(e, forms) || strlen(e->name) != len ||
	    memcmp(e->name, name, len) != 0))
		e++;
	return e->help != NULL ? e : NULL;
}

/* The option of a word whose argument comes with it or in the next one; or
   NULL.  *argument: where it begins in this word, 0: in the next. */
static const struct option_entry *
taking_option(const char *word, unsigned forms, size_t *argument)
{
	const struct option_entry *e;
	size_t len;

	*argument = 0;
	if (word[1] == '-') {
		len = strcspn(word + 2, "=");
		e = by_name(word + 2, len, forms);
		if (word[2 + len] == '=')
			*argument = 2 + len + 1;
		return e != NULL && (*argument > 0 ? e->argument != NULL :
		    option_takes(e) == required_argument) ? e : NULL;
	}
	for (size_t i = 1; word[i] != '\0'; i++) {
		e = by_letter(word[i], forms);
		if (e == NULL || e->argument == NULL)
			continue;
		*argument = word[i + 1] == '\0' ? 0 : i + 1;
		return e;
	}
	return NULL;
}

static void
note_option(struct typed *typed, const char *word,
    const struct option_entry *e, const char *argument)
{
	if (strcmp(word, "--inside") == 0)
		typed->forms = OPTION_INSIDE;
	if (strcmp(word, "--heap") == 0 || strncmp(word, "--heap=", 7) == 0)
		typed->forms = OPTION_HEAP;
	if (strcmp(word, "--all-cpus") == 0)
		typed->forms = OPTION_ATTACH;
	if (e == NULL || argument == NULL)
		return;
	if (e->letter == 'p')
		typed->process = argument;
	else if (e->value == OPT_EXE)
		typed->program = argument;
	else if (e->value != OPT_CGROUP)
		return;
	typed->forms = OPTION_ATTACH;
}

/* COMMAND begins at i; the unfinished word may belong to it. */
static void
note_command(struct typed *typed, int i, int n, char **word, int index)
{
	typed->of_command = index >= i;
	if (i < n && i != index)
		typed->program = word[i];
}

static void
look(struct typed *typed, int n, char **word, int index)
{
	const struct option_entry *e;
	const char *argument;
	size_t at;

	for (int i = 0; i < n; i++) {
		if (i != index && strcmp(word[i], "--") == 0) {
			note_command(typed, i + 1, n, word, index);
			return;
		}
		if (i != index && word[i][0] != '-') {
			if (typed->forms == OPTION_REPORT)
				continue;
			note_command(typed, i, n, word, index);
			return;
		}
		if (word[i][0] != '-')
			continue;
		e = taking_option(word[i], typed->forms, &at);
		argument = e == NULL ? NULL : at > 0 ? word[i] + at :
		    i + 1 < n ? word[i + 1] : NULL;
		if (e != NULL && (i == index ? at > 0 :
		    at == 0 && i + 1 == index)) {
			typed->option = e;
			typed->begun = at;
		} else if (i != index)
			note_option(typed, word[i], e, argument);
		if (e != NULL && at == 0 && i != index)
			i++;
	}
}

static void
look_at_all(struct typed *typed, int n, char **word, int index)
{
	const char *name = n == 0 ? "" : strrchr(word[0], '/') == NULL ?
	    word[0] : strrchr(word[0], '/') + 1;
	bool report;

	typed->word = index < n ? word[index] : "";
	if (index > 0 && strcmp(name, "watchctl") == 0)
		word++, n--, index--;
	typed->first = index == 0;
	if (index > 0 && strcmp(word[0], "doctor") == 0) {
		typed->doctor = strcmp(word[index - 1], "-o") == 0 ?
		    "json text" : "-o";
		return;
	}
	report = index > 0 && strcmp(word[0], "report") == 0;
	typed->forms = report ? OPTION_REPORT :
	    OPTION_ATTACH | OPTION_COMMAND | OPTION_INSIDE | OPTION_HEAP;
	if (report)
		word++, n--, index--;
	look(typed, n, word, index);
}

/* --- candidates --- */

/* Whether no shell interprets any character of the text.  Names are chosen by
   whoever runs a process or makes a file. */
static bool
is_plain(const char *text)
{
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:,+@/")] == '\0';
}

static void
offer(struct typed *typed, const char *text)
{
	const char *sought = typed->word + typed->begun;

	if (strncmp(text, sought, strlen(sought)) == 0 &&
	    WP_ARRAY_ROOM(typed, candidate) == 0 &&
	    asprintf(&typed->candidate[typed->n], "%.*s%s", (int)typed->begun,
	    typed->word, text) >= 0)
		typed->n++;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Write each once. */
static void
write_all(struct typed *typed)
{
	if (typed->n > 0)
		qsort(typed->candidate, typed->n, sizeof(*typed->candidate),
		    compare);
	for (size_t i = 0; i < typed->n; i++)
		if (i == 0 || strcmp(typed->candidate[i - 1],
		    typed->candidate[i]) != 0)
			(void)puts(typed->candidate[i]);
	(void)fflush(stdout);
	for (size_t i = 0; i < typed->n; i++)
		free(typed->candidate[i]);
	free(typed->candidate);
}

static void
offer_words(struct typed *typed, const char *words)
{
	for (size_t n; *words != '\0'; words += n + (words[n] == ' ')) {
		char word[32];

		n = strcspn(words, " ");
		(void)snprintf(word, sizeof(word), "%.*s", (int)n, words);
		offer(typed, word);
	}
}

static void
offer_options(struct typed *typed)
{
	char text[40];

	for (const struct option_entry *e = option_table; e->help != NULL;
	    e++) {
		if (!option_is_for(e, typed->forms))
			continue;
		if (e->letter != '\0' && e->name == NULL) {
			(void)snprintf(text, sizeof(text), "-%c", e->letter);
			offer(typed, text);
		}
		if (e->name != NULL) {
			(void)snprintf(text, sizeof(text), "--%s", e->name);
			offer(typed, text);
		}
	}
}

/* Offer a name, unless -p would take it for something else. */
static void
offer_process(void *arg, const char *name)
{
	if (*name != '@' && strchr(name, ',') == NULL &&
	    name[strspn(name, "0123456789")] != '\0' && is_plain(name))
		offer(arg, name);
}

/* Complete the last element of a list. */
static void
offer_processes(struct typed *typed)
{
	const char *comma = strrchr(typed->word + typed->begun, ',');

	if (comma != NULL)
		typed->begun = (size_t)(comma + 1 - typed->word);
	selected_names(offer_process, typed);
	if (typed->word[typed->begun] == '@')
		offer(typed, "@CHILDREN:");
}

/* --- symbols --- */

/* Offer the symbols in a piece of an explainer's answer, which may contain
   anything. */
static void
offer_symbols(struct typed *typed, struct buffer *found)
{
	const size_t begun = typed->begun;
	const char *bang = strrchr(typed->word + begun, '!');
	char *at = NULL;

	if (bang != NULL)
		typed->begun = (size_t)(bang + 1 - typed->word);
	buffer_put(found, "", 1);
	for (char *line = found->failed ? NULL :
	    strtok_r((char *)found->bytes, "\n", &at); line != NULL;
	    line = strtok_r(NULL, "\n", &at))
		if (is_plain(line))
			offer(typed, line);
	typed->begun = begun;
}

/* Offer the symbols of a process or, if pid is 0, of a file.  The answer comes
   in pieces. */
static void
ask_for_symbols(struct typed *typed, struct broker *broker, pid_t pid,
    const char *path)
{
	struct broker_message message = {.value = {0}};
	uint64_t from = 0;

	broker->patience = PATIENCE;
	do {
		struct buffer found = {0};
		const int n = snprintf(message.text, sizeof(message.text),
		    "%s%c%s", path, '\0', typed->word + typed->begun);

		if (n < 0 || (size_t)n >= sizeof(message.text))
			return;
		message.what = BROKER_SYMBOLS;
		message.len = (uint32_t)n + 1;
		message.value[0] = (uint64_t)pid;
		message.value[1] = (uint64_t)typed->option->letter;
		message.value[2] = from;
		if (broker_ask(broker, &message, NULL) < 0)
			return;
		if (message.value[0] == 0 ||
		    !broker_take_text(broker, message.value[0], &found))
			message.value[1] = 0;
		else
			offer_symbols(typed, &found);
		buffer_free(&found);
		if (message.value[1] <= from)
			return;
		from = message.value[1];
	} while (from != 0);
}

static void
offer_symbols_of_file(struct typed *typed, const char *path)
{
	char what[] = "log", *argv[] = {what, NULL};
	struct broker broker = {.argv = argv, .answers.no_cache = true};

	ask_for_symbols(typed, &broker, 0, path);
	broker_close(&broker);
}

static void
offer_symbols_of_process(struct typed *typed, pid_t pid)
{
	struct synthetic_records records = {0};
	struct live_broker live = {.argv = NULL};

	live_broker_make(&live, 0, NULL);
	live.broker.answers.no_cache = true;
	if (synthetic_records_take(&records, pid) == 0 &&
	    live_broker_learn(&live, pid, records.bytes, records.len, 0) == 0)
		ask_for_symbols(typed, &live.broker, pid, "");
	synthetic_records_free(&records);
	live_broker_close(&live);
}

/* The first process that -p means; 0: none. */
static pid_t
first_process(const char *text)
{
	char name[] = "watchctl", option[] = "-p", watch[] = "-w0:1";
	char *argument = strdup(text);
	char *argv[] = {name, watch, option, argument, NULL};
	struct options options = {0};
	struct selected chosen = {0};
	pid_t pid = 0;

	if (argument != NULL && options_parse(4, argv, &options) == 0 &&
	    selected_find(&chosen, &options, NULL, NULL) == 0 && chosen.n > 0)
		pid = chosen.pid[0];
	free(chosen.pid);
	options_free(&options);
	free(argument);
	return pid;
}

static void
offer_symbols_of_all(struct typed *typed)
{
	const pid_t pid = typed->process != NULL ?
	    first_process(typed->process) : 0;
	char found[PATH_MAX], path[PATH_MAX];

	if (pid != 0)
		offer_symbols_of_process(typed, pid);
	else if (typed->program != NULL &&
	    executable_find(typed->program, found) == 0 &&
	    realpath(found, path) != NULL)
		offer_symbols_of_file(typed, path);
}

/* --- */

static void
offer_all(struct typed *typed)
{
	const char *argument = typed->option != NULL ?
	    typed->option->argument : "";

	if (typed->of_command)
		return;
	if (typed->doctor != NULL) {
		offer_words(typed, typed->doctor);
	} else if (typed->option != NULL && typed->option->words != NULL) {
		offer_words(typed, typed->option->words);
	} else if (strcmp(argument, "PID") == 0) {
		offer_processes(typed);
	} else if (strcmp(argument, "SPEC") == 0) {
		offer_symbols_of_all(typed);
	} else if (typed->option == NULL) {
		if (typed->first)
			offer_words(typed, "report doctor");
		if (typed->word[0] == '-' || typed->process != NULL)
			offer_options(typed);
	}
}

int
complete(const char *index, int n, char **word)
{
	char *end;
	const long at = strtol(index, &end, 10);
	const int silent = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct typed typed = {.word = NULL};

	if (silent < 0 || dup2(silent, STDERR_FILENO) < 0 || *end != '\0' ||
	    at < 0 || at > n)
		return 0;
	/* a server takes longer than anybody waits */
	(void)unsetenv("DEBUGINFOD_URLS");
	look_at_all(&typed, n, word, (int)at);
	offer_all(&typed);
	write_all(&typed);
	return 0;
}
