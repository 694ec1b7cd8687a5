# SPDX-License-Identifier: Apache-2.0
"""A fake node for tests: the real agent on a recorded machine, and kubelet's side of it.

    with FakeAPI() as api, Node(api) as node:
        claim = make_claim(api, "c", [("nic", "card-0000-03-00")])
        answers = node.prepare(claim)       # {uid: Answer(devices, error)}
        node.kill(); node.start()           # as often as wanted
        node.state()                        # what lies on the disk

TWINRAIL names the binary (default build/twinrail).  Runs on Debian's python3 with python3-grpcio
and protoc.
"""

import contextlib
import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import typing
import uuid

import grpc

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
TWINRAIL = os.environ.get("TWINRAIL", str(TOP / "build" / "twinrail"))
DRIVER = "twinrail.dev"
NODE = "node1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
PODS = "/api/v1/namespaces/ns/pods"
DEADLINE = 45.0  # kubelet's


def messages(proto="dra/v1/dra_v1.proto"):
    """The python module that protoc makes of one of our .proto files."""
    global _generated
    if _generated is None:
        _generated = tempfile.TemporaryDirectory(prefix="twinrail-pb-")
        sys.path.insert(0, _generated.name)
    name = proto.removesuffix(".proto").replace("/", ".") + "_pb2"
    if name not in sys.modules:
        subprocess.run(
            ["protoc", f"--python_out={_generated.name}", f"-I{TOP / 'proto'}", proto], check=True
        )
        importlib.invalidate_caches()
    return importlib.import_module(name)


_generated = None


class Answer(typing.NamedTuple):
    """What a driver says about one claim."""

    devices: tuple  # of (request names, pool, device, CDI ids)
    error: str

    @property
    def cdi(self):
        return sorted({i for d in self.devices for i in d[3]})


class Claim(typing.NamedTuple):
    namespace: str
    name: str
    uid: str


def make_claim(api, name, results, uid=None, pods=("pod",), config=(), node=NODE, driver=DRIVER):
    """Store an allocated ResourceClaim; "results": (request, device) or complete objects."""
    uid = uid or str(uuid.uuid4())
    full = [
        {"driver": driver, "pool": node, "request": r[0], "device": r[1]}
        if isinstance(r, tuple)
        else r
        for r in results
    ]
    allocation = {"devices": {"results": full, "config": list(config)}}
    api.create(
        CLAIMS,
        {
            "metadata": {"name": name, "uid": uid},
            "spec": {},
            "status": {
                "allocation": allocation,
                "reservedFor": [
                    {"resource": "pods", "name": p, "uid": f"uid-of-{p}"} for p in pods
                ],
            },
        },
    )
    return Claim("ns", name, uid)


def nic_config(source="FromClaim", requests=(), driver=DRIVER, **fields):
    parameters = {"apiVersion": "twinrail.dev/v1", "kind": "NicConfig", **fields}
    return {
        "source": source,
        "requests": list(requests),
        "opaque": {"driver": driver, "parameters": parameters},
    }


