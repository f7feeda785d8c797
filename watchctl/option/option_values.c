/* option_values: the arguments of options. */
#include "option/option_values.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "os/cause.h"
#include "os/counter.h"
#include "util/nearest.h"
#include "option/option_table.h"
#include "util/complain.h"
#include "util/origin.h"

enum { STACK_MAX = 65528 - 1024 };

/* The limits of the memory of the explainer: what starting takes, and more than
   any machine has; bytes. */
#define MEMORY_MIN ((uint64_t)32 << 20)
#define MEMORY_MAX ((uint64_t)1 << 40)
/* The same for records that wait to be explained. */
#define BUFFER_MIN ((uint64_t)2 << 20)

/* A number up to max, which is less than UINT64_MAX. */
static int
parse_number(const char *option, const char *text, uint64_t max,
    uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || *value == 0 ||
	    *value > max)
		return complain("%s '%s': not a whole number from 1 to %llu",
		    option, text, (unsigned long long)max);
	return 0;
}

static int
parse_runs(const char *text, uint64_t *runs)
{
	enum { MOST = 1000 };
	char *end;

	*runs = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || *runs > MOST)
		return complain("--heap-runs '%s': not a whole number from 0 "
		    "to %d", text, MOST);
	return 0;
}

static int
parse_heap(const char *text, enum heap_way *way)
{
	*way = text == NULL ? HEAP_RERUN : HEAP_SAMPLE;
	return text == NULL || strcmp(text, "sample") == 0 ? 0 :
	    complain("--heap=%s: there is --heap, which runs the command "
	    "again, and --heap=sample", text);
}

static int
parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	if (*end != '\0' || !(*seconds > 0) || *seconds > 1e9)
		return complain("-t '%s': not a time; give seconds, such as "
		    "10 or 0.5", text);
	return 0;
}

static int
parse_stack(const char *text, uint32_t *stack)
{
	uint64_t value;
	int err = parse_number("--stack", text, STACK_MAX, &value);

	*stack = ((uint32_t)value + 7) & ~7u;
	return err;
}

/* Parse a number of bytes, or of K, M or G. */
static int
parse_memory(const char *option, const char *text, uint64_t least,
    uint64_t *bytes)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;
	int shift = 0;

	*bytes = strtoull(text, &end, 10);
	if (*end != '\0' && (unit = strchr(units, *end)) != NULL) {
		shift = 10 * (int)(unit + 1 - units);
		end++;
	}
	if (*text < '0' || *text > '9' || *end != '\0' ||
	    *bytes > (MEMORY_MAX >> shift) || *bytes << shift < least)
		return complain("%s '%s': not a size from %uM to 1024G",
		    option, text, (unsigned)(least >> 20));
	*bytes <<= shift;
	return 0;
}

static int
parse_delivery(const char *text, enum delivery *delivery)
{
	*delivery = strcmp(text, "bpf") == 0 ? DELIVERY_BPF : DELIVERY_RING;
	return *delivery == DELIVERY_BPF || strcmp(text, "ring") == 0 ? 0 :
	    complain("--delivery '%s': no such way; there are bpf and ring",
	    text);
}

static int
parse_form(const char *text, enum form *form)
{
	static const char *const names[] = {
		[FORM_TEXT] = "text", [FORM_JSON] = "json",
		[FORM_FOLDED] = "folded", [FORM_PERF] = "perf",
		[FORM_SUMMARY] = "summary",
		[FORM_SUMMARY_JSON] = "summary,json", [FORM_GCC] = "gcc",
		[FORM_TRACE] = "trace", [FORM_HTML] = "html",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*form = (enum form)i;
			return 0;
		}
	}
	return complain("-o '%s': no such form; there are text, json, folded, "
	    "summary, 'summary,json', html, gcc, trace and perf", text);
}

