/*
 * object: the object at an address, as the program's debug information declares
 * it, and its values as the source would write them.
 *
 * A place has a path ("conn.state", "table[3].next", "counter") and a type.  It
 * is the smallest object that holds all the bytes asked for, as subobject.h
 * says.  It is a bit-field only if no other one shares its bytes; otherwise it
 * is all bit-fields of the storage unit (with the path of their structure, and
 * the type of the unit).
 *
 * Answers are cached per module, vaddr and length, and live as long as the
 * space.  DWARF is hostile input: depths, counts and sizes are bounded.
 */
#ifndef EX_OBJECT_H
#define EX_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"
#include "module/module.h"
#include "type/declaration.h"

struct ex_object {
	const char *path;	/* "conn.state" */
	const char *type;	/* as C (or C++) names it: "long", "enum state",
				   "struct conn *" */
	int64_t offset;		/* from the addr asked for to where it begins: 0
				   or negative */
	uint64_t size;		/* bytes */
	/* as in struct ex_subobject, for its text */
	const struct ex_layout *layout;
	const struct ex_member *field;
	bool fields;
	uint64_t within;
};

/* The object that holds the len bytes at addr of a process: one that
   ex_object_declare said; or else a global or static variable, or a part of
   one.  NULL: none is known there, as on the stack, on the heap and in
   thread-local storage.  The first call for a module may take a
   while (0.2 s for 10 MB of debug information); later ones for the same bytes
   are a look-up. */
const struct ex_object *ex_object_at(struct ex_process *, uint64_t addr,
    uint64_t len);

/* From here on an object of this type and size lies at addr of a process, as on
   its heap, and is called path, whatever a module declares there. */
void ex_object_declare(struct ex_process *, uint64_t addr, const char *path,
    const struct ex_type *, uint64_t size);

/*
 * A value of the object, from its bytes (size of them), into text: a number by
 * its sign and size; true or false; a character with its number ('a' (97)); an
 * enumerator's name, several if they are bits (FLAG_A | FLAG_B | 0x40), or a
 * number; a floating-point number with enough digits to distinguish it from its
 * neighbours; a pointer with what it points to (0x5581 <main+4>, NULL); of a
 * structure or array of up to 32 bytes its members ({1, 2}, {on = 1, way = 3}),
 * or its characters ("abc").
 *
 * At most size - 1 characters and a NUL, "..." at the end if that is too few;
 * names come from the target and are not made visible here.  False: this type
 * has no text, print hex; what is in text then has no meaning.
 */
bool ex_object_text(struct ex_process *, const struct ex_object *,
    const uint8_t *bytes, char *text, size_t size);

/* The number that an object is, of its type, from its bytes (size of them).
   False: it is none, as a structure is, or one of 16 bytes that is not a long
   double. */
bool ex_object_number(const struct ex_object *, const uint8_t *bytes,
    struct ex_number *);

/* Whether it is one: no structure and no array, whatever their parts are. */
bool ex_object_is_number(const struct ex_object *);

/* The number of an enumerator of its type.  False: it has none of this name. */
bool ex_object_enumerator(const struct ex_object *, const char *name,
    struct ex_number *);

#endif
