// SPDX-License-Identifier: Apache-2.0
/*
 * "twinrail agent": the node driver.  The main thread runs the event loop and owns all state;
 * docs/design.md §5 shows who talks to whom.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/agent.h"
#include "cmd/cmd.h"

#define GRACE_US (20 * 1000000ULL)
#define RESCAN_MIN_US (1000000ULL)
#define FAILED_GRACE_US (1000000ULL)

static void on_prepare(struct dra_call *call, void *data)
{
	struct agent *a = data;

	preparer_prepare(a->preparer, call);
}

static void on_unprepare(struct dra_call *call, void *data)
{
	struct agent *a = data;

	preparer_unprepare(a->preparer, call);
}

static void on_registered(bool ok, const char *error, void *data)
{
	struct agent *a = data;

	if (ok)
		log_info("registered with kubelet",
			 KV("ms", "%.1f", (double)(clock_us() - a->start_us) / 1000));
	else
		log_error("kubelet refused the registration", KV("error", "%s", error));
}

static void on_server_stopped(void *data)
{
	struct agent *a = data;

	a->server = NULL;
	loop_quit(a->loop, a->exit_code);
}

static void stop(struct agent *a, uint64_t grace_us, int exit_code)
{
	if (a->stopping)
		return;
	a->stopping = true;
	a->exit_code = exit_code;
	dra_server_stop(a->server, grace_us, on_server_stopped, a);
}

static void on_failed(const struct err *err, void *data)
{
	log_error("the service for kubelet ended, exiting so that the pod is started again",
		  KV("error", "%s", err->msg));
	stop(data, FAILED_GRACE_US, EXIT_WRONG);
}

static void on_signal(int signo, void *data)
{
	struct agent *a = data;

	if (signo == SIGHUP) {
		log_info("reading the hardware again", KV("signal", "SIGHUP"));
		discover_all(a, "SIGHUP");
		return;
	}
	log_info("stopping", KV("signal", "%s", strsignal(signo)));
	stop(a, GRACE_US, EXIT_OK);
}

static int make_dirs(struct agent *a, struct err *err)
{
	const struct agent_options *o = &a->options;
	struct stat st;

	if (stat(o->registry_dir, &st) < 0)
		return err_errno(err, ERR_NOT_FOUND, errno,
				 "kubelet's plugin registry %s: is kubelet running here, and is "
				 "its directory mounted? (--registry-dir)",
				 o->registry_dir);
	return dir_make(a->data_dir, 0750, err);
}

static int start_kube(struct agent *a, struct err *err)
{
	const struct agent_options *o = &a->options;
	struct kube_config config = { 0 };
	int r;

	r = o->kubeconfig ? kube_config_file(o->kubeconfig, &config, err)
			  : kube_config_in_cluster(&config, err);
	if (r == 0)
		r = kube_new(a->loop, &config, &a->kube, err);
	kube_config_done(&config);
	return r;
}

static int start_preparer(struct agent *a, struct err *err)
{
	const struct agent_options *o = &a->options;
	const struct prepare_options po = {
		.driver = a->publish.driver,
		.pool = a->publish.node_name,
		.data_dir = a->data_dir,
		.cdi_dir = o->cdi_dir,
	};

	return preparer_new(a->loop, a->kube, &po, &a->preparer, err);
}

static int start_server(struct agent *a, struct err *err)
{
	const struct agent_options *o = &a->options;
	_cleanup_free_ char *service = NULL, *registration = NULL;
	struct dra_server_config config = {
		.driver_name = a->publish.driver,
		.prepare = on_prepare,
		.unprepare = on_unprepare,
		.registered = on_registered,
		.failed = on_failed,
		.data = a,
	};
	int r;

	r = dra_socket_paths(a->publish.driver, a->data_dir, o->registry_dir, o->pod_uid, &service,
			     &registration, err);
	if (r < 0)
		return r;
	config.service_path = service;
	config.registration_path = registration;
	r = dra_server_new(a->loop, &config, &a->server, err);
	if (r == 0)
		log_info("serving kubelet", KV("service", "%s", service),
			 KV("registration", "%s", registration));
	return r;
}

static int agent_start(struct agent *a, const sigset_t *signals, struct err *err)
{
	int r;

	r = loop_new(&a->loop, err);
	if (r == 0)
		r = loop_add_signals(a->loop, signals, on_signal, a, err);
	if (r == 0)
		r = make_dirs(a, err);
	if (r == 0)
		r = start_kube(a, err);
	if (r == 0)
		r = start_preparer(a, err);
	if (r == 0)
		r = start_server(a, err);
	if (r < 0)
		return r;
	discover_start(a);
	publish_start(a);
	return 0;
}

static void agent_stop(struct agent *a)
{
	publish_stop(a);
	preparer_free(a->preparer);
	kube_free(a->kube);
	discover_stop(a);
	loop_free(a->loop);
	free(a->data_dir);
}

int cmd_agent(int argc, char **argv)
{
	struct agent a = { .options = AGENT_OPTIONS_DEFAULT, .publish_lock = -1 };
	struct options parsed = { 0 };
	struct err err = { 0 };
	sigset_t signals;
	int exit_code;

	a.start_us = clock_us();
	if (!agent_parse_options(argc, argv, &a.options, &parsed, &exit_code)) {
		options_done(&parsed);
		return exit_code;
	}
	log_init((enum log_format)a.options.log_format,
		 a.options.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);

	/* Before any thread is made: all threads inherit the mask. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);

	exit_code = EXIT_USAGE;
	if (a.options.rescan_us < RESCAN_MIN_US)
		err_set(&err, ERR_INVALID, EINVAL, "--rescan must be at least 1s");
	else if (published_check(&a.options.published, &a.publish, &err) == 0) {
		a.data_dir = a.options.data_dir
				     ? xstrdup(a.options.data_dir)
				     : xasprintf("%s/%s", a.options.plugins_dir, a.publish.driver);
		log_info("starting", KV("version", "%s", TWINRAIL_VERSION),
			 KV("node", "%s", a.publish.node_name),
			 KV("driver", "%s", a.publish.driver), KV("root", "%s", a.options.root));
		if (agent_start(&a, &signals, &err) == 0)
			exit_code = loop_run(a.loop);
	}
	if (err.code)
		log_error("cannot start", KV("error", "%s", err.msg));
	agent_stop(&a);
	topology_options_done(&a.options.published.topology);
	options_done(&parsed);
	if (exit_code == EXIT_OK)
		log_info("stopped");
	return exit_code;
}
