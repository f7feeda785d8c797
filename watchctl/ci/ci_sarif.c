/*
 * ci_sarif: SARIF 2.1.0, which code scanning systems read.
 *
 * A result's fingerprint is of names alone, so that it is the same result in
 * another build, whatever has moved.
 */
#include <inttypes.h>
#include <string.h>

#include "policy/culprit.h"
#include "ci/ci.h"
#include "util/visible.h"

/* Put a path as a URI; relative paths are relative to the source root. */
static void
put_location(struct buffer *b, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/+@";
	const bool absolute = *path == '/';

	buffer_printf(b, "{\"uri\":\"%s", absolute ? "file://" : "");
	for (; *path != '\0'; path++) {
		if (strchr(plain, *path) != NULL)
			buffer_put(b, path, 1);
		else
			buffer_printf(b, "%%%02X", (unsigned char)*path);
	}
	buffer_puts(b, absolute ? "\"}" :
	    "\",\"uriBaseId\":\"%SRCROOT%\"}");
}

static void
put_frame(struct buffer *b, const struct ci *ci, const struct ex_frame *frame)
{
	/* relative paths in the C library belong to other sources */
	const char *path = culprit_is_library(frame) ? NULL :
	    ci_path(ci, frame);

	buffer_puts(b, "{");
	if (path != NULL) {
		buffer_puts(b, "\"physicalLocation\":{\"artifactLocation\":");
		put_location(b, path);
		if (frame->line > 0)
			buffer_printf(b, ",\"region\":{\"startLine\":%d",
			    frame->line);
		if (frame->line > 0 && frame->column > 0)
			buffer_printf(b, ",\"startColumn\":%d", frame->column);
		buffer_puts(b, frame->line > 0 ? "}}" : "}");
	}
	if (frame->function != NULL) {
		buffer_printf(b, "%s\"logicalLocations\":[{\"kind\":"
		    "\"function\",\"fullyQualifiedName\":",
		    path != NULL ? "," : "");
		visible_put_json(b, frame->function);
		buffer_puts(b, "}]");
	}
	buffer_puts(b, "}");
}

static void
put_stack(struct buffer *b, const struct ci *ci, const struct ex_stack *stack)
{
	buffer_puts(b, ",\"stacks\":[{\"frames\":[");
	for (unsigned i = 0; i < stack->n; i++) {
		buffer_puts(b, i > 0 ? ",{\"location\":" : "{\"location\":");
		put_frame(b, ci, &stack->frame[i]);
		if (stack->frame[i].module != NULL) {
			buffer_puts(b, ",\"module\":");
			visible_put_json(b,
			    ex_module_name(stack->frame[i].module));
		}
		buffer_puts(b, "}");
	}
	buffer_puts(b, "]}]");
}

static void
put_result(struct buffer *b, const struct ci *ci, const struct ci_problem *p)
{
	buffer_printf(b, "{\"ruleId\":\"%s\",\"level\":\"error\","
	    "\"message\":{\"text\":", p->rule->id);
	visible_put_json(b, p->message);
	buffer_puts(b, "},\"locations\":[");
	if (p->frame != NULL)
		put_frame(b, ci, p->frame);
	buffer_printf(b, "],\"partialFingerprints\":{\"watchctl/v1\":\"%016"
	    PRIx64 "\"}", p->print);
	if (p->stack != NULL && p->stack->n > 0)
		put_stack(b, ci, p->stack);
	buffer_puts(b, "}");
}

static void
put_rules(struct buffer *b)
{
	for (const struct ci_rule *rule = ci_rules; rule->id != NULL; rule++) {
		buffer_printf(b, "%s{\"id\":\"%s\",\"shortDescription\":"
		    "{\"text\":\"%s\"}}", rule == ci_rules ? "" : ",",
		    rule->id, rule->help);
	}
}

void
ci_put_sarif(const struct ci *ci, struct buffer *b)
{
	buffer_puts(b, "{\"$schema\":"
	    "\"https://json.schemastore.org/sarif-2.1.0.json\","
	    "\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{"
	    "\"name\":\"watchctl\",\"version\":\"" VERSION "\",\"rules\":[");
	put_rules(b);
	buffer_puts(b, "]}},\"results\":[");
	for (size_t i = 0; i < ci->n; i++) {
		buffer_puts(b, i > 0 ? ",\n" : "\n");
		put_result(b, ci, &ci->problem[i]);
	}
	buffer_puts(b, ci->n > 0 ? "\n]}]}\n" : "]}]}\n");
}
