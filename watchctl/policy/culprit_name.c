/* culprit_name: the name of the function that is responsible for a hit. */
#include "policy/culprit_name.h"

#include <ctype.h>
#include <string.h>

#include "util/visible.h"

/* The length without the last suffix of the compiler's (".isra.0", ".cold");
   unchanged if there is none.  "main.coldStart" is a name of Go's. */
static size_t
cut_one(const char *name, size_t len)
{
	static const char *const appended[] = {
		".constprop", ".isra", ".part", ".cold", ".lto_priv", ".llvm",
	};
	size_t end = len;

	while (end > 0 && isdigit((unsigned char)name[end - 1]))
		end--;
	end = end > 0 && end < len && name[end - 1] == '.' ? end - 1 : len;
	for (size_t i = 0; i < sizeof(appended) / sizeof(appended[0]); i++) {
		const size_t n = strlen(appended[i]);

		if (end > n && memcmp(name + end - n, appended[i], n) == 0 &&
		    (end < len || strcmp(appended[i], ".cold") == 0))
			return end - n;
	}
	return len;
}

size_t
culprit_name_length(const char *function)
{
	const char *clone = strstr(function, " [clone ");
	size_t len = clone != NULL ? (size_t)(clone - function) :
	    strlen(function), less;

	while ((less = cut_one(function, len)) < len)
		len = less;
	return len;
}

/* Whether the text after start can be a line's value unchanged. */
static bool
is_plain(struct buffer *b, size_t start)
{
	struct buffer shown = {0};
	bool plain;

	visible_put(&shown, buffer_text(b) + start);
	plain = !b->failed && !shown.failed && shown.len == b->len - start &&
	    memcmp(shown.bytes, b->bytes + start, shown.len) == 0 &&
	    strchr(" \t", b->bytes[start]) == NULL &&
	    strchr(" \t", b->bytes[b->len - 1]) == NULL;
	buffer_free(&shown);
	return plain;
}

bool
culprit_name_put(struct buffer *b, const struct ex_frame *frame)
{
	const size_t start = b->len;
	const char *file = frame->file, *slash;
	size_t len = frame->function == NULL || frame->jit ? 0 :
	    culprit_name_length(frame->function);

	if (file == NULL && frame->module != NULL)
		file = ex_module_name(frame->module);
	if (len == 0 || file == NULL)
		return false;
	slash = strrchr(file, '/');
	buffer_puts(b, slash == NULL ? file : slash + 1);
	if (b->len > start) {
		buffer_puts(b, "!");
		buffer_put(b, frame->function, len);
		if (is_plain(b, start))
			return true;
	}
	b->len = start;
	return false;
}
