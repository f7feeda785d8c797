/* option_table: the list of options, and what is generated from it. */
#include "option/option_table.h"

#include <ctype.h>
#include <string.h>

/* The columns at which the text of the help begins, and its lines end. */
enum { HELP_COLUMN = 19, USAGE_COLUMN = 23, COLUMNS = 80 };

#define FROM_OUTSIDE	(OPTION_ATTACH | OPTION_COMMAND)
#define WATCHES		(FROM_OUTSIDE | OPTION_INSIDE)
#define EVERY_FORM	(WATCHES | OPTION_REPORT)
#define REPORTS		(EVERY_FORM | OPTION_HEAP)

const struct option_entry option_table[] = {
	{'w', NULL, 0, "SPEC", NULL,
	    WATCHES | OPTION_APART,
	    "watch writes          SPEC: ADDR[:LEN], SYMBOL[+OFF][:LEN]"},
	{'r', NULL, 0, "SPEC", NULL,
	    WATCHES | OPTION_APART,
	    "watch reads                 MODULE!SYMBOL[+OFF][:LEN], or"},
	{'a', NULL, 0, "SPEC", NULL,
	    WATCHES | OPTION_APART,
	    "watch any access            C, such as 'head->next[3]'"},
	{'x', NULL, 0, "SPEC", NULL,
	    WATCHES | OPTION_APART,
	    "watch execution"},
	{'p', NULL, 0, "PID", NULL,
	    OPTION_ATTACH | OPTION_APART,
	    "attach to a process and all its threads, future ones too;\n"
	    "repeatable, or a list: 12,13; NAME: to all processes of this\n"
	    "name, or whose executable has it; @CHILDREN:PID: to a process\n"
	    "and all that descend from it"},
	{0, "follow", OPT_FOLLOW, NULL, NULL,
	    FROM_OUTSIDE,
	    "watch each pointer on the way to what a SPEC names, too, and\n"
	    "move with it"},
	{0, "slots", OPT_SLOTS, "rotate", "rotate",
	    FROM_OUTSIDE,
	    "move the slots over an object that is wider than they are"},
	{0, "after-free", OPT_AFTER_FREE, NULL, NULL,
	    FROM_OUTSIDE | OPTION_APART,
	    "watch an object (alloc:) also when it is freed, until its\n"
	    "memory is handed out again: such hits are uses after free"},
	{0, "free-function", OPT_FREE_FUNCTION, "NAME", NULL,
	    FROM_OUTSIDE | OPTION_APART,
	    "this function frees the object (alloc:) that it is called\n"
	    "with, too; repeatable"},
	{0, "exe", OPT_EXE, "PATH", NULL,
	    OPTION_ATTACH | OPTION_APART,
	    "attach to each process that executes this file, now and\n"
	    "later"},
	{0, "cgroup", OPT_CGROUP, "PATH", NULL,
	    OPTION_ATTACH | OPTION_APART,
	    "attach to each process of this control group, now and later,\n"
	    "that has what is to be watched"},
	{0, "all-cpus", OPT_ALL_CPUS, NULL, NULL,
	    OPTION_ATTACH | OPTION_APART,
	    "attach to each process of the machine, now and later, that\n"
	    "has what is to be watched"},
	{'f', NULL, 0, NULL, NULL,
	    WATCHES,
	    "watch its future child processes too"},
	{'n', NULL, 0, "N", NULL,
	    EVERY_FORM,
	    "end after N hits"},
	{0, "each", OPT_EACH, "N", NULL,
	    EVERY_FORM,
	    "disarm a watch after N of its hits, and end with the last"},
	{'t', NULL, 0, "SECONDS", NULL,
	    WATCHES,
	    "end after this time"},
	{0, "count", OPT_COUNT, NULL, NULL,
	    FROM_OUTSIDE,
	    "only count hits, of each thread, which is the cheapest"},
	{0, "user-only", OPT_USER_ONLY, NULL, NULL,
	    WATCHES,
	    "leave out the kernel's accesses on the program's behalf"},
	{0, "changed", OPT_CHANGED, NULL, NULL,
	    EVERY_FORM,
	    "leave out writes that are known not to change the value"},
	{0, "if", OPT_IF, "CONDITION", NULL,
	    EVERY_FORM,
	    "report only hits for which it holds: 'new < 0 && tid != 42'"},
	{0, "every", OPT_EVERY, "N", NULL,
	    EVERY_FORM,
	    "report each Nth hit of a watch"},
	{0, "max-rate", OPT_MAX_RATE, "N", NULL,
	    EVERY_FORM,
	    "report at most N hits a second"},
	{0, "once", OPT_ONCE, NULL, NULL,
	    EVERY_FORM,
	    "report one hit for each distinct backtrace"},
	{0, "last", OPT_LAST, "N", NULL,
	    FROM_OUTSIDE,
	    "keep the newest N hits, and report them when the process\n"
	    "ends, however it does, or when watchctl gets SIGUSR1"},
	{0, "until", OPT_UNTIL, "CONDITION", NULL,
	    EVERY_FORM,
	    "end at the first hit for which it holds"},
	{0, "with", OPT_WITH, "EVENT", "page-faults minor-faults major-faults "
	    "context-switches cpu-migrations task-clock instructions cycles "
	    "branches branch-misses cache-references cache-misses",
	    FROM_OUTSIDE,
	    "read this counter at each hit, and report what was counted in\n"
	    "the thread since its last one; a list: page-faults,task-clock"},
	{0, "stop", OPT_STOP, NULL, NULL,
	    FROM_OUTSIDE,
	    "stop each thread at its hit for a moment: exact values, and\n"
	    "nothing is lost"},
	{0, "on-hit", OPT_ON_HIT, "ACTION", "pause core exec",
	    FROM_OUTSIDE,
	    "at each hit pause (leave the process stopped for a debugger),\n"
	    "core (write a core file) or 'exec COMMAND'; implies --stop"},
	{0, "inside", OPT_INSIDE, NULL, NULL,
	    OPTION_INSIDE | OPTION_APART,
	    "watch by a library loaded into COMMAND: a thread goes on when\n"
	    "its hit has been reported, and no hit is lost"},
	{0, "heap", OPT_HEAP, "[=sample]", "sample",
	    OPTION_HEAP | OPTION_APART,
	    "guard the heap of COMMAND and of what it executes: report\n"
	    "writes past the end of a block, in front of it or after free,\n"
	    "and wrong frees; sample: run it once, and watch some blocks"},
	{0, "heap-runs", OPT_HEAP_RUNS, "N", NULL,
	    OPTION_HEAP,
	    "if there was damage, run COMMAND again, at most so often (3),\n"
	    "and watch the very bytes, whose writer is then a hit; 0: none"},
	{0, "heap-quarantine", OPT_HEAP_QUARANTINE, "SIZE", NULL,
	    OPTION_HEAP,
	    "keep so much of freed memory from being used again (1M); 0:\n"
	    "do not look for writes after free"},
	{0, "if-missing", OPT_IF_MISSING, "skip", "skip",
	    OPTION_COMMAND,
	    "watch only those of the programs that COMMAND executes that\n"
	    "have what SPEC names"},
	{0, "no-aslr", OPT_NO_ASLR, NULL, NULL,
	    OPTION_COMMAND | OPTION_INSIDE | OPTION_HEAP,
	    "give COMMAND and what it executes the same addresses in each\n"
	    "run"},
	{0, "stack", OPT_STACK, "BYTES", NULL,
	    WATCHES,
	    "copy this much stack with each hit (4096; to judge, 16384)"},
	{0, "buffer", OPT_BUFFER, "SIZE", NULL,
	    FROM_OUTSIDE,
	    "hold so much that is not yet explained in memory (256M)"},
	{0, "delivery", OPT_DELIVERY, "WAY", "bpf ring",
	    FROM_OUTSIDE,
	    "have hits delivered by BPF programs (bpf) or by the kernel's\n"
	    "rings alone (ring)"},
	{0, "allow", OPT_ALLOW, "PATTERN", NULL,
	    REPORTS,
	    "allow accesses by functions or source files that match, and\n"
	    "by all that they call; others are stray; repeatable"},
	{0, "error-exitcode", OPT_ERROR_EXITCODE, "N", NULL,
	    REPORTS,
	    "exit with N if a stray access (without --allow: any) was\n"
	    "seen; with 120 if none was, but one may have been missed"},
	{0, "policy", OPT_POLICY, "FILE", NULL,
	    EVERY_FORM,
	    "watch what FILE names, and allow the writers that it names;\n"
	    "others are stray"},
	{0, "learn", OPT_LEARN, "FILE", NULL,
	    EVERY_FORM,
	    "add who accessed what to FILE, for --policy"},
	{0, "junit", OPT_JUNIT, "FILE", NULL,
	    REPORTS,
	    "write stray accesses there too, as failed tests of JUnit"},
	{0, "sarif", OPT_SARIF, "FILE", NULL,
	    REPORTS,
	    "write them there too, as SARIF 2.1.0 for code scanning"},
	{0, "github", OPT_GITHUB, NULL, NULL,
	    REPORTS,
	    "write them as annotations for GitHub's runner on stderr too"},
	{'o', NULL, 0, "FORM", "text json folded html gcc trace perf summary "
	    "summary,json",
	    REPORTS,
	    "text, json, folded, html (a page), gcc (as a compiler's\n"
	    "warnings), trace (for Perfetto and speedscope), perf (a\n"
	    "perf.data file), or summary (what each backtrace did) or\n"
	    "summary,json"},
	{0, "top", OPT_TOP, NULL, NULL,
	    FROM_OUTSIDE,
	    "show the writers as a table on the terminal, live, and then\n"
	    "the summary; space: pause, q: end"},
	{'v', NULL, 0, NULL, NULL,
	    EVERY_FORM,
	    "list each backtrace of a writer in the table at the end, too"},
	{0, "stacks", OPT_STACKS, "once", "once",
	    EVERY_FORM,
	    "with -o json: write each backtrace once, on a line of its\n"
	    "own, to which hits refer"},
	{'O', NULL, 0, "FILE", NULL,
	    REPORTS,
	    "write the report there; -: to standard output; %h is this\n"
	    "host, %r this rank of a parallel job, %p the first process"},
	{0, "explain-memory", OPT_EXPLAIN_MEMORY, "SIZE", NULL,
	    REPORTS,
	    "let the process that explains take so much memory (1G)"},
	{0, "no-cache", OPT_NO_CACHE, NULL, NULL,
	    REPORTS,
	    "neither use nor keep what was found out about debug\n"
	    "information"},
	{'h', "help", OPT_HELP, NULL, NULL,
	    EVERY_FORM | OPTION_APART,
	    "print this help"},
	{'V', "version", OPT_VERSION, NULL, NULL,
	    EVERY_FORM | OPTION_APART,
	    "print the version"},
	{0, NULL, 0, NULL, NULL, 0, NULL},
};

