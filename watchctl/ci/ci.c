/* ci: the findings of a run, in the formats of systems that run tests. */
#include "ci/ci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "policy/culprit.h"
#include "policy/culprit_name.h"
#include "report/damage.h"
#include "text/text.h"
#include "util/visible.h"

const struct ci_rule ci_rules[] = {
	{"stray-write", "stray write",
	    "Watched memory was accessed by code that is not allowed to."},
	{"heap-overflow", "heap overflow",
	    "Bytes behind a heap block were written."},
	{"heap-underflow", "heap underflow",
	    "Bytes in front of a heap block were written."},
	{"heap-use-after-free", "heap use after free",
	    "A heap block was written after it was freed."},
	{"heap-double-free", "double free",
	    "A heap block was freed twice."},
	{"heap-invalid-free", "invalid free",
	    "Something that is no heap block was freed."},
	{"heap-mismatch", "mismatched free",
	    "A heap block was not freed in the way that it was allocated."},
	{"not-vouched", "not vouched for",
	    "A stray access, or damage, may have been missed."},
	{NULL, NULL, NULL},
};

static const struct ci_rule *
find_rule(const char *id)
{
	const struct ci_rule *rule = ci_rules;

	while (rule->id != NULL && strcmp(rule->id, id) != 0)
		rule++;
	return rule;
}

/* The hash of a NULL-terminated list of texts. */
static uint64_t
hash_texts(const char *const *texts)
{
	uint64_t print = 0xcbf29ce484222325;

	/* FNV-1a, with a NUL after each text */
	for (; *texts != NULL; texts++)
		for (size_t i = 0; i <= strlen(*texts); i++)
			print = (print ^ (unsigned char)(*texts)[i]) *
			    0x100000001b3;
	return print;
}

static void
problem_free(const struct ci_problem *p)
{
	free(p->program);
	free(p->subject);
	free(p->message);
}

/* Add a problem, and take over its malloc'd texts; one with the same print is
   not added again. */
static void
add_problem(struct ci *ci, const struct ci_problem *new)
{
	for (size_t i = 0; i < ci->n; i++)
		if (ci->problem[i].print == new->print) {
			problem_free(new);
			return;
		}
	if (new->program == NULL || new->subject == NULL ||
	    new->message == NULL || !EX_ARRAY_ROOM(ci, problem, SIZE_MAX)) {
		problem_free(new);
		ci->failed = true;
		return;
	}
	ci->problem[ci->n++] = *new;
}

/* The contents of a buffer, allocated.  NULL if there is no memory. */
static char *
take_text(struct buffer *b)
{
	char *text = b->failed ? NULL : strdup(buffer_text(b));

	if (b->failed) {
		free(text);
		text = NULL;
	}
	buffer_free(b);
	return text;
}

/* The whole name of a function, or else the module without an address, which
   would differ in each build. */
static void
put_function(struct buffer *b, const struct ex_frame *frame)
{
	char *name;

	if (frame == NULL || (frame->function == NULL &&
	    frame->module == NULL)) {
		buffer_puts(b, "unknown code");
	} else if (frame->function == NULL) {
		buffer_puts(b, "code without a name in ");
		visible_put(b, ex_module_name(frame->module));
	} else {
		name = strndup(frame->function,
		    culprit_name_length(frame->function));
		visible_put(b, name == NULL ? frame->function : name);
		free(name);
	}
}

/* The access of a hit as in "written". */
static const char *
participle(const char *access)
{
	return strcmp(access, "write") == 0 ? "written" :
	    strcmp(access, "read") == 0 ? "read" :
	    strcmp(access, "execute") == 0 ? "executed" : "accessed";
}

static const char *
title_of(const char *access)
{
	return strcmp(access, "write") == 0 ? "stray write" :
	    strcmp(access, "read") == 0 ? "stray read" :
	    strcmp(access, "execute") == 0 ? "stray execution" :
	    "stray access";
}

/* The watch as the user wrote it. */
static const char *
spec_of(const struct ex_watch *watch)
{
	return watch->spec != NULL ? watch->spec :
	    watch->symbol != NULL ? watch->symbol : "?";
}

static void
add_stray(struct ci *ci, const struct finding *f)
{
	const char *spec = spec_of(f->watch);
	const struct ci_rule *rule = find_rule("stray-write");
	struct buffer subject = {0}, message = {0}, name = {0};

	visible_put(&subject, spec);
	buffer_puts(&subject, " by ");
	put_function(&subject, f->culprit);
	visible_put(&message, spec);
	buffer_printf(&message, " %s by ", participle(f->access));
	put_function(&message, f->culprit);
	if (f->culprit == NULL || !culprit_name_put(&name, f->culprit))
		put_function(&name, f->culprit);
	add_problem(ci, &(struct ci_problem){
		.rule = rule, .title = title_of(f->access), .spec = spec,
		.program = strdup(f->watch->comm[0] != '\0' &&
		    f->watch->pid != 0 ? f->watch->comm : ci->program),
		.subject = take_text(&subject),
		.message = take_text(&message),
		.print = hash_texts((const char *[]){rule->id, spec,
		    buffer_text(&name), NULL}),
		.frame = f->culprit, .stack = f->stack,
	});
	buffer_free(&name);
}

