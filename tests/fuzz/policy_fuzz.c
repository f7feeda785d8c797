/*
 * policy_fuzz: any bytes as a policy file.
 *
 * One that is accepted is written again as a text that means the same, to which
 * a writer can be added; one that is not is refused with a line that names it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "option/policy_file.h"
#include "util/complain.h"

static unsigned refusals;

static void
hear(const char *line)
{
	refusals++;
	expect(strncmp(line, "p:", 2) == 0);
}

static size_t
writers_of(const struct policy_file *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		expect(f->watch[i].spec != NULL && *f->watch[i].spec != '\0');
		for (size_t k = 0; k < f->watch[i].n; k++) {
			expect(f->watch[i].line[k].number <= f->lines);
			n += f->watch[i].line[k].key == POLICY_WRITER;
		}
	}
	return n;
}

/* Write it, and take that apart again. */
static void
write_again(const struct policy_file *f, struct policy_file *again)
{
	struct buffer b = {0};

	policy_file_put(f, &b);
	expect(!b.failed && policy_file_parse(again, "p", b.bytes,
	    b.len) == 0);
	expect(again->n == f->n && writers_of(again) == writers_of(f));
	for (size_t i = 0; i < f->n; i++)
		expect(policy_file_find(again, f->watch[i].spec,
		    f->watch[i].access) != NULL);
	buffer_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy_file f, again, third;
	const unsigned before = refusals;
	int err;

	complain_to(hear);
	err = policy_file_parse(&f, "p", (const char *)data, size);
	expect((err == 0) == (refusals == before));
	expect(err == 0 || (err == -EINVAL && refusals == before + 1));
	if (err == 0) {
		write_again(&f, &again);
		expect(policy_file_join(&again, &f) == 0);
		expect(policy_file_add(&again, f.n > 0 ? f.watch[0].spec : "s",
		    WP_WRITE, "a.c!b=c]") >= 0);
		write_again(&again, &third);
		policy_file_free(&third);
		policy_file_free(&again);
	}
	policy_file_free(&f);
	return 0;
}
