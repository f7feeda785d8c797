/* shared_memory: memory that watchctl shares with an explainer. */
#include "box/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <unistd.h>

/* To try would bring a signal. */
static bool
may_be_file(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
	    limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size;
}

static int
make_file(const char *name, size_t size, int seals)
{
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || (ftruncate(fd, (off_t)size) == 0 && fcntl(fd,
	    F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | seals) == 0))
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

int
shared_memory_make(struct shared_memory *memory, const char *name, size_t size)
{
	const bool file = may_be_file(size);
	int err;

	*memory = (struct shared_memory){
		.size = size, .fd = file ? make_file(name, size,
		    F_SEAL_SEAL) : -1,
		.id = file ? -1 : shmget(IPC_PRIVATE, size, 0600),
	};
	if (memory->fd < 0 && memory->id < 0)
		return -errno;
	memory->at = shared_memory_map(memory->fd, memory->id, size, true);
	err = memory->at == NULL ? -errno : 0;
	/* it is there until its last user ends */
	if (memory->id >= 0)
		(void)shmctl(memory->id, IPC_RMID, NULL);
	if (err < 0)
		shared_memory_free(memory);
	return err;
}

int
shared_memory_make_readable(struct shared_memory *memory, const char *name,
    size_t size)
{
	const bool file = may_be_file(size);

	*memory = (struct shared_memory){
		.size = size, .fd = file ? make_file(name, size, 0) : -1,
		.id = -1,
	};
	if (file && memory->fd < 0)
		return -errno;
	memory->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED |
	    (file ? 0 : MAP_ANONYMOUS), memory->fd, 0);
	if (memory->at == MAP_FAILED)
		memory->at = NULL;
	if (memory->at != NULL && (!file || fcntl(memory->fd, F_ADD_SEALS,
	    F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0))
		return 0;
	const int err = -errno;
	shared_memory_free(memory);
	return err;
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