class Node:
    """Folders of one node and the agent that runs on it."""

    def __init__(self, api, machine="gb300", args=(), start=True):
        self.api = api
        self.args = list(args)
        self.process = None
        self.channel = None
        self._tmp = tempfile.TemporaryDirectory(prefix="twr-")
        self.dir = pathlib.Path(self._tmp.name)
        self.plugins = self.dir / "plugins"
        self.registry = self.dir / "registry"
        self.cdi = self.dir / "cdi"
        self.data = self.plugins / DRIVER
        self.socket = self.data / "dra.sock"
        self.root = self.dir / "root"
        self.log = self.dir / "agent.log"
        self.plugins.mkdir()
        self.registry.mkdir()
        api.kubeconfig(str(self.dir / "kubeconfig"))
        subprocess.run(
            [TWINRAIL, "snapshot", "--unpack"]
            + [str(TOP / "tests" / "fixtures" / f"{machine}.machine"), str(self.root)],
            check=True,
        )
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        """An agent that still runs must stop in order: exit status 0, also for its sanitizer."""
        status = 0
        try:
            if exc[0] is None and self.process and self.process.poll() is None:
                status = self.stop()
            self.kill()
            if exc[0] is not None or status != 0:
                sys.stderr.write(self.log_text()[-8000:])
        finally:
            self._tmp.cleanup()
        assert status == 0, f"the agent ended with {status}"

    # -- the agent ----------------------------------------------------------------------------

    def start(self, env=None, wait=True):
        command = [TWINRAIL, "agent", "--node-name", NODE, "--root", str(self.root)]
        command += ["--plugins-dir", str(self.plugins), "--registry-dir", str(self.registry)]
        command += ["--cdi-dir", str(self.cdi), "--kubeconfig", str(self.dir / "kubeconfig")]
        with open(self.log, "ab") as log:
            # pylint: disable-next=consider-using-with
            self.process = subprocess.Popen(
                command + self.args,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {})},
            )
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=20.0):
        """Until calls are answered; RuntimeError when the agent ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the agent ended: {self.process.returncode}")
            self._connect()
            with contextlib.suppress(grpc.RpcError):
                self._call("Prepare", [], timeout=1)
                return
            time.sleep(0.05)
        raise RuntimeError("the agent does not serve")

    def _connect(self):
        if self.channel:
            self.channel.close()
        self.channel = grpc.insecure_channel(f"unix:{self.socket}")

    def stop(self):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self._reap()

    def _reap(self):
        status = self.process.wait(60)
        if self.channel:
            self.channel.close()
            self.channel = None
        return status

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # -- kubelet ------------------------------------------------------------------------------

    def _call(self, verb, claims, timeout=DEADLINE, version="v1"):
        pb = messages(f"dra/{version}/dra_{version}.proto")
        service = pb.DESCRIPTOR.services_by_name["DRAPlugin"].full_name
        request = getattr(pb, f"Node{verb}ResourcesRequest")(
            claims=[pb.Claim(namespace=c.namespace, name=c.name, uid=c.uid) for c in claims]
        )
        call = self.channel.unary_unary(
            f"/{service}/Node{verb}Resources",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=getattr(pb, f"Node{verb}ResourcesResponse").FromString,
        )
        return call(request, timeout=timeout)

    @staticmethod
    def _answers(response, claims):
        missing = {c.uid for c in claims} ^ set(response.claims)
        assert not missing, f"answers do not match the claims: {missing}"
        return {
            uid: Answer(
                tuple(
                    (tuple(d.request_names), d.pool_name, d.device_name, tuple(d.cdi_device_ids))
                    for d in getattr(a, "devices", ())
                ),
                a.error,
            )
            for uid, a in response.claims.items()
        }

    def prepare_all(self, *claims, timeout=DEADLINE, version="v1"):
        """One NodePrepareResources call: {uid: Answer}."""
        response = self._call("Prepare", claims, timeout, version)
        return self._answers(response, claims)

    def unprepare_all(self, *claims, timeout=DEADLINE, version="v1"):
        response = self._call("Unprepare", claims, timeout, version)
        return self._answers(response, claims)

    def prepare(self, claim, **kw):
        """One claim; the Answer must be good."""
        answer = self.prepare_all(claim, **kw)[claim.uid]
        assert not answer.error, answer.error
        return answer

    def refuse(self, claim, **kw):
        """One claim that must not be prepared; the error's text."""
        answer = self.prepare_all(claim, **kw)[claim.uid]
        assert answer.error and not answer.devices, answer
        return answer.error

    def unprepare(self, *claims, **kw):
        for answer in self.unprepare_all(*claims, **kw).values():
            assert not answer.error, answer.error

    # -- the disk -----------------------------------------------------------------------------

    def state(self):
        """{path: bytes} of the records and CDI files, temporary ones too."""
        return {
            f"{name}/{p.name}": p.read_bytes()
            for name, d in (("claims", self.data / "claims"), ("cdi", self.cdi))
            if d.is_dir()
            for p in d.iterdir()
            if p.is_file()
        }


def run_tests(tests):
    """Run each test_* of a module's globals(); prints the line that tests/run counts."""
    passed = failed = 0
    wanted = sys.argv[1:]
    for name, fn in list(tests.items()):
        if not name.startswith("test_") or not callable(fn) or (wanted and name not in wanted):
            continue
        began = time.monotonic()
        try:
            fn()
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            failed += 1
            print(f"not ok - {name}", flush=True)
        else:
            passed += 1
            print(f"ok - {name} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def require(*programs):
    """Skip the whole script when a program is missing."""
    for p in programs:
        if not shutil.which(p) and not os.access(p, os.X_OK):
            print(f"skipped: {p} is missing")
            sys.exit(77)
