/* options: parses the command line. */
#include "spec/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/attr.h"
#include "os/counter.h"
#include "util/complain.h"
#include "util/origin.h"
#include "spec/nearest.h"
#include "spec/option_table.h"

/* Bytes of stack that are copied without --stack: some thirty frames of usual
   code; and where it matters whether one of the callers is allowed. */
enum { STACK_USUAL = 4096, STACK_JUDGED = 16384, STACK_MAX = 65528 - 1024 };

/* Bytes of samples that wait in the explainer: half of what it shares; what one
   takes at most beside the stack; and so many at most, since the numbers of samples
   are used again. */
enum { HELD = 8 << 20, HELD_REST = 1024, HELD_MAX = 2000 };

/* Bytes for the process that explains: what starting takes, and more than there
   is. */
#define MEMORY_MIN ((uint64_t)32 << 20)
#define MEMORY_MAX ((uint64_t)1 << 40)
/* The same for records that wait to be explained. */
#define BUFFER_MIN ((uint64_t)2 << 20)

const char *
options_side_name(enum side side)
{
	static const char *const names[] = {
		[SIDE_JUNIT] = "--junit", [SIDE_SARIF] = "--sarif",
		[SIDE_GITHUB] = "--github", [SIDE_LEARN] = "--learn",
	};

	return names[side];
}

/* What the command alone prints. */
static const char examples[] =
"watchctl reports who touches the memory of a running program, for example:\n"
"  watchctl -w counter -p redis-server             in running processes\n"
"  watchctl -w 'config.limit' -n 1 -- ./server     the first write of a command\n"
"  watchctl -w balance --if 'new < 0' --on-hit pause -- ./bank\n"
"  watchctl -w table --allow table_load --error-exitcode 66 -- ./tests\n"
"  watchctl doctor                                 what works here, and why not\n"
"See watchctl --help for the options, watchctl(1) for all else.\n";

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

/* Bytes, or with K, M or G behind them so many times 1024. */
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

static const char *const form_names[] = {
	[FORM_TEXT] = "text", [FORM_JSON] = "json",
	[FORM_FOLDED] = "folded", [FORM_PERF] = "perf",
	[FORM_SUMMARY] = "summary", [FORM_SUMMARY_JSON] = "summary,json",
	[FORM_GCC] = "gcc", [FORM_TRACE] = "trace",
	[FORM_HTML] = "html",
};

/* For messages: what is said of a summary is said of both forms of it. */
static const char *
form_name(const struct options *o)
{
	return form_names[o->form == FORM_SUMMARY_JSON ? FORM_SUMMARY :
	    o->form];
}

static int
parse_form(const char *text, enum form *form)
{
	for (size_t i = 0; i < sizeof(form_names) / sizeof(*form_names); i++) {
		if (strcmp(text, form_names[i]) == 0) {
			*form = (enum form)i;
			return 0;
		}
	}
	return complain("-o '%s': no such form; there are text, json, folded, "
	    "summary, 'summary,json', html, gcc, trace and perf", text);
}

/* One of a list. */
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

static int
parse_stacks(const char *text, bool *once)
{
	*once = strcmp(text, "once") == 0;
	return *once ? 0 : complain("--stacks '%s': there is only once; "
	    "without the option each hit has its whole backtrace", text);
}

static int
parse_missing(const char *text, bool *skip)
{
	*skip = strcmp(text, "skip") == 0;
	return *skip ? 0 : complain("--if-missing '%s': there is only skip; "
	    "without the option a name that is not there is an error", text);
}

static int
parse_slots(const char *text, bool *rotate)
{
	*rotate = strcmp(text, "rotate") == 0;
	return *rotate ? 0 : complain("--slots '%s': there is only rotate; "
	    "without the option what is wider than the slots is an error",
	    text);
}

