// SPDX-License-Identifier: Apache-2.0
#include "rpc/codec.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "base/str.h"
#include "dra/v1/dra_v1.pb-c.h"
#include "pluginregistration/v1/registration.pb-c.h"

/* v1beta1 is v1 without Device.share_id, so v1's code serves both. */
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__Claim pb_claim;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__Device pb_device;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourcesRequest pb_request;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourcesResponse pb_prepared_all;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourcesResponse__ClaimsEntry
	pb_prepared_entry;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourceResponse pb_prepared;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourcesResponse pb_unprepared_all;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourcesResponse__ClaimsEntry
	pb_unprepared_entry;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourceResponse pb_unprepared;

#define PB(NAME) K8S__IO__KUBELET__PKG__APIS__DRA__V1__##NAME

/*
 * Decoding needs up to 48 bytes for 2 bytes of input: a limit well above what 256 claims or 1 MiB
 * of unknown fields take.
 */
#define ARENA_DECODE_MAX (4u << 20)
#define ARENA_CHUNK 4096u

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(max_align_t) unsigned char data[];
};

struct arena {
	struct chunk *chunks;
	size_t total;
};

struct arena *arena_new(void)
{
	return xnew(struct arena);
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct chunk *c = arena->chunks;
	const size_t align = _Alignof(max_align_t);
	void *p;

	size = (size + align - 1) / align * align;
	if (!c || c->size - c->used < size) {
		size_t room = size > ARENA_CHUNK ? size : ARENA_CHUNK;

		c = xcalloc(1, sizeof(*c) + room);
		c->size = room;
		c->next = arena->chunks;
		arena->chunks = c;
	}
	p = c->data + c->used;
	c->used += size;
	arena->total += size;
	return p;
}

struct arena *arena_free(struct arena *arena)
{
	if (!arena)
		return NULL;
	while (arena->chunks) {
		struct chunk *c = arena->chunks;

		arena->chunks = c->next;
		free(c);
	}
	free(arena);
	return NULL;
}

/* protobuf-c copes with NULL. */
static void *decode_alloc(void *data, size_t size)
{
	struct arena *arena = data;

	if (size > ARENA_DECODE_MAX || arena->total > ARENA_DECODE_MAX - size)
		return NULL;
	return arena_alloc(arena, size);
}

static void decode_free(void *data, void *p)
{
	(void)data;
	(void)p;
}

