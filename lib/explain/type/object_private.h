/* object_private: what ex_object_at hands out, as type.c makes and value_text.c reads
   it. */
#ifndef EX_OBJECT_PRIVATE_H
#define EX_OBJECT_PRIVATE_H

#include "type/subobject.h"
#include "type/object.h"

struct ex_object {
	uint64_t vaddr, len;	/* what was asked for */
	bool known;		/* there is an object */
	bool copied;		/* there may be: where a library's variable was
				   copied to, as far as libraries were known, */
	uint64_t generation;	/* at this generation of its process */
	const char *path, *type;
	int64_t offset;		/* see ex_object_offset */
	uint64_t size;
	const struct ex_layout *layout;	/* as in a part: */
	const struct ex_member *field;
	bool fields;
	uint64_t within;
};

#endif
