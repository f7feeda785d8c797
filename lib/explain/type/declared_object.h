/*
 * declared_object: the object at an address, as the program's debug information
 * declares it, and the text of its value, as the source would write it.
 *
 * An object has a path ("conn.state", "table[3].next", "counter") and a type.
 * It is the smallest object that contains all the requested bytes (see
 * subobject.h).  A bit-field is returned only if no other one shares its bytes.
 * Otherwise the result is all bit-fields of the storage unit, with the path of
 * their structure and the type of the unit.
 *
 * Answers are cached by module, vaddr and length, and live as long as the
 * space.  DWARF is hostile input: depths, counts and sizes are bounded.
 */
#ifndef EX_DECLARED_OBJECT_H
#define EX_DECLARED_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"
#include "type/declaration.h"

struct ex_process;

struct ex_object {
	const char *path;	/* "conn.state" */
	const char *type;	/* as C (or C++) names it: "long", "enum state",
				   "struct conn *" */
	int64_t offset;		/* the object's start minus the requested addr:
				   0 or negative */
	uint64_t size;		/* bytes */
	/* For its text; see struct ex_subobject. */
	const struct ex_layout *layout;
	const struct ex_member *field;
	bool fields;
	uint64_t within;
};

/* The object that contains the len bytes at addr of a process: one that was
   declared by ex_object_declare, or a global or static variable, or a part of
   one.  NULL: none is known, as on the stack, on the heap and in thread-local
   storage.  The first call for a module may take a while (0.2 s for 10 MB of
   debug information); later ones for the same bytes are a look-up. */
const struct ex_object *ex_object_at(struct ex_process *, uint64_t addr,
    uint64_t len);

/* Declare that from now on an object of this type and size is at addr of a
   process, for example on its heap.  It is called path, whatever a module
   declares there. */
void ex_object_declare(struct ex_process *, uint64_t addr, const char *path,
    const struct ex_type *, uint64_t size);

/*
 * Write the value of an object, whose bytes (size of them) are given, into
 * text: a number according to its sign and size; true or false; a character
 * with its number ('a' (97)); the name of an enumerator, several if they are
 * bits (FLAG_A | FLAG_B | 0x40), or a number; a floating-point number with
 * enough digits to distinguish it from its neighbours; a pointer with what it
 * points to (0x5581 <main+4>, NULL); for a structure or array of up to 32 bytes
 * its members ({1, 2}, {on = 1, way = 3}), or its characters ("abc").
 *
 * The text has at most size - 1 characters and a NUL, and ends with "..." if it
 * was cut off.  Names come from the target and may contain unprintable
 * characters.  False: values of this type have no text, print them in hex; the
 * contents of text are then undefined.
 */
bool ex_object_text(struct ex_process *, const struct ex_object *,
    const uint8_t *bytes, char *text, size_t size);

/* The number that the bytes (size of them) of an object represent.  False: its
   type is not a number, for example a structure, or it has 16 bytes and is not
   a long double. */
bool ex_object_number(const struct ex_object *, const uint8_t *bytes,
    struct ex_number *);

/* Whether the type is a number: no structure and no array, whatever their
   members are. */
bool ex_object_is_number(const struct ex_object *);

/* The value of an enumerator of the object's type.  False: there is none of
   this name. */
bool ex_object_enumerator(const struct ex_object *, const char *name,
    struct ex_number *);

#endif