static int
add_parsed(struct options *o, enum wp_access access, const char *text,
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

	return add_parsed(o, access, text, &cause) < 0 ?
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

/* What stands before the process whose descendants are meant. */
static const char children_of[] = "@CHILDREN:";

pid_t
options_children_of(const char *name)
{
	const size_t len = sizeof(children_of) - 1;

	return strncmp(name, children_of, len) == 0 ?
	    (pid_t)strtol(name + len, NULL, 10) : 0;
}

/* Takes over the name. */
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

/* A list.  One of numbers is as pidof(1) and pgrep(1) print it; names may have
   blanks in them. */
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
set_side(struct options *o, enum side side, const char *path)
{
	return set_once(options_side_name(side), &o->side[side], path);
}

static int
parse_status(const char *text, int *status)
{
	uint64_t value;
	int err = parse_number("--error-exitcode", text, 255, &value);

	*status = (int)value;
	return err;
}

/* There is no such option: which may be meant? */
static int
unknown_option(const char *name, const struct option *names)
{
	struct buffer near_names = {0};
	struct nearest near;

	nearest_begin(&near, name);
	for (; name[1] == '-' && names->name != NULL; names++) {
		char known[32];

		(void)snprintf(known, sizeof(known), "--%s", names->name);
		nearest_offer(&near, known);
	}
	nearest_put(&near, &near_names);
	(void)complain("no option %s%s%s; see watchctl --help", name,
	    near.n > 0 ? ", nearest: " : "", buffer_text(&near_names));
	nearest_free(&near);
	buffer_free(&near_names);
	return -EINVAL;
}

/* getopt's '?' and ':' in words. */
static int
bad_option(int c, char **argv, const struct option *names)
{
	char letter[3] = {'-', (char)optopt, '\0'};
	const char *name = optopt != 0 && optopt < 256 ? letter :
	    argv[optind - 1];

	if (c == ':')
		return complain("%s needs an argument; see watchctl --help",
		    name);
	if (optopt >= 256)
		return complain("%s: that option takes no argument; see "
		    "watchctl --help", name);
	return unknown_option(name, names);
}

/* Result: 1, there is nothing else to do; -EINVAL when it cannot be written. */
static int
said(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 1;
	return complain("standard output: %s", strerror(errno));
}

static int
option(struct options *o, int c)
{
	switch (c) {
	case WP_WRITE:
	case WP_READ:
	case WP_ACCESS:
	case WP_EXEC:
		return add_spec(o, (enum wp_access)c, optarg);
	case 'p':
		return add_pids(o, optarg);
	case 'f':
		o->follow = true;
		return 0;
	case 'n':
		return parse_number("-n", optarg, UINT64_MAX / 2, &o->limit);
	case 't':
		return parse_seconds(optarg, &o->seconds);
	case 'o':
		return parse_form(optarg, &o->form);
	case 'O':
		o->to_stdout = strcmp(optarg, "-") == 0;
		o->output = o->to_stdout ? NULL : optarg;
		return origin_name_check(optarg);
	case 'v':
		o->verbose = true;
		return 0;
	case OPT_COUNT:
		o->count = true;
		return 0;
	case OPT_USER_ONLY:
		o->user_only = true;
		return 0;
	case OPT_CHANGED:
		o->changed = true;
		return 0;
	case OPT_IF:
		return add_condition("--if", optarg, &o->condition);
	case OPT_EVERY:
		return parse_number("--every", optarg, UINT64_MAX / 2,
		    &o->every);
	case OPT_EACH:
		return parse_number("--each", optarg, UINT64_MAX / 2,
		    &o->each);
	case OPT_MAX_RATE:
		return parse_number("--max-rate", optarg, UINT64_MAX / 2,
		    &o->max_rate);
	case OPT_ONCE:
		o->once = true;
		return 0;
	case OPT_TOP:
		o->top = true;
		return 0;
	case OPT_LAST:
		return parse_number("--last", optarg, UINT32_MAX, &o->last);
	case OPT_UNTIL:
		return add_condition("--until", optarg, &o->until);
	case OPT_WITH:
		return parse_with(optarg, &o->with);
	case OPT_INSIDE:
		o->inside = true;
		return 0;
	case OPT_STOP:
		o->stop = true;
		return 0;
	case OPT_ON_HIT:
		o->stop = true;
		return on_hit_parse(optarg, &o->on_hit);
	case OPT_FOLLOW:
		o->follow_pointers = true;
		return 0;
	case OPT_SLOTS:
		return parse_slots(optarg, &o->rotate);
	case OPT_EXE:
		if (o->exe != NULL)
			return complain("--exe is given twice: one executable "
			    "at a time");
		o->exe = optarg;
		o->follow = true;	/* what it forks executes it, too */
		return 0;
	case OPT_NO_ASLR:
		o->no_aslr = true;
		return 0;
	case OPT_IF_MISSING:
		return parse_missing(optarg, &o->skip_missing);
	case OPT_STACK:
		return parse_stack(optarg, &o->stack);
	case OPT_EXPLAIN_MEMORY:
		return parse_memory("--explain-memory", optarg, MEMORY_MIN,
		    &o->explain_memory);
	case OPT_HEAP:
		o->heap = true;
		return 0;
	case OPT_HEAP_QUARANTINE:
		return parse_memory("--heap-quarantine", optarg, 0,
		    &o->quarantine);
	case OPT_BUFFER:
		return parse_memory("--buffer", optarg, BUFFER_MIN,
		    &o->buffer);
	case OPT_DELIVERY:
		return parse_delivery(optarg, &o->delivery);
	case OPT_NO_CACHE:
		o->no_cache = true;
		return 0;
	case OPT_STACKS:
		return parse_stacks(optarg, &o->stacks_once);
	case OPT_ALLOW:
		return add_allow(o, optarg);
	case OPT_ERROR_EXITCODE:
		return parse_status(optarg, &o->error_status);
	case OPT_POLICY:
		return set_once("--policy", &o->policy_path, optarg);
	case OPT_JUNIT:
		return set_side(o, SIDE_JUNIT, optarg);
	case OPT_SARIF:
		return set_side(o, SIDE_SARIF, optarg);
	case OPT_LEARN:
		return set_side(o, SIDE_LEARN, optarg);
	case OPT_GITHUB:
		o->side[SIDE_GITHUB] = "";
		return 0;
	case 'h':
	case OPT_HELP:
		option_help(stdout);
		return said();
	default:	/* 'V', OPT_VERSION */
		(void)puts("watchctl " VERSION);
		return said();
	}
}

static int
each_option(int argc, char **argv, const struct option_names *known,
    struct options *o)
{
	int c, err;

	*o = (struct options){.argv = argv, .quarantine = QUARANTINE_NONE};
	optind = 0;	/* begins anew, also after an error */
	opterr = 0;
	while ((c = getopt_long(argc, argv, known->letters, known->names,
	    NULL)) != -1)
		if ((err = c == '?' || c == ':' ?
		    bad_option(c, argv, known->names) : option(o, c)) != 0)
			return err;
	if (o->stack == 0)
		o->stack = options_judge(o) || o->side[SIDE_LEARN] != NULL ?
		    STACK_JUDGED : STACK_USUAL;
	return o->policy_path == NULL ? 0 :
	    policy_file_read(&o->policy, o->policy_path);
}

/* What a policy watches is watched, unless -w and the like do that already. */
static int
add_policy_specs(struct options *o)
{
	const struct policy_file *f = &o->policy;
	const size_t given = o->nspecs;

	if (f->n == 0)
		return complain("%s: it has no [watch]", o->policy_path);
	for (size_t i = 0; i < f->n; i++) {
		const struct policy_watch *w = &f->watch[i];
		struct wp_cause cause;
		size_t k = 0;

		while (k < given && (o->spec[k].access != w->access ||
		    strcmp(o->spec[k].text, w->spec) != 0))
			k++;
		if (k < given)
			continue;
		if (add_parsed(o, w->access, w->spec, &cause) < 0)
			return complain("%s:%u: %s", o->policy_path,
			    w->spec_line, cause.text);
	}
	return 0;
}

/* What says that nothing stray was missed. */
static const char *
vouching_option(const struct options *o)
{
	return o->error_status != 0 ? "--error-exitcode" :
	    o->side[SIDE_JUNIT] != NULL ? "--junit" :
	    o->side[SIDE_SARIF] != NULL ? "--sarif" : "--github";
}

const char *
options_judging(const struct options *o)
{
	return o->policy_path != NULL ? "--policy" : o->nallow > 0 ?
	    "--allow" : options_vouch(o) ? vouching_option(o) : NULL;
}

/* What is written beside a report needs hits that are explained. */
static int
check_sides(const struct options *o)
{
	const char *judging = options_judging(o);
	const char *side = o->policy_path != NULL ? "--policy" : NULL;

	for (int i = 0; i < SIDES; i++)
		if (o->side[i] != NULL)
			side = options_side_name((enum side)i);
	if (side == NULL)
		return 0;
	if (o->count)
		return complain("%s is about writers, and --count does not "
		    "look who they are: leave out one of them", side);
	if (o->form == FORM_PERF)
		return complain("-o perf explains nothing while it records: "
		    "give %s to watchctl report", side);
	if (o->side[SIDE_LEARN] != NULL && judging != NULL)
		return complain("--learn takes down who accesses what, and "
		    "judges nobody: leave out --learn or %s", judging);
	for (size_t i = 0; i < o->nspecs && o->side[SIDE_LEARN] != NULL; i++)
		if (strpbrk(o->spec[i].text, "\n\r") != NULL)
			return complain("'%s': --learn writes it in one line: "
			    "leave out the line's end", o->spec[i].text);
	return 0;
}

/* What a library that is put into the command cannot do. */
static int
check_inside(const struct options *o)
{
	if (options_attach(o))
		return complain("--inside loads a library into a command that "
		    "it starts, so it excludes %s", o->exe != NULL ? "--exe" :
		    "-p");
	if (o->count)
		return complain("--inside reports each hit as it is made: "
		    "leave out --count or --inside");
	if (o->form == FORM_PERF)
		return complain("--inside writes no recording: choose text, "
		    "json, folded or summary, or leave it out");
	if (o->stack > WP_STACK_MAX)
		return complain("--stack %u: with --inside at most %u",
		    (unsigned)o->stack, (unsigned)WP_STACK_MAX);
	return 0;
}

/* What does not go with a stop at each hit. */
static int
check_stop(const struct options *o)
{
	if (o->count)
		return complain("--count has no hits to stop at: leave out "
		    "--count or --stop");
	if (o->inside)
		return complain("--inside already makes a thread wait at its "
		    "hit: leave out --stop (or --on-hit) or --inside");
	if (o->form == FORM_PERF && o->on_hit.what != ON_HIT_REPORT)
		return complain("-o perf explains nothing while it records, "
		    "and so has no hits for --on-hit: leave out one of them");
	return 0;
}

/* What nothing waits in memory for. */
static int
check_buffer(const struct options *o)
{
	const char *none = o->count ? "--count" : o->inside ? "--inside" :
	    o->stop ? "--stop" : NULL;

	return o->buffer == 0 || none == NULL ? 0 :
	    complain("--buffer is for records that wait to be explained, and "
	    "%s has none: leave out one of them", none);
}

/* How hits are chosen; NULL: each is reported. */
static const char *
choosing_option(const struct options *o)
{
	return o->condition.root != NULL ? "--if" : o->every != 0 ?
	    "--every" : o->max_rate != 0 ? "--max-rate" : o->once ? "--once" :
	    o->each != 0 ? "--each" : NULL;
}

/* How hits are left out without a look at their backtraces; NULL: none is. */
static const char *
blind_option(const struct options *o)
{
	return o->every != 0 ? "--every" : o->max_rate != 0 ? "--max-rate" :
	    o->each != 0 ? "--each" : NULL;
}

/* What is neither explained nor reported cannot be chosen by what it is; and
   what is left out without a look at its backtrace may be stray. */
static int
check_choice(const struct options *o)
{
	const char *option = choosing_option(o);
	const char *blind = blind_option(o);

	if (option != NULL && o->count)
		return complain("%s chooses among hits that are reported, and "
		    "--count only counts them: leave out one of them", option);
	if (option != NULL && o->form == FORM_PERF)
		return complain("-o perf explains nothing while it records: "
		    "give %s to watchctl report", option);
	if (blind != NULL && options_vouch(o))
		return complain("%s leaves out hits without judging them, and "
		    "one of these may be stray: leave out %s or %s", blind,
		    blind, vouching_option(o));
	if (o->last != 0)
		blind = "--last";
	if (blind != NULL && o->side[SIDE_LEARN] != NULL)
		return complain("%s leaves out hits, and --learn would not "
		    "know who made them: leave out %s or --learn", blind,
		    blind);
	return 0;
}

static bool
watches(const struct options *o, enum wp_access access)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].access == access)
			return true;
	return false;
}