/* Add one counter of the list. */
static int
add_counter(const char *word, uint32_t *with)
{
	struct buffer near_names = {0};
	struct nearest near;

	for (unsigned i = 0; i < WP_COUNTERS; i++)
		if (strcmp(word, wp_counter_name(i)) == 0) {
			*with |= 1u << i;
			return 0;
		}
	nearest_begin(&near, word);
	for (unsigned i = 0; i < WP_COUNTERS; i++)
		nearest_offer(&near, wp_counter_name(i));
	nearest_put(&near, &near_names);
	(void)complain("--with '%s': no such counter%s%s; watchctl(1) has the "
	    "list of them", word, near.n > 0 ? ", nearest: " : "",
	    buffer_text(&near_names));
	nearest_free(&near);
	buffer_free(&near_names);
	return -EINVAL;
}

static int
parse_with(const char *text, uint32_t *with)
{
	char *words = strdup(text), *rest = words, *word;
	int err = 0;

	if (words == NULL)
		return complain("out of memory");
	while (err == 0 && (word = strsep(&rest, ",")) != NULL)
		err = add_counter(word, with);
	free(words);
	return err;
}

/* Parse the only word that an option accepts. */
static int
parse_word(int option, const char *text, const char *without, bool *is)
{
	const char *name = option_called(option);
	const char *word = option_of(option)->words;

	*is = strcmp(text, word) == 0;
	return *is ? 0 : complain("%s '%s': there is only %s; without the "
	    "option %s", name, text, word, without);
}

int
option_add_spec(struct options *o, enum wp_access access, const char *text,
    struct wp_cause *cause)
{
	struct spec *more = realloc(o->spec, (o->nspecs + 1) * sizeof(*more));
	int err;

	if (more == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY), -ENOMEM;
	o->spec = more;
	if ((err = spec_parse(text, access, &o->spec[o->nspecs], cause)) < 0)
		return err;
	o->nspecs++;
	return 0;
}

static int
add_spec(struct options *o, enum wp_access access, const char *text)
{
	struct wp_cause cause;

	return option_add_spec(o, access, text, &cause) < 0 ?
	    complain("%s", cause.text) : 0;
}

static int
add_pid(struct options *o, const char *text)
{
	uint64_t value;
	int err = parse_number("-p", text, INT_MAX, &value);
	pid_t *more;

	if (err < 0)
		return err;
	for (size_t i = 0; i < o->npids; i++)
		if (o->pid[i] == (pid_t)value)
			return complain("-p %s is given twice", text);
	if ((more = realloc(o->pid, (o->npids + 1) * sizeof(*more))) == NULL)
		return complain("out of memory");
	o->pid = more;
	o->pid[o->npids++] = (pid_t)value;
	return 0;
}

/* The prefix of a process id if the descendants of the process are meant. */
static const char children_of[] = "@CHILDREN:";

pid_t
options_children_of(const char *name)
{
	const size_t len = sizeof(children_of) - 1;

	return strncmp(name, children_of, len) == 0 ?
	    (pid_t)strtol(name + len, NULL, 10) : 0;
}

/* Add a name, which the options own from then on. */
static int
add_name(struct options *o, char *name)
{
	const size_t len = sizeof(children_of) - 1;
	char **more;
	uint64_t pid;

	if (*name == '@' && strncmp(name, children_of, len) != 0) {
		(void)complain("-p '%s': after @ there is only @CHILDREN:PID, "
		    "a process and all that descend from it", name);
	} else if (*name != '@' || parse_number("-p @CHILDREN:PID", name + len,
	    INT_MAX, &pid) == 0) {
		more = reallocarray(o->name, o->nnames + 1, sizeof(*more));
		if (more != NULL) {
			o->name = more;
			o->name[o->nnames++] = name;
			return 0;
		}
		(void)complain("out of memory");
	}
	free(name);
	return -EINVAL;
}

/* Add a list of processes.  Numbers may be separated as pidof(1) and pgrep(1)
   print them; names may contain blanks. */
