/*
 * spec_fuzz: any bytes as a SPEC, in a process whose modules and symbols bear
 * any names.
 *
 * Input: the access (one byte), the SPEC up to a NUL, then names up to a NUL
 * each: the first a module's path, the others symbols of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "made_process.h"
#include "spec/spec.h"

enum { SYMBOLS_MAX = 16 };

/* A message is one line that a terminal can be given, and says something. */
static void
expect_message(const struct wp_cause *cause, int rc)
{
	expect(rc < 0 && rc == -cause->err && cause->text[0] != '\0');
	for (const char *p = cause->text; *p != '\0'; p++)
		expect((unsigned char)*p >= 0x20 && *p != 0x7f);
}

/* The next NUL-terminated string before end; "" when there is none. */
static const char *
next(const char **p, const char *end)
{
	const char *text = *p;

	if (text >= end)
		return "";
	*p = text + strlen(text) + 1;
	return text;
}

static void
resolve(const struct spec *spec, const char *names, const char *end)
{
	struct ex_symbol symbols[SYMBOLS_MAX];
	struct ex_module modules[2] = {{.path = next(&names, end),
	    .size = 0x1000, .symbol = symbols}};
	struct ex_process process = {modules, 2};
	struct spec_place place;
	struct wp_cause cause;
	size_t n = 0;
	int rc;

	for (; n < SYMBOLS_MAX && names < end; n++) {
		const char *name = next(&names, end);
		unsigned char first = (unsigned char)name[0];

		symbols[n] = (struct ex_symbol){
			.name = name, .value = n * 8, .size = first % 9,
			.global = first & 16, .function = first & 32,
			.object = !(first & 32), .tls = first & 64,
			.indirect = (first & 40) == 40,
			.file = first & 2 ? name : NULL,
		};
	}
	modules[0].nsymbols = n;
	modules[1] = modules[0];
	modules[1].base = UINT64_MAX - 0xfff;
	rc = spec_resolve(spec, &process, &place, &cause);
	if (rc == 0)
		expect(place.len > 0 &&
		    place.len - 1 <= UINT64_MAX - place.addr);
	else
		expect_message(&cause, rc);
	free(place.symbol);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;
	const char *p, *end;
	struct spec spec;
	struct wp_cause cause;
	int rc;

	if (size == 0)
		return 0;
	text = malloc(size);
	expect(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	end = text + size - 1;
	p = text;
	(void)next(&p, end);
	rc = spec_parse(text, "wrax"[data[0] % 4], &spec, &cause);
	if (rc == 0) {
		expect(strcmp(spec.text, text) == 0);
		expect(spec.symbol != NULL || spec.module == NULL);
		resolve(&spec, p, end);
		spec_free(&spec);
	} else {
		expect(rc == -EINVAL);
		expect_message(&cause, rc);
	}
	free(text);
	return 0;
}