static int
check_until(const struct options *o)
{
	const uint64_t most = options_held_samples(o);

	if (o->until.root == NULL)
		return 0;
	if (o->count)
		return complain("--until looks at hits that are reported, and "
		    "--count only counts them: leave out one of them");
	if (o->form == FORM_PERF)
		return complain("-o perf explains nothing while it records: "
		    "give --until to watchctl report");
	if (o->last != 0 && watches(o, WP_READ))
		return complain("-r has writes in between, which are not held "
		    "as --last with --until holds hits: watch by -a, or leave "
		    "out one of them");
	return o->last <= most ? 0 : complain("--last %llu: with --until, "
	    "which explains each hit, at most %llu with so much --stack",
	    (unsigned long long)o->last, (unsigned long long)most);
}

uint64_t
options_held_samples(const struct options *o)
{
	const uint64_t fit = HELD / (o->stack + HELD_REST);

	return fit < HELD_MAX ? fit : HELD_MAX;
}

/* What does not go with hits that are kept as they came, until they are wanted. */
static int
check_last(const struct options *o)
{
	const char *choosing = o->changed ? "--changed" : choosing_option(o);

	if (o->last == 0)
		return 0;
	if (o->count)
		return complain("--count only counts hits, and --last reports "
		    "some: leave out one of them");
	if (o->form == FORM_PERF)
		return complain("-o perf records all hits: watchctl report "
		    "explains them, or leave it out for --last");
	if (o->inside || o->stop)
		return complain("%s reports each hit as it is made, and --last "
		    "none until later: leave out one of them", o->inside ?
		    "--inside" : o->on_hit.what != ON_HIT_REPORT ? "--on-hit" :
		    "--stop");
	if (choosing != NULL)
		return complain("--last keeps hits without examining them, "
		    "which %s needs: leave out one of them", choosing);
	if (o->limit != 0)
		return complain("-n ends at a hit that is reported, and --last "
		    "reports none until the end: leave out one of them");
	if (options_vouch(o))
		return complain("--last leaves out hits without judging them, "
		    "and one of these may be stray: leave out --last or %s",
		    vouching_option(o));
	return 0;
}