static int
add_pids(struct options *o, const char *text)
{
	static const char digits[] = "0123456789, \t\n";
	const char *apart = text[strspn(text, digits)] == '\0' ?
	    digits + 10 : ",\n";
	int err;

	do {
		size_t before = strspn(text, apart);
		size_t len = strcspn(text + before, apart);
		char *word = strndup(text + before, len);

		if (word == NULL)
			return complain("out of memory");
		if (word[strspn(word, "0123456789")] == '\0') {
			err = add_pid(o, word);
			free(word);
		} else
			err = add_name(o, word);
		text += before + len;
		text += strspn(text, apart);
	} while (err == 0 && *text != '\0');
	return err;
}

static int
add_allow(struct options *o, const char *pattern)
{
	const char **more;

	if (*pattern == '\0')
		return complain("--allow '': matches nothing; give a function "
		    "or a source file");
	more = realloc(o->allow, (o->nallow + 1) * sizeof(*more));
	if (more == NULL)
		return complain("out of memory");
	o->allow = more;
	o->allow[o->nallow++] = pattern;
	return 0;
}

/* Check the name of a function; it is parsed again when it is looked up. */
static int
add_free_function(struct options *o, const char *name)
{
	struct wp_cause cause;
	struct spec spec;
	int err = spec_parse(name, WP_EXEC, &spec, &cause);
	const bool good = err == 0 && spec.symbol != NULL && spec.line == 0 &&
	    !spec.has_off;

	if (err < 0)
		return complain("--free-function: %s", cause.text);
	spec_free(&spec);
	if (!good)
		return complain("--free-function %s: give the name of a "
		    "function", name);
	if (o->nfree_functions == FREE_FUNCTIONS_MAX)
		return complain("--free-function %s: at most %u are looked at",
		    name, (unsigned)FREE_FUNCTIONS_MAX);
	o->free_function[o->nfree_functions++] = name;
	return 0;
}

static int
add_condition(const char *option, const char *text,
    struct condition *condition)
{
	struct condition_error error;
	int err;

	if (condition->root != NULL)
		return complain("%s is given twice: join the conditions by %s",
		    option, strcmp(option, "--if") == 0 ? "&&" : "||");
	err = condition_parse(text, condition, &error);
	condition->option = option;
	if (err == -ENOMEM)
		return complain("out of memory");
	return err == 0 ? 0 : complain("%s '%s': %s (column %u)", option, text,
	    error.text, error.column);
}

static int
set_once(const char *option, const char **path, const char *text)
{
	if (*path != NULL)
		return complain("%s is given twice: one file at a time",
		    option);
	if (*text == '\0')
		return complain("%s '': name a file", option);
	*path = text;
	return 0;
}

static int
parse_status(const char *text, int *status)
{
	uint64_t value;
	int err = parse_number("--error-exitcode", text, 255, &value);

	*status = (int)value;
	return err;
}

static int
set_cgroup(struct options *o, const char *path)
{
	if (o->cgroup != NULL)
		return complain("--cgroup is given twice: one group at a time, "
		    "which has those below it");
	o->cgroup = path;
	return 0;
}

static int
set_exe(struct options *o, const char *path)
{
	if (o->exe != NULL)
		return complain("--exe is given twice: one executable at a "
		    "time");
	o->exe = path;
	return 0;
}

static int
set_output(struct options *o, const char *name)
{
	o->to_stdout = strcmp(name, "-") == 0;
	o->output = o->to_stdout ? NULL : name;
	return origin_name_check(name);
}

/* Options that set a member of struct options, each to no more than its
   argument: true; a number, at most `limit'; a size, at least that; true by a
   word, and what there is without it; a file's name. */
enum kind { FLAG, NUMBER, SIZE, WORD, PATH };

