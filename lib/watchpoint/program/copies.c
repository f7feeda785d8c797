/* copies: see copies.h. */
#include "program/copies.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "handler/trap.h"
#include "program/table.h"

enum { OTHERS_MAX = 8 };	/* copies that are told of created processes */

#define NAME "watchpoint"

static void making(bool begins);

/* The note refers to it. */
extern struct wp_copy wp_this_copy;
struct wp_copy wp_this_copy = {
	.version = WP_COPY_VERSION, .is_its = wp_trap_is_ours,
	.displaced = wp_trap_displaced, .making = making,
};

/* The note's content is the offset from itself to the structure. */
__asm__(
    ".pushsection .note." NAME ",\"a\",%note\n"
    "	.balign	4\n"
    "	.long	2f - 1f, 4f - 3f, 1\n"
    "1:	.asciz	\"" NAME "\"\n"
    "2:	.balign	4\n"
    "3:	.long	wp_this_copy - 3b\n"
    "4:	.balign	4\n"
    ".popsection\n");

/* The copies that had a number when this one took its own. */
static struct wp_copy *other[OTHERS_MAX];

/*
 * Looking for them.
 */

struct copy_search {
	bool (*found)(struct wp_copy *, void *arg);  /* returns false to stop */
	void *arg;
};

/* Whether this part is completely in one of the object's loaded segments. */
static bool
is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) *what)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & PF_R) != 0 &&
		    what->p_vaddr >= part->p_vaddr &&
		    what->p_vaddr - part->p_vaddr <= part->p_filesz &&
		    what->p_filesz <=
		    part->p_filesz - (what->p_vaddr - part->p_vaddr))
			return true;
	}
	return false;
}

/* Returns the copy that a notes segment refers to, or NULL. */
static struct wp_copy *
find(const char *notes, size_t size, size_t align)
{
	ElfW(Nhdr) note;
	int32_t distance;

	while (size >= sizeof(note)) {
		size_t name, all;

		memcpy(&note, notes, sizeof(note));
		name = sizeof(note) + ((size_t)note.n_namesz + align - 1) /
		    align * align;
		all = name + ((size_t)note.n_descsz + align - 1) / align *
		    align;
		if (name > size || note.n_descsz > size - name)
			return NULL;
		if (note.n_namesz == sizeof(NAME) && note.n_type == 1 &&
		    note.n_descsz == sizeof(distance) &&
		    memcmp(notes + sizeof(note), NAME, sizeof(NAME)) == 0) {
			memcpy(&distance, notes + name, sizeof(distance));
			return (struct wp_copy *)(uintptr_t)
			    (notes + name + distance);
		}
		if (all >= size)
			return NULL;
		notes += all;
		size -= all;
	}
	return NULL;
}

static int
look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct copy_search *look = arg;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		struct wp_copy *copy;

		if (part->p_type != PT_NOTE || !is_loaded(info, part))
			continue;
		copy = find((const char *)(info->dlpi_addr + part->p_vaddr),
		    part->p_filesz, part->p_align == 8 ? 8 : 4);
		if (copy != NULL && copy->version == WP_COPY_VERSION &&
		    !look->found(copy, look->arg))
			return 1;
	}
	return 0;
}

static void
look(bool (*found)(struct wp_copy *, void *), void *arg)
{
	(void)dl_iterate_phdr(look_at, &(struct copy_search){found, arg});
}

/*
 * Numbers.
 */

struct numbers {
	bool taken[WP_COPIES_MAX + 1];
	unsigned n;			/* number of other copies */
};

static bool
note_number(struct wp_copy *copy, void *arg)
{
	const uint32_t number = atomic_load(&copy->number);
	struct numbers *numbers = arg;

	if (copy == &wp_this_copy || number == 0 || number > WP_COPIES_MAX)
		return true;
	numbers->taken[number] = true;
	if (numbers->n < OTHERS_MAX)
		other[numbers->n++] = copy;
	return true;
}

/* Called for each object while the list of objects is locked; the last call
   takes the number. */
static int
take_number(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct numbers *numbers = arg;
	uint32_t number = 1;

	(void)info;
	(void)size;
	if (atomic_load(&wp_this_copy.number) != 0)
		return 1;
	look(note_number, numbers);
	while (number <= WP_COPIES_MAX && numbers->taken[number])
		number++;
	if (number <= WP_COPIES_MAX)
		atomic_store(&wp_this_copy.number, number);
	return 1;
}

int
wp_copies_join(struct wp_cause *cause)
{
	struct numbers numbers = {.n = 0};

	if (atomic_load(&wp_this_copy.number) == 0) {
		/* locked first, as in pin.c */
		wp_watches_lock();
		(void)dl_iterate_phdr(take_number, &numbers);
		wp_watches_unlock();
	}
	wp_state.copy = (uint8_t)atomic_load(&wp_this_copy.number);
	return wp_state.copy != 0 ? 0 : wp_cause_errno(cause,
	    "copies of libwatchpoint in this program", EMFILE);
}

/*
 * Signals.
 */

struct owner {
	const struct sigaction *action;
	const struct wp_copy *copy;  /* the copy that has the action, or NULL */
};

static bool
note_owner(struct wp_copy *copy, void *arg)
{
	struct owner *owner = arg;

	if (copy != &wp_this_copy && atomic_load(&copy->number) != 0 &&
	    copy->is_its(owner->action))
		owner->copy = copy;
	return owner->copy == NULL;
}

bool
wp_copies_lead_here(int sig, const struct sigaction *action)
{
	/* bounded, so that it ends even if copies refer to each other */
	for (unsigned i = 0; i < WP_COPIES_MAX; i++) {
		struct owner owner = {.action = action};

		if (wp_trap_is_ours(action))
			return true;
		look(note_owner, &owner);
		if (owner.copy == NULL)
			return false;
		action = owner.copy->displaced(sig);
	}
	return false;
}

/*
 * Processes.
 */

static void
making(bool begins)
{
	static _Thread_local __attribute__((tls_model("initial-exec")))
	    struct wp_creation now;

	if (begins)
		now = wp_creation_begin(atomic_load(&wp_state.channel),
		    WP_MAKES_PROGRAM);
	else
		wp_creation_end(now);
}

void
wp_copies_making(bool begins)
{
	for (unsigned i = 0; i < OTHERS_MAX && other[i] != NULL; i++)
		other[i]->making(begins);
}
