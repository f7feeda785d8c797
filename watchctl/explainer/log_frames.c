/* log_frames: finds the functions and lines of the frames in a log. */
#include "explainer/log_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "explainer/ask.h"
#include "explainer/questions.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "util/complain.h"
#include "util/visible.h"

enum { FILES_MAX = 4096 };	/* most files that are opened */

/* Files are mapped at this address, each in a process of its own. */
static const uint64_t place = UINT64_C(1) << 40;

/* A file with frames. */
struct framed_file {
	char *path;
	pid_t pid;		/* represents it in the space */
};

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct framed_file *)a)->path,
	    ((const struct framed_file *)b)->path);
}

/* Map the whole file at its first byte. */
static void
map_file(struct log_frames *log, const struct framed_file *file)
{
	const struct ex_record record = {
		.type = PERF_RECORD_MMAP2, .attr = -1, .pid = file->pid,
		.tid = file->pid,
		.mmap = {
			.start = place, .len = place, .prot = PROT_EXEC,
			.path = file->path,
		},
	};

	ex_space_learn(log->space, &record);
}

static struct framed_file *
add_file(struct log_frames *log, const char *path)
{
	struct framed_file *file = malloc(sizeof(*file));

	if (file == NULL || log->nfiles == FILES_MAX ||
	    (file->path = strdup(path)) == NULL) {
		free(file);
		return NULL;
	}
	file->pid = ++log->nfiles;
	if (tsearch(file, &log->files, compare) == NULL) {
		free(file->path);
		free(file);
		return NULL;
	}
	map_file(log, file);
	return file;
}

/* The process of a path.  NULL if there is no memory or room. */
static struct ex_process *
find_process(struct log_frames *log, const char *path)
{
	const struct framed_file key = {.path = (char *)(uintptr_t)path};
	struct framed_file **found = tfind(&key, &log->files, compare);
	struct framed_file *file = found != NULL ? *found : add_file(log, path);

	return file == NULL ? NULL : ex_space_process(log->space, file->pid);
}

/* The module of a path, and the vaddr at this offset from its first mapping.
   NULL if unknown. */
static struct ex_module *
find_module(struct log_frames *log, const char *path, uint64_t offset,
    uint64_t *vaddr)
{
	struct ex_process *process = find_process(log, path);
	struct ex_module *module;

	if (process == NULL || offset >= place)
		return NULL;
	module = ex_process_module(process, place + offset, vaddr);
	return module == NULL || ex_module_problem(module) != NULL ? NULL :
	    module;
}

/* Put a line of the log for one level of inlining. */
static void
put_level(struct buffer *b, const struct broker_message *question,
    const struct ex_frame *frame)
{
	buffer_printf(b, "watchpoint:   #%" PRIu64 " frame %" PRIu64 " ",
	    question->value[0], question->value[1]);
	buffer_hex(b, question->value[2]);
	if (frame->function != NULL) {
		buffer_puts(b, " ");
		visible_put(b, frame->function);
		if (!frame->inlined) {
			buffer_puts(b, "+");
			buffer_hex(b, frame->offset);
		}
	}
	if (frame->file != NULL) {
		buffer_puts(b, " ");
		visible_put(b, frame->file);
		buffer_printf(b, ":%d", frame->line);
	}
	if (frame->inlined) {
		buffer_puts(b, " (inlined)\n");
		return;
	}
	buffer_puts(b, " (");
	visible_put(b, question->text);
	buffer_puts(b, "+");
	buffer_hex(b, question->value[3]);
	buffer_puts(b, ")\n");
}


/* Put the lines of a frame.  Returns false if nothing is known of it. */
static bool
put_frame(struct log_frames *log, const struct broker_message *question,
    struct buffer *b)
{
	const struct ex_frames *frames;
	uint64_t vaddr;
	struct ex_module *module = find_module(log, question->text,
	    question->value[3], &vaddr);

	if (module == NULL)
		return false;
	frames = ex_symbol_frames(module, vaddr, question->value[4] != 0 ?
	    vaddr : vaddr - 1);
	if (frames == NULL || (frames->frame[0].function == NULL &&
	    frames->frame[0].file == NULL))
		return false;
	for (unsigned i = 0; i < frames->n; i++)
		put_level(b, question, &frames->frame[i]);
	return true;
}

/* Report names and lines that are missing because a file is not trusted. */
static void
say_disbelief(struct log_frames *log)
{
	const struct ex_module *module;
	const char *why;

	while ((module = ex_space_rejected_debug(log->space, &why)) != NULL)
		(void)complain("warning: debug information is not used: "
		    "%s: %s", why, ex_module_path(module));
}

bool
log_frames_take(struct log_frames *log, const struct broker_message *message)
{
	struct broker_message answer = {.what = BROKER_ANSWER};
	struct ex_process *process;
	struct buffer b = {0};

	switch (message->what) {
	case BROKER_FRAME:
		answer.err = !put_frame(log, message, &b) ? -ENOENT :
		    b.failed ? -ENOMEM : ask_put_text(buffer_text(&b), b.len);
		answer.value[0] = b.len;
		break;
	case BROKER_SYMBOLS:
		answer.err = (process = find_process(log, message->text)) ==
		    NULL ? -ENOMEM : questions_symbols(process, message,
		    &answer);
		break;
	case BROKER_FINISH:
		say_disbelief(log);
		break;
	default:
		return false;
	}
	ask_send(&answer);
	buffer_free(&b);
	return true;
}
