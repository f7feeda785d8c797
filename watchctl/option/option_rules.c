/*
 * option_rules: the table of the rules.
 *
 * The first rule that a command line breaks is the one that is reported.
 */
#include "option/option_rules.h"

#include <errno.h>
#include <string.h>

#include "os/attr.h"
#include "util/buffer.h"
#include "util/complain.h"
#include "util/origin.h"

/* Facts about a command line, in addition to its options. */
enum {
	SPECS = OPT_END, NO_SPECS, NO_HEAP, SAMPLED, COMMAND, COMMAND_NAME,
	    NO_COMMAND,
	NO_PROCESS, REPORT, STOPPED, STOPPED_CHILDREN, BY_BPF, BY_RING,
	BY_RINGS, PERF, COMPACT, NOT_JSON, NOT_TEXT, NOT_TABLE, NOT_FOR_HEAP,
	NO_OUTPUT, OUTPUT_PID, EXECUTION, READS, KERNEL, EVERYWHERE, ADDRESS,
	SHARED, OBJECTS, NO_OBJECTS, LINES, THREAD, ONE_PROGRAM, FACTS
};

/*
 * A command line breaks a rule if it has an option or fact of `one', and one of
 * `other', if there are any; $1 and $2 in the text are the first of each that
 * it has.  Or a function decides: 0, or -EINVAL after one line on stderr.
 */
struct rule {
	const int *one, *other;	/* up to 0; NULL: none */
	const char *text;
	int (*check)(const struct options *);
};

static bool
watches(const struct options *o, enum wp_access access)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].access == access)
			return true;
	return false;
}

/* Memory of the kernel and of programs cannot be watched together. */
static int
check_kernel(const struct options *o)
{
	bool kernel = false;

	for (size_t i = 0; i < o->nspecs; i++)
		kernel = kernel || o->spec[i].kernel;
	for (size_t i = 0; i < o->nspecs && kernel; i++) {
		const struct spec *spec = &o->spec[i];

		if (spec->kernel != o->spec[0].kernel)
			return complain("%s and %s: one lies in the kernel and "
			    "is watched in all processes, the other in a "
			    "program: watch them one at a time",
			    o->spec[0].text, spec->text);
		if (spec->thread != 0)
			return complain("%s: the kernel has no thread-local "
			    "variables: leave out @%d", spec->text,
			    spec->thread);
		if (spec->access == WP_READ || watches(o, WP_EXEC))
			return complain("%s: of the kernel's accesses it is "
			    "not known which only read, and its execution is "
			    "not watched: watch by -w, or by -a", spec->text);
	}
	return 0;
}

/* Objects that a function returns cannot be watched together with anything
   else. */
static int
check_objects(const struct options *o)
{
	for (size_t i = 1; i < o->nspecs; i++)
		if (o->spec[0].allocator != NULL ||
		    o->spec[i].allocator != NULL)
			return complain("%s and %s: the objects of a function "
			    "have all slots: watch them one at a time",
			    o->spec[0].text, o->spec[i].text);
	return 0;
}

/* Neither can memory that processes share. */
static int
check_shared(const struct options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if ((o->spec[i].shared == NULL) != (o->spec[0].shared == NULL))
			return complain("%s and %s: one is watched wherever a "
			    "file is mapped, the other at its address: watch "
			    "them one at a time", o->spec[0].text,
			    o->spec[i].text);
	return 0;
}

/* There must be room for the samples that --last holds with --until. */
static int
check_held(const struct options *o)
{
	const uint64_t most = options_held_samples(o);

	if (o->until.root == NULL || o->last == 0)
		return 0;
	if (watches(o, WP_READ))
		return complain("-r has writes in between, which are not held "
		    "as --last with --until holds hits: watch by -a, or leave "
		    "out one of them");
	return o->last <= most ? 0 : complain("--last %llu: with --until, "
	    "which explains each hit, at most %llu with so much --stack",
	    (unsigned long long)o->last, (unsigned long long)most);
}

