/* heap_channel: the channel by which programs ask for a helper.  See
   heap_channel.h. */
#include "heap/heap_channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/preloaded.h"
#include "util/buffer.h"
#include "util/complain.h"

#ifndef LIBDIR
#define LIBDIR "/usr/local/lib"
#endif
#define LIBRARY "libwatchpoint.so.0"

int
heap_channel_library(char path[PATH_MAX])
{
	static const struct preloaded_library library = {
		.option = "--heap", .name = LIBRARY,
		.beside = {"../lib/" LIBRARY, "../lib/watchpoint/" LIBRARY},
		.installed = LIBDIR "/" LIBRARY,
		.variable = "WATCHPOINT_LIBRARY",
	};

	return preloaded_find(&library, path);
}

int
heap_channel_open(struct heap_channel *channel, const struct options *options)
{
	const char *helper = getenv("WATCHPOINT_HELPER");
	int err;

	*channel = (struct heap_channel){
		.fd = wp_channel_make(options->stack),
		.helper = helper == NULL ? NULL : strdup(helper),
	};
	err = channel->fd < 0 ? channel->fd :
	    wp_channel_map(channel->fd, &channel->at);
	return err < 0 ? complain_errno(-err, "memory to share with the "
	    "command") : 0;
}

int
heap_channel_set(const struct heap_channel *channel, const char *guard,
    const char *watching)
{
	struct buffer b = {0};
	char family[64];
	bool set;

	/* of several libraries that ask to be initialized first, the last one
	   is: the guard, which is thus active before others allocate */
	buffer_printf(&b, "%s:%s", watching, guard);
	(void)snprintf(family, sizeof(family), "/proc/%d/fd/%d",
	    (int)getpid(), channel->fd);
	set = preloaded_set(buffer_text(&b)) == 0 &&
	    setenv("WATCHPOINT_FAMILY", family, 1) == 0 &&
	    setenv("WATCHPOINT_HELPER", "", 1) == 0;
	buffer_free(&b);
	return set ? 0 : complain("out of memory");
}

void
heap_channel_unset(struct heap_channel *channel)
{
	(void)unsetenv("WATCHPOINT_FAMILY");
	(void)unsetenv("WATCHPOINT_HELPER");
	if (channel->helper != NULL)
		(void)setenv("WATCHPOINT_HELPER", channel->helper, 1);
}

void
heap_channel_close(struct heap_channel *channel)
{
	heap_channel_unset(channel);
	free(channel->helper);
	if (channel->at != NULL)
		wp_channel_unmap(channel->at);
	if (channel->fd >= 0)
		(void)close(channel->fd);
	*channel = (struct heap_channel){.fd = -1};
}
