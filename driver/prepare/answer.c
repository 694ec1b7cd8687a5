// SPDX-License-Identifier: Apache-2.0
#include "prepare/answer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "prepare/cdi.h"

void answer_prepared(struct dra_call *call, size_t i, const struct record *record,
		     const char *driver)
{
	struct dra_device *devices = xcalloc(record->n_devices, sizeof(*devices));
	struct strlist *ids = xcalloc(record->n_devices, sizeof(*ids)), requests = { 0 };

	for (size_t k = 0; k < record->n_devices; k++) {
		const struct record_device *d = &record->devices[k];
		char *own = cdi_device_id(record, d, driver);

		for (size_t v = 0; v < d->vendor_cdi.n; v++)
			strlist_add(&ids[k], d->vendor_cdi.items[v]);
		if (own)
			strlist_take(&ids[k], own);
		strlist_take(&requests, request_main(d->request));
		devices[k] = (struct dra_device){ .request = requests.items[k],
						  .pool = d->pool,
						  .device = d->device,
						  .share_id = d->share_id,
						  .cdi_ids = (const char *const *)ids[k].items };
	}
	dra_call_answer(call, i, devices, record->n_devices, NULL);
	for (size_t k = 0; k < record->n_devices; k++)
		strlist_done(&ids[k]);
	free(ids);
	free(devices);
	strlist_done(&requests);
}

void answer_log(bool prepare, const char *namespace, const char *name,
		const struct store_claim *claim, uint64_t started_us)
{
	double ms = (double)(clock_us() - started_us) / 1000.0;

	if (claim->err.code < 0)
		log_warn("claim refused", KV("call", "%s", prepare ? "prepare" : "unprepare"),
			 KV("claim", "%s/%s", namespace, name), KV("uid", "%s", claim->uid),
			 KV("kind", "%s", err_kind_name(claim->err.kind)),
			 KV("err", "%s", claim->err.msg), KV("ms", "%.1f", ms));
	else
		log_info(prepare ? "claim prepared" : "claim unprepared",
			 KV("claim", "%s/%s", namespace, name), KV("uid", "%s", claim->uid),
			 KV("again", "%s", claim->kept ? "true" : "false"), KV("ms", "%.1f", ms));
}
