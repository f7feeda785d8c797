/* options: the parsed command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "spec/condition.h"
#include "option/on_hit_option.h"
#include "option/policy_file.h"
#include "spec/spec.h"

/* watchctl's own exit statuses; otherwise that of the command, that of
   --error-exitcode, or 0. */
enum {
	STATUS_NOT_VOUCHED = 120,	/* --error-exitcode: nothing stray was
					   seen, but not all was seen */
	STATUS_OWN_FAILURE = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
};

/* How hits come: by BPF programs where they can, by them or not at all, or by
   the kernel's rings alone. */
enum delivery { DELIVERY_USUAL, DELIVERY_BPF, DELIVERY_RING };

enum form { FORM_TEXT, FORM_JSON, FORM_FOLDED, FORM_PERF, FORM_SUMMARY,
	FORM_SUMMARY_JSON, FORM_GCC, FORM_TRACE, FORM_HTML };

/* What is written beside the report. */
enum side { SIDE_JUNIT, SIDE_SARIF, SIDE_GITHUB, SIDE_LEARN, SIDES };

/* --heap-quarantine, if it is not given; and what is done then. */
#define QUARANTINE_NONE UINT64_MAX
#define QUARANTINE_USUAL ((uint64_t)1 << 20)

/* --heap: the writer is found in a further run, or in the only one. */
enum heap_way { HEAP_NONE, HEAP_RERUN, HEAP_SAMPLE };

/* The same of --heap-runs. */
#define HEAP_RUNS_NONE UINT64_MAX
enum { HEAP_RUNS_USUAL = 3 };

enum { FREE_FUNCTIONS_MAX = 4 };

struct options {
	char **argv;		/* as they were given */
	struct spec *spec;	/* nspecs of them, in the order given */
	size_t nspecs;
	pid_t *pid;		/* npids of them */
	size_t npids;
	char **name;		/* nnames of them, malloc'd: what -p calls other
				   processes; "@CHILDREN:PID" is such a name */
	size_t nnames;
	const char *exe;	/* --exe; NULL: none */
	const char *cgroup;	/* --cgroup; NULL: none */
	bool all_cpus;		/* --all-cpus: all processes */
	char **command;		/* NULL-terminated; NULL: none */
	const char *file;	/* report: what to read; NULL: not that */
	char **files;		/* nfiles of them: all that it is to read */
	size_t nfiles;
	bool follow;		/* -f */
	bool follow_pointers;	/* --follow */
	bool rotate;		/* --slots rotate */
	uint64_t limit;		/* -n; 0: none */
	double seconds;		/* -t; 0: none */
	bool count;		/* --count */
	bool user_only;		/* --user-only */
	bool changed;		/* --changed */
	struct condition condition;	/* --if; without a root: none */
	uint64_t every;		/* --every; 0: each */
	uint64_t each;		/* --each: hits of a watch; 0: any */
	uint64_t max_rate;	/* --max-rate, hits in a second; 0: any */
	bool once;		/* --once */
	uint64_t last;		/* --last; 0: hits are reported at once */
	uint32_t with;		/* --with: bits, 1 << enum wp_counter */
	struct condition until;	/* --until; without a root: none */
	bool inside;		/* --inside */
	enum heap_way heap;	/* --heap: no watch, but a guard */
	uint64_t quarantine;	/* --heap-quarantine, bytes */
	uint64_t heap_runs;	/* --heap-runs, as given */
	bool no_aslr;		/* --no-aslr */
	bool skip_missing;	/* --if-missing skip */
	bool stop;		/* --stop, or --on-hit, which takes it */
	struct on_hit on_hit;	/* --on-hit */
	bool top;		/* --top: form is summary */
	enum form form;		/* -o */
	const char *output;	/* -O, of origin_name(); NULL: none, or "-" */
	bool to_stdout;		/* -O - */
	bool stacks_once;	/* --stacks once */
	bool verbose;		/* -v */
	uint64_t explain_memory;	/* --explain-memory, bytes; 0: as
					   usual */
	bool no_cache;		/* --no-cache */
	uint32_t stack;		/* --stack: bytes of stack with each hit */
	uint64_t buffer;	/* --buffer: bytes of memory for records that
				   are not explained yet; 0: as usual */
	enum delivery delivery;	/* --delivery */
	bool after_free;	/* --after-free */
	const char *free_function[FREE_FUNCTIONS_MAX];	/* --free-function:
							   nfree_functions of
							   them */
	size_t nfree_functions;
	const char **allow;	/* --allow: nallow patterns */
	size_t nallow;
	int error_status;	/* --error-exitcode; 0: none */
	const char *side[SIDES];	/* --junit, --sarif, --learn: the file;
					   --github: ""; NULL: not asked for */
	const char *policy_path;	/* --policy; NULL: none */
	struct policy_file policy;	/* what is in it */
};

