/*
 * message: the messages between watchctl and its explainer.
 *
 * The explainer is a separate process.  It reads data that others control, such
 * as executables, debug information and recordings, and may be under their
 * control afterwards.  It can do nothing but compute: it asks watchctl for
 * everything that it needs from outside, over a socket that preserves message
 * boundaries, and its report goes through shared memory.  Either side checks
 * what it gets from the other.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The explainer's descriptors: its end of the socket, and the shared memory. */
enum { BROKER_SOCKET = 3, BROKER_SHARED = 4 };

enum broker_what {
	/* from watchctl */
	BROKER_BEGIN,		/* err: 1 if a report has already begun, with
				   value[0] hits; value[1]: 1 for colour;
				   value[2]: the terminal's columns; value[3]: 1
				   if the report goes to standard error, as
				   text */
	BROKER_ASIDE,		/* text: the path of a module that shall not be
				   read, because an explainer died of it; "":
				   read no module */
	BROKER_GO,			/* the explainer knows everything now
					   and may begin */
	BROKER_LEAVE,		/* there will be no more questions: have indexes
				   kept, and end */
	BROKER_LEARN,		/* records of a process's mappings
				   (processes/synthetic_format.h); value[0],
				   value[1]: as of ex_space_mapped; not
				   answered */
	/* questions, answered with what is asked for; value[0]: the process, if
	   there is one */
	BROKER_RESOLVE,	/* value[1]: an access; value[2]: BROKER_EARLY if
			   libraries are still to be mapped, BROKER_UNBORN,
			   BROKER_FOLLOW, BROKER_ALL and BROKER_LOCAL
			   (finds_local) as in struct spec; value[3]: 1 if a
			   failure needs its cause; text: a SPEC, and the path
			   that its module leads to or "", each with NUL.  The
			   answer: value[0], value[1]: address and length;
			   value[2]: PLACE_NAMED if text is its name, PLACE_CODE
			   and PLACE_NARROW as code and narrow in struct
			   spec_place, or PLACE_LOCAL if it is thread-local and
			   has a name; value[3]: nmore of struct spec_place;
			   value[4] and on: more, or, if thread-local, value[4]:
			   base.  Or err, and value[2], text: the cause */
	BROKER_LOADER_HOOK,	/* value[0] of the answer: the function in the
				   dynamic loader at which debuggers stop; 0:
				   none */
	BROKER_MODULE,		/* value[1]: a module, from 0 on; the answer:
				   its build id and its path, each with NUL;
				   -ENOENT: there are no more */
	BROKER_SYMBOLS,		/* value[1]: the letter of -w, -r, -a or -x;
				   value[2]: how many symbols to skip; text: a
				   file to look into, or "" if there is a
				   process, and the beginning of a SPEC, each
				   with NUL.  The answer: value[0] bytes of the
				   report, the names that begin so, one a line;
				   value[1]: how many symbols have been
				   examined; 0: all */
	/* questions about a log, answered */
	BROKER_FRAME,		/* value[0]: a hit; value[1]: the number of its
				   frame; value[2]: the frame's address;
				   value[3]: the same in its module; value[4]: 1
				   if the address is an instruction's own; text:
				   the module.  The answer: value[0] bytes of
				   the report, lines for the frame */
	BROKER_FINISH,		/* the log has ended: print final remarks */

	BROKER_TAKE,		/* read the journal (session/journal.h) from
				   value[0] to value[1]; with the descriptor of
				   its memory, of value[2] bytes, if that is
				   new; answered with BROKER_TAKEN */
	BROKER_BYTES,		/* bytes of a journal that is in no shared
				   memory: value[0]: their offset; value[1]: the
				   journal's size */
	BROKER_ANSWER,		/* err: 0 or -errno; with the descriptor, text
				   or values that were asked for */
	/* from the explainer */
	BROKER_OPEN,		/* text: a path; answered */
	BROKER_SOURCE,		/* text: the path of a source file whose lines a
				   page shows; answered */
	BROKER_FETCH,		/* text: a build id whose debug information is
				   not on this machine; answered */
	BROKER_INDEX,		/* text: a build id, of whose debug information
				   a kept index may exist; answered */
	BROKER_KEEP,		/* text: a build id, whose index follows;
				   answered */
	BROKER_KEEP_BYTES,	/* value[0] bytes of the index are in the shared
				   memory; answered */
	BROKER_KEEP_END,	/* the index is complete; err: 1 to discard it;
				   answered */
	/* questions about a process that watchctl lets it ask about:
	   value[0] */
	BROKER_READ,		/* value[1]: an address in its memory; value[2]:
				   bytes, at most BROKER_BYTES_MAX; answered
				   with those that could be read */
	BROKER_FIRST_PAGE,	/* value[1]: the start of a file's mapping;
				   value[0] of the answer: the address of its
				   first page */
	BROKER_FD_NAME,		/* value[1]: a thread; value[2]: a descriptor;
				   answered with the name of the open file */
	BROKER_ROOT,		/* value[0] of the answer: a number for its root
				   directory, which later questions use in place
				   of a descriptor; UINT64_MAX: ours.  -ESRCH
				   and -EPERM stay true until it executes
				   another program */
	BROKER_OPEN_MAPPED,	/* value[1]: its root; value[2], value[3]: start
				   and end of a mapping; value[4], value[5]: its
				   device; value[6]: its inode; text: its path;
				   answered */
	BROKER_PERF_MAP,	/* value[1]: its root; answered with the name of
				   its perf map, the file that names its
				   generated code */
	BROKER_OPEN_PERF_MAP,	/* answered with the perf map */
	BROKER_PROGRAM,		/* value[0] of the answer: a number that
				   identifies the program that it executes */
	BROKER_CODE,		/* the same, and it also changes with its
				   code */
	BROKER_WORDS,		/* addresses of words of its memory; answered
				   with their values, up to the first that
				   cannot be read */
	BROKER_MAPS,		/* value[1]: an offset, at first 0; answered
				   with bytes, from there on, of records of its
				   mappings; none: the end */
	BROKER_SHARES,		/* value[0]: a thread; value[1]: a process;
				   value[0] of the answer: whether they may
				   share their memory */

