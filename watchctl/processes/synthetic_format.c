/* synthetic_format: the layout of records of the state before the watch. */
#include "processes/synthetic_format.h"

#include "os/attr.h"

struct ex_formats *
synthetic_format_new(void)
{
	const struct wp_options options = {0};
	const struct wp_slot slot = {0};
	struct ex_formats *formats = ex_formats_new();
	struct perf_event_attr attr;

	wp_attr_watch(&attr, &slot, &options, true);
	if (formats != NULL && ex_formats_add(formats, &attr, NULL, 0) < 0) {
		ex_formats_free(formats);
		formats = NULL;
	}
	return formats;
}
