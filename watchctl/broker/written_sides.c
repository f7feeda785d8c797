/* written_sides: the side files that explainers produce with a report. */
#include "broker/written_sides.h"

#include <errno.h>
#include <string.h>

#include "util/complain.h"
#include "util/visible.h"

enum { TEXT_MAX = 64 << 20 };	/* bytes of one */

bool
written_sides_take(struct written_sides *sides,
    const struct side_files *files, struct broker *broker,
    const struct broker_message *message)
{
	const struct broker_message answer = {.what = BROKER_ANSWER};
	const uint64_t side = message->value[2] - 1, n = message->value[0];

	if (side >= SIDES || files->options->side[side] == NULL ||
	    sides->whole[side] || n > sizeof(broker->shared->report) ||
	    n > TEXT_MAX - sides->text[side].len)
		return false;
	buffer_put(&sides->text[side], broker->shared->report, n);
	sides->whole[side] = message->err == 0;
	(void)broker_post(broker, &answer, -1);
	return true;
}

/* Whether each line is an annotation; a CI runner executes other commands,
   too. */
static bool
is_annotations(const struct buffer *b)
{
	static const char begin[] = "::error ";
	const size_t len = sizeof(begin) - 1;
	const char *end;

	for (size_t at = 0; at < b->len; at = (size_t)(end + 1 - b->bytes)) {
		if (b->len - at < len || memcmp(b->bytes + at, begin, len) != 0)
			return false;
		if ((end = memchr(b->bytes + at, '\n', b->len - at)) == NULL)
			return false;
	}
	return true;
}

/* NULL, or why it must not be written. */
static const char *
refuse(const struct written_sides *sides, enum side side)
{
	const struct buffer *b = &sides->text[side];

	if (b->failed)
		return "out of memory";
	return !sides->whole[side] ||
	    !visible_is_harmless(b->bytes, b->len, false) ||
	    (side == SIDE_GITHUB && !is_annotations(b)) ?
	    "the process that explains wrote nothing usable for it" :
	    NULL;
}

int
written_sides_finish(struct written_sides *sides, struct side_files *files)
{
	int err = 0;

	for (int i = 0; i < SIDES; i++) {
		const struct buffer *b = &sides->text[i];
		const char *why = refuse(sides, (enum side)i);

		if (files->options == NULL || files->options->side[i] == NULL)
			continue;
		if (why != NULL)
			err = complain("%s: not written: %s",
			    options_side_name((enum side)i), why);
		else if (side_files_write(files, (enum side)i, b->bytes,
		    b->len) < 0)
			err = -EIO;
	}
	return err;
}

void
written_sides_forget(struct written_sides *sides)
{
	for (int i = 0; i < SIDES; i++) {
		buffer_free(&sides->text[i]);
		sides->whole[i] = false;
	}
}
