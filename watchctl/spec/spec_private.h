/* spec_private: what the files that parse SPECs share. */
#ifndef SPEC_PRIVATE_H
#define SPEC_PRIVATE_H

#include "spec/spec.h"

enum {
	TEXT_SHOWN = 80,	/* characters of a SPEC in a message */
	REST_SHOWN = 24,	/* and of what is left of it */
	NESTING_MAX = 64,	/* brackets within brackets in a name */
};

bool spec_is_digit(char c);
const char *spec_parse_number(const char **p, uint64_t *value);
const char *spec_parse_length(const char **p, struct spec *);

/* Say what is wrong at p in text.  Result: -EINVAL, or -ENOMEM. */
int spec_syntax_error(const char *text, const char *p, const char *wrong,
    struct wp_cause *);

/* Where the path behind "shm:" or "file:" begins; NULL: a symbol is called so,
   and what follows is a length. */
const char *spec_shared_path(const char *text, bool *shm);

/* One of those that spec_parse is called with. */
int spec_take_shared(const char *path, bool shm, struct spec *,
    struct wp_cause *);

/* Where the function behind "alloc:" begins; NULL: a symbol is called so. */
const char *spec_allocator_name(const char *text);

/* One of those that spec_parse is called with. */
int spec_take_allocator(const char *name, struct spec *, struct wp_cause *);

#endif
