/* cause: the list of causes, as text. */
#include "os/cause.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/libc.h"

static const struct {
	const char *name;
	int err;
	const char *text;
} causes[] = {
#define X(code, err, text) {#code, err, text},
	WP_CAUSES(X)
#undef X
};

int
wp_cause_set(struct wp_cause *cause, enum wp_cause_code code, ...)
{
	if (cause != NULL) {
		va_list ap;

		cause->code = code;
		cause->err = causes[code].err;
		va_start(ap, code);
		(void)vsnprintf(cause->text, sizeof(cause->text),
		    causes[code].text, ap);
		va_end(ap);
	}
	return -causes[code].err;
}

/* Advice that depends on the errno alone. */
static const char *
way_out(int err)
{
	switch (err) {
	case EMFILE:
		return "; raise the limit (ulimit -n, or LimitNOFILE=)";
	case ENFILE:
		return "; raise fs.file-max with sysctl";
	case EFBIG:
		return "; raise the limit of file sizes (ulimit -f), which "
		    "applies to memory that is shared, too";
	case EAGAIN:
	case ENOMEM:
		return "; raise the limits of processes and memory (ulimit -u "
		    "and -v), or make room";
	default:
		return "";
	}
}

int
wp_cause_errno(struct wp_cause *cause, const char *what, int err)
{
	const char *why = wp_libc_why(err);

	(void)wp_cause_set(cause, WP_CAUSE_SYSTEM, what,
	    why != NULL ? why : "unknown error");
	if (cause != NULL) {
		size_t len = strlen(cause->text);

		(void)snprintf(cause->text + len, sizeof(cause->text) - len,
		    "%s", way_out(err));
		cause->err = err;
	}
	return -err;
}

int
wp_cause_denied(struct wp_cause *cause, int pid)
{
	return wp_cause_set(cause, geteuid() == 0 ? WP_CAUSE_DENIED_ROOT :
	    WP_CAUSE_DENIED_OTHER, pid);
}

const char *
wp_cause_name(enum wp_cause_code code)
{
	return causes[code].name;
}