static bool
has_reads(const struct options *o)
{
	return watches(o, WP_READ) || watches(o, WP_ACCESS);
}

/* What BPF programs deliver nothing of, and rings. */
static int
check_delivery(const struct options *o)
{
	const bool is_ring = o->delivery == DELIVERY_RING;
	const char *none = o->count ? "--count" : o->inside ? "--inside" :
	    o->stop ? "--stop" : has_reads(o) ? "a watch for reads" : NULL;

	if (o->delivery == DELIVERY_USUAL || none == NULL ||
	    (is_ring && !o->inside))
		return 0;
	return complain("--delivery %s does not go with %s: leave out one of "
	    "them", is_ring ? "ring" : "bpf", is_ring ? "--inside" : none);
}

/* Hits in the words of a tool, which has none for what else there is. */
static bool
is_for_tools(const struct options *o)
{
	return o->form == FORM_GCC || o->form == FORM_TRACE;
}

/* Counters are read by BPF programs alone. */
static int
check_with(const struct options *o)
{
	if (o->with == 0)
		return 0;
	if (o->count || options_sum(o) || is_for_tools(o))
		return complain("--with reports counters with each hit, and %s%s "
		    "cannot show them: leave out one of them",
		    o->count ? "--count" : "-o ",
		    o->count ? "" : form_name(o));
	if (o->stop)
		return complain("--with counts what a thread does between its "
		    "hits, and a stop at each is a context switch itself: "
		    "leave out --with or %s", o->on_hit.what !=
		    ON_HIT_REPORT ? "--on-hit" : "--stop");
	if (o->inside)
		return complain("--with reads counters in the kernel, and "
		    "--inside catches hits by a signal, whose handler is "
		    "counted too: leave out one of them");
	if (has_reads(o) || o->follow_pointers || o->delivery == DELIVERY_RING)
		return complain("--with needs BPF programs, which read counters "
		    "at the hit, and %s has none: leave out one of them",
		    o->follow_pointers ? "--follow" : o->delivery ==
		    DELIVERY_RING ? "delivery by rings" :
		    "a watch for reads");
	return 0;
}

