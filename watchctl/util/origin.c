/* origin: host and rank, and file names made of them. */
#include "util/origin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/buffer.h"
#include "util/complain.h"

/* Digits of a rank at most. */
enum { RANK_DIGITS = 9 };

static bool
find_rank(unsigned *rank)
{
	static const char *const names[] = {
		"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
		"SLURM_PROCID",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = getenv(names[i]);
		const size_t len = text == NULL ? 0 : strlen(text);

		if (len > 0 && len <= RANK_DIGITS &&
		    strspn(text, "0123456789") == len) {
			*rank = (unsigned)atoi(text);
			return true;
		}
	}
	return false;
}

void
origin_here(struct origin *origin)
{
	*origin = (struct origin){0};
	origin->ranked = find_rank(&origin->rank);
	if (gethostname(origin->host, sizeof(origin->host) - 1) < 0)
		*origin->host = '\0';
}

int
origin_name_check(const char *name)
{
	while ((name = strchr(name, '%')) != NULL) {
		if (name[1] == '\0')
			return complain("-O: a %% at the end of the name: "
			    "write %%%% for one");
		if (strchr("hpr%", name[1]) == NULL)
			return complain("-O: %%%c stands for nothing: there "
			    "are %%h (host), %%p (process), %%r (rank) and "
			    "%%%%", name[1]);
		name += 2;
	}
	return 0;
}

bool
origin_name_has_pid(const char *name)
{
	while (name != NULL && (name = strchr(name, '%')) != NULL) {
		if (name[1] == 'p')
			return true;
		name += name[1] == '\0' ? 1 : 2;
	}
	return false;
}

/* Put the host in a form that can be a part of a file's name. */
static void
put_host(struct buffer *b, const char *host)
{
	for (; *host != '\0'; host++)
		buffer_put(b, *host == '/' ? "_" : host, 1);
}

char *
origin_name(const char *name, pid_t pid)
{
	struct buffer b = {0};
	struct origin origin;

	origin_here(&origin);
	for (; *name != '\0'; name++) {
		if (*name != '%' || name[1] == '\0') {
			buffer_put(&b, name, 1);
			continue;
		}
		switch (*++name) {
		case 'h':
			put_host(&b, origin.host);
			break;
		case 'p':
			buffer_dec(&b, (uint64_t)pid);
			break;
		case 'r':
			buffer_dec(&b, origin.rank);
			break;
		default:
			buffer_put(&b, name, 1);
		}
	}
	buffer_put(&b, "", 1);
	if (buffer_commit(&b, 0) == 0)
		return b.bytes;
	buffer_free(&b);
	return NULL;
}