static int
check_inside_stack(const struct options *o)
{
	return !o->inside || o->stack <= WP_STACK_MAX ? 0 :
	    complain("--stack %u: with --inside at most %u",
	    (unsigned)o->stack, (unsigned)WP_STACK_MAX);
}

#define ANY(...)	(const int[]){__VA_ARGS__, 0}

/* Options whose processes may appear later; that choose hits; that choose them
   without regard to their backtraces; that vouch that no stray hit was missed;
   and that write files in addition to a report. */
#define SCOPE		OPT_EXE, OPT_CGROUP, OPT_ALL_CPUS
#define CHOOSING	OPT_IF, OPT_EVERY, OPT_MAX_RATE, OPT_ONCE, OPT_EACH
#define BLIND		OPT_EVERY, OPT_MAX_RATE, OPT_EACH
#define VOUCHING	OPT_ERROR_EXITCODE, OPT_JUNIT, OPT_SARIF, OPT_GITHUB
#define JUDGING		OPT_POLICY, OPT_ALLOW, VOUCHING
#define BESIDE		OPT_LEARN, OPT_GITHUB, OPT_SARIF, OPT_JUNIT, OPT_POLICY

static const char one_scope[] = "$1 and $2 exclude each other: leave out one "
    "of them";
static const char not_by_perf[] = "-o perf explains nothing while it records: "
    "give $1 to watchctl report";

