/*
 * message: the messages between watchctl and its explainer.
 *
 * The explainer is a process of its own, which reads what others control, such
 * as executables, debug information and recordings, and may not be what it was
 * after that.  It can do nothing but compute: what it needs from outside it
 * asks watchctl for, over a socket that keeps messages apart, and its report
 * goes through memory that both map.  Either side checks what the other one
 * says.
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
	BROKER_BEGIN,		/* err: 1 if a report has begun already, with
				   value[0] hits; value[1]: 1 if it is to have
				   colour; value[2]: the columns of its
				   terminal; value[3]: 1 if it goes to standard
				   error, as text */
	BROKER_ASIDE,		/* text: the path of a module that is not to be
				   read, since reading it ended an explainer;
				   "": none is to be read */
	BROKER_GO,			/* that was all */
	BROKER_LEAVE,		/* there will be no questions: keep what is to
				   be kept, and end */
	BROKER_LEARN,		/* records of what processes map, of the format
				   of processes/synthetic_format.h; not
				   answered */
	/* questions, answered with what is asked for; of processes: value[0] */
	BROKER_RESOLVE,	/* value[1]: an access; value[2]: BROKER_EARLY if
				   libraries have still to be mapped,
				   BROKER_UNBORN, BROKER_FOLLOW, BROKER_ALL and
				   BROKER_LOCAL (finds_local) as of struct spec;
				   value[3]: 1 if it is to be said why not; a
				   SPEC, and where its module leads as a path,
				   or "", each with NUL.  The answer: value[0],
				   value[1]: address and length; value[2]:
				   PLACE_NAMED if text is its name, PLACE_CODE
				   and PLACE_NARROW as code and narrow of struct
				   spec_place, or PLACE_LOCAL if it is
				   thread-local and has a name; value[3]: nmore
				   of struct spec_place, and value[4] and on:
				   more, or if it is thread-local value[4]:
				   base; or err, and value[2], text: the
				   cause */
	BROKER_LOADER_HOOK,	/* the function that a debugger stops at in the
				   dynamic loader: value[0]; 0: there is none */
	BROKER_MODULE,		/* value[1]: a module, from 0 on; the answer:
				   its build id and its path, each with NUL;
				   -ENOENT: it has no more */
	BROKER_SYMBOLS,		/* value[1]: the letter of -w, -r, -a or -x;
				   value[2]: how many symbols to leave out; a
				   file to look into, or "" if there is a
				   process, and a SPEC's beginning, each with
				   NUL.  The answer: value[0] bytes of the
				   report, names that begin so, one a line;
				   value[1]: how many symbols have been looked
				   at; 0: all */
	/* questions about a log, answered */
	BROKER_FRAME,		/* value[0], value[1]: a hit, and the number of
				   a frame of it; value[2]: its address;
				   value[3]: the same in its module; value[4]: 1
				   if that is an instruction's own; text: the
				   module.  The answer: value[0] bytes of the
				   report, lines for it */
	BROKER_FINISH,		/* that was all; say what there is to say */

	BROKER_TAKE,		/* read the journal (session/journal.h), from
				   value[0] to value[1]; with the descriptor of
				   value[2] bytes of memory that it is in, if
				   that is another than before; answered with
				   BROKER_TAKEN */
	BROKER_BYTES,		/* bytes of a journal that is in no such memory:
				   value[0]: where in it; value[1]: its size */
	BROKER_ANSWER,		/* err: 0 or -errno; with a descriptor, text or
				   values if they were asked for */
	/* from the explainer */
	BROKER_OPEN,		/* text: a path; answered */
	BROKER_SOURCE,		/* text: the path of a source file, of which a
				   page is to have lines; answered */
	BROKER_FETCH,		/* text: a build id, whose debug information is
				   not on this machine; answered */
	BROKER_INDEX,		/* text: a build id, of whose debug information
				   an index may be kept; answered */
	BROKER_KEEP,		/* text: a build id, whose index comes;
				   answered */
	BROKER_KEEP_BYTES,	/* value[0] bytes of it are in the shared
				   memory; answered */
	BROKER_KEEP_END,	/* it is all there; err: 1 if it is to be
				   forgotten; answered */
	/* the same, of a process that watchctl lets it ask about: value[0] */
	BROKER_READ,		/* value[1]: an address in its memory; value[2]:
				   bytes, at most BROKER_BYTES_MAX; answered
				   with those that could be read */
	BROKER_FIRST_PAGE,	/* value[1]: where a mapping of a file begins;
				   answered with where its first page lies:
				   value[0] */
	BROKER_FD_NAME,		/* value[1]: a thread; value[2]: a descriptor;
				   answered with what it is open on */
	BROKER_ROOT,		/* answered with the number of its root
				   directory, which is as good as a descriptor
				   in questions: value[0]; UINT64_MAX: ours */
	BROKER_OPEN_MAPPED,	/* value[1]: its root; value[2], value[3]: start
				   and end of a mapping; value[4], value[5]: its
				   device; value[6]: its inode; text: its path;
				   answered */
	BROKER_PERF_MAP,	/* value[1]: its root; answered with the name of
				   the file in which it names its code */
	BROKER_OPEN_PERF_MAP,	/* answered with that file */
	BROKER_PROGRAM,		/* answered with what tells its program from
				   another: value[0] */
	BROKER_CODE,		/* and what changes when its code does */
	BROKER_WORDS,		/* addresses of words of its memory; answered
				   with those words, up to the first that cannot
				   be read */
	BROKER_MAPS,		/* value[1]: an offset, at first 0; answered
				   with what it maps, as records: bytes from
				   there on; none: that was all */
	BROKER_SHARES,		/* value[0]: a thread; value[1]: a process;
				   answered with whether they may have one
				   memory: value[0] */

	BROKER_SAY,		/* text: a line for standard error */
	BROKER_DETAILS,		/* value[0]: a hit that is about to be reported,
				   and is to be acted at, as begun of struct
				   broker_hit; value[1]: its address; value[2]
				   bytes in the shared memory: of its
				   environment (session/environment.h);
				   answered */
	BROKER_REPORT,		/* value[0] bytes of the report are in the
				   shared memory; err: 1 if they are not all;
				   else answered when they are written, and with
				   them value[1] hits (UINT64_MAX: and its end);
				   value[0] of the answer: as many bytes are;
				   value[2]: 1 + enum side: of what is written
				   beside it, when all is over */
	BROKER_KNOWN,		/* bytes: struct wp_known_stack, of a process
				   that is watched by BPF */
	BROKER_FORGET,		/* value[0]: a process: nothing is known of its
				   stacks any more */
	BROKER_REPLY,		/* value[0]: the number of a channel's hit;
				   text: what its program gets of it */
	BROKER_TAKEN,		/* what was to be read of the journal is;
				   value[0] hits of it need it no more;
				   value[1]: 1 if no more is wanted; value[2]:
				   when the last hit was made, ns; err: the
				   report's */
	BROKER_END,		/* value[0]: the exit status */
};

