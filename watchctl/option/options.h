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

/* How hits are delivered: by BPF programs where they work, by BPF programs or
   not at all, or by the kernel's rings alone. */
enum delivery { DELIVERY_USUAL, DELIVERY_BPF, DELIVERY_RING };

enum form { FORM_TEXT, FORM_JSON, FORM_FOLDED, FORM_PERF, FORM_SUMMARY,
	FORM_SUMMARY_JSON, FORM_GCC, FORM_TRACE, FORM_HTML };

/* Files that are written in addition to the report. */
enum side { SIDE_JUNIT, SIDE_SARIF, SIDE_GITHUB, SIDE_LEARN, SIDES };

/* --heap-quarantine: not given; and the default. */
#define QUARANTINE_NONE UINT64_MAX
#define QUARANTINE_USUAL ((uint64_t)1 << 20)

/* --heap: the writer is found in further runs, or in the only one. */
enum heap_way { HEAP_NONE, HEAP_RERUN, HEAP_SAMPLE };

/* The same of --heap-runs. */
#define HEAP_RUNS_NONE UINT64_MAX
enum { HEAP_RUNS_USUAL = 3 };

enum { FREE_FUNCTIONS_MAX = 4 };

struct options {
	char **argv;		/* the command line */
	struct spec *spec;	/* nspecs of them, in the order given */
	size_t nspecs;
	pid_t *pid;		/* npids of them */
	size_t npids;
	char **name;		/* nnames of them, malloc'd: processes that -p
				   gives by name, which includes
				   "@CHILDREN:PID" */
	size_t nnames;
	const char *exe;	/* --exe; NULL: none */
	const char *cgroup;	/* --cgroup; NULL: none */
	bool all_cpus;		/* --all-cpus: all processes */
	char **command;		/* NULL-terminated; NULL: none */
	const char *file;	/* report: the file to read; NULL: another
				   form */
	char **files;		/* nfiles of them: all files that report is to
				   read */
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
	bool top;		/* --top; form is FORM_SUMMARY */
	enum form form;		/* -o */
	const char *output;	/* -O, from origin_name(); NULL: none, or "-" */
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
	struct policy_file policy;	/* its content */
};

/*
 * Parse a command line, from argv[1] on; of `watchctl report` (argv[0] is
 * "report") with its own options.  0; 1 for --help or --version, which is then
 * done; -EINVAL after one line on stderr.  Texts in *o belong to argv; free it
 * in any case.
 */
int options_parse(int argc, char **argv, struct options *);
int options_parse_report(int argc, char **argv, struct options *);
void options_free(struct options *);

/* The delivery without --delivery: as the environment asks, or
   DELIVERY_USUAL. */
enum delivery options_usual_delivery(void);

/* The process of a name "@CHILDREN:PID"; 0: it is another name. */
pid_t options_children_of(const char *name);

/* The option that selects processes which may appear later; NULL: none. */
static inline const char *
options_scope(const struct options *o)
{
	return o->exe != NULL ? "--exe" : o->cgroup != NULL ? "--cgroup" :
	    o->all_cpus ? "--all-cpus" : NULL;
}

/* Whether selected processes may execute any program, and only some have the
   SPECs. */
static inline bool
options_any_program(const struct options *o)
{
	return o->cgroup != NULL || o->all_cpus;
}

/* Whether running processes are watched. */
static inline bool
options_attach(const struct options *o)
{
	return o->npids > 0 || o->nnames > 0 || options_scope(o) != NULL;
}

/* Whether everything that runs on any processor is watched (kernel SPECs). */
static inline bool
options_everywhere(const struct options *o)
{
	return o->nspecs > 0 && o->spec[0].kernel;
}

/* Whether objects that a function returns are watched (alloc:). */
static inline bool
options_objects(const struct options *o)
{
	return o->nspecs > 0 && o->spec[0].allocator != NULL;
}

/* Whether memory that processes share (shm:, file:) is watched, in all that map
   it. */
static inline bool
options_shared(const struct options *o)
{
	return o->nspecs > 0 && o->spec[0].shared != NULL;
}

/* Whether there is more to watch than execution. */
static inline bool
options_watch_data(const struct options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].access != WP_EXEC)
			return true;
	return false;
}

/* Why uprobes cannot watch execution with these options, as the end of a
   sentence; NULL: they can. */
static inline const char *
options_no_uprobes(const struct options *o)
{
	return o->stop ? "stop a thread one instruction too late for --stop" :
	    options_everywhere(o) ? "are for single processes" :
	    o->delivery == DELIVERY_RING ? "are not for --delivery ring" : NULL;
}

/* With --last and --until all hits are explained as they come, and this many
   samples wait in the explainer: they are in the memory that it shares. */
uint64_t options_held_samples(const struct options *);

/* Whether findings are written for systems that run tests. */
static inline bool
options_ci(const struct options *o)
{
	return o->side[SIDE_JUNIT] != NULL || o->side[SIDE_SARIF] != NULL ||
	    o->side[SIDE_GITHUB] != NULL;
}

/* Whether a missed stray access matters: to the exit status or to test
   systems. */
static inline bool
options_vouch(const struct options *o)
{
	return o->error_status != 0 || options_ci(o);
}

/* Whether accesses are judged: by --allow, by --policy, or every access is
   stray.  With --heap none is: findings are damage, whoever made it. */
static inline bool
options_judge(const struct options *o)
{
	return !o->heap && (o->nallow > 0 || o->policy_path != NULL ||
	    options_vouch(o));
}

/* An option that requests judging; NULL: none does. */
const char *options_judging(const struct options *);

/* The name of a side file's option. */
const char *options_side_name(enum side);

/* Whether hits are left out regardless of what they are. */
static inline bool
options_thin(const struct options *o)
{
	return o->every != 0 || o->max_rate != 0 || o->once || o->last != 0;
}

/* Whether the report is written at the end, from sums of the hits. */
static inline bool
options_sum(const struct options *o)
{
	return o->form == FORM_FOLDED || o->form == FORM_SUMMARY ||
	    o->form == FORM_SUMMARY_JSON || o->form == FORM_HTML;
}

/* Whether the report is text; or JSON. */
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

/* Whether accesses by the kernel may be hits. */
static inline bool
options_kernel_may_access(const struct options *o)
{
	bool data = o->nspecs == 0;

	for (size_t i = 0; i < o->nspecs; i++)
		data = data || o->spec[i].access != WP_EXEC;
	return data && !o->user_only;
}

/* Whether a hit whose report is already known need only be counted, because no
   option depends on which hit it is. */
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