/*
 * Take a command line apart, from argv[1] on; of `watchctl report` (argv[0] is
 * "report") with its own options.  0; 1 when it was --help or --version, which
 * is then done; -EINVAL after one line on stderr.  Texts in *o are argv's; free
 * it in any case.
 */
int options_parse(int argc, char **argv, struct options *);
int options_parse_report(int argc, char **argv, struct options *);
void options_free(struct options *);

/* What there is without --delivery: as the environment asks, or USUAL. */
enum delivery options_usual_delivery(void);

/* Of a name "@CHILDREN:PID" the process; 0: it is another name. */
pid_t options_children_of(const char *name);

/* The option by which processes are watched that may come later; NULL: none. */
static inline const char *
options_scope(const struct options *o)
{
	return o->exe != NULL ? "--exe" : o->cgroup != NULL ? "--cgroup" :
	    o->all_cpus ? "--all-cpus" : NULL;
}

/* Whether these execute any programs, of which some have what is watched. */
static inline bool
options_any_program(const struct options *o)
{
	return o->cgroup != NULL || o->all_cpus;
}

/* Whether processes are given that run. */
static inline bool
options_attach(const struct options *o)
{
	return o->npids > 0 || o->nnames > 0 || options_scope(o) != NULL;
}

/* Whether what runs on any processor is watched, whatever it is. */
static inline bool
options_everywhere(const struct options *o)
{
	return o->nspecs > 0 && o->spec[0].kernel;
}

/* Whether it is about what a function returns (alloc:). */
static inline bool
options_objects(const struct options *o)
{
	return o->nspecs > 0 && o->spec[0].allocator != NULL;
}

/* Whether it is about memory that processes share (shm:, file:), of those that
   map it. */
static inline bool
options_shared(const struct options *o)
{
	return o->nspecs > 0 && o->spec[0].shared != NULL;
}

/* With --last and --until all hits are explained as they come, and so many
   samples wait in the explainer: they are in the memory that it shares. */
uint64_t options_held_samples(const struct options *);

/* Whether findings are written for systems that run tests. */
static inline bool
options_ci(const struct options *o)
{
	return o->side[SIDE_JUNIT] != NULL || o->side[SIDE_SARIF] != NULL ||
	    o->side[SIDE_GITHUB] != NULL;
}

/* Whether it matters that nothing stray was missed: to the exit status, or to
   them. */
static inline bool
options_vouch(const struct options *o)
{
	return o->error_status != 0 || options_ci(o);
}

/* Whether accesses are to be judged: by --allow, by --policy, or each is stray;
   but what --heap finds is damage, by whomever. */
static inline bool
options_judge(const struct options *o)
{
	return !o->heap && (o->nallow > 0 || o->policy_path != NULL ||
	    options_vouch(o));
}

/* One of the options that have them judged; NULL: none does. */
const char *options_judging(const struct options *);

/* How an option of enum side is called. */
const char *options_side_name(enum side);

/* Whether hits are left out, whatever they are. */
static inline bool
options_thin(const struct options *o)
{
	return o->every != 0 || o->max_rate != 0 || o->once || o->last != 0;
}

/* Whether the report is written at the end, of sums of its hits. */
static inline bool
options_sum(const struct options *o)
{
	return o->form == FORM_FOLDED || o->form == FORM_SUMMARY ||
	    o->form == FORM_SUMMARY_JSON || o->form == FORM_HTML;
}

/* Whether it is for a reader, or for a program, line by line. */
static inline bool
options_text(const struct options *o)
{
	return o->form == FORM_TEXT || o->form == FORM_SUMMARY;
}

static inline bool
options_json(const struct options *o)
{
	return o->form == FORM_JSON || o->form == FORM_SUMMARY_JSON;
}

/* Whether hits may be left out of the report. */
static inline bool
options_choose(const struct options *o)
{
	return o->condition.root != NULL || o->changed || options_thin(o);
}

/* Whether the kernel may make accesses that are asked for. */
static inline bool
options_kernel_may_access(const struct options *o)
{
	bool data = o->nspecs == 0;

	for (size_t i = 0; i < o->nspecs; i++)
		data = data || o->spec[i].access != WP_EXEC;
	return data && !o->user_only;
}

/* Whether hits need only be counted where it is known how they would be
   reported: it matters for nothing which hit it is. */
static inline bool
options_tally(const struct options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].thread != 0)
			return false;
	return (o->form == FORM_SUMMARY || o->form == FORM_SUMMARY_JSON) &&
	    !options_choose(o) && !options_judge(o) && o->until.root == NULL &&
	    o->side[SIDE_LEARN] == NULL && o->limit == 0 && o->each == 0 &&
	    o->with == 0 && !o->stop && !o->inside;
}

#endif
