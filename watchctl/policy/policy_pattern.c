/* policy_pattern: the functions, files and writers that are allowed. */
#include "policy/policy_private.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "symbol/line.h"
#include "policy/culprit_name.h"

bool
policy_is_for_whole(const char *pattern)
{
	return strchr(pattern, '(') != NULL || pattern[0] == '_';
}

/* The number of patterns, and one of them; NULL if that is not a pattern. */
static size_t
patterns(const struct policy *p)
{
	return p->n + (p->rules == NULL ? 0 : p->rules->n);
}

static const char *
pattern(const struct policy *p, size_t i)
{
	const struct policy_line *line;

	if (i < p->n)
		return p->allow[i];
	line = &p->rules->line[i - p->n];
	return line->key == POLICY_ALLOW ? line->value : NULL;
}

void
policy_use(const struct policy *p, const struct policy_line *line)
{
	if (line->number <= p->file->lines)
		p->used[line->number] = true;
}

static bool
use_pattern(const struct policy *p, size_t i)
{
	if (i >= p->n)
		policy_use(p, &p->rules->line[i - p->n]);
	return true;
}

static bool
matches(const struct policy *p, const char *name, bool whole)
{
	bool any = false;

	for (size_t i = 0; i < patterns(p); i++) {
		const char *text = pattern(p, i);

		if (text != NULL && (!whole || policy_is_for_whole(text)) &&
		    fnmatch(text, name, 0) == 0)
			any = use_pattern(p, i);
	}
	return any;
}

/* Whether a name matches, with or without the suffixes of a compiler's copies
   and parts. */
static bool
name_allowed(const struct policy *p, const char *name, bool whole)
{
	const size_t len = culprit_name_length(name);
	bool allowed = matches(p, name, whole);
	char *cut;

	if (allowed || name[len] == '\0' || (cut = strndup(name, len)) == NULL)
		return allowed;
	allowed = matches(p, cut, whole);
	free(cut);
	return allowed;
}

/* Whether a mangled name belongs to this function, and matches as it is or
   demangled with its parameters. */
static bool
raw_allowed(const struct policy *p, const char *raw, const char *function)
{
	char *owned, *whole = NULL;
	bool allowed = false;

	if (strcmp(ex_demangle(raw, &owned), function) == 0) {
		whole = ex_demangle_whole(raw);
		allowed = name_allowed(p, raw, true) ||
		    (whole != NULL && name_allowed(p, whole, true));
	}
	free(owned);
	free(whole);
	return allowed;
}

/* The same by the debug information at the frame's pc or, as it may be a return
   address, at the byte before. */
static bool
lines_allowed(const struct policy *p, struct ex_module *module,
    const struct ex_frame *frame)
{
	struct ex_line line[EX_LINES_MAX];

	for (unsigned before = 0; before < 2; before++) {
		unsigned n = ex_lines_at(module, frame->vaddr - before, line);

		for (unsigned i = 0; i < n; i++)
			if (line[i].function != NULL &&
			    raw_allowed(p, line[i].function, frame->function))
				return true;
	}
	return false;
}

bool
policy_names(const struct policy *p, const struct ex_frame *frame)
{
	struct ex_module *module =
	    (struct ex_module *)(uintptr_t)frame->module;
	struct ex_symbol symbol;

	/* names of generated code cannot be verified */
	if (frame->function == NULL || frame->jit)
		return false;
	if (name_allowed(p, frame->function, false))
		return true;
	if (module == NULL || !p->whole)
		return false;
	if (!frame->inlined &&
	    ex_symbol_at(module, frame->vaddr - frame->offset, &symbol) &&
	    raw_allowed(p, symbol.name, frame->function))
		return true;
	return lines_allowed(p, module, frame);
}

/* Whether a pattern matches a path: with a '/' in it, any part that starts
   after a '/'; otherwise the last part. */
static bool
file_matches(const char *pattern, const char *path)
{
	const bool parts = strchr(pattern, '/') != NULL;
	const char *slash;

	while ((slash = strchr(path, '/')) != NULL) {
		if (parts && fnmatch(pattern, path, 0) == 0)
			return true;
		path = slash + 1;
	}
	return fnmatch(pattern, path, 0) == 0;
}

static bool
file_allowed(const struct policy *p, const struct ex_frame *frame)
{
	bool any = false;

	for (size_t i = 0; i < patterns(p) && frame->file != NULL; i++)
		if (pattern(p, i) != NULL &&
		    file_matches(pattern(p, i), frame->file))
			any = use_pattern(p, i);
	return any;
}

bool
policy_allows(const struct policy *p, const struct ex_frame *frame)
{
	return file_allowed(p, frame) || policy_names(p, frame);
}

const struct policy_line *
policy_writer_line(const struct policy *p, const struct ex_frame *frame)
{
	const struct policy_line *found = NULL;
	struct buffer name = {0};

	if (p->rules == NULL || !culprit_name_put(&name, frame))
		return NULL;
	for (size_t i = 0; i < p->rules->n && found == NULL; i++)
		if (p->rules->line[i].key == POLICY_WRITER &&
		    strcmp(p->rules->line[i].value, buffer_text(&name)) == 0)
			found = &p->rules->line[i];
	buffer_free(&name);
	return found;
}
