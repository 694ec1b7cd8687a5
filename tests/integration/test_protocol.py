#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kubelet's side of the protocol, played by python3-grpcio against the real agent.

    test_protocol.py [--binary build/twinrail] [NAME...]

Runs the tests whose names contain one of the NAMEs (default: all).  As root also the peer check.
"""

import argparse
import concurrent.futures
import contextlib
import glob
import http.client
import os
import random
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import fakeapi  # noqa: E402

BINARY = os.path.join(TOP, "build", "twinrail")
DRIVER = "twinrail.dev"
REGISTRATION = "/pluginregistration.Registration/"
DRA = "/k8s.io.kubelet.pkg.apis.dra."
VERSIONS = ("v1", "v1beta1")
OPS = ("NodePrepareResources", "NodeUnprepareResources")
MIB = 1 << 20
KUBELET_TIMEOUT = 45


def load_messages():
    """Message classes from proto/, by full name."""
    names = [
        os.path.relpath(p, os.path.join(TOP, "proto"))
        for p in glob.glob(os.path.join(TOP, "proto", "**", "*.proto"), recursive=True)
    ]
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(
            ["protoc", f"--descriptor_set_out={out.name}", "-I.", *names],
            cwd=os.path.join(TOP, "proto"),
            check=True,
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    pool = descriptor_pool.DescriptorPool()
    for f in files.file:
        pool.Add(f)
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName(name))


message = load_messages()


def dra_message(name, version="v1"):
    return message(f"k8s.io.kubelet.pkg.apis.dra.{version}.{name}")


def request(*claims):
    """The bytes of a NodePrepareResourcesRequest; claims are (namespace, uid, name)."""
    m = dra_message("NodePrepareResourcesRequest")()
    for namespace, uid, name in claims:
        m.claims.add(namespace=namespace, uid=uid, name=name)
    return m.SerializeToString()


def varint(n):
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def raw_claim(namespace=b"ns", uid=b"u1", name=b"c1"):
    return field(1, field(1, namespace) + field(2, uid) + field(3, name))


def padded(size):
    """A valid empty request of exactly "size" bytes: all of it is an unknown field."""
    body = size
    while len(field(100, b"x" * body)) > size:
        body -= 1
    return field(100, b"x" * body)


class Agent:
    """One agent process.  Several may share the directories of another."""

    def __init__(self, api, where=None, args=(), ready=True):
        self.dir = where or tempfile.mkdtemp(prefix="tr.")
        self.owns_dir = where is None
        self.data = os.path.join(self.dir, "plugins", DRIVER)
        self.registry = os.path.join(self.dir, "plugins_registry")
        self.service = os.path.join(self.data, "dra.sock")
        self.registration = os.path.join(self.registry, f"{DRIVER}-reg.sock")
        for d in ("plugins", "plugins_registry", "cdi", "root/sys", "root/proc", "root/dev"):
            os.makedirs(os.path.join(self.dir, d), exist_ok=True)
        self.log = open(os.path.join(self.dir, f"log.{random.getrandbits(32):x}"), "wb")
        self.process = subprocess.Popen(
            [
                BINARY, "agent", "--node-name=n1",
                f"--plugins-dir={self.dir}/plugins", f"--registry-dir={self.registry}",
                f"--cdi-dir={self.dir}/cdi", f"--root={self.dir}/root",
                f"--kubeconfig={api.kubeconfig(os.path.join(self.dir, 'kubeconfig'))}",
                *args,
            ],
            stdout=self.log,
            stderr=self.log,
        )
        if ready:
            self.wait(lambda: self.serves(self.registration))

    def serves(self, path):
        """This very process listens there."""
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(path)
            except OSError:
                return False
            return peer_pid(s) == self.process.pid

    def wait(self, condition, seconds=10):
        end = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"the agent ended\n{self.text()}")
            if time.monotonic() > end:
                raise AssertionError(f"waited {seconds} s in vain\n{self.text()}")
            time.sleep(0.01)

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def stop(self, sig=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        with contextlib.suppress(ValueError):
            self.stop()
        if "Sanitizer" in self.text() or "runtime error:" in self.text():
            raise AssertionError(self.text())
        if self.owns_dir:
            shutil.rmtree(self.dir, ignore_errors=True)


def peer_pid(s):
    return struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


class Client:
    """A connection of its own, messages as bytes."""

    def __init__(self, path, authority="localhost"):
        self.channel = grpc.insecure_channel(
            f"unix:{path}",
            options=[
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.default_authority", authority),
                ("grpc.max_send_message_length", -1),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 200),
            ],
        )

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.channel.close()

    def call(self, method, data=b"", timeout=KUBELET_TIMEOUT):
        return self.channel.unary_unary(method)(data, timeout=timeout)

    def future(self, method, data=b"", timeout=KUBELET_TIMEOUT):
        return self.channel.unary_unary(method).future(data, timeout=timeout)

    def code(self, method, data=b"", timeout=KUBELET_TIMEOUT):
        """(status code, details)"""
        try:
            self.call(method, data, timeout)
        except grpc.RpcError as e:
            return e.code(), e.details()
        return grpc.StatusCode.OK, ""

    def dra(self, op, *claims, version="v1"):
        """The map of the reply."""
        data = self.call(f"{DRA}{version}.DRAPlugin/{op}", request(*claims))
        m = dra_message(op + "Response", version).FromString(data)
        assert not m.DiscardUnknownFields() and m.SerializeToString() is not None
        return m.claims


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = fakeapi.FakeAPI().start()
        cls.agent = Agent(cls.api)

    @classmethod
    def tearDownClass(cls):
        with cls.agent:
            pass
        cls.api.stop()

    def setUp(self):
        self.client = Client(self.agent.service)
        self.addCleanup(self.client.channel.close)

    def assert_serves(self):
        """A new connection gets its answer at once."""
        with Client(self.agent.service) as c:
            self.assertEqual(c.call(DRA + "v1.DRAPlugin/NodePrepareResources", timeout=5), b"")


class Registration(Case):
    def test_get_info(self):
        with Client(self.agent.registration) as c:
            for _ in range(20):
                info = message("pluginregistration.PluginInfo").FromString(
                    c.call(REGISTRATION + "GetInfo", timeout=1)
                )
                self.assertEqual(info.type, "DRAPlugin")
                self.assertEqual(info.name, DRIVER)
                self.assertEqual(info.endpoint, self.agent.service)
                self.assertEqual(
                    list(info.supported_versions), ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
                )

    def test_notify_true_and_false_many_times(self):
        status = message("pluginregistration.RegistrationStatus")
        with Client(self.agent.registration) as c:
            for i in range(50):
                m = status(plugin_registered=i % 2 == 0, error="" if i % 2 == 0 else "refused ✗")
                self.assertEqual(
                    c.call(REGISTRATION + "NotifyRegistrationStatus", m.SerializeToString(), 5),
                    b"",
                )
                c.call(REGISTRATION + "GetInfo", timeout=1)
        self.assert_serves()
        self.agent.wait(lambda: self.agent.text().count("kubelet refused") >= 25)

    def test_kubelet_restart(self):
        """The sockets stay; each new connection registers again."""
        for _ in range(5):
            with Client(self.agent.registration) as c:
                c.call(REGISTRATION + "GetInfo", timeout=1)
                c.call(REGISTRATION + "NotifyRegistrationStatus", b"\x08\x01", 5)
        self.assertTrue(self.agent.serves(self.agent.registration))


class Calls(Case):
    def test_empty_request(self):
        for version in VERSIONS:
            for op in OPS:
                data = self.client.call(f"{DRA}{version}.DRAPlugin/{op}")
                self.assertEqual(data, b"", (version, op))

    def test_unprepare_of_unknown_uid(self):
        for version in VERSIONS:
            for _ in range(2):
                claims = [("default", f"unknown-{i}", f"claim-{i}") for i in range(3)]
                reply = self.client.dra("NodeUnprepareResources", *claims, version=version)
                self.assertEqual({k: v.error for k, v in reply.items()},
                                 {uid: "" for _, uid, _ in claims})

    def test_prepare_of_unknown_claim(self):
        """Refused, by an error of the claim or of the call, with the claim's name."""
        for version in VERSIONS:
            try:
                reply = self.client.dra(
                    "NodePrepareResources", ("default", "no-such-uid", "gone"), version=version
                )
                text = reply["no-such-uid"].error
            except grpc.RpcError as e:
                text = e.details()
            self.assertIn("default/gone", text)

    def test_same_claim_twice(self):
        same = ("default", "twice", "claim")
        reply = self.client.dra("NodeUnprepareResources", same, same)
        self.assertEqual(list(reply), ["twice"])
        code, text = self.client.code(
            DRA + "v1.DRAPlugin/NodeUnprepareResources",
            request(same, ("default", "twice", "other")),
        )
        self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT, text)

    def test_unknown_methods(self):
        for method in (
            DRA + "v1.DRAPlugin/NodeDance",
            DRA + "v1alpha4.Node/NodePrepareResources",
            "/v1.DRAPlugin/NodePrepareResources",
            "/grpc.health.v1.Health/Check",
            "/" + "x" * 5000,
        ):
            start = time.monotonic()
            code, text = self.client.code(method)
            self.assertEqual(code, grpc.StatusCode.UNIMPLEMENTED, text)
            self.assertLess(time.monotonic() - start, 1, method)

    def test_unknown_stream(self):
        """Kubelets up to 1.36 ask every driver for its health."""
        for version in ("v1", "v1alpha1"):
            start = time.monotonic()
            stream = self.client.channel.unary_stream(
                f"/{version}.DRAResourceHealth/NodeWatchResources"
            )(b"")
            with self.assertRaises(grpc.RpcError) as e:
                list(stream)
            self.assertEqual(e.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            self.assertLess(time.monotonic() - start, 1)

    def methods(self):
        yield REGISTRATION + "GetInfo"
        yield REGISTRATION + "NotifyRegistrationStatus"
        for version in VERSIONS:
            for op in OPS:
                yield f"{DRA}{version}.DRAPlugin/{op}"

    def test_garbage(self):
        good = request(("default", "u", "c"))
        for method in self.methods():
            for data in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b\x0c" * 9, b"\x0a\x05abc"):
                code, text = self.client.code(method, data)
                self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT, (method, data, text))
        for version in VERSIONS:
            for op in OPS:
                for cut in range(1, len(good)):
                    code, _ = self.client.code(f"{DRA}{version}.DRAPlugin/{op}", good[:cut])
                    self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assert_serves()

    def test_random_bytes_as_message(self):
        rng = random.Random(1)
        for _ in range(300):
            data = rng.randbytes(rng.randrange(200))
            code, text = self.client.code(DRA + "v1.DRAPlugin/NodePrepareResources", data)
            self.assertIn(code, (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT), text)

    def test_bad_claims(self):
        method = DRA + "v1.DRAPlugin/NodeUnprepareResources"
        for data, cause in (
            (raw_claim(uid=b"\xff\xfe"), "UTF-8"),
            (raw_claim(name=b"a\0b"), "UTF-8"),
            (raw_claim(uid=b"../../../etc/passwd"), "uid"),
            (raw_claim(uid=b""), "uid"),
            (raw_claim(uid=b"u" * 64), "uid"),
            (raw_claim(namespace=b"a/b"), "namespace"),
            (raw_claim(namespace=b"n" * 64), "namespace"),
            (raw_claim(name=b"n" * 254), "name"),
            (raw_claim(name="ü".encode()), "name"),
            (request(*[("ns", f"u{i}", "c") for i in range(257)]), "257 claims"),
            (b"\x0a\x00" * 500000, "not a"),
        ):
            code, text = self.client.code(method, data)
            self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT, text)
            self.assertIn(cause, text)
        many = [("ns", f"u{i}", "c") for i in range(256)]
        self.assertEqual(len(self.client.dra("NodeUnprepareResources", *many)), 256)

    def test_message_size(self):
        method = DRA + "v1.DRAPlugin/NodePrepareResources"
        self.assertEqual(self.client.call(method, padded(MIB)), b"")
        for size in (MIB + 1, 2 * MIB, 6 * MIB):
            code, _ = self.client.code(method, padded(size))
            self.assertEqual(code, grpc.StatusCode.RESOURCE_EXHAUSTED, size)
        self.assertEqual(self.client.call(method), b"")

    def test_half_close_without_message(self):
        for method in self.methods():
            with self.assertRaises(grpc.RpcError) as e:
                self.client.channel.stream_unary(method)(iter(()), timeout=5)
            self.assertEqual(e.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assert_serves()

    def test_two_messages(self):
        empty = self.client.channel.stream_unary(DRA + "v1.DRAPlugin/NodePrepareResources")(
            iter((b"", b"\xff")), timeout=5
        )
        self.assertEqual(empty, b"")
        self.assert_serves()

    def test_authority(self):
        for authority in (
            "localhost", "%2Fvar%2Flib%2Fkubelet%2Fx.sock", "/var/lib/kubelet/x.sock", "",
            "a b", "x" * 7000,
        ):
            with Client(self.agent.service, authority) as c:
                self.assertEqual(c.call(DRA + "v1.DRAPlugin/NodePrepareResources", timeout=5), b"")

    def test_compressed_message(self):
        """No peer compresses; it must not hang or harm."""
        method = self.client.channel.unary_unary(DRA + "v1.DRAPlugin/NodePrepareResources")
        try:
            method(padded(100000), timeout=5, compression=grpc.Compression.Gzip)
        except grpc.RpcError as e:
            self.assertIn(e.code(), (grpc.StatusCode.UNIMPLEMENTED,
                                     grpc.StatusCode.RESOURCE_EXHAUSTED,
                                     grpc.StatusCode.INTERNAL))
        self.assert_serves()


class Load(Case):
    METHOD = DRA + "v1.DRAPlugin/NodeUnprepareResources"

    def test_parallel_calls(self):
        for n in (50, 300):
            calls = [
                self.client.future(self.METHOD, request(("ns", f"p{n}-{i}", "c"))) for i in range(n)
            ]
            for i, call in enumerate(calls):
                reply = dra_message("NodeUnprepareResourcesResponse").FromString(call.result())
                self.assertEqual({k: v.error for k, v in reply.claims.items()}, {f"p{n}-{i}": ""})

    def test_many_connections(self):
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(self.agent.service)) for _ in range(100)]
            for _ in range(2):
                calls = [c.future(self.METHOD, request(("ns", "u", "c"))) for c in clients]
                for call in calls:
                    self.assertNotEqual(call.result(), b"")
        self.assert_serves()

    def test_cancelled_calls(self):
        for i in range(50):
            call = self.client.future(self.METHOD, request(("ns", f"x{i}", "c")))
            if i % 2:
                time.sleep(0.001)
            call.cancel()
        self.assert_serves()

    def test_deadline_while_the_api_server_is_slow(self):
        self.api.fault("GET .*/resourceclaims/slow", delay=1.0)
        start = time.monotonic()
        code, _ = self.client.code(
            DRA + "v1.DRAPlugin/NodePrepareResources", request(("ns", "slow-uid", "slow")), 0.3
        )
        self.assertEqual(code, grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertLess(time.monotonic() - start, 0.9)
        self.assertEqual(self.client.dra("NodeUnprepareResources", ("ns", "other", "c"))["other"].error, "")
        time.sleep(1)
        self.assert_serves()

    def test_connection_breaks_in_a_call(self):
        self.api.fault("GET .*/resourceclaims/broken", delay=0.5)
        c = Client(self.agent.service)
        call = c.future(
            DRA + "v1.DRAPlugin/NodePrepareResources", request(("ns", "broken-uid", "broken"))
        )
        self.agent.wait(lambda: self.api.requests("resourceclaims/broken"))
        c.channel.close()
        self.assertTrue(call.done())
        time.sleep(0.7)
        self.assert_serves()

    def test_strangers(self):
        """HTTP/1, noise, half a preface, nothing at all."""
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        rng = random.Random(2)
        silent = []
        for path in (self.agent.service, self.agent.registration):
            for data in (
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", rng.randbytes(65536), preface[:10],
                preface + rng.randbytes(4096), preface + b"\0\0\0\4\0\0\0\0\0" * 100, b"",
            ):
                s = socket.socket(socket.AF_UNIX)
                s.connect(path)
                with contextlib.suppress(OSError):
                    s.sendall(data)
                if data[:3] in (b"GET",):
                    s.settimeout(5)
                    with contextlib.suppress(ConnectionResetError):
                        while s.recv(4096):
                            pass
                silent.append(s)
                self.assert_serves()
        for s in silent:
            s.close()
        self.assert_serves()

    def test_connect_and_leave(self):
        for _ in range(500):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.agent.service)
        self.agent.wait(lambda: len(os.listdir(f"/proc/{self.agent.process.pid}/fd")) < 60)
        self.assert_serves()

    def test_out_of_descriptors(self):
        pid = self.agent.process.pid
        old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 20, old[1]))
        waiting = []
        try:
            for _ in range(100):
                s = socket.socket(socket.AF_UNIX)
                s.connect(self.agent.service)
                waiting.append(s)
            time.sleep(0.5)
            self.assertGreaterEqual(len(os.listdir(f"/proc/{pid}/fd")), used + 15)
            before = cpu_seconds(pid)
            time.sleep(1)
            self.assertLess(cpu_seconds(pid) - before, 0.3, "it spins")
            for s in waiting:
                s.close()
            self.assert_serves()  # still with the low limit
        finally:
            for s in waiting:
                s.close()
            resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
        self.assert_serves()
        self.assertIn("accepting connections pauses", self.agent.text())


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Sockets(unittest.TestCase):
    def setUp(self):
        self.api = fakeapi.FakeAPI().start()
        self.addCleanup(self.api.stop)

    def call(self, path):
        with Client(path) as c:
            return c.call(DRA + "v1.DRAPlugin/NodePrepareResources", timeout=5)

    def test_mode_and_stop(self):
        with Agent(self.api) as a:
            for path in (a.service, a.registration):
                st = os.stat(path)
                self.assertTrue(stat.S_ISSOCK(st.st_mode))
                self.assertEqual(stat.S_IMODE(st.st_mode), 0o600)
            with Client(a.service) as c:  # an idle connection does not delay the stop
                c.call(DRA + "v1.DRAPlugin/NodePrepareResources", timeout=5)
                start = time.monotonic()
                self.assertEqual(a.stop(), 0, a.text())
                self.assertLess(time.monotonic() - start, 2)
            self.assertEqual(os.listdir(a.registry), [])
            self.assertFalse(os.path.exists(a.service))

    def test_stop_answers_the_running_call(self):
        with Agent(self.api) as a, Client(a.service) as c:
            self.api.fault("GET .*/resourceclaims/slow", delay=1.0)
            call = c.future(
                DRA + "v1.DRAPlugin/NodePrepareResources", request(("ns", "slow-uid", "slow"))
            )
            a.wait(lambda: self.api.requests("resourceclaims/slow"))
            a.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(grpc.RpcError):
                call.result()
            code = grpc.StatusCode.OK if call.exception() is None else call.exception().code()
            self.assertNotIn(code, (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED))
            self.assertEqual(a.stop(), 0, a.text())

    def test_stale_files(self):
        with Agent(self.api) as dead:
            dead.stop(signal.SIGKILL)
            self.assertTrue(os.path.exists(dead.service))
            with Agent(self.api, dead.dir) as a:
                self.assertEqual(self.call(a.service), b"")
                self.assertTrue(a.serves(a.registration))

    def test_foreign_file_is_kept(self):
        with Agent(self.api, args=["--driver-name=other.example"], ready=False) as a:
            with open(os.path.join(a.registry, f"{DRIVER}-reg.sock"), "wb"):
                pass
            with Agent(self.api, a.dir, ready=False) as b:
                self.assertEqual(b.process.wait(10), 2)
                self.assertIn("is not a socket: remove it", b.text())
                self.assertTrue(os.path.exists(b.registration))

    def test_second_instance(self):
        """The newer one serves; the older one's exit leaves its files alone."""
        with Agent(self.api) as old:
            with Agent(self.api, old.dir) as new:
                time.sleep(1.5)
                self.assertTrue(new.serves(new.service))
                self.assertTrue(new.serves(new.registration))
                self.assertEqual(old.stop(), 0, old.text())
                self.assertTrue(new.serves(new.service))
                self.assertTrue(new.serves(new.registration))
                self.assertEqual(self.call(new.service), b"")

    def test_racing_instances(self):
        """Whoever wins: when all but one are gone, that one serves."""
        for _ in range(3):
            with Agent(self.api, ready=False) as first, contextlib.ExitStack() as stack:
                agents = [first] + [
                    stack.enter_context(Agent(self.api, first.dir, ready=False)) for _ in range(3)
                ]
                time.sleep(0.3)
                for a in agents[:-1]:
                    threading.Thread(target=a.process.terminate).start()
                for a in agents[:-1]:
                    a.process.wait(30)
                last = agents[-1]
                last.wait(lambda: last.serves(last.service) and last.serves(last.registration))

    def test_removed_files_come_back(self):
        with Agent(self.api) as a:
            os.unlink(a.service)
            os.rename(a.registration, a.registration + ".away")
            a.wait(lambda: a.serves(a.service) and os.path.exists(a.registration), 5)
            a.wait(lambda: a.serves(a.registration), 5)
            self.assertEqual(self.call(a.service), b"")

    def test_rolling_update_names(self):
        uid = "0c2d5e9e-91c4-44c0-8b1c-3f3f4d3b6f10"
        with Agent(self.api) as old, Agent(
            self.api, old.dir, args=[f"--pod-uid={uid}"], ready=False
        ) as new:
            service = f"{new.data}/dra-{uid}.sock"
            new.wait(lambda: new.serves(service))
            # At most one of the candidates fits, depending on the length of the directory.
            new.wait(lambda: len(os.listdir(new.registry)) == 2)
            name = next(n for n in os.listdir(new.registry) if n != f"{DRIVER}-reg.sock")
            self.assertIn(name, (f"{DRIVER}-{uid}-reg.sock", f"{DRIVER}-tqFP6-v1Ii4-reg.sock"))
            with Client(os.path.join(new.registry, name)) as c:
                info = message("pluginregistration.PluginInfo").FromString(
                    c.call(REGISTRATION + "GetInfo", timeout=1)
                )
                self.assertEqual(info.endpoint, service)
            self.assertEqual(self.call(old.service), b"")
            self.assertEqual(self.call(service), b"")

    def test_long_driver_name(self):
        name = "x" * 37
        with Agent(self.api, args=[f"--driver-name={name}"], ready=False) as a:
            self.assertEqual(a.process.wait(10), 2)
            self.assertIn("at most 36", a.text())

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_other_users(self):
        with Agent(self.api) as a:
            os.chmod(a.dir, 0o755)
            for d in (os.path.dirname(a.data), a.data, a.registry):
                os.chmod(d, 0o755)
            script = (
                "import socket, sys\n"
                "s = socket.socket(socket.AF_UNIX); s.settimeout(5)\n"
                "try: s.connect(sys.argv[1])\n"
                "except PermissionError: print('EACCES'); sys.exit()\n"
                "try: print('bytes' if s.recv(1) else 'closed')\n"
                "except ConnectionResetError: print('closed')\n"
            )

            def as_nobody():
                return subprocess.run(
                    [sys.executable, "-c", script, a.service], user=65534, group=65534,
                    extra_groups=[], stdout=subprocess.PIPE, text=True, check=True, cwd="/",
                ).stdout.strip()

            self.assertEqual(as_nobody(), "EACCES")
            os.chmod(a.service, 0o666)  # the peer's uid is checked as well
            self.assertEqual(as_nobody(), "closed")
            self.assertEqual(self.call(a.service), b"")

    def test_unregistered_socket_is_renewed(self):
        """For kubelets that do not try again by themselves: after 30 s a new socket."""
        with Agent(self.api) as a, Agent(self.api) as registered:
            with Client(registered.registration) as c:
                c.call(REGISTRATION + "NotifyRegistrationStatus", b"\x08\x01", 5)
            first, kept = os.stat(a.registration), os.stat(registered.registration)
            service = os.stat(a.service)
            time.sleep(28)
            self.assertEqual(os.stat(a.registration).st_ctime_ns, first.st_ctime_ns)
            a.wait(lambda: a.serves(a.registration)
                   and os.stat(a.registration).st_ctime_ns != first.st_ctime_ns, 5)
            self.assertEqual(os.stat(a.service).st_ctime_ns, service.st_ctime_ns)
            time.sleep(2)
            self.assertEqual(os.stat(registered.registration).st_ctime_ns, kept.st_ctime_ns)


class Contract(unittest.TestCase):
    @unittest.skipUnless(shutil.which("go"), "needs go")
    def test_same_as_kubelets(self):
        done = subprocess.run(
            [os.path.join(HERE, "proto_check", "check.sh")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=500,
        )
        self.assertEqual(done.returncode, 0, done.stdout)


def main():
    global BINARY
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.environ.get("TWINRAIL_BINARY", BINARY))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    BINARY = os.path.abspath(args.binary)
    if not os.access(BINARY, os.X_OK):
        sys.exit(f"{BINARY} is missing: run make")
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{n}*" for n in args.names] or None
    suite = loader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed"
          + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
