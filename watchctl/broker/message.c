/* message: the messages between watchctl and its explainer. */
#include "broker/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/clock.h"

/* Room for one descriptor. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

size_t
broker_size(const struct broker_message *message)
{
	return offsetof(struct broker_message, text) +
	    (message->len > 0 ? message->len : strlen(message->text) + 1);
}

int
broker_send(int socket, const struct broker_message *message, int fd)
{
	struct iovec part = {
		.iov_base = (void *)(uintptr_t)message,
		.iov_len = broker_size(message),
	};
	union control control = {.header = {
		.cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	}};
	struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		whole.msg_control = &control;
		whole.msg_controllen = sizeof(control);
	}
	while (sendmsg(socket, &whole, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int
descriptor_of(struct msghdr *whole)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(whole);
	int fd;

	if (header == NULL || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* Whether `got' bytes are a complete message. */
static bool
is_whole(const struct broker_message *message, size_t got)
{
	const size_t head = offsetof(struct broker_message, text);

	if (got <= head)
		return false;
	return message->len > 0 ? message->len == got - head :
	    message->text[got - head - 1] == '\0';
}

/* Polls first, because a message that comes soon is received faster than after
   a wakeup. */
static ssize_t
receive(int socket, struct msghdr *whole, uint64_t awake_ns)
{
	const uint64_t end = awake_ns == 0 ? 0 : wp_clock_ns() + awake_ns;
	ssize_t n;

	while (end != 0) {
		n = recvmsg(socket, whole, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (n >= 0 || errno != EAGAIN)
			return n;
		if (wp_clock_ns() >= end)
			break;
	}
	return recvmsg(socket, whole, MSG_CMSG_CLOEXEC);
}

int
broker_receive(int socket, struct broker_message *message, int *fd,
    uint64_t awake_ns)
{
	struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
	union control control;
	struct msghdr whole = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = fd != NULL ? sizeof(control) : 0,
	};
	ssize_t n = receive(socket, &whole, awake_ns);

	if (fd != NULL)
		*fd = n < 0 ? -1 : descriptor_of(&whole);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNRESET;
	if ((whole.msg_flags & MSG_TRUNC) == 0 && is_whole(message, (size_t)n))
		return 0;
	if (fd != NULL && *fd >= 0)
		(void)close(*fd);
	return -EPROTO;
}
