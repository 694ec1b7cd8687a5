#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fake Kubernetes API server with fault injection, for tests.

Python's standard library only.  It stores objects of any resource below /api/v1 and
/apis/GROUP/VERSION and serves get, list, watch, create, replace, patch (merge and server-side
apply), delete and deletecollection; it does not validate objects.

As a class:

    with FakeAPI() as api:
        api.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        api.fault("GET .*resourceslices", status=500, times=3)
        api.kubeconfig("/tmp/kubeconfig")
        ... api.url, api.log, api.list("/apis/resource.k8s.io/v1/resourceslices")

As a program: prints its port as the first line, serves until it is killed.

    fakeapi.py [--port N] [--token T] [--kubeconfig FILE] [--tls DIR | --mtls DIR]
               [--load FILE.json ...]

Beside the API it answers on the same port (without a token):

    GET    /_log       the requests so far: method, path (with query), body, status, conn, ...
    DELETE /_log       forget them
    POST   /_fault     add a fault; see FakeAPI.fault() for the members
    DELETE /_fault     remove all faults
    POST   /_control   {"op": "compact" | "expire_watches" | "drop_watches" | "mute_watches" |
                        "bookmark" | "down" (+ "seconds") | "set_token" (+ "token")}
    GET    /_stats     {"connections": accepted so far, "watches": open now, "resourceVersion"}
