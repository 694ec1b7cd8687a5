// SPDX-License-Identifier: Apache-2.0
#include "rpc/registration.h"

#include "base/log.h"
#include "base/mem.h"

struct registration {
	struct listener *listener;
	struct loop_timer *timer; /* running while kubelet has not registered us */
};

static void on_timer(void *data)
{
	struct registration *r = data;

	log_warn("kubelet has not registered the driver, making a new registration socket");
	loop_timer_set(r->timer, REGISTRATION_AGAIN_US);
	listener_renew(r->listener);
}

int registration_new(struct loop *loop, const struct listener_config *config,
		     struct registration **ret, struct err *err)
{
	struct listener *listener;
	struct registration *r;
	int res = listener_new(loop, config, &listener, err);

	if (res < 0)
		return res;
	r = xnew(struct registration);
	r->listener = listener;
	r->timer = loop_timer_new(loop, on_timer, r);
	loop_timer_set(r->timer, REGISTRATION_FIRST_US);
	*ret = r;
	return 0;
}

void registration_status(struct registration *r, bool ok)
{
	if (ok)
		loop_timer_stop(r->timer);
	else
		loop_timer_set(r->timer, REGISTRATION_AGAIN_US);
}

struct registration *registration_free(struct registration *r)
{
	if (!r)
		return NULL;
	loop_timer_free(r->timer);
	listener_free(r->listener);
	free(r);
	return NULL;
}