static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64 && *p < end; shift += 7) {
		uint8_t b = *(*p)++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/*
 * protobuf-c checks no UTF-8 and cuts a string at an embedded NUL, so look at the bytes: every
 * string of the message and of those in it.  The depth is that of the descriptor.
 */
static bool strings_valid(const ProtobufCMessageDescriptor *desc, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	uint64_t key, n = 0;

	while (p < end) {
		const ProtobufCFieldDescriptor *f;

		if (!varint(&p, end, &key))
			return false;
		switch (key & 7) {
		case PROTOBUF_C_WIRE_TYPE_VARINT:
			if (!varint(&p, end, &n))
				return false;
			continue;
		case PROTOBUF_C_WIRE_TYPE_64BIT:
			n = 8;
			break;
		case PROTOBUF_C_WIRE_TYPE_32BIT:
			n = 4;
			break;
		case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
			if (!varint(&p, end, &n))
				return false;
			break;
		default:
			return false;
		}
		if (n > (size_t)(end - p))
			return false;
		f = protobuf_c_message_descriptor_get_field(desc, (unsigned int)(key >> 3));
		if (f && (key & 7) == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) {
			if (f->type == PROTOBUF_C_TYPE_STRING && !utf8_valid((const char *)p, n))
				return false;
			if (f->type == PROTOBUF_C_TYPE_MESSAGE &&
			    !strings_valid(f->descriptor, p, n))
				return false;
		}
		p += n;
	}
	return true;
}

/* The message in the arena; NULL with ERR_INVALID. */
static void *decode(struct arena *arena, const ProtobufCMessageDescriptor *desc,
		    const uint8_t *data, size_t len, struct err *err)
{
	ProtobufCAllocator allocator = { decode_alloc, decode_free, arena };
	void *m = protobuf_c_message_unpack(desc, &allocator, len, data);

	if (!m)
		err_set(err, ERR_INVALID, EBADMSG, "the request of %zu bytes is not a %s", len,
			desc->short_name);
	else if (!strings_valid(desc, data, len))
		err_set(err, ERR_INVALID, EBADMSG,
			"a string in the %s is not valid UTF-8 or has a NUL", desc->short_name);
	else
		return m;
	return NULL;
}

static int check_claim(const pb_claim *c, size_t i, struct err *err)
{
	if (!is_uid(c->uid))
		return err_set(
			err, ERR_INVALID, EINVAL,
			"claim %zu: uid \"%.64s\" is not 1 to %d letters, digits, '-' between them",
			i, c->uid, UID_MAX);
	if (!is_dns_label(c->namespace_))
		return err_set(err, ERR_INVALID, EINVAL,
			       "claim %s: namespace \"%.64s\" is not a DNS label", c->uid,
			       c->namespace_);
	if (!is_dns_subdomain(c->name))
		return err_set(err, ERR_INVALID, EINVAL,
			       "claim %s: name \"%.64s\" is not a DNS subdomain", c->uid, c->name);
	return 0;
}

int codec_claims(struct arena *arena, const uint8_t *data, size_t len, struct dra_claim **ret,
		 size_t *ret_n, struct err *err)
{
	const pb_request *req;
	struct dra_claim *claims;
	size_t n = 0;

	req = decode(
		arena,
		&k8s__io__kubelet__pkg__apis__dra__v1__node_prepare_resources_request__descriptor,
		data, len, err);
	if (!req)
		return -EBADMSG;
	if (req->n_claims > CODEC_CLAIMS_MAX)
		return err_set(err, ERR_INVALID, E2BIG,
			       "the request has %zu claims, at most %d are served", req->n_claims,
			       CODEC_CLAIMS_MAX);
	claims = arena_alloc(arena, req->n_claims * sizeof(*claims));
	for (size_t i = 0; i < req->n_claims; i++) {
		const pb_claim *c = req->claims[i];
		size_t same = 0;
		int r = check_claim(c, i, err);

		if (r < 0)
			return r;
		while (same < n && !streq(claims[same].uid, c->uid))
			same++;
		if (same == n)
			claims[n++] = (struct dra_claim){ c->namespace_, c->uid, c->name };
		else if (!streq(claims[same].name, c->name) ||
			 !streq(claims[same].namespace, c->namespace_))
			return err_set(err, ERR_INVALID, EINVAL,
				       "claims %s/%s and %s/%s have the same uid %s",
				       claims[same].namespace, claims[same].name, c->namespace_,
				       c->name, c->uid);
	}
	*ret = claims;
	*ret_n = n;
	return 0;
}

struct codec_reply {
	struct arena *arena;
	enum dra_op op;
	enum dra_api api;
	size_t n;
	/* One array is used; "value" of an entry is NULL until it is answered. */
	pb_prepared_entry **prepared;
	pb_unprepared_entry **unprepared;
};

/* Bytes of the valid multi-byte character at "s", 0 if there is none. */
static size_t character(const char *s)
{
	for (size_t n = 2; n <= 4 && s[n - 1]; n++)
		if (utf8_valid(s, n))
			return n;
	return 0;
}

/*
 * Replace what no UTF-8 decoder takes (an error text may have been cut inside a character), and
 * control characters, which mislead whoever reads them.
 */
static char *clean(char *s)
{
	for (char *p = s; *p;) {
		size_t n = (unsigned char)*p < 0x80 ? 1 : character(p);

		if (n == 0 || (unsigned char)*p < 0x20)
			*p = '?';
		p += n ? n : 1;
	}
	return s;
}

char *codec_text(const char *s)
{
	return clean(xstrdup(s));
}

static char *copy(struct arena *arena, const char *s)
{
	size_t size = strlen(s) + 1;

	return clean(memcpy(arena_alloc(arena, size), s, size));
}

struct codec_reply *codec_reply_new(struct arena *arena, enum dra_op op, enum dra_api api,
				    const struct dra_claim *claims, size_t n)
{
	struct codec_reply *reply = arena_alloc(arena, sizeof(*reply));

	*reply = (struct codec_reply){ .arena = arena, .op = op, .api = api, .n = n };
	if (op == DRA_PREPARE)
		reply->prepared = arena_alloc(arena, n * sizeof(*reply->prepared));
	else
		reply->unprepared = arena_alloc(arena, n * sizeof(*reply->unprepared));
	for (size_t i = 0; i < n; i++) {
		if (op == DRA_PREPARE) {
			pb_prepared_entry *e = arena_alloc(arena, sizeof(*e));

			*e = (pb_prepared_entry)PB(
				NODE_PREPARE_RESOURCES_RESPONSE__CLAIMS_ENTRY__INIT);
			e->key = claims[i].uid;
			reply->prepared[i] = e;
		} else {
			pb_unprepared_entry *e = arena_alloc(arena, sizeof(*e));

			*e = (pb_unprepared_entry)PB(
				NODE_UNPREPARE_RESOURCES_RESPONSE__CLAIMS_ENTRY__INIT);
			e->key = claims[i].uid;
			reply->unprepared[i] = e;
		}
	}
	return reply;
}

static pb_device *make_device(const struct codec_reply *reply, const struct dra_device *device)
{
	struct arena *arena = reply->arena;
	pb_device *d = arena_alloc(arena, sizeof(*d));
	size_t n = 0;

	*d = (pb_device)PB(DEVICE__INIT);
	if (device->request) {
		d->request_names = arena_alloc(arena, sizeof(*d->request_names));
		d->request_names[0] = copy(arena, device->request);
		d->n_request_names = 1;
	}
	d->pool_name = copy(arena, device->pool);
	d->device_name = copy(arena, device->device);
	while (device->cdi_ids && device->cdi_ids[n])
		n++;
	d->cdi_device_ids = arena_alloc(arena, n * sizeof(*d->cdi_device_ids));
	for (; d->n_cdi_device_ids < n; d->n_cdi_device_ids++)
		d->cdi_device_ids[d->n_cdi_device_ids] =
			copy(arena, device->cdi_ids[d->n_cdi_device_ids]);
	if (device->share_id && reply->api == DRA_V1) {
		d->_share_id_case = PB(DEVICE___SHARE_ID_SHARE_ID);
		d->share_id = copy(arena, device->share_id);
	}
	return d;
}

void codec_reply_set(struct codec_reply *reply, size_t i, const struct dra_device *devices,
		     size_t n_devices, const char *error)
{
	struct arena *arena = reply->arena;
	pb_prepared *value;

	assert(i < reply->n);
	assert(!error || *error);
	if (reply->op == DRA_UNPREPARE) {
		pb_unprepared *u = arena_alloc(arena, sizeof(*u));

		*u = (pb_unprepared)PB(NODE_UNPREPARE_RESOURCE_RESPONSE__INIT);
		if (error)
			u->error = copy(arena, error);
		reply->unprepared[i]->value = u;
		return;
	}
	value = arena_alloc(arena, sizeof(*value));
	*value = (pb_prepared)PB(NODE_PREPARE_RESOURCE_RESPONSE__INIT);
	if (error) {
		value->error = copy(arena, error);
	} else {
		value->devices = arena_alloc(arena, n_devices * sizeof(*value->devices));
		for (; value->n_devices < n_devices; value->n_devices++)
			value->devices[value->n_devices] =
				make_device(reply, &devices[value->n_devices]);
	}
	reply->prepared[i]->value = value;
}

bool codec_reply_complete(const struct codec_reply *reply)
{
	for (size_t i = 0; i < reply->n; i++)
		if (reply->op == DRA_PREPARE ? !reply->prepared[i]->value
					     : !reply->unprepared[i]->value)
			return false;
	return true;
}

static uint8_t *pack(const ProtobufCMessage *m, size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = xmalloc(len + 1);

	protobuf_c_message_pack(m, bytes);
	*ret_len = len;
	return bytes;
}

uint8_t *codec_reply_pack(const struct codec_reply *reply, size_t *ret_len)
{
	pb_prepared_all prepared = PB(NODE_PREPARE_RESOURCES_RESPONSE__INIT);
	pb_unprepared_all unprepared = PB(NODE_UNPREPARE_RESOURCES_RESPONSE__INIT);

	if (reply->op == DRA_PREPARE) {
		prepared.n_claims = reply->n;
		prepared.claims = reply->prepared;
		return pack(&prepared.base, ret_len);
	}
	unprepared.n_claims = reply->n;
	unprepared.claims = reply->unprepared;
	return pack(&unprepared.base, ret_len);
}

uint8_t *codec_plugin_info(const char *name, const char *endpoint, const char *const *versions,
			   size_t *ret_len)
{
	Pluginregistration__PluginInfo m = PLUGINREGISTRATION__PLUGIN_INFO__INIT;

	m.type = (char *)"DRAPlugin";
	m.name = (char *)name;
	m.endpoint = (char *)endpoint;
	while (versions[m.n_supported_versions])
		m.n_supported_versions++;
	m.supported_versions = (char **)versions;
	return pack(&m.base, ret_len);
}

int codec_info_request(const uint8_t *data, size_t len, struct err *err)
{
	struct arena *arena = arena_new();
	void *m = decode(arena, &pluginregistration__info_request__descriptor, data, len, err);

	arena_free(arena);
	return m ? 0 : -EBADMSG;
}

int codec_registration_status(const uint8_t *data, size_t len, bool *ret_ok, char **ret_error,
			      struct err *err)
{
	struct arena *arena = arena_new();
	const Pluginregistration__RegistrationStatus *m =
		decode(arena, &pluginregistration__registration_status__descriptor, data, len, err);

	if (m) {
		*ret_ok = m->plugin_registered;
		*ret_error = xstrdup(m->error);
	}
	arena_free(arena);
	return m ? 0 : -EBADMSG;
}
