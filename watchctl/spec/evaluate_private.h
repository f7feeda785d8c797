/* evaluate_private: what the files that evaluate expressions share. */
#ifndef EVALUATE_PRIVATE_H
#define EVALUATE_PRIVATE_H

#include "base/number.h"
#include "spec/evaluate.h"
#include "type/declared_object.h"
#include "util/visible.h"

enum {
	TEXT_SHOWN = 80,	/* characters of a SPEC in a message */
	PART_SHOWN = 40,	/* and of a part of it, or a type */
	BASES_MAX = 8,		/* base classes of base classes */
	PARTS_MAX = 32,		/* virtual base classes of a class */
	TYPE_NAME_MAX = 512,	/* characters of a class's name */
	MEMBERS_SHOWN = 5,	/* of a structure that has few */
	ELEMENTS_DECLARED = 32,	/* no watch has as many bytes */
};

struct value {
	bool is_object;		/* it is an object at addr; else it is number */
	bool known;		/* it has a type */
	struct ex_type type;
	uint64_t addr;
	uint64_t size;		/* bytes; 0: not known */
	uint64_t bit;		/* a bit-field's lowest bit, */
	unsigned bits;		/* and its width; 0: no bit-field */
	uint64_t number;	/* cut to the type's size */
};

struct evaluation {
	const struct spec *spec;
	struct ex_process *process;
	struct wp_cause *cause;
	bool early;
	bool types_only;	/* no memory is read */
	struct pointer_path *trace;	/* records what would be read; NULL:
					   nothing is recorded */
	struct value holder;	/* the object that contains the last member */
	int err;		/* why it failed */
};

/* The pointers that lead to an object: the address of each, if all before it
   contain the same number. */
enum { WAY_MAX = 64 };
struct pointer_path {
	uint64_t contents;
	uint64_t addr[WAY_MAX];	/* n of them; further ones are only counted */
	unsigned n;
	bool narrow;		/* they are 4 bytes wide */
	const struct node *other;	/* a value on the way that is no
					   pointer, and matters too; NULL:
					   none */
};

/* Append a part of the SPEC, quoted. */
void evaluate_put_part(struct buffer *, const char *begin, const char *end);

/* Fail with the text in the buffer. */
bool evaluate_fail_with(struct evaluation *, const char *at, struct buffer *);
bool evaluate_fail(struct evaluation *, const char *at, const char *why);

/* Fail with "'server.clients' is of type int: " and what that means. */
bool evaluate_fail_type(struct evaluation *, const struct node *,
    const struct value *, const char *at, const char *means);

/* Report that it is a value, and which object may be meant. */
int value_error(struct evaluation *, const struct node *);
bool value_is_pointer(const struct value *);
bool value_is_signed(const struct value *);
bool value_is_integer(const struct value *);

/* A number extended to 64 bits. */
uint64_t value_extended(uint64_t number, unsigned bits, bool sign);
void value_set_number(struct value *, const char *type, uint64_t number);

/* Set the result of C arithmetic: an int or a long. */
void value_set_result(struct value *, const struct ex_number *);
struct ex_number value_number_of(const struct value *);
void value_set_object(struct value *, const struct ex_type *, uint64_t addr,
    uint64_t size);

/* Read bytes that are no pointer on the way to the object. */
bool value_read(struct evaluation *, const struct node *, uint64_t addr,
    void *to, size_t len);

/* Replace a reference by what it refers to. */
bool value_follow_reference(struct evaluation *, const struct node *,
    struct value *);

/* Replace the descriptor of an array of Fortran's, which is allocated or
   pointed to, by its elements. */
bool value_follow_descriptor(struct evaluation *, const struct node *,
    struct value *);
bool evaluate_object(struct evaluation *, const struct node *, struct value *);

/* Replace an array by a pointer to its first element. */
bool value_decay(struct value *);

/* Replace an object by its value. */
bool value_load(struct evaluation *, const struct node *, struct value *);

/* Evaluate to a number or a pointer, as operands are. */
bool value_take_number(struct evaluation *, const struct node *,
    struct value *);
bool evaluate_number(struct evaluation *, const struct node *, struct value *);
bool evaluate_integer(struct evaluation *, const struct node *, struct value *);
bool evaluate_name(struct evaluation *, const struct node *, struct value *);

/* The result of a function, taken as 0. */
bool evaluate_result(struct evaluation *, const struct node *, struct value *);

/* Follow a Fortran pointer, which has the members of what it points to. */
bool value_follow_fortran(struct evaluation *, const struct node *,
    struct value *);
bool evaluate_member(struct evaluation *, const struct node *, struct value *);
bool evaluate_arrow(struct evaluation *, const struct node *, struct value *);
bool evaluate_index(struct evaluation *, const struct node *, struct value *);
bool evaluate_dereference(struct evaluation *, const struct node *,
    struct value *);
bool evaluate_address(struct evaluation *, const struct node *, struct value *);

/* Replace the address of an object of the one class, which a cast makes one of
   the other, by that of what they have in common.  Other types leave it. */
bool evaluate_class_cast(struct evaluation *, const struct node *,
    const struct ex_type *from, const struct ex_type *to, uint64_t *addr);

/* Fortran's a%b, a%b(i)%c: what follows is a member of the object in front. */
bool value_member_chain(struct evaluation *, const struct value *,
    const struct node *, struct value *);
bool evaluate_node(struct evaluation *, const struct node *, struct value *);

#endif
