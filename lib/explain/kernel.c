/* kernel: names of kernel functions, from /proc/kallsyms. */
#include "kernel.h"

#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol.h"

#define FUNCTION_MAX (1u << 20)	/* bytes: what lies further from the nearest
				   symbol is no part of it */

struct ksym {
	uint64_t addr;
	size_t name;		/* offset in names */
	bool global;
};

/* Read once and kept: the same for all. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ksym *ksyms;
static size_t nksyms;
static char *names;		/* each with its NUL, one after another */

/* A list being read. */
struct list {
	struct ksym *at;
	size_t n, cap;
	char *names;
	size_t len, room;
};

static bool
list_grow(struct list *list, size_t len)
{
	if (list->n == list->cap) {
		size_t cap = list->cap * 2 + 65536;
		struct ksym *at = realloc(list->at, cap * sizeof(*at));

		if (at == NULL)
			return false;
		list->at = at;
		list->cap = cap;
	}
	if (list->room - list->len < len) {
		size_t room = list->room * 2 + (1 << 21) + len;
		char *more = realloc(list->names, room);

		if (more == NULL)
			return false;
		list->names = more;
		list->room = room;
	}
	return true;
}

/* One line: "address type name", maybe "\t[module]". */
static bool
list_add(struct list *list, const char *line)
{
	unsigned long long addr;
	size_t len;
	int name = 0;
	char type;

	if (sscanf(line, "%llx %c %n", &addr, &type, &name) < 2 || name == 0 ||
	    strchr("tTwW", type) == NULL)
		return true;
	line += name;
	len = strcspn(line, "\t\n ");
	if (!list_grow(list, len + 1))
		return false;
	list->at[list->n++] = (struct ksym){
		.addr = addr, .name = list->len, .global = type == 'T',
	};
	memcpy(list->names + list->len, line, len);
	list->len += len;
	list->names[list->len++] = '\0';
	return true;
}

/* By address, of several at one address the better one last. */
static int
ksym_compare(const void *pa, const void *pb)
{
	const struct ksym *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->global != b->global)
		return a->global ? 1 : -1;
	return a->name < b->name ? 1 : -1;
}

static void
kernel_read(void)
{
	struct list list = {0};
	char *line = NULL;
	size_t cap = 0;
	bool known = true;
	FILE *f = fopen("/proc/kallsyms", "re");

	if (f == NULL)
		return;
	while (known && getline(&line, &cap, f) > 0)
		known = list_add(&list, line);
	(void)fclose(f);
	free(line);
	if (list.n > 0)
		qsort(list.at, list.n, sizeof(*list.at), ksym_compare);
	/* to those who may not know them, all addresses are shown as 0 */
	if (!known || list.n == 0 || list.at[list.n - 1].addr == 0) {
		free(list.at);
		free(list.names);
		return;
	}
	ksyms = list.at;
	nksyms = list.n;
	names = list.names;
}

const char *
ex_kernel_symbol(uint64_t addr, uint64_t *offset)
{
	size_t low = 0, high;
	const char *name;

	(void)pthread_once(&once, kernel_read);
	high = nksyms;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ksyms[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || addr - ksyms[low - 1].addr >= FUNCTION_MAX)
		return NULL;
	name = names + ksyms[low - 1].name;
	if (strcmp(name, "_etext") == 0)
		return NULL;
	*offset = addr - ksyms[low - 1].addr;
	return name;
}

/* The running kernel's build id.  Result: its length; 0: not known. */
static size_t
kernel_build_id(uint8_t id[20])
{
	uint8_t notes[4096];
	FILE *f = fopen("/sys/kernel/notes", "re");
	size_t len, at = 0;

	if (f == NULL)
		return 0;
	len = fread(notes, 1, sizeof(notes), f);
	(void)fclose(f);
	while (len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t name = at + sizeof(note), desc, end;

		memcpy(&note, notes + at, sizeof(note));
		desc = name + (note.n_namesz + UINT64_C(3)) / 4 * 4;
		end = desc + (note.n_descsz + UINT64_C(3)) / 4 * 4;
		if (end > len)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 &&
		    note.n_descsz <= 20) {
			memcpy(id, notes + desc, note.n_descsz);
			return note.n_descsz;
		}
		at = end;
	}
	return 0;
}

bool
ex_kernel_is(const char *symbol, uint64_t addr, const uint8_t *id, size_t len)
{
	uint8_t own[20];

	if (len == 0 || kernel_build_id(own) != len ||
	    memcmp(own, id, len) != 0)
		return false;
	(void)pthread_once(&once, kernel_read);
	for (size_t i = 0; i < nksyms; i++) {
		if (strcmp(names + ksyms[i].name, symbol) == 0)
			return ksyms[i].addr == addr;
	}
	return false;
}
