/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_MEM_H
#define TWINRAIL_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Memory.  Allocation does not fail: these functions log and abort (gRPC core aborts as well; the
 * DaemonSet restarts the process and all state is on disk).  In exchange every size that comes
 * from outside is bounded before it reaches them.
 */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *xvasprintf(const char *fmt, va_list ap)
	__attribute__((format(printf, 1, 0), returns_nonnull));

#define xnew(type) ((type *)xcalloc(1, sizeof(type)))

/* xstrdup() that passes NULL through. */
char *xstrdup_null(const char *s);

/*
 * Make room for one more element in a growing array: array_push(a, n, cap) returns a pointer to a
 * new zeroed element.  "a" is a typed pointer, "n" and "cap" are size_t lvalues.
 */
void *array_grow(void *a, size_t n, size_t *cap, size_t size) __attribute__((returns_nonnull));
#define array_push(a, n, cap) ((a) = array_grow((a), (n), &(cap), sizeof(*(a))), &(a)[(n)++])

/* Cleanup attributes: _cleanup_(freep) char *s = NULL; */
#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)

/* Hand over ownership: the variable is emptied, the old value is the result. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) _taken = (p);                                                        \
		(p) = NULL;                                                                        \
		_taken;                                                                            \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int _taken_fd = (fd);                                                              \
		(fd) = -1;                                                                         \
		_taken_fd;                                                                         \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