"""

import argparse
import contextlib
import copy
import http.server
import json
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
NAME_BASE_MAX = 58  # k8s.io/apiserver/pkg/storage/names: 63 less the random suffix
BODY_MAX = 16 << 20
KINDS = {
    "resourceslices": "ResourceSlice",
    "resourceclaims": "ResourceClaim",
    "resourceclaimtemplates": "ResourceClaimTemplate",
    "deviceclasses": "DeviceClass",
    "nodes": "Node",
    "pods": "Pod",
    "events": "Event",
    "namespaces": "Namespace",
    "configmaps": "ConfigMap",
}
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    """Becomes a metav1.Status."""

    def __init__(self, code, message, reason=None):
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason or REASONS.get(code, "Unknown"),
            "code": code,
        }


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def lookup(obj, path):
    for part in path.split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj


def merge(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def drop_fields(value, names):
    if isinstance(value, dict):
        return {k: drop_fields(v, names) for k, v in value.items() if k not in names}
    if isinstance(value, list):
        return [drop_fields(v, names) for v in value]
    return value


class Selector:
    """fieldSelector and labelSelector: equality terms only."""

    def __init__(self, query):
        self.terms = []
        for kind in ("fieldSelector", "labelSelector"):
            for term in filter(None, query.get(kind, "").split(",")):
                m = re.fullmatch(r"([^!=]+)(!=|==|=)(.*)", term)
                if not m:
                    raise ApiError(400, f"unable to parse selector {term!r}")
                self.terms.append((kind, m[1], m[2] != "!=", m[3]))

    def __call__(self, obj):
        if obj is None:
            return False
        for kind, path, equal, wanted in self.terms:
            if kind == "labelSelector":
                value = (lookup(obj, "metadata.labels") or {}).get(path)
            else:
                value = lookup(obj, path)
            if ((value or "") == wanted) != equal:
                return False
        return True


class Target:
    """What a path names."""

    def __init__(self, path):
        parts = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
        if parts[0] == "api" and len(parts) >= 3:
            self.group_version, rest = parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) >= 4:
            self.group_version, rest = "/".join(parts[1:3]), parts[3:]
        else:
            raise ApiError(404, "the server could not find the requested resource")
        self.group = self.group_version.rpartition("/")[0]
        self.namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            self.namespace, rest = rest[1], rest[2:]
        self.resource = rest[0]
        self.name = rest[1] if len(rest) > 1 else None
        self.subresource = rest[2] if len(rest) > 2 else None
        if len(rest) > 3:
            raise ApiError(404, "the server could not find the requested resource")
        self.kind = KINDS.get(self.resource, self.resource.rstrip("s").capitalize())

    @property
    def collection(self):
        return (self.group, self.resource)

    @property
    def key(self):
        return (self.namespace, self.name)

    def what(self):
        return f'{self.resource}{"." + self.group if self.group else ""} "{self.name}"'


class Fault:
    def __init__(self, spec):
        spec = dict(spec)
        self.match = re.compile(spec.pop("match", ""))
        self.times = spec.pop("times", 1)  # 0 or less: for ever
        self.left = self.times
        self.status = spec.pop("status", 0)
        self.message = spec.pop("message", None)
        self.reason = spec.pop("reason", None)
        self.retry_after = spec.pop("retryAfter", None)
        self.delay = spec.pop("delay", 0)
        self.hang = spec.pop("hang", False)
        self.truncate = spec.pop("truncate", False)
        self.close = spec.pop("close", False)
        self.after = spec.pop("after", False)
        self.raw = spec.pop("raw", None)
        self.size = spec.pop("size", 0)
        self.drop = spec.pop("drop_fields", [])
        if spec:
            raise ApiError(400, f"unknown member of a fault: {', '.join(spec)}")


class FakeAPI:
    """One server.  Its state outlives stop() and start(), so a restart can be played."""

    def __init__(self, port=0, token=None, tls=None, bookmark_seconds=60.0):
        """tls: (certificate file, key file) or (certificate, key, CA of clients)."""
        self.port = port
        self.token = token
        self.tls = tls
        self.bookmark_seconds = bookmark_seconds
        self.cond = threading.Condition(threading.RLock())
        self.store = {}  # (group, resource) -> {(namespace, name): object}
        self.applied = {}  # uid -> {manager: [keys of its status.devices]}
        self.history = []  # (resourceVersion, collection, old, new)
        self.version = 100
        self.compacted = 100
        self.watch_epoch = 0  # counted up: open watches end
        self.expire_epoch = 0  # counted up: open watches end with an ERROR event
        self.bookmark_epoch = 0
        self.mute_epoch = 0
        self.watches = 0
        self.connections = 0
        self.faults = []
        self.log = []
        self._httpd = None
        self._thread = None
        self._sockets = set()

    # -- life ---------------------------------------------------------------------------------

    def start(self):
        self._httpd = _Server(("127.0.0.1", self.port), _Handler)
        self._httpd.api = self
        self.port = self._httpd.server_address[1]
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls[0], self.tls[1])
            if len(self.tls) > 2:
                context.load_verify_locations(self.tls[2])
                context.verify_mode = ssl.CERT_REQUIRED
            self._httpd.tls = context
        self._thread = threading.Thread(
            target=self._httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()
        return self

    def stop(self):
        """Stop listening and cut all connections."""
        if not self._httpd:
            return
        self._httpd.shutdown()
        self._httpd.server_close()
        self._httpd = None
        with self.cond:
            self.watch_epoch += 1
            sockets = list(self._sockets)
            self.cond.notify_all()
        for s in sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def restart(self, seconds=0.0):
        self.stop()
        time.sleep(seconds)
        self.start()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def kubeconfig(self, path, token=None, ca_file=None):
        """Write a kubeconfig (JSON is YAML); returns its path."""
        cluster = {"server": self.url}
        if ca_file or self.tls:
            cluster["certificate-authority"] = ca_file or self.tls[0]
        token = token or self.token
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": cluster}],
            "users": [{"name": "fake", "user": {"token": token} if token else {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        }
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f, indent=2)
        return path

    # -- faults and control -------------------------------------------------------------------

    def fault(self, match="", **spec):
        """Play a fault on the next requests whose "METHOD /path?query" the pattern finds.

        times        how often (default 1; 0: for ever)
        status       answer with this status (and message, reason, retryAfter)
        delay        wait so many seconds first; alone: then serve normally
        hang         never answer
        truncate     promise the whole answer, send half of it, cut the connection
        close        cut the connection instead of answering
        raw          answer with this text (status default 200)
        size         answer with a JSON object of about so many bytes
        after        do what was asked, then play the fault on the answer (a lost reply)
        drop_fields  forget these members wherever they are in the body, as an API server does
                     with fields whose feature gate is off
        """
        with self.cond:
            self.faults.append(Fault({"match": match, **spec}))

    def clear_faults(self):
        with self.cond:
            self.faults.clear()

    def _take_fault(self, line):
        with self.cond:
            for f in self.faults:
                if f.match.search(line) and (f.times <= 0 or f.left > 0):
                    f.left -= 1
                    return f
        return None

    def control(self, op, **args):
        """What POST /_control does."""
        with self.cond:
            if op == "compact":
                self.compacted = self.version = self.version + 1
            elif op == "expire_watches":
                self.compacted = self.version = self.version + 1
                self.expire_epoch += 1
            elif op == "drop_watches":
                self.watch_epoch += 1
            elif op == "mute_watches":
                self.mute_epoch += 1
            elif op == "bookmark":
                self.version += 1
                self.bookmark_epoch += 1
            elif op == "set_token":
                self.token = args.get("token")
            elif op == "down":
                threading.Thread(
                    target=self.restart, args=(float(args.get("seconds", 0)),), daemon=True
                ).start()
            else:
                raise ApiError(400, f"unknown op {op!r}")
            self.cond.notify_all()

    def requests(self, pattern=""):
        """The log entries whose "METHOD /path?query" the pattern finds."""
        with self.cond:
            return [e for e in self.log if re.search(pattern, f"{e['method']} {e['path']}")]

    # -- objects ------------------------------------------------------------------------------

    def _commit(self, target, key, old, new):
        """Store a new state (None: deleted) and wake the watches.  The lock is held."""
        self.version += 1
        objects = self.store.setdefault(target.collection, {})
        if new is None:
            gone = copy.deepcopy(old)
            gone["metadata"]["resourceVersion"] = str(self.version)
            del objects[key]
            self.applied.pop(old["metadata"]["uid"], None)
            self.history.append((self.version, target.collection, gone, None))
        else:
            new["metadata"]["resourceVersion"] = str(self.version)
            objects[key] = new
            self.history.append((self.version, target.collection, old, new))
        self.cond.notify_all()

    def _find(self, target):
        obj = self.store.get(target.collection, {}).get(target.key)
        if obj is None:
            raise ApiError(404, f"{target.what()} not found")
        return obj

    def get(self, path):
        with self.cond:
            return copy.deepcopy(self._find(Target(path)))

    def list(self, path, query=None):
        """The objects of a collection, sorted by namespace and name."""
        target = Target(path)
        selector = Selector(query or {})
        with self.cond:
            objects = self.store.get(target.collection, {})
            return [
                copy.deepcopy(o)
                for (ns, _), o in sorted(objects.items(), key=lambda i: (i[0][0] or "", i[0][1]))
                if (target.namespace is None or ns == target.namespace) and selector(o)
            ]

    def create(self, path, obj, dry_run=False):
        target = Target(path)
        obj = copy.deepcopy(obj)
        meta = obj.setdefault("metadata", {})
        with self.cond:
            if not meta.get("name"):
                base = meta.get("generateName")
                if not base:
                    raise ApiError(422, "metadata.name: Required value: name or generateName")
                meta["name"] = base[:NAME_BASE_MAX] + "".join(random.choices(NAME_ALPHABET, k=5))
            target.name = meta["name"]
            namespace = meta.get("namespace")
            if target.namespace and namespace and namespace != target.namespace:
                raise ApiError(400, "the namespace of the object does not match the request")
            if target.namespace:
                meta["namespace"] = target.namespace
            elif namespace:
                target.namespace = namespace
            if target.key in self.store.get(target.collection, {}):
                raise ApiError(409, f"{target.what()} already exists", "AlreadyExists")
            meta["uid"] = meta.get("uid") or str(uuid.uuid4())
            meta["creationTimestamp"] = now()
            meta["generation"] = 1
            obj["apiVersion"], obj["kind"] = target.group_version, target.kind
            if not dry_run:
                self._commit(target, target.key, None, obj)
            return copy.deepcopy(obj)

    def _store_update(self, target, old, new, dry_run=False):
        """Common end of replace and patch.  The lock is held."""
        new = copy.deepcopy(new)
        meta, old_meta = new.setdefault("metadata", {}), old["metadata"]
        if target.subresource == "status":
            status = new.get("status")
            new = copy.deepcopy(old)
            new.pop("status", None)
            if status is not None:
                new["status"] = status
            meta = new["metadata"]
        elif target.resource in ("resourceclaims", "pods", "nodes") and "status" in old:
            new["status"] = copy.deepcopy(old["status"])  # only through .../status
        for key in ("name", "namespace", "uid", "creationTimestamp", "generation"):
            if key in old_meta:
                meta[key] = old_meta[key]
        if "deletionTimestamp" in old_meta:
            meta["deletionTimestamp"] = old_meta["deletionTimestamp"]
        new["apiVersion"], new["kind"] = old["apiVersion"], old["kind"]
        meta["resourceVersion"] = old_meta["resourceVersion"]
        if new.get("spec") != old.get("spec"):
            meta["generation"] = old_meta.get("generation", 1) + 1
        if new != old and not dry_run:
            if meta.get("deletionTimestamp") and not meta.get("finalizers"):
                self._commit(target, target.key, old, None)
            else:
                self._commit(target, target.key, old, new)
        return copy.deepcopy(new)

    def replace(self, path, obj, dry_run=False):
        target = Target(path)
        with self.cond:
            old = self._find(target)
            version = lookup(obj, "metadata.resourceVersion")
            uid = lookup(obj, "metadata.uid")
            if version and version != old["metadata"]["resourceVersion"]:
                raise ApiError(
                    409,
                    f"Operation cannot be fulfilled on {target.what()}: the object has been "
                    "modified; please apply your changes to the latest version and try again",
                )
            if uid and uid != old["metadata"]["uid"]:
                raise ApiError(
                    409,
                    f"Operation cannot be fulfilled on {target.what()}: StorageError: invalid "
                    "object, Precondition failed: UID in precondition differs",
                )
            return self._store_update(target, old, obj, dry_run)

    def patch(self, path, patch, dry_run=False):
        target = Target(path)
        with self.cond:
            old = self._find(target)
            version = lookup(patch, "metadata.resourceVersion")
            if version and version != old["metadata"]["resourceVersion"]:
                raise ApiError(409, f"Operation cannot be fulfilled on {target.what()}")
            return self._store_update(target, old, merge(old, patch), dry_run)

    def apply(self, path, patch, manager, dry_run=False):
        """Server-side apply, simplified: a merge, but status.devices is a list with keys."""
        target = Target(path)
        with self.cond:
            if target.key not in self.store.get(target.collection, {}):
                if target.subresource:
                    raise ApiError(404, f"{target.what()} not found")
                collection = path.rstrip("/").rpartition("/")[0]
                return self.create(collection, patch, dry_run)
            old = self._find(target)
            uid = lookup(patch, "metadata.uid")
            if uid and uid != old["metadata"]["uid"]:
                raise ApiError(
                    422,
                    f'{target.kind}.{target.group} "{target.name}" is invalid: metadata.uid: '
                    f'Invalid value: "{uid}": field is immutable',
                )
            new = merge(old, patch)
            new["metadata"].pop("managedFields", None)
            if target.resource == "resourceclaims":
                self._apply_devices(old, patch, new, manager)
            return self._store_update(target, old, new, dry_run)

    def _apply_devices(self, old, patch, new, manager):
        def key(entry):
            return tuple(entry.get(k) for k in ("driver", "pool", "device", "shareID"))

        uid = old["metadata"]["uid"]
        own = {key(e): e for e in lookup(patch, "status.devices") or []}
        before = self.applied.get(uid, {}).get(manager, [])
        devices = [
            e
            for e in lookup(old, "status.devices") or []
            if key(e) not in own and key(e) not in before
        ]
        self.applied.setdefault(uid, {})[manager] = list(own)
        devices += own.values()
        if devices:
            new.setdefault("status", {})["devices"] = devices
        elif "status" in new:
            new["status"].pop("devices", None)

    def delete(self, path, options=None, dry_run=False):
        target = Target(path)
        with self.cond:
            old = self._find(target)
            for field in ("uid", "resourceVersion"):
                wanted = lookup(options or {}, f"preconditions.{field}")
                if wanted and wanted != old["metadata"][field]:
                    raise ApiError(
                        409,
                        f"Operation cannot be fulfilled on {target.what()}: the {field} in the "
                        "precondition does not match",
                    )
            if dry_run:
                return old
            if old["metadata"].get("finalizers"):
                if not old["metadata"].get("deletionTimestamp"):
                    new = copy.deepcopy(old)
                    new["metadata"]["deletionTimestamp"] = now()
                    self._commit(target, target.key, old, new)
            else:
                self._commit(target, target.key, old, None)
            return old

    def delete_collection(self, path, query=None):
        with self.cond:
            objects = self.list(path, query)
            for obj in objects:
                target = Target(path)
                target.namespace = obj["metadata"].get("namespace")
                target.name = obj["metadata"]["name"]
                self._commit(target, target.key, self._find(target), None)
            return objects


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
    tls = None

    def finish_request(self, request, client_address):
        api = self.api
        with api.cond:
            api.connections += 1
            number = api.connections
            api._sockets.add(request)
        raw = request
        try:
            if self.tls:
                request = self.tls.wrap_socket(request, server_side=True)
                with api.cond:
                    api._sockets.add(request)
            self.RequestHandlerClass(request, number, self)
        except (OSError, ssl.SSLError):
            pass  # the client went away, or refused our certificate
        finally:
            with api.cond:
                api._sockets.discard(raw)
                api._sockets.discard(request)
            if request is not raw:
                request.close()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Cut(Exception):
    """Close the connection without (the rest of) an answer."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # client_address holds the number of the connection

    def log_message(self, *args):
        pass

    def do_GET(self):
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    @property
    def api(self):
        return self.server.api

    def _serve(self):
        self.url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(self.url.query, keep_blank_values=True))
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_MAX:
            self.close_connection = True
            return
        data = self.rfile.read(length)
        self.entry = {
            "time": time.time(),
            "method": self.command,
            "path": self.path,
            "body": None,
            "status": None,
            "conn": self.client_address,
            "contentType": self.headers.get("Content-Type"),
            "userAgent": self.headers.get("User-Agent"),
            "authorization": self.headers.get("Authorization"),
        }
        try:
            self.body = json.loads(data) if data else None
            self.entry["body"] = self.body
            if self.url.path.startswith("/_"):
                self._internal()
                return
            with self.api.cond:
                self.api.log.append(self.entry)
            self._faulty()
        except ValueError as e:
            self._status(ApiError(400, f"the body is not JSON: {e}"))
        except ApiError as e:
            self._status(e)
        except (_Cut, OSError):
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    # -- answers ------------------------------------------------------------------------------

    def _answer(self, status, data, headers=(), truncate=False):
        self.entry["status"] = status
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        head = [f"HTTP/1.1 {status} {REASONS.get(status, 'OK')}"]
        head.append("Content-Type: application/json")
        head.append(f"Content-Length: {len(data)}")
        head += [f"{k}: {v}" for k, v in headers]
        payload = ("\r\n".join(head) + "\r\n\r\n").encode() + data
        if truncate:
            payload = payload[: len(payload) - len(data) // 2 - 1]
        self.wfile.write(payload)  # one write: no delayed-ack stall
        if truncate:
            raise _Cut

    def _reply(self, result, truncate=False):
        if result:  # None: a watch, which has written everything itself
            self._answer(*result, truncate=truncate)

    def _status(self, e, headers=()):
        self._answer(e.code, e.status, headers)

    def _faulty(self):
        fault = self.api._take_fault(f"{self.command} {self.path}")
        if not fault:
            self._reply(self._operate())
            return
        result = self._operate() if fault.after else None
        if fault.delay:
            time.sleep(fault.delay)
        if fault.hang:
            with self.api.cond:
                epoch = self.api.watch_epoch
                while self.api.watch_epoch == epoch:
                    self.api.cond.wait()
            raise _Cut
        if fault.close:
            raise _Cut
        if fault.raw is not None:
            self._answer(fault.status or 200, fault.raw.encode(), truncate=fault.truncate)
        elif fault.size:
            self._answer(fault.status or 200, {"x": "x" * fault.size})
        elif fault.status:
            headers = []
            if fault.retry_after is not None:
                headers.append(("Retry-After", fault.retry_after))
            message = fault.message or f"injected {fault.status}"
            self._status(ApiError(fault.status, message, fault.reason), headers)
        else:
            if fault.drop:
                self.body = drop_fields(self.body, set(fault.drop))
            self._reply(result or self._operate(), truncate=fault.truncate)

    def _internal(self):
        api, path = self.api, self.url.path
        if path == "/_log" and self.command == "GET":
            with api.cond:
                self._answer(200, list(api.log))
        elif path == "/_log" and self.command == "DELETE":
            with api.cond:
                api.log.clear()
            self._answer(200, {})
        elif path == "/_fault" and self.command == "POST":
            api.fault(**(self.body or {}))
            self._answer(200, {})
        elif path == "/_fault" and self.command == "DELETE":
            api.clear_faults()
            self._answer(200, {})
        elif path == "/_control" and (self.body or {}).get("op") == "down":
            self._answer(200, {})  # first: all connections are cut, also this one
            api.control(**self.body)
        elif path == "/_control" and self.command == "POST":
            api.control(**(self.body or {}))
            self._answer(200, {})
        elif path == "/_stats":
            with api.cond:
                stats = {
                    "connections": api.connections,
                    "watches": api.watches,
                    "resourceVersion": api.version,
                }
            self._answer(200, stats)
        else:
            raise ApiError(404, "unknown control path")

    # -- the API ------------------------------------------------------------------------------

    def _operate(self):
        """Do what is asked; (status, body)."""
        api, path, body = self.api, self.url.path, self.body
        if api.token and self.headers.get("Authorization") != f"Bearer {api.token}":
            raise ApiError(401, "Unauthorized")
        if path in ("/healthz", "/readyz", "/livez"):
            return 200, b"ok"
        if path == "/version":
            return 200, {"major": "1", "minor": "37", "gitVersion": "v1.37.0-fake"}
        target = Target(path)
        dry_run = self.query.get("dryRun") == "All"
        if self.command == "GET":
            if target.name:
                return 200, api.get(path)
            if self.query.get("watch") in ("1", "true"):
                return self._watch(target)
            return 200, self._list(target)
        if self.command == "DELETE":
            if target.name:
                api.delete(path, body, dry_run)
            else:
                api.delete_collection(path, self.query)
            return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        if not isinstance(body, dict):
            raise ApiError(400, "the body must be an object")
        if self.command == "POST" and not target.name:
            return 201, api.create(path, body, dry_run)
        if self.command == "PUT" and target.name:
            return 200, api.replace(path, body, dry_run)
        if self.command == "PATCH" and target.name:
            return 200, self._patch(path, body, dry_run)
        raise ApiError(405, "the server does not allow this method on the requested resource")

    def _patch(self, path, body, dry_run):
        kind = self.headers.get("Content-Type", "").split(";")[0]
        if kind == "application/apply-patch+yaml":
            manager = self.query.get("fieldManager")
            if not manager:
                raise ApiError(422, "fieldManager: Required value: is required for apply patch")
            return self.api.apply(path, body, manager, dry_run)
        if kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
            return self.api.patch(path, body, dry_run)
        raise ApiError(415, f"the body of the request was in an unknown format: {kind}")

    def _list(self, target):
        with self.api.cond:
            return {
                "kind": f"{target.kind}List",
                "apiVersion": target.group_version,
                "metadata": {"resourceVersion": str(self.api.version)},
                "items": self.api.list(self.url.path, self.query),
            }

    def _chunk(self, event):
        data = json.dumps(event).encode() + b"\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _watch(self, target):
        """Serve a watch to its end."""
        api = self.api
        selector = Selector(self.query)
        start = self.query.get("resourceVersion", "")
        initial = []
        with api.cond:
            api.watches += 1
            if start in ("", "0"):
                initial = api.list(self.url.path, self.query)
                version = api.version
            else:
                version = int(start)
            epochs = (api.watch_epoch, api.expire_epoch, api.mute_epoch)
        self.entry["status"] = 200
        try:
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            for obj in initial:
                self._chunk({"type": "ADDED", "object": obj})
            self._watch_events(target, selector, version, epochs)
            self.wfile.write(b"0\r\n\r\n")
        finally:
            with api.cond:
                api.watches -= 1

    def _watch_events(self, target, selector, version, epochs):
        api = self.api
        end = time.monotonic() + float(self.query.get("timeoutSeconds") or 3600)
        bookmarks = self.query.get("allowWatchBookmarks") in ("1", "true")
        next_bookmark = time.monotonic() + api.bookmark_seconds
        bookmark_epoch = api.bookmark_epoch
        too_old = version < api.compacted
        while True:
            with api.cond:
                if api.mute_epoch != epochs[2]:
                    api.cond.wait_for(lambda: api.watch_epoch != epochs[0])
                if api.watch_epoch != epochs[0]:
                    raise _Cut
                expired = too_old or api.expire_epoch != epochs[1]
                batch = [h for h in api.history if h[0] > version and h[1] == target.collection]
                if batch:
                    version = batch[-1][0]
                now_s = time.monotonic()
                asked = api.bookmark_epoch != bookmark_epoch
                ready = expired or batch or asked or now_s >= min(end, next_bookmark)
                if not ready:
                    api.cond.wait(min(end, next_bookmark) - now_s)
                    continue
                latest = api.version
            if expired:
                gone = ApiError(410, f"too old resource version: {version} ({latest})")
                self._chunk({"type": "ERROR", "object": gone.status})
                return
            for _, _, old, new in batch:
                self._event(target, selector, old, new)
            if bookmarks and not batch and (asked or now_s >= min(end, next_bookmark)):
                bookmark_epoch = api.bookmark_epoch
                next_bookmark = now_s + api.bookmark_seconds
                version = max(version, latest)
                self._chunk(
                    {
                        "type": "BOOKMARK",
                        "object": {
                            "kind": target.kind,
                            "apiVersion": target.group_version,
                            "metadata": {"resourceVersion": str(latest)},
                        },
                    }
                )
            if now_s >= end:
                return

    def _event(self, target, selector, old, new):
        either = (new or old)["metadata"].get("namespace")
        if target.namespace and either != target.namespace:
            return
        if target.name and (new or old)["metadata"]["name"] != target.name:
            return
        was, is_now = selector(old), selector(new)
        if is_now:
            self._chunk({"type": "MODIFIED" if was else "ADDED", "object": new})
        elif was:
            gone = copy.deepcopy(old)
            if new:
                gone["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
            self._chunk({"type": "DELETED", "object": gone})


def make_tls(directory, address="127.0.0.1"):
    """A self-signed certificate: (certificate file, key file)."""
    cert, key = os.path.join(directory, "tls.crt"), os.path.join(directory, "tls.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=fakeapi"]
        + ["-addext", f"subjectAltName=IP:{address},DNS:localhost"],
        check=True,
        capture_output=True,
    )
    return cert, key


def main():
    parser = argparse.ArgumentParser(description="fake Kubernetes API server for tests")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token")
    parser.add_argument("--kubeconfig", help="write a kubeconfig to this file")
    parser.add_argument("--tls", metavar="DIR", help="serve https; tls.crt and tls.key go there")
    parser.add_argument("--mtls", metavar="DIR", help="the same, and clients need tls.crt too")
    parser.add_argument("--bookmark-seconds", type=float, default=60.0)
    parser.add_argument("--load", nargs="*", default=[], help="JSON files with objects or lists")
    args = parser.parse_args()
    tls = make_tls(args.tls or args.mtls) if args.tls or args.mtls else None
    if args.mtls:
        tls += (tls[0],)
    api = FakeAPI(args.port, args.token, tls, args.bookmark_seconds)
    for name in args.load:
        with open(name, encoding="utf-8") as f:
            value = json.load(f)
        for obj in value["items"] if isinstance(value, dict) and "items" in value else [value]:
            api.create(collection_of(obj), obj)
    api.start()
    if args.kubeconfig:
        api.kubeconfig(args.kubeconfig)
    print(api.port, flush=True)
    threading.Event().wait()


def collection_of(obj):
    """The path an object is created at."""
    version = obj["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resource = next((r for r, k in KINDS.items() if k == obj["kind"]), obj["kind"].lower() + "s")
    namespace = lookup(obj, "metadata.namespace")
    return f"{base}/namespaces/{namespace}/{resource}" if namespace else f"{base}/{resource}"


def self_test():
    """python3 -c 'import fakeapi; fakeapi.self_test()'"""
    import urllib.request

    slices = "/apis/resource.k8s.io/v1/resourceslices"
    with tempfile.TemporaryDirectory() as d, FakeAPI() as api:
        api.kubeconfig(os.path.join(d, "kubeconfig"))

        def call(method, path, body=None):
            data = json.dumps(body).encode() if body is not None else None
            kind = {"Content-Type": "application/merge-patch+json"}
            req = urllib.request.Request(api.url + path, data, kind, method=method)
            try:
                with urllib.request.urlopen(req, timeout=5) as r:
                    return r.status, json.loads(r.read())
            except urllib.error.HTTPError as e:
                return e.code, json.loads(e.read())

        spec = {"nodeName": "n1", "driver": "d", "pool": {"name": "n1", "generation": 1}}
        code, a = call("POST", slices, {"metadata": {"generateName": "n" * 70}, "spec": spec})
        assert code == 201 and len(a["metadata"]["name"]) == 63, a
        version = a["metadata"]["resourceVersion"]
        assert call("GET", slices + "?fieldSelector=spec.nodeName%3Dn2")[1]["items"] == []
        assert len(call("GET", slices + "?fieldSelector=spec.nodeName%3Dn1")[1]["items"]) == 1
        path = f"{slices}/{a['metadata']['name']}"
        assert call("PATCH", path, {"spec": {"x": 1}})[1]["metadata"]["generation"] == 2
        assert call("PUT", path, a)[0] == 409
        api.fault("GET .*resourceslices", status=500, times=1)
        assert [call("GET", slices)[0] for _ in range(2)] == [500, 200]
        url = f"{api.url}{slices}?watch=true&resourceVersion={version}&timeoutSeconds=1"
        assert call("DELETE", path)[0] == 200
        with urllib.request.urlopen(url, timeout=5) as r:
            types = [json.loads(line)["type"] for line in r]
        assert types == ["MODIFIED", "DELETED"], types
        api.control("compact")
        with urllib.request.urlopen(url, timeout=5) as r:
            assert json.loads(r.read())["object"]["code"] == 410
        assert call("GET", path)[0] == 404
        api.token = "secret"
        assert call("GET", slices)[0] == 401
    print("fakeapi: ok")


if __name__ == "__main__":
    main()