static const struct setting {
	int option;
	enum kind kind;
	size_t at;
	uint64_t limit;
	const char *without;
} settings[] = {
#define AT(member)	offsetof(struct options, member)
	{'f', FLAG, AT(follow)}, {'v', FLAG, AT(verbose)},
	{OPT_COUNT, FLAG, AT(count)}, {OPT_USER_ONLY, FLAG, AT(user_only)},
	{OPT_ALL_CPUS, FLAG, AT(all_cpus)},
	{OPT_CHANGED, FLAG, AT(changed)}, {OPT_ONCE, FLAG, AT(once)},
	{OPT_TOP, FLAG, AT(top)}, {OPT_INSIDE, FLAG, AT(inside)},
	{OPT_STOP, FLAG, AT(stop)}, {OPT_FOLLOW, FLAG, AT(follow_pointers)},
	{OPT_AFTER_FREE, FLAG, AT(after_free)},
	{OPT_NO_ASLR, FLAG, AT(no_aslr)},
	{OPT_NO_CACHE, FLAG, AT(no_cache)},
	{'n', NUMBER, AT(limit), UINT64_MAX / 2},
	{OPT_EVERY, NUMBER, AT(every), UINT64_MAX / 2},
	{OPT_EACH, NUMBER, AT(each), UINT64_MAX / 2},
	{OPT_MAX_RATE, NUMBER, AT(max_rate), UINT64_MAX / 2},
	{OPT_LAST, NUMBER, AT(last), UINT32_MAX},
	{OPT_EXPLAIN_MEMORY, SIZE, AT(explain_memory), MEMORY_MIN},
	{OPT_HEAP_QUARANTINE, SIZE, AT(quarantine), 0},
	{OPT_BUFFER, SIZE, AT(buffer), BUFFER_MIN},
	{OPT_STACKS, WORD, AT(stacks_once), 0,
	    "each hit has its whole backtrace"},
	{OPT_IF_MISSING, WORD, AT(skip_missing), 0,
	    "a name that is not there is an error"},
	{OPT_SLOTS, WORD, AT(rotate), 0,
	    "what is wider than the slots is an error"},
	{OPT_POLICY, PATH, AT(policy_path)},
	{OPT_JUNIT, PATH, AT(side[SIDE_JUNIT])},
	{OPT_SARIF, PATH, AT(side[SIDE_SARIF])},
	{OPT_LEARN, PATH, AT(side[SIDE_LEARN])},
#undef AT
};

static int
set(struct options *o, const struct setting *s, const char *text)
{
	const char *name = option_called(s->option);
	void *at = (char *)o + s->at;

	switch (s->kind) {
	case FLAG:
		*(bool *)at = true;
		return 0;
	case NUMBER:
		return parse_number(name, text, s->limit, at);
	case SIZE:
		return parse_memory(name, text, s->limit, at);
	case WORD:
		return parse_word(s->option, text, s->without, at);
	default:	/* PATH */
		return set_once(name, at, text);
	}
}

int
option_set(struct options *o, int option, const char *text)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].option == option)
			return set(o, &settings[i], text);
	switch (option) {
	case 'p':
		return add_pids(o, text);
	case 't':
		return parse_seconds(text, &o->seconds);
	case 'o':
		return parse_form(text, &o->form);
	case 'O':
		return set_output(o, text);
	case OPT_IF:
		return add_condition("--if", text, &o->condition);
	case OPT_UNTIL:
		return add_condition("--until", text, &o->until);
	case OPT_WITH:
		return parse_with(text, &o->with);
	case OPT_ON_HIT:
		o->stop = true;
		return on_hit_parse(text, &o->on_hit);
	case OPT_EXE:
		return set_exe(o, text);
	case OPT_CGROUP:
		return set_cgroup(o, text);
	case OPT_STACK:
		return parse_stack(text, &o->stack);
	case OPT_HEAP:
		return parse_heap(text, &o->heap);
	case OPT_HEAP_RUNS:
		return parse_runs(text, &o->heap_runs);
	case OPT_DELIVERY:
		return parse_delivery(text, &o->delivery);
	case OPT_ALLOW:
		return add_allow(o, text);
	case OPT_FREE_FUNCTION:
		return add_free_function(o, text);
	case OPT_ERROR_EXITCODE:
		return parse_status(text, &o->error_status);
	case OPT_GITHUB:
		o->side[SIDE_GITHUB] = "";
		return 0;
	default:	/* -w, -r, -a, -x */
		return add_spec(o, (enum wp_access)option, text);
	}
}