enum { ENTRIES = sizeof(option_table) / sizeof(option_table[0]) };

int
option_takes(const struct option_entry *e)
{
	return e->argument == NULL ? no_argument :
	    *e->argument == '[' ? optional_argument : required_argument;
}

const struct option_names *
option_names(unsigned forms, const char *first)
{
	static struct option names[ENTRIES];
	static struct option_names all = {.names = names};
	char *letter = stpcpy(all.letters, first);
	size_t n = 0;

	for (const struct option_entry *e = option_table; e->help != NULL;
	    e++) {
		if (!option_is_for(e, forms))
			continue;
		if (e->name != NULL)
			names[n++] = (struct option){e->name,
			    option_takes(e), NULL, e->value};
		if (e->letter == '\0')
			continue;
		*letter++ = e->letter;
		if (e->argument != NULL)
			*letter++ = ':';
	}
	*letter = '\0';
	names[n] = (struct option){NULL, 0, NULL, 0};
	return &all;
}

const struct option_entry *
option_of(int c)
{
	const struct option_entry *e = option_table;

	while (e->help != NULL && e->letter != c && e->value != c)
		e++;
	return e;
}

const char *
option_called(int c)
{
	static char called[OPT_END][32];
	const struct option_entry *e = option_of(c);

	if (c == e->letter)
		(void)snprintf(called[c], sizeof(called[c]), "-%c", c);
	else if (e->help != NULL)
		(void)snprintf(called[c], sizeof(called[c]), "--%s", e->name);
	return called[c];
}

