/* kernel_symbols: names of kernel functions, from /proc/kallsyms. */
#include "space/kernel_symbols.h"

#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/symbol.h"
#include "base/array.h"
#include "proc/regular_file.h"

#define FUNCTION_MAX (1u << 20)	/* bytes: what is further from the nearest
				   symbol is not part of its function */

struct ksym {
	uint64_t addr;
	char *name;		/* points into the text of the file */
	bool global;
};

/* Read once, and shared. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ksym *ksyms;	/* by address; NULL if not known */
static size_t nksyms;

/* Whether this symbol marks the end of the kernel's code. */
static bool
ends_code(const char *name)
{
	return strcmp(name, "_etext") == 0;
}

/* Parse a line "address type name", possibly followed by "\t[module]".  Returns
   false unless it is a function or the end of code, which may count as data. */
static bool
ksym_parse(char *line, struct ksym *out)
{
	char *rest;

	out->addr = strtoull(line, &rest, 16);
	if (rest[0] != ' ' || rest[1] == '\0' || rest[2] != ' ')
		return false;
	out->global = rest[1] == 'T';
	out->name = rest + 3;
	out->name[strcspn(out->name, "\t ")] = '\0';
	return out->name[0] != '\0' &&
	    (strchr("tTwW", rest[1]) != NULL || ends_code(out->name));
}

/* By address; of several at one address, the best one last. */
static int
ksym_compare(const void *pa, const void *pb)
{
	const struct ksym *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (ends_code(a->name) != ends_code(b->name))
		return ends_code(a->name) ? 1 : -1;
	if (a->global != b->global)
		return a->global ? 1 : -1;
	return strcmp(b->name, a->name);
}

static FILE *
open_file(const char *path)
{
	const int fd = wp_open_regular(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && f == NULL)
		(void)close(fd);
	return f;
}

/* Read the whole file.  NULL if that is not possible. */
static char *
kernel_text(void)
{
	FILE *f = open_file("/proc/kallsyms");
	char *text = NULL;
	size_t cap = 0;

	if (f == NULL)
		return NULL;
	if (getdelim(&text, &cap, '\0', f) <= 0) {
		free(text);
		text = NULL;
	}
	(void)fclose(f);
	return text;
}

static void
kernel_read(void)
{
	char *text = kernel_text(), *rest = text, *line;
	size_t cap = 0;

	while ((line = strsep(&rest, "\n")) != NULL) {
		if (!ex_array_room(&ksyms, nksyms, 1, &cap, sizeof(*ksyms),
		    SIZE_MAX)) {
			nksyms = 0;	/* no symbols are better than some */
			break;
		}
		nksyms += ksym_parse(line, &ksyms[nksyms]);
	}
	if (nksyms > 0)
		qsort(ksyms, nksyms, sizeof(*ksyms), ksym_compare);
	/* users who may not see the addresses get 0 for all of them */
	if (nksyms == 0 || ksyms[nksyms - 1].addr == 0) {
		free(ksyms);
		free(text);
		ksyms = NULL;
		nksyms = 0;
	}
}

const char *
ex_kernel_symbol(uint64_t addr, uint64_t *offset)
{
	const char *name;
	size_t low;

	(void)pthread_once(&once, kernel_read);
	low = EX_ARRAY_UPTO(ksyms, nksyms, addr, addr);
	if (low == 0 || addr - ksyms[low - 1].addr >= FUNCTION_MAX)
		return NULL;
	name = ksyms[low - 1].name;
	if (ends_code(name))
		return NULL;
	*offset = addr - ksyms[low - 1].addr;
	return name;
}

size_t
ex_kernel_build_id(uint8_t id[20])
{
	uint8_t notes[4096];
	FILE *f = open_file("/sys/kernel/notes");
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

	if (len == 0 || ex_kernel_build_id(own) != len ||
	    memcmp(own, id, len) != 0)
		return false;
	(void)pthread_once(&once, kernel_read);
	for (size_t i = 0; i < nksyms; i++) {
		if (strcmp(ksyms[i].name, symbol) == 0)
			return ksyms[i].addr == addr;
	}
	return false;
}
