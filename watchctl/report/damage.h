/* damage: describes findings in a program's heap. */
#ifndef DAMAGE_H
#define DAMAGE_H

#include "guard/evidence.h"
#include "util/buffer.h"

/* "overflow", "use-after-free", ..., as in JSON. */
const char *damage_kind(const struct hg_finding *);

/* When it was noticed: "free", "exit", ..., as in JSON; and in words. */
const char *damage_when(const struct hg_finding *);
const char *damage_when_words(const struct hg_finding *);

/* "malloc", "new", "new[]"; "free", "delete", "delete[]". */
const char *damage_allocator(const struct hg_finding *);
const char *damage_freer(const struct hg_finding *);

/* The number of damaged bytes that can be shown. */
unsigned damage_bytes(const struct hg_finding *);

/* "3 bytes past the end of a 40-byte block" */
void damage_put_place(struct buffer *, const struct hg_finding *);

/* "1 byte, 3 bytes past the end of a 40-byte block at 0x4052a0: 61 "a"" */
void damage_put(struct buffer *, const struct hg_finding *);

#endif
