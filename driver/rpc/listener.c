// SPDX-License-Identifier: Apache-2.0
#include "rpc/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

/* A client that does not wait fails when it is full, as gRPC's do; the kernel caps it. */
#define BACKLOG 4096
#define ACCEPT_BATCH 64
/* Out of descriptors or memory: look again later instead of spinning. */
#define ACCEPT_PAUSE_US 100000
/* A successor that takes the path over removes our file and binds its own at once: let it. */
#define REMAKE_DELAY_US 1000000
#define REMAKE_TRIES 5
#define BIND_TRIES 10
/* While somebody else serves our path: it may die without leaving it to us. */
#define PROBE_US 3000000

struct listener {
	struct loop *loop;
	char *path;
	void (*accepted)(int fd, void *data);
	void (*failed)(const struct err *err, void *data);
	void *data;

	int fd;
	struct loop_fd *source;
	struct loop_timer *pause; /* running: accepting is suspended */
	bool starved; /* the pause has been logged */
	dev_t dev; /* of the socket's file; it cannot be used again while "fd" is open */
	ino_t ino;

	int watch_fd; /* inotify on the directory, -1 without */
	struct loop_fd *watch;
	struct loop_timer *remake;
	unsigned int remake_tries;
	bool taken_over; /* has been logged */
};

enum owner { OWNER_NONE, OWNER_US, OWNER_OTHER };

static enum owner path_owner(const struct listener *l)
{
	struct stat st;

	if (lstat(l->path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? OWNER_NONE : OWNER_OTHER;
	return l->fd >= 0 && st.st_dev == l->dev && st.st_ino == l->ino ? OWNER_US : OWNER_OTHER;
}

/*
 * Old and new instances on one path must not step between each other's look and act: a lock on
 * the directory, held for a few system calls.  Where it cannot be locked, we do without.
 */
static int lock_directory(const struct listener *l)
{
	_cleanup_free_ char *copy = xstrdup(l->path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	return fd;
}

/* Before the descriptor is closed: until then nobody else's file can have our inode. */
static void remove_own_file(const struct listener *l)
{
	_cleanup_close_ int lock = lock_directory(l);

	(void)lock; /* until the return */
	if (path_owner(l) == OWNER_US)
		unlink(l->path);
}

/*
 * A socket's file that nobody listens on.  Whoever makes a socket here holds the lock from bind()
 * to listen(), so ask under the lock.
 */
static bool is_deserted(const char *path)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;

	if (fd < 0 || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	memcpy(addr.sun_path, path, strlen(path) + 1); /* it was bound before */
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 && errno == ECONNREFUSED;
}

/* True: the path is free, since the process that took it over is gone. */
static bool remove_deserted(const struct listener *l)
{
	_cleanup_close_ int lock = lock_directory(l);

	(void)lock; /* until the return */
	return path_owner(l) == OWNER_OTHER && is_deserted(l->path) && unlink(l->path) == 0;
}

static void close_socket(struct listener *l)
{
	l->source = loop_remove_fd(l->source);
	closep(&l->fd);
	l->fd = -1;
	loop_timer_stop(l->pause);
}

static void give_up(struct listener *l, const struct err *err)
{
	remove_own_file(l);
	close_socket(l);
	loop_timer_stop(l->remake);
	l->failed(err, l->data);
}

/* Kubelet, as root, or a tool of ours. */
static bool peer_allowed(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	log_debug("connection refused", KV("uid", "%u", peer.uid), KV("pid", "%d", peer.pid));
	return false;
}

static void accept_error(struct listener *l, int error)
{
	struct err err = { 0 };

	switch (error) {
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOBUFS:
		if (!l->starved)
			log_warn("accepting connections pauses", KV("socket", "%s", l->path),
				 KV("error", "%s", strerrordesc_np(error)));
		l->starved = true;
		loop_set_fd(l->source, 0);
		loop_timer_set(l->pause, ACCEPT_PAUSE_US);
		return;
	default:
		err_errno(&err, ERR_INTERNAL, error, "cannot accept connections on %s", l->path);
		give_up(l, &err);
	}
}

static void on_connection(int fd, uint32_t events, void *data)
{
	struct listener *l = data;

	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (peer >= 0) {
			l->starved = false;
			if (peer_allowed(peer))
				l->accepted(peer, l->data);
			else
				close(peer);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			accept_error(l, errno);
			return;
		}
	}
}

static void on_pause_over(void *data)
{
	struct listener *l = data;

	loop_set_fd(l->source, EPOLLIN);
}

/* Make room for bind(): only a socket is removed. */
static int remove_predecessor(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return 0; /* bind() tells what is wrong, if anything is */
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_CONFLICT, EEXIST,
			       "%s exists and is not a socket: remove it", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, ERR_PERMANENT, errno, "cannot remove the old socket %s",
				 path);
	return 0;
}

static int bind_path(int fd, const char *path, bool take_over, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, ERR_INVALID, ENAMETOOLONG,
			       "socket path %s is longer than 107 bytes", path);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	for (int i = 0;; i++) {
		int r;

		if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			return 0;
		if (errno != EADDRINUSE || !take_over || i == BIND_TRIES)
			return err_errno(err, errno == EADDRINUSE ? ERR_CONFLICT : ERR_PERMANENT,
					 errno,
					 "cannot bind socket %s: check that its directory exists "
					 "and is mounted writable",
					 path);
		r = remove_predecessor(path, err);
		if (r < 0)
			return r;
	}
}

