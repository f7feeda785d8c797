/* options: parses the command line. */
#include "option/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/cause.h"
#include "util/nearest.h"
#include "option/option_rules.h"
#include "option/option_table.h"
#include "option/option_values.h"
#include "util/complain.h"

/* The bytes of stack that are copied without --stack: some thirty frames of
   usual code; more are copied where it matters whether a caller is allowed. */
enum { STACK_USUAL = 4096, STACK_JUDGED = 16384 };

/* The limits of samples that wait in the explainer: their bytes, half of what
   it shares; the bytes of one without its stack; and their number, since the
   numbers of samples are reused. */
enum { HELD = 8 << 20, HELD_REST = 1024, HELD_MAX = 2000 };

const char *
options_side_name(enum side side)
{
	static const char *const names[] = {
		[SIDE_JUNIT] = "--junit", [SIDE_SARIF] = "--sarif",
		[SIDE_GITHUB] = "--github", [SIDE_LEARN] = "--learn",
	};

	return names[side];
}

/* What the command prints without arguments. */
static const char examples[] =
"watchctl reports who touches the memory of a running program, for example:\n"
"  watchctl -w counter -p redis-server             in running processes\n"
"  watchctl -w 'config.limit' -n 1 -- ./server     the first write of a command\n"
"  watchctl -w balance --if 'new < 0' --on-hit pause -- ./bank\n"
"  watchctl -w table --allow table_load --error-exitcode 66 -- ./tests\n"
"  watchctl doctor                                 what works here, and why not\n"
"See watchctl --help for the options, watchctl(1) for all else.\n";

/* Report an unknown option, and which one may be meant. */
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

/* Report the error behind getopt's '?' or ':'. */
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

/* The result after a text was printed.  1: there is nothing else to do;
   -EINVAL: it could not be written. */
static int
said(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 1;
	return complain("standard output: %s", strerror(errno));
}

static int
one_option(int c, char **argv, const struct option *names, struct options *o,
    bool given[OPT_END])
{
	switch (c) {
	case '?':
	case ':':
		return bad_option(c, argv, names);
	case 'h':
	case OPT_HELP:
		option_help(stdout);
		return said();
	case 'V':
	case OPT_VERSION:
		(void)puts("watchctl " VERSION);
		return said();
	default:
		given[c] = true;
		return option_set(o, c, optarg);
	}
}

static int
each_option(int argc, char **argv, const struct option_names *known,
    struct options *o, bool given[OPT_END])
{
	int c, err;

	*o = (struct options){.argv = argv, .quarantine = QUARANTINE_NONE,
	    .heap_runs = HEAP_RUNS_NONE};
	optind = 0;	/* begins anew, also after an error */
	opterr = 0;
	while ((c = getopt_long(argc, argv, known->letters, known->names,
	    NULL)) != -1)
		if ((err = one_option(c, argv, known->names, o, given)) != 0)
			return err;
	if (o->stack == 0)
		o->stack = options_judge(o) || o->side[SIDE_LEARN] != NULL ?
		    STACK_JUDGED : STACK_USUAL;
	return o->policy_path == NULL ? 0 :
	    policy_file_read(&o->policy, o->policy_path);
}

/* Add the SPECs of a policy, unless -w or another option names them already. */
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
		if (option_add_spec(o, w->access, w->spec, &cause) < 0)
			return complain("%s:%u: %s", o->policy_path,
			    w->spec_line, cause.text);
	}
	return 0;
}

/* The option that vouches that no stray hit was missed. */
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

uint64_t
options_held_samples(const struct options *o)
{
	const uint64_t fit = HELD / (o->stack + HELD_REST);

	return fit < HELD_MAX ? fit : HELD_MAX;
}

enum delivery
options_usual_delivery(void)
{
	const char *way = getenv("WATCHCTL_DELIVERY");

	return way != NULL && strcmp(way, "ring") == 0 ? DELIVERY_RING :
	    DELIVERY_USUAL;
}

int
options_parse(int argc, char **argv, struct options *o)
{
	bool given[OPT_END] = {false};
	int err;

	if (argc == 1) {
		*o = (struct options){0};
		(void)fputs(examples, stderr);
		return -EINVAL;
	}
	err = each_option(argc, argv, option_names(OPTION_ATTACH |
	    OPTION_COMMAND | OPTION_INSIDE | OPTION_HEAP, "+:"), o,
	    given);
	if (err == 0 && optind < argc)
		o->command = argv + optind;
	if (err == 0 && o->policy_path != NULL)
		err = add_policy_specs(o);
	if (o->delivery == DELIVERY_USUAL)
		o->delivery = options_usual_delivery();
	if (err == 0)
		err = option_rules_check(o, given);
	if (options_everywhere(o) || options_shared(o))
		o->all_cpus = false;	/* it is so anyway */
	if (err == 0 && (options_everywhere(o) || options_scope(o) != NULL ||
	    (options_shared(o) && o->command == NULL && !options_attach(o))))
		o->follow = true;	/* what is created is watched, too */
	if (o->top)
		o->form = FORM_SUMMARY;		/* the table ends as one */
	return err;
}

int
options_parse_report(int argc, char **argv, struct options *o)
{
	static char standard_input[] = "/dev/stdin";
	bool given[OPT_END] = {false};
	int err = each_option(argc, argv, option_names(OPTION_REPORT, ":"), o,
	    given);

	if (err != 0)
		return err;
	if (optind == argc)
		return complain("report reads FILEs, and none is given; see "
		    "watchctl --help");
	o->files = argv + optind;
	o->nfiles = (size_t)(argc - optind);
	for (size_t i = 0; i < o->nfiles; i++)
		if (strcmp(o->files[i], "-") == 0)
			o->files[i] = standard_input;
	o->file = o->files[0];
	return option_rules_check(o, given);
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