static const struct rule rules[] = {
	{ANY(REPORT), ANY(PERF), "report reads perf.data files and does not "
	    "write them: choose text, json, folded, html, gcc, trace or "
	    "summary"},
	{ANY(OUTPUT_PID), ANY(REPORT), "-O '$1': %p is a process that is "
	    "watched, and report watches none: leave it out"},
	{ANY(OPT_TOP), ANY(OPT_INSIDE, OPT_COUNT, NOT_TABLE, 'O', OPT_LAST),
	    "--top shows the writers on the terminal, and then the summary, "
	    "and does not go with $2: leave out one of them"},

	{ANY(OPT_HEAP), ANY('p'), "--heap guards a program from its beginning, "
	    "since blocks are made for that: a process that runs already "
	    "cannot be; start it with --heap=sample -- COMMAND"},
	{ANY(OPT_HEAP), ANY(SPECS, SCOPE, 'f', 'n', 't', OPT_INSIDE,
	    OPT_ON_HIT, OPT_STOP, OPT_COUNT, OPT_USER_ONLY, OPT_CHANGED,
	    OPT_FOLLOW, OPT_IF_MISSING, OPT_LAST, OPT_UNTIL, OPT_WITH,
	    OPT_BUFFER, OPT_STACKS, 'v', OPT_SLOTS, OPT_POLICY,
	    OPT_LEARN, CHOOSING), "--heap looks for damage in the heap of a "
	    "command, and has no watches: leave out $2 or --heap"},
	{ANY(OPT_HEAP), ANY(NO_COMMAND), "--heap puts a library into a command "
	    "that it starts: give -- COMMAND"},
	{ANY(OPT_HEAP), ANY(NOT_FOR_HEAP), "--heap reports as text or json: "
	    "choose one of them with -o"},
	{ANY(SAMPLED), ANY(OPT_HEAP_RUNS),
	    "$1 runs the command once: leave out " "$2, or =sample"},
	{ANY(OPT_HEAP_QUARANTINE, OPT_HEAP_RUNS), ANY(NO_HEAP), "$1 is for "
	    "--heap: add that, or leave it out"},
	{ANY(NO_SPECS), NULL, "nothing to watch: give -w, -r, -a or -x with a "
	    "SPEC; see watchctl --help"},

	{.check = check_kernel},
	{ANY(KERNEL), ANY(OPT_EXE, OPT_CGROUP, 'p', COMMAND, 'f'), "$1 lies in "
	    "the kernel and is watched in all processes: leave out $2; "
	    "--if 'pid == N' or 'comm == \"NAME\"' chooses among hits"},
	{ANY(KERNEL), ANY(OPT_ON_HIT, OPT_STOP, OPT_INSIDE, OPT_FOLLOW,
	    OPT_SLOTS, OPT_USER_ONLY, OPT_CHANGED, VOUCHING, OPT_WITH, BY_BPF),
	    "$1 lies in the kernel, where no thread is stopped, no value is "
	    "read, and nothing is vouched for: leave out $2"},

	{.check = check_objects},
	{ANY(OPT_AFTER_FREE, OPT_FREE_FUNCTION), ANY(NO_OBJECTS), "$1 is about "
	    "objects that a function returns: give -w alloc:FUNCTION, or leave "
	    "it out"},
	{ANY(OBJECTS), ANY(OPT_EXE, OPT_CGROUP, OPT_ALL_CPUS, 'f', OPT_ON_HIT,
	    OPT_STOP, OPT_INSIDE, OPT_COUNT, OPT_FOLLOW, OPT_SLOTS, OPT_WITH,
	    OPT_EACH, OPT_LAST, OPT_IF_MISSING, BY_BPF, PERF), "$1 moves slots "
	    "from object to object in one process, with hits by the kernel's "
	    "rings; it does not go with $2: leave out one of them"},
	{.check = check_shared},
	{ANY(SHARED), ANY(OPT_ON_HIT, OPT_STOP, OPT_INSIDE, OPT_COUNT,
	    OPT_FOLLOW, OPT_SLOTS, OPT_WITH, OPT_IF_MISSING, BY_BPF, PERF),
	    "$1 is watched where processes map it, and each hit is proved by "
	    "the kernel to be there, which goes by its rings: leave out $2, or "
	    "watch an address with -p"},
	{ANY(SHARED), ANY(OPT_CGROUP), "$1 is watched in all processes, or "
	    "those of -p or --exe: leave out $2"},

	{ANY(SCOPE, 'p'), ANY(COMMAND_NAME), "$1 and a command ($2) exclude "
	    "each other"},
	{ANY(SCOPE), ANY('p'), "$1 and -p exclude each other: $1 finds the "
	    "processes that run now, too"},
	{ANY(OPT_EXE), ANY(OPT_CGROUP, OPT_ALL_CPUS), one_scope},
	{ANY(OPT_CGROUP), ANY(OPT_ALL_CPUS), one_scope},
	{ANY(OPT_CGROUP, OPT_ALL_CPUS), ANY(THREAD), "$1 watches processes, "
	    "and $2 is of one thread: give -p"},
	{ANY(SCOPE), ANY(STOPPED), "$1 attaches to processes that have begun "
	    "and does not trace them, as --stop and --on-hit do: leave out one "
	    "of them"},
	{ANY(SCOPE), ANY(PERF), "-o perf begins with all that is watched, and "
	    "$1 adds to that: leave out one of them"},
	{ANY(OPT_FOLLOW), ANY(SCOPE, 'f', OPT_INSIDE, PERF, BY_BPF,
	    OPT_IF_MISSING, OPT_EACH), "--follow moves the watches of one "
	    "process, whose hits come by the kernel's rings; it does not go "
	    "with $2: leave out one of them"},
	/* a child's slots would stay where they were at the fork */
	{ANY(OPT_SLOTS), ANY(EXECUTION, OPT_INSIDE, OPT_FOLLOW, OPT_COUNT,
	    SCOPE, PERF, BY_BPF, OPT_IF_MISSING, OPT_WITH, OPT_EACH,
	    OPT_LAST, STOPPED_CHILDREN), "--slots rotate moves slots over the "
	    "bytes of an object, with hits by the kernel's rings; it does not "
	    "go with $2: leave out one of them"},
	{ANY(NO_PROCESS), NULL, "no process to watch: give -p PID, -p NAME, "
	    "--exe PATH, --cgroup PATH, --all-cpus, or -- COMMAND"},
	{ANY(OPT_NO_ASLR), ANY(NO_COMMAND), "--no-aslr is for a command that "
	    "watchctl starts: a running process has its addresses already"},

	{ANY(OUTPUT_PID), ANY(SCOPE, EVERYWHERE), "-O '$1': %p is the first "
	    "process, which $2 may not have yet: leave out %p"},
	{ANY(PERF), ANY(NO_OUTPUT), "-o perf writes a binary file: name it "
	    "with -O FILE"},
	{ANY(PERF), ANY(OPT_COUNT), "--count has no records to write with "
	    "-o perf"},
	{ANY(JUDGING), ANY(PERF), not_by_perf},
	{ANY(COMPACT), ANY(OPT_COUNT), "--count has no backtraces for $1: "
	    "leave out one of them"},
	{ANY(OPT_ALLOW), ANY(OPT_COUNT), "--allow judges by backtraces, and "
	    "--count has none: leave out one of them"},
	{ANY(OPT_CHANGED), ANY(OPT_COUNT, PERF), "--changed needs values, "
	    "which $2 does not find: leave out one of them"},
	{ANY(OPT_STACKS), ANY(OPT_COUNT), "--count has no backtraces for "
	    "--stacks: leave out one of them"},
	{ANY(OPT_IF_MISSING), ANY(ONE_PROGRAM), "--if-missing skip is for the "
	    "programs that a command executes, or that --cgroup or --all-cpus "
	    "have: give one of these, or leave it out"},
	{ANY(OPT_IF_MISSING), ANY(OPT_COUNT, OPT_INSIDE, PERF), "--if-missing "
	    "skip finds its watches while programs begin, which $2 cannot: "
	    "leave out one of them"},
	{ANY(OPT_IF_MISSING), ANY(ADDRESS), "--if-missing skip: the address $2 "
	    "means something else in each program: give a name"},

	{ANY(BESIDE), ANY(OPT_COUNT), "$1 is about writers, which --count does "
	    "not identify: leave out one of them"},
	{ANY(BESIDE), ANY(PERF), not_by_perf},
	{ANY(OPT_LEARN), ANY(JUDGING), "--learn records who accesses what, and "
	    "judges nobody: leave out --learn or $2"},
	{ANY(OPT_LEARN), ANY(LINES), "'$2': --learn writes it in one line: "
	    "leave out the line's end"},
	{ANY(CHOOSING), ANY(OPT_COUNT), "$1 chooses among hits that are "
	    "reported, and --count only counts them: leave out one of them"},
	{ANY(CHOOSING), ANY(PERF), not_by_perf},
	{ANY(BLIND), ANY(VOUCHING), "$1 leaves out hits without judging them, "
	    "and one of these may be stray: leave out $1 or $2"},
	{ANY(OPT_LAST, BLIND), ANY(OPT_LEARN), "$1 leaves out hits, and "
	    "--learn would not know who made them: leave out $1 or --learn"},
	{ANY(OPT_UNTIL), ANY(OPT_COUNT), "--until looks at hits that are "
	    "reported, and --count only counts them: leave out one of them"},
	{ANY(OPT_UNTIL), ANY(PERF), not_by_perf},
	{.check = check_held},
	{ANY(OPT_STACKS), ANY(NOT_JSON), "--stacks once is for -o json: add "
	    "that, or leave it out"},
	{ANY('v'), ANY(OPT_COUNT, OPT_TOP, NOT_TEXT), "-v is for the table at "
	    "the end of a text: leave out -v or $2"},

	{ANY(OPT_BUFFER), ANY(OPT_COUNT, OPT_INSIDE, STOPPED), "--buffer is "
	    "for records that wait to be explained, and $2 has none: leave out "
	    "one of them"},
	{ANY(OPT_LAST), ANY(OPT_COUNT), "--count only counts hits, and --last "
	    "reports some: leave out one of them"},
	{ANY(OPT_LAST), ANY(PERF), "-o perf records all hits: watchctl report "
	    "explains them, or leave it out for --last"},
	{ANY(OPT_LAST), ANY(OPT_INSIDE, OPT_ON_HIT, OPT_STOP), "$2 reports "
	    "each hit as it is made, and --last none until later: leave out "
	    "one of them"},
	{ANY(OPT_LAST), ANY(OPT_CHANGED, CHOOSING), "--last keeps hits without "
	    "examining them, which $2 needs: leave out one of them"},
	{ANY(OPT_LAST), ANY('n'), "-n ends at a hit that is reported, and "
	    "--last reports none until the end: leave out one of them"},
	{ANY(OPT_LAST), ANY(VOUCHING), "--last leaves out hits without judging "
	    "them, and one of these may be stray: leave out --last or $2"},
	{ANY(BY_BPF), ANY(OPT_COUNT, OPT_INSIDE, STOPPED, READS), "$1 does not "
	    "go with $2: leave out one of them"},
	{ANY(BY_RING), ANY(OPT_INSIDE), "$1 does not go with $2: leave out one "
	    "of them"},
	{ANY(OPT_WITH), ANY(OPT_COUNT, COMPACT), "--with reports counters with "
	    "each hit, and $2 cannot show them: leave out one of them"},
	{ANY(OPT_WITH), ANY(OPT_ON_HIT, OPT_STOP), "--with counts what a "
	    "thread does between its hits, and a stop at each is a context "
	    "switch itself: leave out --with or $2"},
	{ANY(OPT_WITH), ANY(OPT_INSIDE), "--with reads counters in the kernel, "
	    "and --inside catches hits by a signal, whose handler is counted "
	    "too: leave out one of them"},
	{ANY(OPT_WITH), ANY(OPT_FOLLOW, BY_RINGS, READS), "--with needs BPF "
	    "programs, which read counters at the hit, and $2 has none: leave "
	    "out one of them"},
	{ANY(STOPPED), ANY(OPT_COUNT), "--count has no hits to stop at: leave "
	    "out --count or --stop"},
	{ANY(STOPPED), ANY(OPT_INSIDE), "--inside already makes a thread wait "
	    "at its hit: leave out --stop (or --on-hit) or --inside"},
	{ANY(OPT_ON_HIT), ANY(PERF), "-o perf explains nothing while it "
	    "records, and so has no hits for --on-hit: leave out one of them"},
	{ANY(SCOPE, 'p'), ANY(OPT_INSIDE), "--inside loads a library into a "
	    "command that it starts, so it excludes $1"},
	{ANY(OPT_INSIDE), ANY(OPT_COUNT), "--inside reports each hit as it is "
	    "made: leave out --count or --inside"},
	{ANY(OPT_INSIDE), ANY(PERF), "--inside writes no recording: choose "
	    "text, json, folded or summary, or leave it out"},
	{.check = check_inside_stack},
};

