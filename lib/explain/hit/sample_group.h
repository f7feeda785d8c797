/*
 * sample_group: finds the samples that belong to one access.
 *
 * An instruction that touches several slots of a watch makes a sample for each;
 * a system call that copies over a watch makes one for each step of the copy,
 * up to one a byte.  All of them were made by one thread, with the same user
 * registers, and no step is done twice in one access.  The step of a copy is
 * identified by its destination or source register, that of other work by the
 * kernel's callchain.  So a system call that is repeated with the same
 * registers is recognized as another access.
 */
#ifndef EX_SAMPLE_GROUP_H
#define EX_SAMPLE_GROUP_H

#include "record/record.h"

/* More steps than a watch of four slots can have. */
#define EX_GROUP_PLACES 48

struct ex_sample_group {
	uint64_t last;		/* ns: time of its last sample */
	uint64_t pc;		/* in the program, as sampled */
	uint64_t moment;	/* thread state that all its samples share, as
				   a hash */
	uint64_t slots;		/* bit n: attr first_attr + n has hit */
	uint64_t reached;	/* kernel: ex_group_reached of the last
				   sample */
	uint64_t ip, end;	/* kernel: that sample's ip, and the end of its
				   copy, 0: not known; */
	uint64_t registers;	/* the kernel's registers in it, as a hash */
	int first_attr;		/* of the watch's formats, the first that hit */
	unsigned n;		/* number of places */
	bool kernel;
	uint64_t place[EX_GROUP_PLACES];	/* kernel: the steps so far, as
						   hashes */
};

bool ex_group_kernel(const struct ex_record *);

/* The pc in the program: of the sample, or of the system call's return. */
uint64_t ex_group_pc(const struct ex_record *);

/* Whether the kernel made the access while taking another sample, when it
   copied the stack, which is watched too.  The kernel's names must be right for
   the sample. */
bool ex_group_recording(const struct ex_record *);

/*
 * How far a copy by the kernel over a slot has come: the address after the last
 * byte that it touched, or of the byte that it is about to touch.  0: the
 * sample is of no copy, or does not show it.
 */
uint64_t ex_group_reached(const struct ex_record *, uint64_t addr,
    uint64_t len);

/* The bytes of a sample's single store or load, if the kernel's function that
   made it (NULL: not known) does nothing else; false: it does. */
bool ex_group_single(const struct ex_record *, const char *function,
    uint64_t *addr, uint64_t *len);

/* What such a function does to the program's memory: 'r' or 'w'; '\0': not
   known. */
char ex_group_way(const char *function);

/* Begin a group with a sample of the slot at addr, of len bytes. */
void ex_group_begin(struct ex_sample_group *, const struct ex_record *,
    uint64_t addr, uint64_t len);

/* Whether the group may get more samples after this one of its thread. same:
   the sample is of a slot of the same watch, and is added if it belongs to the
   group.  In the kernel's own memory, which a call may access many times, only
   the next step of the same copy belongs to it, and other slots of the same
   instruction. */
bool ex_group_goes_on(struct ex_sample_group *, const struct ex_record *,
    bool same, uint64_t addr, uint64_t len);

/* Whether the group gets no more samples at this time (ns; UINT64_MAX: there
   are no more at all). */
bool ex_group_over(const struct ex_sample_group *, uint64_t now);

#endif
