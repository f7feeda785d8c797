/*
 * declaration: finds declarations of a program's source: variables and types by
 * name, and from an object its members, elements and pointer targets.
 *
 * This is the inverse of subobject.h.  Types live as long as their module.
 * DWARF is hostile input: depths, counts and trials are bounded.
 */
#ifndef EX_DECLARATION_H
#define EX_DECLARATION_H

#include "type/type_layout.h"

struct ex_process;

enum { EX_DIMENSIONS = 3 };

struct ex_type {
	struct ex_module *module;	/* the module that it is from; NULL: a
					   basic type of C */
	const struct ex_layout *layout;	/* NULL: void, or not known */
	Dwarf_Die die;		/* as it is declared */
	unsigned dimension;	/* of an array: its first dimension that
				   counts */
	unsigned pointers;	/* levels of pointers to that */
	unsigned ndims;		/* ex_type_array: dimensions of an array of
				   that; `inner' levels of pointers are below
				   it */
	unsigned inner;
	uint64_t first[EX_DIMENSIONS], count[EX_DIMENSIONS];
	bool tags, columns;	/* as in struct ex_declared */
};

/* A variable, as it is declared. */
struct ex_declaration {
	const char *name;	/* qualified */
	struct ex_type type;
	uint64_t size;		/* bytes; 0: not known */
};

/* The variable that begins at a module's vaddr.  False: none is declared
   there. */
bool ex_declaration_at(struct ex_process *, struct ex_module *, uint64_t vaddr,
    struct ex_declaration *);

/* The variable of a module with this qualified name, even if no symbol has it:
   a static one of a function, one of Fortran's. file: the source file that it
   is of; NULL: any. *vaddr: its address.  Result: the number of different ones;
   the first is returned. */
unsigned ex_declaration_find(struct ex_module *, const char *name,
    const char *file, uint64_t *vaddr, struct ex_declaration *);

/* Whether the source of a module has a global or static variable of this
   qualified name that the compiler optimized out, so that it has no address. */
bool ex_variable_optimized_out(struct ex_module *, const char *name);

/* Whether the source of a module has a function of this qualified name that the
   compiler inlined; it may have other copies, too. */
bool ex_function_inlined(struct ex_module *, const char *name);

/* Whether a module has debug information. */
bool ex_declaration_known(struct ex_module *);

/* The kind of type that a name belongs to. */
enum ex_tag { EX_TAG_ANY, EX_TAG_STRUCT, EX_TAG_UNION, EX_TAG_ENUM };

/* The type of a module that has this qualified name.  False: none has. */
bool ex_type_find(struct ex_module *, const char *name, enum ex_tag,
    struct ex_type *);

/* The type that a DIE of a module declares.  False: it has none. */
bool ex_type_of(struct ex_module *, Dwarf_Die *, struct ex_type *);

/* The return type of the function at a module's vaddr.  False: not known. */
bool ex_type_of_result(struct ex_module *, uint64_t vaddr, struct ex_type *);

/* A basic type of C ("unsigned long"); void has no layout.  False: there is
   none of this name. */
bool ex_type_own(const char *name, struct ex_type *);

/* The value and type of the enumerator of a module with this qualified name.
   False: there is none. */
bool ex_type_enumerator(struct ex_module *, const char *name, uint64_t *value,
    struct ex_type *);

/* Replace a type by an array of it, or by pointers, of this many levels, to
   that array. */
void ex_type_array(struct ex_type *, const uint64_t *count, unsigned ndims,
    unsigned pointers);

/* Its kind, EX_OPAQUE if unknown; its size, 0: not known. */
enum ex_kind ex_type_kind(const struct ex_type *);
uint64_t ex_type_size(const struct ex_type *);
bool ex_type_is_reference(const struct ex_type *);

/* Its name, cut to the room. */
void ex_type_put(const struct ex_type *, char *text, size_t size);

/* A member. */
struct ex_part {
	struct ex_type type;
	uint64_t offset;	/* bytes from its holder's start */
	uint64_t size;		/* of the bytes that contain it */
	uint64_t bit;		/* a bit-field: its lowest bit, from offset
				   on */
	unsigned bits;		/* its width; 0: no bit-field */
};

/* The member with this name of a structure of this size, or of a base class,
   which may be named in front of it ("base::count").  Result: how many base
   classes have one, at different places; the first is returned. */
unsigned ex_type_member(const struct ex_type *, uint64_t size, const char *name,
    struct ex_part *);

/* The i-th base class of a class, from 0, and its bytes from the class's start.
   False: it has fewer whose place is known. */
bool ex_type_base(const struct ex_type *, unsigned i, struct ex_type *base,
    uint64_t *offset);

/* The i-th virtual base class of a class, from 0, not of its base classes; and
   where its offset from the class's start is: so many bytes in front of what
   the class's first word points to, as wide as that word.  False: it has
   fewer. */
bool ex_type_virtual_base(const struct ex_type *, unsigned i,
    struct ex_type *base, uint64_t *before);

/* Call fn with the name of each member, including those of base classes and of
   members without a name. */
void ex_type_members(const struct ex_type *, void (*fn)(void *arg,
    const char *name), void *arg);

/* The elements of an array: their type, the first index, and their number, 0:
   not known.  False: it cannot be indexed. */
bool ex_type_element(const struct ex_type *, struct ex_type *, uint64_t *first,
    uint64_t *count);

/* The type that a pointer or reference points to, or its definition where the
   unit only declares it.  False: no such type. */
bool ex_type_target(struct ex_process *, const struct ex_type *,
    struct ex_type *);

#endif