/* The stack that is shown for it: of the writer if known; of free if that was
   the fault; else of the allocation. */
static const struct ex_stack *
stack_of_damage(const struct report_damage *it)
{
	const struct ex_stack *allocated = it->stack[HG_STACK_ALLOC];

	if (it->writer != NULL)
		return it->writer;
	return it->found->kind >= HG_DOUBLE_FREE || allocated == NULL ||
	    (it->found->when == HG_AT_WRITE &&
	    it->stack[HG_STACK_NOTICED] != NULL) ?
	    it->stack[HG_STACK_NOTICED] : allocated;
}

void
ci_add_damage(struct ci *ci, const struct report_damage *it)
{
	const struct hg_finding *f = it->found;
	const struct ex_stack *stack = stack_of_damage(it);
	const struct ex_frame *culprit = stack == NULL ? NULL :
	    culprit_of(stack);
	const char *slash = strrchr(f->program, '/');
	struct buffer subject = {0}, message = {0}, name = {0};
	char id[64];

	(void)snprintf(id, sizeof(id), "heap-%s", damage_kind(f));
	buffer_printf(&subject, "%s by ", damage_kind(f));
	put_function(&subject, culprit);
	buffer_printf(&message, "%s: ", damage_kind(f));
	damage_put(&message, f);
	buffer_puts(&message, it->writer != NULL ? ", written by " :
	    f->kind >= HG_DOUBLE_FREE || stack == NULL ||
	    stack != it->stack[HG_STACK_ALLOC] ? ", freed by " :
	    ", allocated by ");
	put_function(&message, culprit);
	if (culprit == NULL || !culprit_name_put(&name, culprit))
		put_function(&name, culprit);
	add_problem(ci, &(struct ci_problem){
		.rule = find_rule(id), .title = find_rule(id)->title,
		.program = strdup(slash == NULL ? f->program : slash + 1),
		.subject = take_text(&subject),
		.message = take_text(&message),
		.print = hash_texts((const char *[]){id, buffer_text(&name),
		    NULL}),
		.frame = culprit, .stack = stack,
	});
	buffer_free(&name);
}

static void
add_doubt(struct ci *ci, const char *doubt)
{
	const struct ci_rule *rule = find_rule("not-vouched");
	struct buffer message = {0};

	buffer_puts(&message, "a stray access may have been missed: ");
	visible_put(&message, doubt);
	add_problem(ci, &(struct ci_problem){
		.rule = rule, .title = rule->title, .doubt = true,
		.program = strdup(ci->program), .subject = strdup(rule->id),
		.message = take_text(&message),
		.print = hash_texts((const char *[]){rule->id, NULL}),
	});
}

void
ci_end(struct ci *ci, const struct report_start *start,
    const struct report_end *end, const char *program, const char *doubt,
    double seconds)
{
	const struct ci heaps = *ci;

	*ci = (struct ci){
		.program = program, .watch = start->watches,
		.nwatches = start->nwatches, .seconds = seconds,
		.failed = heaps.failed,
	};
	if (getcwd(ci->directory, sizeof(ci->directory)) == NULL)
		*ci->directory = '\0';
	for (size_t i = 0; i < end->nfindings; i++)
		add_stray(ci, end->findings[i]);
	if (*doubt != '\0')
		add_doubt(ci, doubt);
	for (size_t i = 0; i < heaps.n; i++)
		add_problem(ci, &heaps.problem[i]);
	free(heaps.problem);
}

void
ci_free(struct ci *ci)
{
	for (size_t i = 0; i < ci->n; i++)
		problem_free(&ci->problem[i]);
	free(ci->problem);
	*ci = (struct ci){.n = 0};
}

const char *
ci_path(const struct ci *ci, const struct ex_frame *frame)
{
	const char *path = frame == NULL || frame->file == NULL ? NULL :
	    text_from_directory(ci->directory, frame->file);

	return path != NULL && strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

/* Escape what would end a property or the command. */
static void
put_escaped(struct buffer *b, const char *text, const char *escaped)
{
	struct buffer shown = {0};

	visible_put(&shown, text);
	for (size_t i = 0; i < shown.len; i++) {
		const char c = shown.bytes[i];

		if (strchr(escaped, c) != NULL)
			buffer_printf(b, "%%%02X", (unsigned char)c);
		else
			buffer_put(b, &c, 1);
	}
	b->failed |= shown.failed;
	buffer_free(&shown);
}

void
ci_put_github(const struct ci *ci, struct buffer *b)
{
	static const char in_property[] = "%\r\n:,", in_message[] = "%\r\n";

	for (size_t i = 0; i < ci->n; i++) {
		const struct ci_problem *p = &ci->problem[i];
		const char *path = ci_path(ci, p->frame);

		buffer_puts(b, "::error ");
		if (path != NULL) {
			buffer_puts(b, "file=");
			put_escaped(b, path, in_property);
			if (p->frame->line > 0)
				buffer_printf(b, ",line=%d", p->frame->line);
			buffer_puts(b, ",");
		}
		buffer_puts(b, "title=");
		put_escaped(b, p->title, in_property);
		buffer_puts(b, "::");
		put_escaped(b, p->message, in_message);
		buffer_puts(b, "\n");
	}
}
