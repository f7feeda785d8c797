/* spec_private: what the files that parse SPECs share. */
#ifndef SPEC_PRIVATE_H
#define SPEC_PRIVATE_H

#include "spec/spec.h"

enum {
	TEXT_SHOWN = 80,	/* characters of a SPEC in a message */
	REST_SHOWN = 24,	/* and of its remainder */
	NESTING_MAX = 64,	/* brackets within brackets in a name */
};

bool spec_is_digit(char c);
const char *spec_parse_number(const char **p, uint64_t *value);
const char *spec_parse_length(const char **p, struct spec *);

/* Report what is wrong at p in text.  Result: -EINVAL, or -ENOMEM. */
int spec_syntax_error(const char *text, const char *p, const char *wrong,
    struct wp_cause *);

/* The path after "shm:" or "file:"; NULL: that is the name of a symbol, and
   what follows is a length. */
const char *spec_shared_path(const char *text, bool *shm);

/* Parse such a SPEC. */
int spec_take_shared(const char *path, bool shm, struct spec *,
    struct wp_cause *);

/* The function after "alloc:"; NULL: that is the name of a symbol. */
const char *spec_allocator_name(const char *text);

/* Parse such a SPEC. */
int spec_take_allocator(const char *name, struct spec *, struct wp_cause *);

#endif
