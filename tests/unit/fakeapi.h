/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_FAKEAPI_H
#define TWINRAIL_TESTS_FAKEAPI_H

#include <curl/curl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/*
 * tests/integration/fakeapi.py as a child process of a unit test, which is run in the project's
 * directory.  Failures abort the test program.
 */
struct fakeapi {
	pid_t pid;
	char url[64];
};

/* "option" and "value": one more argument pair for fakeapi.py, or NULL. */
static inline void fakeapi_start(struct fakeapi *f, const char *option, const char *value)
{
	int fds[2], port = 0;
	FILE *out;

	if (pipe(fds) < 0)
		abort();
	f->pid = fork();
	if (f->pid < 0)
		abort();
	if (f->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		unsetenv("LD_PRELOAD");
		execlp("python3", "python3", "-B", "tests/integration/fakeapi.py", option, value,
		       (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	if (!out || fscanf(out, "%d", &port) != 1) {
		fprintf(stderr, "fakeapi.py does not start (run the test in the project)\n");
		abort();
	}
	fclose(out);
	snprintf(f->url, sizeof(f->url), "%s://127.0.0.1:%d",
		 option && ends_with(option, "tls") ? "https" : "http", port);
}

static inline void fakeapi_stop(struct fakeapi *f)
{
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	f->pid = -1;
}

static inline size_t fakeapi_collect(char *data, size_t size, size_t n, void *user)
{
	buf_add(user, data, size * n);
	return size * n;
}

/* A blocking call beside the client under test; "body" is JSON text or NULL.  New reference. */
static inline json_t *fakeapi_call(const struct fakeapi *f, const char *method, const char *path,
				   const char *body)
{
	_cleanup_free_ char *url = xasprintf("%s%s", f->url, path);
	struct curl_slist *headers =
		curl_slist_append(NULL, "Content-Type: application/merge-patch+json");
	struct buf in = { 0 };
	CURL *easy = curl_easy_init();
	json_t *value;
	CURLcode r;

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, 20L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	if (body)
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, fakeapi_collect);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &in);
	r = curl_easy_perform(easy); /* a handle of its own: always a new connection */
	/* The server may be about to go down for an earlier "down". */
	if (r == CURLE_GOT_NOTHING && starts_with(path, "/_control")) {
		usleep(100 * 1000);
		r = curl_easy_perform(easy);
	}
	if (r != CURLE_OK) {
		fprintf(stderr, "fakeapi: %s %s: %s\n", method, path, curl_easy_strerror(r));
		abort();
	}
	value = json_loadb(in.data, in.len, JSON_DECODE_ANY, NULL);
	curl_easy_cleanup(easy);
	curl_slist_free_all(headers);
	buf_done(&in);
	return value;
}

/* fakeapi_call() for its effect only. */
static inline void fakeapi_do(const struct fakeapi *f, const char *method, const char *path,
			      const char *body)
{
	json_decref(fakeapi_call(f, method, path, body));
}

/* A number of GET /_stats. */
static inline long fakeapi_stat(const struct fakeapi *f, const char *name)
{
	json_t *stats = fakeapi_call(f, "GET", "/_stats", NULL);
	long n = (long)json_integer_value(json_object_get(stats, name));

	json_decref(stats);
	return n;
}

#endif