enum { BROKER_EARLY = 1, BROKER_UNBORN = 2, BROKER_FOLLOW = 4,
	BROKER_LOCAL = 8, BROKER_ALL = 16 };

/* What is found is this. */
enum { PLACE_NAMED = 1, PLACE_LOCAL = 2, PLACE_CODE = 4, PLACE_NARROW = 8 };

enum { BROKER_VALUES = 7, BROKER_BYTES_MAX = 2 * PATH_MAX };

struct broker_message {
	uint32_t what;		/* enum broker_what */
	int32_t err;
	uint64_t value[BROKER_VALUES];
	uint32_t len;		/* of bytes in place of a text; 0: it is one */
	char text[BROKER_BYTES_MAX];	/* ends with NUL */
};

/* With what the explainer exits when it runs out of memory. */
enum { BROKER_NO_MEMORY = 3 };

/* What became of a hit. */
enum broker_outcome { BROKER_REPORTED = 1, BROKER_UNCHANGED = 2, BROKER_STRAY =
    4,
	BROKER_UNJUDGED = 8, BROKER_REJECTED = 16, BROKER_SKIPPED = 32,
	BROKER_UNTIL = 64 };

/* So many samples of a journal may wait for their hits to be given; and so many
   hits of channels. */
enum { BROKER_SAMPLES_MAX = 1 << 15, BROKER_CHANNEL_HITS_MAX = 1 << 12 };

/* As many watches as one of these can have touched. */
enum { BROKER_TOUCHED_MAX = 9 };

/* What became of one. */
struct broker_channel_hit {
	uint64_t number;
	uint64_t begun;		/* as of ex_explain_done, behind it */
	uint32_t dropped;	/* accesses of it that were not wanted */
	uint32_t unknown;	/* 1: what its step touched is not known */
	uint32_t n;		/* watches that it touched: */
	struct {
		uint32_t serial, index;	/* as the channel has them */
		uint32_t times;	/* debug registers that it touched */
	} touched[BROKER_TOUCHED_MAX];
};

/* The explainer writes it, and watchctl reads it. */
struct broker_shared {
	_Atomic uint64_t progress;	/* grows with what has been done */
	_Atomic uint32_t idle;		/* 1: nothing is being read */
	_Atomic uint32_t news;		/* 1: there is something to be kept */
	char module[PATH_MAX];		/* the path of the one that was read
					   last; "": none yet */
	char report[1 << 18];
	/* of a journal: what became of its samples, by their numbers, and of
	   hits, by their numbers `begun' (hit/hit.h), modulo
	   BROKER_SAMPLES_MAX */
	uint64_t given_up;		/* begun: as of
					   explained_session_done */
	struct broker_sample {
		uint64_t number;
		uint64_t begun;		/* as of ex_explain_begun */
	} sample[BROKER_SAMPLES_MAX];
	struct broker_hit {
		uint64_t begun;
		uint64_t seq;		/* as reported */
		uint32_t outcome;	/* enum broker_outcome, together */
		uint32_t watch;		/* from 0 */
		uint32_t stack;		/* the index of its backtrace;
					   UINT32_MAX: none */
	} hit[BROKER_SAMPLES_MAX];
	struct broker_channel_hit channel_hit[BROKER_CHANNEL_HITS_MAX];
};

/* Of the message, bytes that are sent. */
size_t broker_size(const struct broker_message *);

/* Send a message, of its text or bytes only what there is; fd: a descriptor
   that goes with it, -1: none.  0 or -errno. */
int broker_send(int socket, const struct broker_message *, int fd);

/* Wait for one, for so many ns without sleeping; *fd is a descriptor that came
   with it, -1: none came; NULL: none may come.  0; -EPROTO: what came is no
   message; -ECONNRESET: the other side has gone; -EINTR; or another -errno. */
int broker_receive(int socket, struct broker_message *, int *fd,
    uint64_t awake_ns);

#endif