enum delivery
options_usual_delivery(void)
{
	const char *way = getenv("WATCHCTL_DELIVERY");

	return way != NULL && strcmp(way, "ring") == 0 ? DELIVERY_RING :
	    DELIVERY_USUAL;
}

/* What both command lines have in common. */
static int
check_form(const struct options *o)
{
	if (check_sides(o) < 0 || check_choice(o) < 0 || check_until(o) < 0)
		return -EINVAL;
	if (o->stacks_once && o->form != FORM_JSON)
		return complain("--stacks once is for -o json: add that, or "
		    "leave it out");
	if (o->verbose && (o->form != FORM_TEXT || o->count))
		return complain("-v is for the table at the end of a text: "
		    "leave out -v or %s", o->count ? "--count" : o->top ?
		    "--top" : "-o");
	return 0;
}

/* What does not go with watches that move. */
static int
check_follow(const struct options *o)
{
	const char *other = o->follow ? o->exe != NULL ? "--exe" : "-f" :
	    o->inside ? "--inside" :
	    o->form == FORM_PERF ? "-o perf" :
	    o->delivery == DELIVERY_BPF ? "--delivery bpf" :
	    o->skip_missing ? "--if-missing" :
	    o->each != 0 ? "--each" : NULL;

	if (other == NULL)
		return 0;
	return complain("--follow moves the watches of one process, whose hits "
	    "come by the kernel's rings; it does not go with %s: leave out one "
	    "of them", other);
}