	BROKER_SAY,		/* text: a line for standard error */
	BROKER_DETAILS,		/* value[0]: a hit that is about to be reported,
				   and for which --on-hit is to act, as begun in
				   struct broker_hit; value[1]: its address;
				   value[2]: bytes of its environment
				   (session/environment.h) in the shared memory;
				   answered */
	BROKER_REPORT,		/* value[0] bytes of the report are in the
				   shared memory; err: 1 if more belong to them;
				   else answered when they are written, which
				   completes value[1] hits (UINT64_MAX: and the
				   report); value[0] of the answer: how many
				   bytes are written; value[2]: 1 + enum side:
				   bytes of that side file, written at the
				   end */
	BROKER_KNOWN,		/* bytes: struct wp_known_stack, of a process
				   that is watched by BPF */
	BROKER_FORGET,		/* value[0]: a process, whose stacks BPF
				   programs shall no longer count */
	BROKER_REPLY,		/* value[0]: the number of a channel's hit;
				   text: its text for the program */
	BROKER_TAKEN,		/* that part of the journal has been read;
				   value[0]: hits that no longer need it;
				   value[1]: 1 if no more hits are wanted;
				   value[2]: the time of the last hit, ns; err:
				   the report's */
	BROKER_END,		/* value[0]: the exit status */
};

enum { BROKER_EARLY = 1, BROKER_UNBORN = 2, BROKER_FOLLOW = 4,
	BROKER_LOCAL = 8, BROKER_ALL = 16 };

/* Attributes of the place that was found. */
enum { PLACE_NAMED = 1, PLACE_LOCAL = 2, PLACE_CODE = 4, PLACE_NARROW = 8 };

enum { BROKER_VALUES = 7, BROKER_BYTES_MAX = 2 * PATH_MAX };

struct broker_message {
	uint32_t what;		/* enum broker_what */
	int32_t err;
	uint64_t value[BROKER_VALUES];
	uint32_t len;		/* length of `text' if it holds bytes; 0: it is
				   a string */
	char text[BROKER_BYTES_MAX];	/* ends with NUL */
};

/* The explainer's exit status when it runs out of memory. */
enum { BROKER_NO_MEMORY = 3 };

/* What became of a hit. */
enum broker_outcome { BROKER_REPORTED = 1, BROKER_UNCHANGED = 2, BROKER_STRAY =
    4,
	BROKER_UNJUDGED = 8, BROKER_REJECTED = 16, BROKER_SKIPPED = 32,
	BROKER_UNTIL = 64 };

/* The most samples of a journal that may wait to be explained, and the most
   hits of channels. */
enum { BROKER_SAMPLES_MAX = 1 << 15, BROKER_CHANNEL_HITS_MAX = 1 << 12 };

/* The most watches that one hit of a channel can have touched. */
enum { BROKER_TOUCHED_MAX = 9 };

/* What became of a hit of a channel. */
struct broker_channel_hit {
	uint64_t number;
	uint64_t begun;		/* as of ex_explain_done, after it */
	uint32_t dropped;	/* its accesses that were of no wanted kind */
	uint32_t unknown;	/* 1: it is unknown what its step touched */
	uint32_t n;		/* number of watches that it touched */
	struct {
		uint32_t serial, index;	/* as the channel has them */
		uint32_t times;	/* debug registers that it touched */
	} touched[BROKER_TOUCHED_MAX];
};

/* Memory that the explainer writes and watchctl reads. */
struct broker_shared {
	_Atomic uint64_t progress;	/* grows with the work done */
	_Atomic uint32_t idle;		/* 1: no module is being read */
	_Atomic uint32_t news;		/* 1: there is an index to be kept */
	char module[PATH_MAX];		/* path of the module that was read
					   last; "": none yet */
	char report[1 << 18];
	/* Of a journal: what became of its samples, indexed by their numbers,
	   and of hits, indexed by their numbers `begun' (hit/hit.h), both
	   modulo BROKER_SAMPLES_MAX. */
	uint64_t given_up;		/* begun: as of
					   explained_session_done */
	struct broker_sample {
		uint64_t number;
		uint64_t begun;		/* as of ex_explain_begun */
	} sample[BROKER_SAMPLES_MAX];
	struct broker_hit {
		uint64_t begun;
		uint64_t seq;		/* as reported */
		uint32_t outcome;	/* a set of enum broker_outcome */
		uint32_t watch;		/* from 0 */
		uint32_t stack;		/* the index of its backtrace;
					   UINT32_MAX: none */
	} hit[BROKER_SAMPLES_MAX];
	struct broker_channel_hit channel_hit[BROKER_CHANNEL_HITS_MAX];
};

/* How many bytes of the message are sent. */
size_t broker_size(const struct broker_message *);

/* Send a message, its text or bytes only as far as they are used; fd: a
   descriptor that goes with it, -1: none.  0 or -errno. */
int broker_send(int socket, const struct broker_message *, int fd);

/* Wait for a message, at first awake_ns without sleeping. *fd is the descriptor
   that came with it, -1: none came; NULL: none may come.  0; -EPROTO: what came
   is no message; -ECONNRESET: the other side has gone; -EINTR; or another
   -errno. */
int broker_receive(int socket, struct broker_message *, int *fd,
    uint64_t awake_ns);

#endif
