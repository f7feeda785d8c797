/* shared_memory: memory that watchctl shares with an explainer. */
#include "broker/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <unistd.h>

/* A larger file would raise a signal. */
static bool
may_be_file(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
	    limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size;
}

static int
make_file(const char *name, size_t size)
{
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

void *
shared_memory_map(int fd, int id, size_t size, int writable)
{
	void *at = id < 0 ? mmap(NULL, size, PROT_READ |
	    (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0) :
	    shmat(id, NULL, writable ? 0 : SHM_RDONLY);

	return at == MAP_FAILED ? NULL : at;
}

/* Map a file, and seal its size and more. */
static int
make_of_file(struct shared_memory *memory, const char *name, int seals)
{
	int err;

	if ((memory->fd = make_file(name, memory->size)) < 0)
		return -errno;
	memory->at = shared_memory_map(memory->fd, -1, memory->size, true);
	if (memory->at != NULL && fcntl(memory->fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | seals) == 0)
		return 0;
	err = -errno;
	shared_memory_free(memory);
	return err;
}

int
shared_memory_make(struct shared_memory *memory, const char *name, size_t size)
{
	int err;

	*memory = (struct shared_memory){.size = size, .fd = -1, .id = -1};
	if (may_be_file(size))
		return make_of_file(memory, name, 0);
	if ((memory->id = shmget(IPC_PRIVATE, size, 0600)) < 0)
		return -errno;
	memory->at = shared_memory_map(-1, memory->id, size, true);
	err = memory->at == NULL ? -errno : 0;
	/* it exists until its last user ends */
	(void)shmctl(memory->id, IPC_RMID, NULL);
	return err;
}

int
shared_memory_make_readable(struct shared_memory *memory, const char *name,
    size_t size)
{
	void *at;

	*memory = (struct shared_memory){.size = size, .fd = -1, .id = -1};
	if (may_be_file(size))
		return make_of_file(memory, name, F_SEAL_FUTURE_WRITE);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);
	memory->at = at == MAP_FAILED ? NULL : at;
	return at == MAP_FAILED ? -errno : 0;
}

void
shared_memory_free(struct shared_memory *memory)
{
	if (memory->at != NULL && memory->id >= 0)
		(void)shmdt(memory->at);
	else if (memory->at != NULL)
		(void)munmap(memory->at, memory->size);
	if (memory->fd >= 0)
		(void)close(memory->fd);
	*memory = (struct shared_memory){.fd = -1, .id = -1};
}
