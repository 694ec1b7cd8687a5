/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_KUBE_INTERNAL_H
#define TWINRAIL_KUBE_INTERNAL_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/str.h"
#include "kube/kube.h"

/* Inside kube/ only. */

#define KUBE_BODY_MAX (16U << 20) /* an answer */
#define KUBE_EVENT_MAX (4U << 20) /* one event of a watch */
#define KUBE_SECRET_MAX (256U << 10) /* a token, key or certificate file */

/*
 * One HTTP exchange.  It lives in its owner (a request or a watch), is idle while "easy" is NULL
 * and may be started again after "done".  All of its callbacks come from kube_run(), never from
 * inside curl, so that they may start and cancel whatever they like.
 */
struct transfer {
	struct kube *kube;
	CURL *easy;
	struct curl_slist *headers;
	struct buf in;
	size_t in_max;
	bool too_long;
	bool answered; /* the header of the answer is there */
	int status; /* HTTP; 0: no answer (yet) */
	uint64_t retry_after_us;
	unsigned long token_serial; /* which token it was sent with */
	char error[CURL_ERROR_SIZE];
	void (*data)(struct transfer *t); /* something came; NULL: only "done" is wanted */
	void (*done)(struct transfer *t, CURLcode result);
	bool readable; /* "data" is due */
	struct transfer *prev, *next; /* running transfers of "kube" */
};

struct transfer_start {
	const char *method, *path, *content_type;
	const char *body; /* NULL: none; must live until the transfer ends */
	uint64_t timeout_us;
};

struct kube_request {
	struct transfer t;
	struct kube *kube;
	char *method, *path, *content_type, *body;
	uint64_t timeout_us, give_up_us; /* clock_us() of the last retry */
	unsigned int attempt;
	bool fresh_token; /* a 401 has been answered with a new token already */
	bool delivering;
	struct err local; /* could not even be sent */
	struct loop_timer *timer;
	kube_reply_fn *fn;
	void *data;
	struct kube_request *prev, *next;
};

struct kube_socket {
	struct kube *kube;
	struct loop_fd *source;
	struct kube_socket *prev, *next;
};

struct kube {
	struct loop *loop;
	struct kube_config config;
	char *base; /* "https://host:port[/prefix]" */
	struct curl_slist *connect_to; /* when the name in the certificate is another */
	bool plain; /* http to this machine */
	CURLM *multi;
	CURLSH *share;
	struct loop_timer *timer;
	struct kube_socket *sockets;
	struct transfer *transfers;
	struct kube_request *requests;
	struct kube_watch *watches;
	char *token;
	uint64_t token_us;
	unsigned long token_serial;
	unsigned int busy; /* callbacks run: kube_free() waits for their end */
	bool dead;
};

/* config.c: what kube_config_in_cluster() does with its directory and environment. */
int kube_config_account(const char *dir, const char *host, const char *port,
			struct kube_config *ret, struct err *err)
	__attribute__((warn_unused_result));
/* https, or http to this machine: *ret_plain. */
int kube_check_server(const char *server, bool *ret_plain, struct err *err)
	__attribute__((warn_unused_result));
/* Strict RFC 4648 with padding; white space is skipped.  NULL: not base64, or has a NUL in it. */
char *kube_base64_text(const char *s);

/* multi.c */
int kube_multi_init(struct kube *kube, struct err *err) __attribute__((warn_unused_result));
void kube_multi_done(struct kube *kube);
int transfer_start(struct transfer *t, const struct transfer_start *start, struct err *err)
	__attribute__((warn_unused_result));
void transfer_stop(struct transfer *t); /* idle afterwards; nothing is called */
/* Bracket callbacks into the driver; after kube_leave() "kube" may be gone. */
void kube_enter(struct kube *kube);
void kube_leave(struct kube *kube);

/* token.c: borrowed, NULL when none is configured. */
int kube_token(struct kube *kube, const char **ret, struct err *err)
	__attribute__((warn_unused_result));
/* Read it again now; true when it is another one than "serial". */
bool kube_token_renew(struct kube *kube, unsigned long serial);

/* reply.c: 0 for 2xx, else the error of an ended transfer ("body" may be NULL). */
int kube_reply_err(const struct transfer *t, CURLcode result, const char *method, const char *path,
		   const json_t *body, struct err *err);
/* Parse what the API server sent.  Other clients' members may repeat keys or contain "\0". */
json_t *kube_parse(const char *text, size_t len, struct err *err);
/* 100 ms doubled "attempt" times, at most 10 s, less up to half of it by chance. */
uint64_t kube_backoff_us(unsigned int attempt);

#endif