/* What does not go with slots that move over an object. */
static int
check_rotate(const struct options *o)
{
	const char *other = watches(o, WP_EXEC) ? "-x" :
	    o->inside ? "--inside" : o->follow_pointers ? "--follow" :
	    o->count ? "--count" : o->exe != NULL ? "--exe" :
	    o->form == FORM_PERF ? "-o perf" :
	    o->delivery == DELIVERY_BPF ? "--delivery bpf" :
	    o->skip_missing ? "--if-missing" : o->with != 0 ? "--with" :
	    o->each != 0 ? "--each" : o->last != 0 ? "--last" :
	    /* a child's slots would stay where they were at the fork */
	    o->stop && o->follow ? "--stop and -f" : NULL;

	if (other == NULL)
		return 0;
	return complain("--slots rotate moves slots over the bytes of an "
	    "object, with hits by the kernel's rings; it does not go with %s: "
	    "leave out one of them", other);
}

/* What only a program has, or who watches one. */
static const char *
of_programs(const struct options *o)
{
	return o->exe != NULL ? "--exe" : options_attach(o) ? "-p" :
	    o->command != NULL ? "a command" : o->follow ? "-f" : NULL;
}

static const char *
not_of_kernel(const struct options *o)
{
	return o->on_hit.what != ON_HIT_REPORT ? "--on-hit" :
	    o->stop ? "--stop" : o->inside ? "--inside" :
	    o->follow_pointers ? "--follow" :
	    o->rotate ? "--slots" :
	    o->user_only ? "--user-only" : o->changed ? "--changed" :
	    options_vouch(o) ? vouching_option(o) :
	    o->with != 0 ? "--with" :
	    o->delivery == DELIVERY_BPF ? "--delivery bpf" : NULL;
}

static bool
has_kernel(const struct options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].kernel)
			return true;
	return false;
}

/* What does not go with the kernel's own memory. */
static int
check_kernel(const struct options *o)
{
	const char *spec = o->spec[0].text, *other;

	for (size_t i = 0; i < o->nspecs; i++) {
		if (o->spec[i].kernel != o->spec[0].kernel)
			return complain("%s and %s: one lies in the kernel and "
			    "is watched in all processes, the other in a "
			    "program: watch them one at a time", spec,
			    o->spec[i].text);
		if (o->spec[i].thread != 0)
			return complain("%s: the kernel has no thread-local "
			    "variables: leave out @%d", o->spec[i].text,
			    o->spec[i].thread);
		if (o->spec[i].access == WP_READ || watches(o, WP_EXEC))
			return complain("%s: of the kernel's accesses it is "
			    "not known which only read, and its execution is "
			    "not watched: watch by -w, or by -a",
			    o->spec[i].text);
	}
	if ((other = of_programs(o)) != NULL)
		return complain("%s lies in the kernel and is watched in all "
		    "processes: leave out %s; --if 'pid == N' or 'comm == "
		    "\"NAME\"' chooses among hits", spec, other);
	return (other = not_of_kernel(o)) == NULL ? 0 :
	    complain("%s lies in the kernel, where no thread is stopped, "
	    "no value is read, and nothing is vouched for: leave out %s", spec,
	    other);
}

