/*
 * ask_process: the functions by which explaining reads running processes
 * (proc/proc.h, proc/roots.h, proc/perf_map.h, proc/sharers.h, attach/synth.h),
 * here by asking watchctl.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/synth.h"
#include "explainer/ask.h"
#include "proc/perf_map.h"
#include "proc/proc.h"
#include "proc/roots.h"
#include "proc/sharers.h"
#include "util/buffer.h"

ssize_t
wp_proc_read(pid_t pid, uint64_t addr, void *to, size_t len)
{
	struct broker_message message;
	size_t have = 0;
	int err = 0;

	while (have < len && err == 0) {
		const size_t more = len - have < BROKER_BYTES_MAX ? len - have :
		    BROKER_BYTES_MAX;

		message = (struct broker_message){
			.what = BROKER_READ,
			.value = {(uint64_t)pid, addr + have, more},
		};
		err = ask_question(&message);
		if (err == 0 && message.len > more)
			err = -EPROTO;
		if (err == 0) {
			memcpy((char *)to + have, message.text, message.len);
			have += message.len;
			if (message.len < more)
				break;
		}
	}
	return have > 0 || err == 0 ? (ssize_t)have : err;
}

int
wp_proc_first_page(pid_t pid, uint64_t start, uint64_t *first)
{
	struct broker_message message = {
		.what = BROKER_FIRST_PAGE, .value = {(uint64_t)pid, start},
	};
	const int err = ask_question(&message);

	*first = message.value[0];
	return err;
}

int
wp_proc_fd(pid_t pid, pid_t tid, int fd, char *name, size_t size)
{
	struct broker_message message = {
		.what = BROKER_FD_NAME,
		.value = {(uint64_t)pid, (uint64_t)tid, (uint64_t)fd},
	};
	const int err = ask_question(&message);

	if (err < 0)
		return err;
	return (size_t)snprintf(name, size, "%s", message.text) < size ? 0 :
	    -ENAMETOOLONG;
}

int
wp_proc_open_mapped(pid_t pid, int root, uint64_t start, uint64_t end,
    const char *path, unsigned maj, unsigned min, uint64_t ino)
{
	struct broker_message message = {
		.what = BROKER_OPEN_MAPPED,
		.value = {(uint64_t)pid, (uint64_t)root, start, end, maj, min,
		    ino},
	};

	if ((size_t)snprintf(message.text, sizeof(message.text), "%s", path) >=
	    sizeof(message.text))
		return -ENAMETOOLONG;
	return ask_file(&message);
}

/* Roots are numbered by watchctl. */
int
wp_roots_find(struct wp_roots *roots, pid_t pid, int *root)
{
	struct broker_message message = {
		.what = BROKER_ROOT, .value = {(uint64_t)pid},
	};
	const int err = ask_question(&message);

	(void)roots;
	if (err == 0)
		*root = (int)message.value[0];
	return err;
}

void
wp_roots_free(struct wp_roots *roots)
{
	(void)roots;
}

int
wp_perf_map_find(struct wp_perf_map *map, pid_t pid, int root)
{
	struct broker_message message = {
		.what = BROKER_PERF_MAP,
		.value = {(uint64_t)pid, (uint64_t)root},
	};
	const int err = ask_question(&message);

	*map = (struct wp_perf_map){.pid = pid, .root = root};
	(void)snprintf(map->name, sizeof(map->name), "%.*s",
	    (int)sizeof(map->name) - 1, message.text);
	return err;
}

int
wp_perf_map_open(const struct wp_perf_map *map)
{
	struct broker_message message = {
		.what = BROKER_OPEN_PERF_MAP, .value = {(uint64_t)map->pid},
	};

	return ask_file(&message);
}

/* Ask for the number that stands for something. */
static int
ask_number(enum broker_what what, pid_t pid, uint64_t *number)
{
	struct broker_message message = {
		.what = what, .value = {(uint64_t)pid},
	};
	const int err = ask_question(&message);

	*number = message.value[0];
	return err;
}

int
wp_proc_program(pid_t pid, uint64_t *program)
{
	return ask_number(BROKER_PROGRAM, pid, program);
}

int
wp_proc_code(pid_t pid, uint64_t *code)
{
	return ask_number(BROKER_CODE, pid, code);
}

size_t
wp_proc_read_words(pid_t pid, const uint64_t *addr, uint64_t *to, size_t n)
{
	struct broker_message message = {
		.what = BROKER_WORDS, .value = {(uint64_t)pid},
	};
	const size_t len = (n < WP_PROC_WORDS ? n : WP_PROC_WORDS) *
	    sizeof(*addr);

	if (len == 0)
		return 0;
	message.len = (uint32_t)len;
	memcpy(message.text, addr, len);
	if (ask_question(&message) < 0 || message.len > len)
		return 0;
	memcpy(to, message.text, message.len);
	return message.len / sizeof(*to);
}

/* Read all mappings at once, before any is used. */
static int
ask_maps(pid_t pid, struct buffer *maps)
{
	struct broker_message message;
	int err;

	do {
		message = (struct broker_message){
			.what = BROKER_MAPS, .value =
			    {(uint64_t)pid, maps->len},
		};
		if ((err = ask_question(&message)) < 0)
			return err;
		buffer_put(maps, message.text, message.len);
	} while (message.len > 0 && !maps->failed);
	return maps->failed ? -ENOMEM : 0;
}

int
wp_synth_process(pid_t pid, int (*fn)(void *,
    const struct perf_event_header *), void *arg)
{
	struct buffer maps = {0};
	int err = ask_maps(pid, &maps);

	for (size_t at = 0; err == 0 && at < maps.len;) {
		const struct perf_event_header *record =
		    (const void *)(maps.bytes + at);

		if (record->size < sizeof(*record) ||
		    record->size > maps.len - at)
			break;
		err = fn(arg, record);
		at += record->size;
	}
	buffer_free(&maps);
	return err;
}

bool
wp_sharers_has(pid_t tid, pid_t pid)
{
	struct broker_message message = {
		.what = BROKER_SHARES,
		.value = {(uint64_t)tid, (uint64_t)pid},
	};

	return ask_question(&message) < 0 || message.value[0] != 0;
}