/* The name of a form that has no lines for hits. */
static const char *
compact_form(enum form form)
{
	return form == FORM_FOLDED ? "-o folded" : form == FORM_HTML ?
	    "-o html" : form == FORM_GCC ? "-o gcc" : form == FORM_TRACE ?
	    "-o trace" : form == FORM_SUMMARY || form == FORM_SUMMARY_JSON ?
	    "-o summary" : NULL;
}

/* Find the first SPEC that is an address, of one thread, or of several
   lines. */
static void
find_specs(const struct options *o, const char *called[FACTS])
{
	for (size_t i = o->nspecs; i-- > 0; ) {
		const struct spec *spec = &o->spec[i];

		if (spec->symbol == NULL)
			called[ADDRESS] = spec->text;
		if (spec->thread != 0)
			called[THREAD] = spec->text;
		if (strpbrk(spec->text, "\n\r") != NULL)
			called[LINES] = spec->text;
	}
}

/* Find for each fact what the command line calls it; NULL: it is not true. */
static void
find_facts(const struct options *o, const char *called[FACTS])
{
	/* the table of --top ends as a summary */
	const enum form form = o->top ? FORM_SUMMARY : o->form;
	const bool report = o->file != NULL, command = o->command != NULL;
	const bool everywhere = options_everywhere(o);
	const bool ring = o->delivery == DELIVERY_RING;

#define IF(is, words)	((is) ? (words) : NULL)
	called[SPECS] = IF(o->nspecs > 0, "-w, -r, -a and -x");
	called[NO_SPECS] = IF(o->nspecs == 0 && !o->heap && !report, "");
	called[NO_HEAP] = IF(!o->heap, "");
	called[SAMPLED] = IF(o->heap == HEAP_SAMPLE, "--heap=sample");
	called[COMMAND] = IF(command, "a command");
	called[COMMAND_NAME] = IF(command, o->command[0]);
	called[NO_COMMAND] = IF(!command, "");
	called[NO_PROCESS] = IF(!options_attach(o) && !command && !everywhere &&
	    !options_shared(o) && !report, "");
	called[REPORT] = IF(report, "report");
	called[STOPPED] = IF(o->stop, "--stop");
	called[STOPPED_CHILDREN] = IF(o->stop && o->follow, "--stop and -f");
	called[BY_BPF] = IF(o->delivery == DELIVERY_BPF, "--delivery bpf");
	called[BY_RING] = IF(ring, "--delivery ring");
	called[BY_RINGS] = IF(ring, "delivery by rings");
	called[PERF] = IF(form == FORM_PERF, "-o perf");
	called[COMPACT] = compact_form(form);
	called[NOT_JSON] = IF(form != FORM_JSON, "-o");
	called[NOT_TEXT] = IF(form != FORM_TEXT, "-o");
	called[NOT_TABLE] = IF(o->form != FORM_TEXT && o->form != FORM_SUMMARY,
	    "-o");
	called[NOT_FOR_HEAP] = IF(form != FORM_TEXT && form != FORM_JSON, "-o");
	called[NO_OUTPUT] = IF(o->output == NULL, "-O");
	called[OUTPUT_PID] = IF(origin_name_has_pid(o->output), o->output);
	called[EXECUTION] = IF(watches(o, WP_EXEC), "-x");
	called[READS] = IF(watches(o, WP_READ) || watches(o, WP_ACCESS),
	    "a watch for reads");
	called[KERNEL] = IF(everywhere, o->spec[0].text);
	called[EVERYWHERE] = everywhere ? "a watch of the kernel's memory" :
	    IF(options_shared(o) && !command, "shared memory");
	called[SHARED] = IF(options_shared(o), o->spec[0].text);
	called[OBJECTS] = IF(options_objects(o), o->spec[0].text);
	called[NO_OBJECTS] = IF(!options_objects(o), "");
	called[ONE_PROGRAM] = IF(!command && !options_any_program(o), "");
#undef IF
	find_specs(o, called);
}

static const char *
first_of(const int *list, const char *const called[FACTS])
{
	const char *first = NULL;

	while (first == NULL && *list != 0)
		first = called[*list++];
	return first;
}

/* Print the text, with $1 and $2 replaced. */
static int
say(const char *text, const char *one, const char *other)
{
	struct buffer said = {0};

	for (; *text != '\0'; text++)
		if (*text == '$')
			buffer_puts(&said, *++text == '1' ? one : other);
		else
			buffer_put(&said, text, 1);
	(void)complain("%s", buffer_text(&said));
	buffer_free(&said);
	return -EINVAL;
}

int
option_rules_check(const struct options *o, const bool given[OPT_END])
{
	const char *called[FACTS] = {NULL};

	for (int i = 0; i < OPT_END; i++)
		if (given[i])
			called[i] = option_called(i);
	find_facts(o, called);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *rule = &rules[i];
		const char *one, *other;

		if (rule->check != NULL) {
			if (rule->check(o) < 0)
				return -EINVAL;
			continue;
		}
		one = first_of(rule->one, called);
		other = rule->other == NULL ? "" :
		    first_of(rule->other, called);
		if (one != NULL && other != NULL)
			return say(rule->text, one, other);
	}
	return 0;
}