/* What does not go with processes that come later. */
static int
check_exe(const struct options *o)
{
	if (o->npids > 0 || o->nnames > 0)
		return complain("--exe and -p exclude each other: --exe finds "
		    "the processes that run now, too");
	if (o->stop)
		return complain("--exe attaches to processes that have begun "
		    "and does not trace them, as --stop and --on-hit do: leave "
		    "out one of them");
	if (o->form == FORM_PERF)
		return complain("-o perf begins with all that is watched, and "
		    "--exe adds to that: leave out one of them");
	return 0;
}

/* What a program can be without, and is watched without. */
static int
check_missing(const struct options *o)
{
	const char *none = o->count ? "--count" : o->inside ? "--inside" :
	    o->form == FORM_PERF ? "-o perf" : NULL;

	if (o->command == NULL)
		return complain("--if-missing skip is for the programs that a "
		    "command executes: give -- COMMAND, or leave it out");
	if (none != NULL)
		return complain("--if-missing skip finds its watches while "
		    "programs begin, which %s cannot: leave out one of them",
		    none);
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].symbol == NULL)
			return complain("--if-missing skip: the address %s "
			    "means something else in each program: give a "
			    "name", o->spec[i].text);
	return 0;
}

/* What watches have, and a heap has not. */
static const char *
not_of_heap(const struct options *o)
{
	return o->nspecs > 0 ? "-w, -r, -a and -x" :
	    options_attach(o) ? o->exe != NULL ? "--exe" : "-p" :
	    o->follow ? "-f" : o->limit != 0 ? "-n" :
	    o->seconds > 0 ? "-t" : o->inside ? "--inside" :
	    o->on_hit.what != ON_HIT_REPORT ? "--on-hit" :
	    o->stop ? "--stop" : o->count ? "--count" :
	    o->user_only ? "--user-only" : o->changed ? "--changed" :
	    o->follow_pointers ? "--follow" :
	    o->skip_missing ? "--if-missing" : o->last != 0 ? "--last" :
	    o->until.root != NULL ? "--until" : o->with != 0 ? "--with" :
	    o->buffer != 0 ? "--buffer" : o->nallow > 0 ? "--allow" :
	    o->stacks_once ? "--stacks" : o->verbose ? "-v" :
	    o->rotate ? "--slots" : o->policy_path != NULL ? "--policy" :
	    o->side[SIDE_LEARN] != NULL ?
	    options_side_name(SIDE_LEARN) : choosing_option(o);
}

static int
check_heap(const struct options *o)
{
	const char *other = not_of_heap(o);

	if (other != NULL)
		return complain("--heap looks for damage in the heap of a "
		    "command, and has no watches: leave out %s or --heap",
		    other);
	if (o->command == NULL)
		return complain("--heap puts a library into a command that it "
		    "starts: give -- COMMAND");
	if (o->form != FORM_TEXT && o->form != FORM_JSON)
		return complain("--heap reports as text or json: choose one of "
		    "them with -o");
	return 0;
}

