/*
 * merge_fuzz: any bytes as lines of JSON Lines.
 *
 * What a line is taken for, it is to be by another reader, too: what that
 * refuses is not counted.  What is written of it can be read by that reader.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "merge/merge_line.h"
#include "merge/merge_report.h"

/* Every line that is written is an object, without what controls a terminal. */
static void
expect_lines(char *text)
{
	for (const char *p = text; *p != '\0'; p++)
		expect((unsigned char)*p >= 0x20 || *p == '\n');
	for (char *line = strtok(text, "\n"); line != NULL;
	    line = strtok(NULL, "\n")) {
		json_t *json = json_loads(line, 0, NULL);

		expect(json_is_object(json));
		json_decref(json);
	}
}

static void
write_all(struct merged *m)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	expect(out != NULL);
	expect(merge_report_json(m, &(struct merge_count){0}, out) == 0);
	(void)fclose(out);
	expect_lines(text);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct merge_place place = {.merged = merged_new()};
	char *bytes = malloc(size + 1), *at = bytes, *end = bytes + size;

	expect(place.merged != NULL && bytes != NULL);
	memcpy(bytes, data, size);
	*end = '\n';
	for (char *newline; at < end; at = newline + 1) {
		struct json_text line;
		json_t *json;

		newline = memchr(at, '\n', (size_t)(end + 1 - at));
		line = (struct json_text){at, (size_t)(newline - at)};
		/* to jansson, a NUL outside of strings is the end */
		json = memchr(at, '\0', line.len) != NULL ? NULL :
		    json_loadb(line.at, line.len, JSON_ALLOW_NUL, NULL);
		if (json_is_object(json))
			expect(json_text_object(line, NULL, NULL));
		json_decref(json);
		(void)merge_line(&place, line);
	}
	write_all(place.merged);
	merged_free(place.merged);
	free(bytes);
	return 0;
}