/* Replaces l->fd on success.  "take_over": remove what is at the path. */
static int open_socket(struct listener *l, bool take_over, struct err *err)
{
	_cleanup_close_ int lock = lock_directory(l);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct loop_fd *source;
	struct stat st;
	int r;

	(void)lock; /* until the return */
	if (fd < 0)
		return err_errno(err, ERR_RETRY, errno, "cannot make a socket for %s", l->path);
	/* On Linux bind() makes the file with the mode of the socket. */
	if (fchmod(fd, 0600) < 0)
		return err_errno(err, ERR_INTERNAL, errno, "cannot restrict socket %s", l->path);
	r = bind_path(fd, l->path, take_over, err);
	if (r < 0)
		return r;
	if (listen(fd, BACKLOG) < 0 || lstat(l->path, &st) < 0)
		r = err_errno(err, ERR_RETRY, errno, "cannot listen on %s", l->path);
	else
		r = loop_add_fd(l->loop, fd, EPOLLIN, on_connection, l, &source, err);
	if (r < 0) {
		unlink(l->path);
		return r;
	}
	close_socket(l);
	l->fd = TAKE_FD(fd);
	l->source = source;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	l->taken_over = false;
	return 0;
}

/* Also after each bind: the directory may be a new one.  Without a watch the listener works until
 * somebody removes its file, so a failure is not an error. */
static void watch_directory(struct listener *l)
{
	_cleanup_free_ char *copy = xstrdup(l->path);
	const uint32_t mask = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF;

	if (l->watch && inotify_add_watch(l->watch_fd, dirname(copy), mask) >= 0)
		return;
	log_warn("removal of the socket will go unnoticed", KV("socket", "%s", l->path),
		 KV("cure", "raise fs.inotify.max_user_instances and max_user_watches"));
}

/* Make the socket again unless somebody else's is there. */
static void remake(struct listener *l)
{
	enum owner owner = path_owner(l);
	struct err err = { 0 };

	if (owner == OWNER_US)
		return;
	if (owner == OWNER_OTHER && remove_deserted(l)) {
		log_warn("who served our socket is gone, making it again",
			 KV("socket", "%s", l->path));
	} else if (owner == OWNER_OTHER) {
		if (!l->taken_over)
			log_warn("another process serves our socket", KV("socket", "%s", l->path));
		l->taken_over = true;
		loop_timer_set(l->remake, PROBE_US);
		return;
	}
	if (open_socket(l, false, &err) == 0) {
		l->remake_tries = 0;
		watch_directory(l);
	} else if (++l->remake_tries == REMAKE_TRIES) {
		give_up(l, &err);
	} else {
		loop_timer_set(l->remake, REMAKE_DELAY_US);
	}
}

static void on_remake(void *data)
{
	struct listener *l = data;

	if (path_owner(l) == OWNER_NONE)
		log_warn("socket was removed, making it again", KV("socket", "%s", l->path));
	remake(l);
}

static void on_watch(int fd, uint32_t events, void *data)
{
	struct listener *l = data;
	char buf[4096];

	(void)events;
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	if (path_owner(l) != OWNER_US)
		loop_timer_set(l->remake, REMAKE_DELAY_US);
}

static void open_watch(struct listener *l)
{
	struct err err;

	l->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (l->watch_fd >= 0 &&
	    loop_add_fd(l->loop, l->watch_fd, EPOLLIN, on_watch, l, &l->watch, &err) < 0)
		log_debug("no watch", KV("error", "%s", err.msg));
}

int listener_new(struct loop *loop, const struct listener_config *config, struct listener **ret,
		 struct err *err)
{
	struct listener *l = xnew(struct listener);
	int r;

	l->loop = loop;
	l->path = xstrdup(config->path);
	l->accepted = config->accepted;
	l->failed = config->failed;
	l->data = config->data;
	l->fd = l->watch_fd = -1;
	l->pause = loop_timer_new(loop, on_pause_over, l);
	l->remake = loop_timer_new(loop, on_remake, l);
	r = open_socket(l, true, err);
	if (r < 0) {
		listener_free(l);
		return r;
	}
	open_watch(l);
	watch_directory(l);
	*ret = l;
	return 0;
}

void listener_renew(struct listener *l)
{
	remove_own_file(l);
	remake(l);
}

struct listener *listener_free(struct listener *l)
{
	if (!l)
		return NULL;
	remove_own_file(l);
	close_socket(l);
	loop_remove_fd(l->watch);
	closep(&l->watch_fd);
	loop_timer_free(l->pause);
	loop_timer_free(l->remake);
	free(l->path);
	free(l);
	return NULL;
}