static int
check_together(const struct options *o)
{
	if (o->heap)
		return check_heap(o);
	if (o->quarantine != QUARANTINE_NONE)
		return complain("--heap-quarantine is for --heap: add that, or "
		    "leave it out");
	if (o->nspecs == 0)
		return complain("nothing to watch: give -w, -r, -a or -x with "
		    "a SPEC; see watchctl --help");
	if (has_kernel(o) && check_kernel(o) < 0)
		return -EINVAL;
	if (options_attach(o) && o->command != NULL)
		return complain("%s and a command (%s) exclude each other",
		    o->exe != NULL ? "--exe" : "-p", o->command[0]);
	if (o->exe != NULL && check_exe(o) < 0)
		return -EINVAL;
	if (o->follow_pointers && check_follow(o) < 0)
		return -EINVAL;
	if (o->rotate && check_rotate(o) < 0)
		return -EINVAL;
	if (!options_attach(o) && o->command == NULL && !options_everywhere(o))
		return complain("no process to watch: give -p PID, -p NAME, "
		    "--exe PATH, or -- COMMAND");
	if (o->no_aslr && o->command == NULL)
		return complain("--no-aslr is for a command that watchctl "
		    "starts: a running process has its addresses already");
	if (origin_name_has_pid(o->output) && (o->exe != NULL ||
	    options_everywhere(o)))
		return complain("-O '%s': %%p is the first process, which %s "
		    "may not have yet: leave out %%p", o->output, o->exe !=
		    NULL ? "--exe" : "a watch of the kernel's memory");
	if (o->form == FORM_PERF && o->output == NULL)
		return complain("-o perf writes a binary file: name it with "
		    "-O FILE");
	if (o->form == FORM_PERF && o->count)
		return complain("--count has no records to write with -o perf");
	if (o->form == FORM_PERF && options_judge(o))
		return complain("-o perf explains nothing while it records: "
		    "give %s to watchctl report", options_judging(o));
	if ((options_sum(o) || is_for_tools(o)) && o->count)
		return complain("--count has no backtraces for -o %s: leave "
		    "out one of them", form_name(o));
	if (o->count && o->nallow > 0)
		return complain("--allow judges by backtraces, and --count "
		    "has none: leave out one of them");
	if (o->changed && (o->count || o->form == FORM_PERF))
		return complain("--changed needs values, which %s "
		    "does not find: leave out one of them", o->count ?
		    "--count" : "-o perf");
	if (o->count && o->stacks_once)
		return complain("--count has no backtraces for --stacks: "
		    "leave out one of them");
	if (o->skip_missing && check_missing(o) < 0)
		return -EINVAL;
	if (check_form(o) < 0 || check_buffer(o) < 0 || check_last(o) < 0 ||
	    check_delivery(o) < 0 || check_with(o) < 0 ||
	    (o->stop && check_stop(o) < 0))
		return -EINVAL;
	return o->inside ? check_inside(o) : 0;
}

/* The table ends as a summary. */
static int
check_top(struct options *o)
{
	const char *other = o->inside ? "--inside" : o->count ? "--count" :
	    o->form != FORM_TEXT && o->form != FORM_SUMMARY ? "-o" :
	    o->output != NULL || o->to_stdout ? "-O" :
	    o->last != 0 ? "--last" : NULL;

	if (other != NULL)
		return complain("--top shows the writers on the terminal, and "
		    "then the summary, and does not go with %s: leave out one "
		    "of them", other);
	o->form = FORM_SUMMARY;
	return 0;
}

int
options_parse(int argc, char **argv, struct options *o)
{
	int err;

	if (argc == 1) {
		*o = (struct options){0};
		(void)fputs(examples, stderr);
		return -EINVAL;
	}
	err = each_option(argc, argv, option_names(OPTION_ATTACH |
	    OPTION_COMMAND | OPTION_INSIDE | OPTION_HEAP, "+:"), o);
	if (err == 0 && optind < argc)
		o->command = argv + optind;
	if (err == 0 && o->policy_path != NULL)
		err = add_policy_specs(o);
	if (o->delivery == DELIVERY_USUAL)
		o->delivery = options_usual_delivery();
	if (err == 0 && o->top)
		err = check_top(o);
	if (err == 0 && (err = check_together(o)) == 0 && options_everywhere(o))
		o->follow = true;	/* what is created is watched, too */
	return err;
}

int
options_parse_report(int argc, char **argv, struct options *o)
{
	static char standard_input[] = "/dev/stdin";
	int err = each_option(argc, argv, option_names(OPTION_REPORT, ":"),
	    o);

	if (err != 0)
		return err;
	if (optind == argc)
		return complain("report reads FILEs, and none is given; see "
		    "watchctl --help");
	if (o->form == FORM_PERF)
		return complain("report reads perf.data files and does not "
		    "write them: choose text, json, folded, html, gcc, "
		    "trace or summary");
	if (origin_name_has_pid(o->output))
		return complain("-O '%s': %%p is a process that is watched, and "
		    "report watches none: leave it out", o->output);
	o->files = argv + optind;
	o->nfiles = (size_t)(argc - optind);
	for (size_t i = 0; i < o->nfiles; i++)
		if (strcmp(o->files[i], "-") == 0)
			o->files[i] = standard_input;
	o->file = o->files[0];
	return check_form(o);
}

void
options_free(struct options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		spec_free(&o->spec[i]);
	free(o->spec);
	free(o->pid);
	for (size_t i = 0; i < o->nnames; i++)
		free(o->name[i]);
	free(o->name);
	free(o->allow);
	policy_file_free(&o->policy);
	condition_free(&o->condition);
	condition_free(&o->until);
	*o = (struct options){0};
}