/* "-n N", "--each N", "-h, --help". */
static int
put_option(const struct option_entry *e, char to[COLUMNS])
{
	const char letter[] = {'-', e->letter, '\0'};

	return snprintf(to, COLUMNS, "%s%s%s%s%s%s",
	    e->letter != '\0' ? letter : "",
	    e->letter != '\0' && e->name != NULL ? ", " : "",
	    e->name != NULL ? "--" : "", e->name != NULL ? e->name : "",
	    option_takes(e) == required_argument ? " " : "",
	    e->argument != NULL ? e->argument : "");
}

static void
put_report_options(FILE *out)
{
	int column = USAGE_COLUMN;
	char text[COLUMNS];

	(void)fputs("       watchctl report", out);
	for (const struct option_entry *e = option_table; e->help != NULL;
	    e++) {
		const int len = put_option(e, text) + 3;

		if (!option_is_for(e, OPTION_REPORT) ||
		    option_is_for(e, OPTION_APART))
			continue;
		if (column + len >= COLUMNS) {
			(void)fprintf(out, "\n%*s", USAGE_COLUMN - 1, "");
			column = USAGE_COLUMN;
		}
		(void)fprintf(out, " [%s]", text);
		column += len;
	}
	(void)fputs(" FILE...\n", out);
}

