/* spec_memory: SPECs of shared memory, of files, and of objects that functions
   return. */
#include "spec/spec_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/slot.h"

/* --- shared memory and files --- */

#define SHM_DIRECTORY "/dev/shm"	/* where shm_open(3) has its objects */

const char *
spec_shared_path(const char *text, bool *shm)
{
	const char *path;

	*shm = strncmp(text, "shm:", 4) == 0;
	if (!*shm && strncmp(text, "file:", 5) != 0)
		return NULL;
	path = text + (*shm ? 4 : 5);
	return *path == ':' || (spec_is_digit(*path) && strchr(path,
	    '+') == NULL) ? NULL : path;
}

static const char *
check_shm_name(const char **p, const char *end)
{
	if (**p != '/')
		return "the name of shared memory is expected, which begins "
		    "with '/'";
	++*p;
	if (*p == end || memchr(*p, '/', (size_t)(end - *p)) != NULL)
		return "the name of shared memory is expected, with a '/' "
		    "before it and no other";
	return NULL;
}

/* PATH+OFF[:LEN]: paths may have each of these characters. */
static const char *
parse_shared(const char **p, bool shm, struct spec *spec, bool *memory)
{
	const char *path = *p, *plus = strrchr(path, '+'), *wrong;
	const char *end = plus == NULL ? path + strlen(path) : plus;

	if (end == path)
		return "a file's path is expected";
	if (shm && (wrong = check_shm_name(p, end)) != NULL)
		return wrong;
	*p = end;
	if (plus == NULL)
		return "'+' and an offset are expected, from the beginning of "
		    "the file";
	spec->shared = malloc(sizeof(SHM_DIRECTORY) + (size_t)(end - path));
	if (spec->shared == NULL) {
		*memory = false;
		return NULL;
	}
	(void)sprintf(spec->shared, "%s%.*s", shm ? SHM_DIRECTORY : "",
	    (int)(end - path), path);
	*p = path = plus + 1;
	spec->has_off = true;
	if ((wrong = spec_parse_number(p, &spec->off)) == NULL && **p == ':')
		wrong = spec_parse_length(p, spec);
	else if (wrong == NULL && **p != '\0')
		wrong = "only :LEN can follow an offset";
	if (wrong == NULL && (spec->off > INT64_MAX ||
	    spec->len > INT64_MAX - spec->off)) {
		*p = path;
		wrong = "no file is so long";
	}
	return wrong;
}

/* The result of parsing as far as p; memory: there was enough. */
static int
parsed(const struct spec *spec, bool memory, const char *p, const char *wrong,
    const char *no_code, struct wp_cause *cause)
{
	if (!memory)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	if (wrong != NULL)
		return spec_syntax_error(spec->text, p, wrong, cause);
	return spec->access != WP_EXEC ? 0 : spec_syntax_error(spec->text,
	    spec->text, no_code, cause);
}

int
spec_take_shared(const char *path, bool shm, struct spec *spec,
    struct wp_cause *cause)
{
	const char *p = path, *wrong;
	bool memory = true;

	wrong = parse_shared(&p, shm, spec, &memory);
	if (memory && wrong == NULL && spec->len == 0)
		spec->len = spec_alignment(spec->off);
	return parsed(spec, memory, p, wrong, "such bytes are watched with -w, "
	    "-r or -a, not with -x,", cause);
}

/* --- objects --- */

const char *
spec_allocator_name(const char *text)
{
	static const char prefix[] = "alloc:";
	const size_t len = sizeof(prefix) - 1;

	return strncmp(text, prefix, len) != 0 || text[len] == ':' ||
	    spec_is_digit(text[len]) ? NULL : text + len;
}

/* The end of a function's name.  Outside of brackets, no name contains what may
   follow it. */
static const char *
allocator_end(const char *p)
{
	int depth = 0;

	for (; *p != '\0'; p++) {
		if (strncmp(p, "::", 2) == 0) {
			p++;
			continue;
		}
		depth += strchr("(<[{", *p) != NULL;
		depth -= strchr(")>]}", *p) != NULL && p[-1] != '-';
		if (depth <= 0 && (strchr("#+:", *p) != NULL ||
		    strncmp(p, "->", 2) == 0))
			break;
	}
	return p;
}

/* FUNCTION[#N][->MEMBER|+OFF][:LEN] */
static const char *
parse_allocator(const char **p, struct spec *spec, bool *memory)
{
	const char *function = *p, *end = allocator_end(*p), *wrong = NULL;

	if (end == *p)
		return "a function's name is expected";
	spec->allocator = strndup(*p, (size_t)(end - *p));
	if (spec->allocator == NULL) {
		*memory = false;
		return NULL;
	}
	*p = end;
	if (**p == '#') {
		end = ++*p;
		wrong = spec_parse_number(p, &spec->instance);
		if (wrong == NULL && spec->instance == 0) {
			*p = end;
			wrong = "objects are numbered from 1";
		}
	}
	if (wrong == NULL && strncmp(*p, "->", 2) == 0) {
		spec->expression = calloc(1, sizeof(*spec->expression));
		*memory = spec->expression != NULL;
		if (*memory)
			wrong = expression_parse_steps(p, function,
			    strlen(spec->allocator), spec->expression);
	}
	if (*memory && wrong == NULL && **p == '+') {
		++*p;
		spec->has_off = true;
		wrong = spec_parse_number(p, &spec->off);
	}
	if (wrong == NULL && **p == ':')
		wrong = spec_parse_length(p, spec);
	else if (*memory && wrong == NULL && **p != '\0')
		wrong = "only :LEN can follow";
	return wrong;
}

int
spec_take_allocator(const char *name, struct spec *spec, struct wp_cause *cause)
{
	const char *p = name, *wrong;
	bool memory = true;

	wrong = parse_allocator(&p, spec, &memory);
	return parsed(spec, memory, p, wrong, "objects are watched with -w, -r "
	    "or -a, not with -x,", cause);
}
