/*
 * units: makes a shared object of a few units of debug information, one of
 * which is large, and reads its debug information.
 */
#ifndef UNITS_H
#define UNITS_H

#include <dwarf.h>
#include <fcntl.h>

#include "symbol/line.h"
#include "module/module_private.h"
#include "symbol/symbol.h"
#include "type/variable.h"
#include "scratch.h"
#include "test.h"

/* Write much.c: many structures, and a function. */
static inline void
write_much(int structures)
{
	FILE *f = fopen(scratch_path("much.c"), "w");

	assert_non_null(f);
	for (int i = 0; i < structures; i++)
		(void)fprintf(f, "struct s%d { int a%d; long b%d[%d]; "
		    "struct s%d *c%d; };\n", i, i * 7, i % 91, i + 1, i / 2,
		    i % 13);
	(void)fprintf(f, "int much(int x) { return x; }\n");
	assert_int_equal(fclose(f), 0);
}

/* Write that, first.c and last.c, each with a function and a variable of its
   name, and plain.c, which is compiled without debug information. */
static inline void
write_units(int structures)
{
	scratch_write("first.c", "int first_v;\nint\nfirst(int x)\n{\n"
	    "	return x + first_v;\n}\n");
	scratch_write("last.c", "long last_v;\nint\n\nlast(int x)\n{\n"
	    "	return x + (int)last_v;\n}\n");
	scratch_write("plain.c", "int plain(int x) { return x + 1; }\n");
	write_much(structures);
}

/* Compile them. */
static inline void
compile_units_by(const char *compiler, const char *flags)
{
	scratch_run("rm -f *.o && for f in first much last; do "
	    "%s -g -O1 -fPIC -fno-eliminate-unused-debug-types %s -c $f.c || "
	    "exit 1; done && cc -O1 -fPIC -c plain.c",
	    compiler, flags);
}

static inline void
compile_units(const char *flags)
{
	compile_units_by("cc", flags);
}

static inline struct ex_module *
module_of(const char *name)
{
	const struct ex_file_id id = {0};
	struct ex_module *m = ex_module_new(scratch_path(name), &id);
	int fd = open(scratch_path(name), O_RDONLY | O_CLOEXEC);

	assert_non_null(m);
	assert_true(fd >= 0);
	ex_module_map(m, fd);
	(void)close(fd);
	assert_true(ex_module_open(m));
	return m;
}

static inline int
take_value(void *arg, const struct ex_symbol *symbol)
{
	*(uint64_t *)arg = symbol->value;
	return 1;
}

static inline uint64_t
value_of(struct ex_module *m, const char *name)
{
	uint64_t value = 0;

	assert_int_equal(ex_symbol_find_raw(m, name, take_value, &value), 1);
	return value;
}

/* The line where a function begins; 0: not known. */
static inline int
line_of(struct ex_module *m, const char *name)
{
	struct ex_line line[EX_LINES_MAX];

	return ex_lines_at(m, value_of(m, name), line) == 0 ? 0 : line[0].line;
}

/* Whether a variable is declared at the symbol of this name; and its own name,
   unless that is NULL. */
static inline bool
has_variable(struct ex_module *m, const char *name, char its_name[64])
{
	struct ex_variables *variables = ex_variables_new(m);
	uint64_t value = value_of(m, name);
	const struct ex_variable *found = ex_variables_find(variables, value);
	bool is = found != NULL && found->vaddr == value;
	Dwarf_Die die;

	if (is && its_name != NULL) {
		die = found->die;
		(void)snprintf(its_name, 64, "%s", dwarf_diename(&die));
	}
	ex_variables_free(variables);
	return is;
}

#endif