static void
put_help(const struct option_entry *e, FILE *out)
{
	char text[COLUMNS];
	const int len = put_option(e, text);
	const char *line = e->help;

	if (len + 2 >= HELP_COLUMN)
		(void)fprintf(out, "  %s\n%*s", text, HELP_COLUMN, "");
	else
		(void)fprintf(out, "  %-*s", HELP_COLUMN - 2, text);
	for (size_t n; (n = strcspn(line, "\n")), line[n] != '\0';
	    line += n + 1)
		(void)fprintf(out, "%.*s\n%*s", (int)n, line, HELP_COLUMN,
		    "");
	(void)fprintf(out, "%s\n", line);
}

void
option_help(FILE *out)
{
	(void)fputs(
"usage: watchctl [OPTIONS] {-w|-r|-a|-x} SPEC ... -p PID ...\n"
"       watchctl [OPTIONS] {-w|-a} kernel!SYMBOL[+OFF][:LEN] ...\n"
"       watchctl [OPTIONS] {-w|-r|-a} shm:/NAME+OFF[:LEN] ...\n"
"       watchctl [OPTIONS] {-w|-r|-a|-x} SPEC ... [--] COMMAND [ARG...]\n"
"       watchctl [OPTIONS] --heap[=sample] [--] COMMAND [ARG...]\n", out);
	put_report_options(out);
	(void)fputs(
"       watchctl doctor [-o json]\n"
"Reports what touches a running program's memory: thread, instruction, callers.\n"
"\n", out);
	for (const struct option_entry *e = option_table; e->help != NULL; e++)
		put_help(e, out);
}

/* Print an argument: a literal one, or the word for what it stands for, in
   lower case. */
static void
put_argument(const char *argument, FILE *out)
{
	(void)fputs(islower((unsigned char)*argument) ? " Cm " : " Ar ", out);
	for (; *argument != '\0'; argument++)
		(void)putc(tolower((unsigned char)*argument), out);
}

static void
put_optional(const struct option_entry *e, FILE *out)
{
	if (e->name != NULL)
		(void)fprintf(out, ".Op Fl -%s", e->name);
	else
		(void)fprintf(out, ".Op Fl %c", e->letter);
	if (e->argument != NULL)
		put_argument(e->argument, out);
	(void)putc('\n', out);
}

void
option_synopsis(FILE *out)
{
#define SPECS ".Brq Fl w | r | a | x\n.Ar spec ...\n"
#define WITH_COMMAND ".Op Fl -\n.Ar command Op Ar argument ...\n"
	static const struct {
		unsigned form;
		const char *before, *behind;
	} forms[] = {
		{OPTION_ATTACH, "", SPECS ".Bro\n.Fl p Ar pid | name | "
		    "Cm @CHILDREN: Ns Ar pid ... |\n.Fl -exe Ar path | "
		    "Fl -cgroup Ar path | Fl -all-cpus\n.Brc\n"},
		{OPTION_COMMAND, "", SPECS WITH_COMMAND},
		{OPTION_INSIDE, ".Fl -inside\n", SPECS WITH_COMMAND},
		{OPTION_HEAP, ".Fl -heap Ns Op Cm =sample\n", WITH_COMMAND},
		{OPTION_REPORT, ".Cm report\n", ".Ar recording\n"},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		(void)fprintf(out, ".Nm watchctl\n%s", forms[i].before);
		for (const struct option_entry *e = option_table;
		    e->help != NULL; e++)
			if (option_is_for(e, forms[i].form) &&
			    !option_is_for(e, OPTION_APART))
				put_optional(e, out);
		(void)fputs(forms[i].behind, out);
	}
	(void)fputs(".Nm watchctl\n.Cm report\n.Op Fl O Ar file\n.Ar log\n"
	    ".Nm watchctl\n.Cm report\n.Op Fl o Cm text | summary | json | "
	    "summary,json\n.Op Fl O Ar file\n.Ar file ...\n"
	    ".Nm watchctl\n.Cm doctor\n.Op Fl o Cm text | json\n", out);
}
