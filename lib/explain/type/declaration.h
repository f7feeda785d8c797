/*
 * declaration: the declarations of a program's source: its variables and types
 * by name, and the steps from one object to others: members, elements, targets
 * of pointers.
 *
 * The inverse of subobject.h.  Types live as long as their module.  DWARF is
 * hostile input: depths, counts and trials are bounded.
 */
#ifndef EX_DECLARATION_H
#define EX_DECLARATION_H

#include "type/type_layout.h"

enum { EX_DIMENSIONS = 3 };

struct ex_type {
	struct ex_module *module;	/* whose debug information it is of;
					   NULL: it is C's own */
	const struct ex_layout *layout;	/* NULL: void, or nothing is known */
	Dwarf_Die die;		/* as it is declared */
	unsigned dimension;	/* of an array: from this one of its on */
	unsigned pointers;	/* it is a pointer to that, so many times
				   over */
	unsigned ndims;		/* ex_type_array: that is an array of so many
				   dimensions, of pointers of inner levels to
				   what is above */
	unsigned inner;
	uint64_t count[EX_DIMENSIONS];
	bool tags, columns;	/* as in struct ex_declared */
};

/* A variable, or one that is declared. */
struct ex_declaration {
	const char *name;	/* qualified */
	struct ex_type type;
	uint64_t size;		/* bytes; 0: not known */
};

/* The variable that begins at a module's vaddr.  False: none is declared
   there. */
bool ex_declaration_at(struct ex_process *, struct ex_module *, uint64_t vaddr,
    struct ex_declaration *);

/* The one of a module that has this qualified name, though no symbol is called
   so: a static one of a function, one of Fortran's. file: the source file that
   it is of; NULL: any. *vaddr: where it begins.  Result: how many differ; the
   first is given. */
unsigned ex_declaration_find(struct ex_module *, const char *name,
    const char *file, uint64_t *vaddr, struct ex_declaration *);

/* Whether the source of a module has a global or static variable of this
   qualified name that the compiler optimized out, so that it has no address. */
bool ex_variable_optimized_out(struct ex_module *, const char *name);

/* Whether a module has debug information. */
bool ex_declaration_known(struct ex_module *);

/* Which kind of type has a name. */
enum ex_tag { EX_TAG_ANY, EX_TAG_STRUCT, EX_TAG_UNION, EX_TAG_ENUM };

/* The type of a module that has this qualified name.  False: none has. */
bool ex_type_find(struct ex_module *, const char *name, enum ex_tag,
    struct ex_type *);

/* The type of what an entry of a module declares.  False: it says none. */
bool ex_type_of(struct ex_module *, Dwarf_Die *, struct ex_type *);

/* The type of what the function that begins at a module's vaddr returns.
   False: it is not known. */
bool ex_type_of_result(struct ex_module *, uint64_t vaddr, struct ex_type *);

/* One of C's own ("unsigned long"), for void one without layout.  False: there
   is none. */
bool ex_type_own(const char *name, struct ex_type *);

/* The enumerator of a module that has this qualified name: its value, and type.
   False: none has. */
bool ex_type_enumerator(struct ex_module *, const char *name, uint64_t *value,
    struct ex_type *);

/* Make of a type pointers, so many levels, to an array of it; no levels: that
   array. */
void ex_type_array(struct ex_type *, const uint64_t *count, unsigned ndims,
    unsigned pointers);

/* Its kind, EX_OPAQUE if nothing is known of it; its size, 0: not known. */
enum ex_kind ex_type_kind(const struct ex_type *);
uint64_t ex_type_size(const struct ex_type *);
bool ex_type_is_reference(const struct ex_type *);

/* Its name, for a reader; as much as there is room for. */
void ex_type_put(const struct ex_type *, char *text, size_t size);

/* A member. */
struct ex_part {
	struct ex_type type;
	uint64_t offset;	/* bytes from its holder's start */
	uint64_t size;		/* of the bytes that it is in */
	uint64_t bit;		/* a bit-field: its lowest bit, from
				   offset on */
	unsigned bits;		/* how many; 0: it is none */
};

/* The member of a structure of this size that has this name; of a base class
   too, which may be named in front of it ("base::count").  Result: how many
   base classes have one, at different places; the first is given. */
unsigned ex_type_member(const struct ex_type *, uint64_t size, const char *name,
    struct ex_part *);

/* The i-th base class of a class, from 0.  False: it has fewer. */
bool ex_type_base(const struct ex_type *, unsigned i, struct ex_type *base);

/* Call fn with the name of each member, those of base classes and of members
   without a name among them. */
void ex_type_members(const struct ex_type *, void (*fn)(void *arg,
    const char *name), void *arg);

/* The elements of an array: their type, the first index, and how many there
   are, 0: that is not said.  False: it is none that can be indexed. */
bool ex_type_element(const struct ex_type *, struct ex_type *, uint64_t *first,
    uint64_t *count);

/* What a pointer or reference points to, its definition where its unit only
   declares it.  False: it is none. */
bool ex_type_target(struct ex_process *, const struct ex_type *,
    struct ex_type *);

#endif
