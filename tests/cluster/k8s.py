# SPDX-License-Identifier: Apache-2.0
"""A real cluster as the tests see it: API access, pods with claims, node commands, the chart.

The API is reached through one `kubectl proxy` on a unix socket: a request takes milliseconds, and
the same code serves the lab's cluster and any other that KUBECONFIG names.
"""
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
LAB = HERE / "lab"
DRIVER = "twinrail.dev"
NAMESPACE = "twinrail"            # of the driver
TEST_NAMESPACE = "twinrail-test"  # of the tests' pods
POD_IMAGE = "twinrail.dev/test-busybox:1"
MACHINE_LABEL = "twinrail.dev/machine"
CDI_DIR = "/var/run/cdi"
JOURNAL_DIR = f"/var/lib/kubelet/plugins/{DRIVER}/claims"

# Ends at once when it is told to. (With a grace period of 0 the API server would not wait for kubelet.)
CONTAINER = {"name": "main", "image": POD_IMAGE, "imagePullPolicy": "IfNotPresent",
             "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 100000 & wait"]}

CORE, APPS, DRA = "/api/v1", "/apis/apps/v1", "/apis/resource.k8s.io/v1"
KINDS = {  # kind: (API, plural, namespaced)
    "Namespace": (CORE, "namespaces", False), "Node": (CORE, "nodes", False),
    "Pod": (CORE, "pods", True), "Event": (CORE, "events", True), "ConfigMap": (CORE, "configmaps", True),
    "DaemonSet": (APPS, "daemonsets", True),
    "DeviceClass": (DRA, "deviceclasses", False), "ResourceSlice": (DRA, "resourceslices", False),
    "ResourceClaim": (DRA, "resourceclaims", True), "ResourceClaimTemplate": (DRA, "resourceclaimtemplates", True),
}


class Skip(Exception):
    """The test cannot be run on this cluster."""


class ApiError(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def run(*command, check=True, timeout=120, **kw):
    if "input" not in kw:
        kw["stdin"] = subprocess.DEVNULL
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, **kw)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def wait(what, check, timeout, every=0.1):
    """Until check() gives something true; its last value or error is in the message of a timeout."""
    end, last = time.monotonic() + timeout, None
    while True:
        try:
            last = check()
            if last:
                return last
        except (ApiError, AssertionError, OSError, http.client.HTTPException) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what}; last seen: {str(last)[:1500]}")
        time.sleep(every)


class Watch:
    """Events of one kind with the moment of their arrival: [(monotonic seconds, type, object)]."""

    def __init__(self, cluster, path):
        self.events, self.closed = [], False
        self.connection = UnixConnection(cluster.socket, timeout=None)
        self.connection.request("GET", path)
        self.response = self.connection.getresponse()
        if self.response.status != 200:
            raise ApiError(self.response.status, self.response.read().decode())
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while line := self.response.readline():
                event = json.loads(line)
                self.events.append((time.monotonic(), event["type"], event["object"]))

    def wait(self, what, match, timeout):
        """The first event for which match(type, object) holds."""
        seen = 0
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            while seen < len(self.events):
                event = self.events[seen]
                seen += 1
                if match(event[1], event[2]):
                    return event
            time.sleep(0.002)
        raise AssertionError(f"not within {timeout} s: {what}; {len(self.events)} events seen")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.connection.sock.shutdown(socket.SHUT_RDWR)


class Cluster:
    def __init__(self, namespace=TEST_NAMESPACE):
        self.ns = namespace  # of everything that is not said to be elsewhere
        self.existing = bool(os.environ.get("TWINRAIL_EXISTING"))
        self.state = None
        if self.existing:
            self.tools = {tool: [tool] for tool in ("kubectl", "helm")}
            for tool in self.tools:
                if not shutil.which(tool):
                    raise SystemExit(f"run: {tool} is needed in PATH for an existing cluster")
        else:
            hold_instance()
            env = run(LAB, "env").stdout
            bin_dir = pathlib.Path(env.split('"')[1].split(":")[0])
            self.state = bin_dir.parent
            self.tools = {tool: [str(bin_dir / tool)] for tool in ("kubectl", "helm", "docker")}
        self.values = None
        self.run_dir = tempfile.mkdtemp(prefix="twinrail-")
        self.socket = self.run_dir + "/api.sock"
        self.proxy = subprocess.Popen([*self.tools["kubectl"], "proxy", "--unix-socket", self.socket],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        wait("kubectl proxy answers", lambda: self.request("GET", "/readyz", raw=True) == b"ok", 20)
        self.nodes = {}  # machine: node name
        for node in self.list("Node"):
            machine = node["metadata"].get("labels", {}).get(MACHINE_LABEL)
            if machine:
                self.nodes[machine] = node["metadata"]["name"]

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.proxy.pid, signal.SIGTERM)
        self.proxy.wait(10)
        shutil.rmtree(self.run_dir, ignore_errors=True)

    # --- API -------------------------------------------------------------------------------------

    def request(self, method, path, body=None, content="application/json", raw=False, timeout=30):
        connection = UnixConnection(self.socket, timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": content, "Accept": "application/json"})
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            message = data.decode(errors="replace")
            with contextlib.suppress(ValueError, KeyError):
                message = json.loads(message)["message"]
            raise ApiError(response.status, f"{method} {path}: {message}")
        return data if raw else json.loads(data or b"{}")

    def path(self, kind, name=None, ns=None, **query):
        api, plural, namespaced = KINDS[kind]
        ns = ns or self.ns
        parts = [api] + (["namespaces", ns] if namespaced else []) + [plural] + ([name] if name else [])
        return "/".join(parts) + ("?" + urllib.parse.urlencode(query) if query else "")

    def get(self, kind, name, ns=None):
        """The object, or None where there is none."""
        try:
            return self.request("GET", self.path(kind, name, ns))
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def list(self, kind, ns=None, **query):
        return self.request("GET", self.path(kind, None, ns, **query))["items"]

    def create(self, obj, ns=None):
        return self.request("POST", self.path(obj["kind"], None, obj["metadata"].get("namespace", ns)), obj)

    def apply(self, obj, ns=None):
        """Server-side apply of an object."""
        path = self.path(obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", ns),
                         fieldManager="twinrail-tests", force="true")
        return self.request("PATCH", path, obj, "application/apply-patch+yaml")

    def delete(self, kind, name, ns=None, **options):
        with contextlib.suppress(ApiError):
            self.request("DELETE", self.path(kind, name, ns), options or None)

    def watch(self, kind, ns=None, **query):
        """From now on: without resourceVersion the first events are the objects that exist."""
        return Watch(self, self.path(kind, None, ns, watch="true", timeoutSeconds="600", **query))

    def kubectl(self, *args, check=True, timeout=120, **kw):
        return run(*self.tools["kubectl"], *args, check=check, timeout=timeout, **kw)

    def metrics(self, machine):
        """kubelet's metrics of a node, as text."""
        return self.request("GET", f"{CORE}/nodes/{self.nodes[machine]}/proxy/metrics", raw=True).decode()

    # --- nodes -----------------------------------------------------------------------------------

    def need_machine(self, machine):
        if machine not in self.nodes:
            raise Skip(f"no node with the label {MACHINE_LABEL}={machine} (a fake machine)")

    def need_node_access(self):
        if self.existing:
            raise Skip("needs commands on the nodes, which only the lab's own cluster gives")

    def node_exec(self, node, *command, check=True, timeout=60, **kw):
        """A command on a node; node is a machine or a node's name."""
        self.need_node_access()
        return run(*self.tools["docker"], "exec", "-i", self.nodes.get(node, node), *command, check=check, timeout=timeout, **kw)

    def machine_root(self, machine):
        """The unpacked files of a fake machine on this side; the nodes have the same ones."""
        if not self.existing:
            return self.state / "machines" / machine
        root = pathlib.Path(self.run_dir, machine)
        if not root.exists():
            run(TOP / "build/twinrail", "snapshot", "--unpack", TOP / f"tests/fixtures/{machine}.machine", root)
        return root

    def topo(self, machine):
        """`twinrail topo -o json` of a fake machine, made on this side: independent of the agent."""
        return json.loads(run(TOP / "build/twinrail", "topo", "--root", self.machine_root(machine), "-o", "json").stdout)

    # --- the driver ------------------------------------------------------------------------------

    def install(self, restart=False, **values):
        """helm upgrade --install with the tests' values and these; waits for the agents and their slices."""
        image, tag = os.environ.get("TWINRAIL_IMAGE", "twinrail.dev/twinrail:dev").rsplit(":", 1)
        wanted = {"image": {"repository": image, "tag": tag}, "gpu": "own", "aliases": {"mrdma": True},
                  "podAnnotations": {"twinrail.dev/image": image_stamp()}}
        if self.nodes:
            wanted["hostRoot"] = "/machine"
            wanted["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": MACHINE_LABEL, "operator": "Exists"}]}]}}}
        wanted.update(values)
        if restart:
            wanted["podAnnotations"]["twinrail.dev/restarted"] = str(time.time())
        if wanted == self.values:
            return
        self.values = None
        done = run(*self.tools["helm"], "upgrade", "--install", "twinrail", TOP / "helm/twinrail", "--namespace", NAMESPACE,
                   "--create-namespace", "--values", "-", input=json.dumps(wanted), check=False, timeout=120)
        assert done.returncode == 0, f"helm upgrade failed: {done.stderr[-2000:]}"
        self.wait_rollout()
        for machine in self.nodes:
            self.wait_registered(machine)
            wait(f"slices of {machine}", lambda m=machine: self.slices(m), 30)
        self.values = wanted

    def wait_rollout(self, timeout=120):
        done = self.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/twinrail", f"--timeout={timeout}s",
                            check=False, timeout=timeout + 20)
        if done.returncode:
            pods = self.kubectl("-n", NAMESPACE, "get", "pods", "-o", "wide", check=False).stdout
            logs = self.kubectl("-n", NAMESPACE, "logs", "daemonset/twinrail", "--tail=15", check=False)
            raise AssertionError(f"the DaemonSet is not ready: {done.stderr.strip()}\n{pods}{logs.stdout}{logs.stderr}")

    def driver_pods(self):
        pods = self.list("Pod", NAMESPACE, labelSelector="app.kubernetes.io/name=twinrail")
        return [p for p in pods if not p["metadata"].get("deletionTimestamp")]

    def driver_pod(self, machine):
        pods = [p for p in self.driver_pods() if p["spec"].get("nodeName") == self.nodes[machine]]
        assert pods, f"no driver pod on {self.nodes[machine]}"
        return pods[0]

    def wait_registered(self, machine, timeout=60):
        """Until kubelet knows the agent that runs on the node; a pod that comes earlier is tried again a minute later."""
        def registered():
            pod = self.driver_pod(machine)["metadata"]["name"]
            return "registered with kubelet" in self.kubectl("-n", NAMESPACE, "logs", pod, "-c", "agent").stdout
        wait(f"the agent on {self.nodes[machine]} is registered with kubelet", registered, timeout)

    def agent_memory(self, machine):
        """Resident memory of a node's agent in MB: (in all, what is not file-backed)."""
        out = self.node_exec(machine, "sh", "-c", "cat /proc/$(pgrep -o -f 'twinrail agent')/status").stdout
        fields = dict(line.split(":", 1) for line in out.splitlines() if ":" in line)
        return tuple(round(int(fields[key].split()[0]) / 1024, 1) for key in ("VmRSS", "RssAnon"))

    def raw_slices(self, machine):
        node = self.nodes[machine]
        return [s for s in self.list("ResourceSlice", fieldSelector=f"spec.driver={DRIVER},spec.nodeName={node}")]

    def slices(self, machine):
        """{device name: device} of the complete newest pool of a node; {} while it is incomplete."""
        slices = self.raw_slices(machine)
        newest = max((s["spec"]["pool"]["generation"] for s in slices), default=0)
        slices = [s for s in slices if s["spec"]["pool"]["generation"] == newest]
        if not slices or len(slices) != slices[0]["spec"]["pool"]["resourceSliceCount"]:
            return {}
        devices = {}
        for one in slices:
            for device in one["spec"].get("devices", []):
                assert device["name"] not in devices, f"device {device['name']} is in two slices"
                devices[device["name"]] = device
        return devices

    # --- pods with claims ------------------------------------------------------------------------

    def template(self, name, requests, constraints=(), config=()):
        spec = {"requests": list(requests)}
        if constraints:
            spec["constraints"] = list(constraints)
        if config:
            spec["config"] = list(config)
        return self.apply({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
                           "metadata": {"name": name}, "spec": {"spec": {"devices": spec}}})

    def pod(self, name, claims=(), machine=None, **container):
        """Create a pod with one claim per template name in claims, all for its only container."""
        claims = list(claims)
        spec = {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "automountServiceAccountToken": False,
            "containers": [{**CONTAINER, **container}]}
        if claims:
            spec["resourceClaims"] = [{"name": f"c{i}", "resourceClaimTemplateName": t} for i, t in enumerate(claims)]
            spec["containers"][0].setdefault("resources", {"claims": [{"name": f"c{i}"} for i in range(len(claims))]})
        if machine:
            spec["nodeSelector"] = {MACHINE_LABEL: machine}
        return self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})

    def wait_running(self, *names, timeout=120):
        """Long enough for one retry by kubelet, which comes after 60 to 90 s (a race of its own may cost one)."""
        def running():
            for name in names:
                pod = self.get("Pod", name)
                assert pod, f"pod {name} does not exist"
                ready = pod["status"].get("phase") == "Running" and all(s["ready"] for s in pod["status"]["containerStatuses"])
                assert ready, f"pod {name}: {self.why(name)}"
            return True
        wait(f"pods {', '.join(names)} run", running, timeout)
        return [self.get("Pod", name) for name in names]

    def why(self, name):
        """State and events of a pod, for messages."""
        pod = self.get("Pod", name)
        if not pod:
            return "gone"
        parts = [pod["status"].get("phase", "?")]
        parts += [f"{c['type']}={c['status']} {c.get('message', '')}" for c in pod["status"].get("conditions", [])
                  if c["status"] != "True" and c.get("message")]
        parts += [f"{e['reason']}: {e['message']}" for e in self.events(name)[-3:] if e["type"] != "Normal"]
        return "; ".join(parts)

    def events(self, pod):
        items = self.list("Event", fieldSelector=f"involvedObject.kind=Pod,involvedObject.name={pod}")
        return sorted(items, key=lambda e: e["metadata"]["creationTimestamp"])

    def wait_event(self, pod, reason, timeout=60):
        found = wait(f"event {reason} for pod {pod}",
                     lambda: [e for e in self.events(pod) if e["reason"] == reason] or None, timeout)
        return found[-1]

    def wait_unschedulable(self, name, timeout=30):
        """Until the scheduler says that the claims cannot be allocated; the condition's message."""
        def refused():
            for c in (self.get("Pod", name) or {"status": {}})["status"].get("conditions", []):
                if unschedulable(c):
                    return c["message"]
            return None
        return wait(f"pod {name} is found unschedulable", refused, timeout)

    def claims(self, pod):
        """The claims of a pod, in the order of its spec."""
        pod = self.get("Pod", pod) if isinstance(pod, str) else pod
        names = {s["name"]: s["resourceClaimName"] for s in pod["status"].get("resourceClaimStatuses", [])}
        return [self.get("ResourceClaim", names[c["name"]]) for c in pod["spec"].get("resourceClaims", [])]

    def results(self, claim):
        """[(request without sub-request, device name)] of our driver, sorted."""
        found = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        return sorted((r["request"].split("/")[0], r["device"]) for r in found if r["driver"] == DRIVER)

    def exec(self, pod, *command, ns=None, check=True):
        return self.kubectl("exec", "-n", ns or self.ns, pod, "--", *command, check=check).stdout

    def env(self, pod):
        """The environment of the pod's first process."""
        out = self.exec(pod, "cat", "/proc/1/environ")
        return dict(item.split("=", 1) for item in out.split("\0") if "=" in item)

    def device_nodes(self, pod):
        """{path: (major, minor)} of the RDMA and GPU device nodes in a pod."""
        script = 'for f in /dev/infiniband/* /dev/nvidia*; do [ -c "$f" ] && stat -c "%n %t %T" "$f"; done; true'
        found = {}
        for line in self.exec(pod, "sh", "-c", script).splitlines():
            path, major, minor = line.split()
            found[path] = (int(major, 16), int(minor, 16))
        return found

    # --- between tests ---------------------------------------------------------------------------

    def prepare_namespace(self):
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.ns}})
        account = f"{CORE}/namespaces/{self.ns}/serviceaccounts/default"
        wait("the default service account exists", lambda: self.request("GET", account), 30)

    def clean(self, timeout=90):
        """Delete all pods, claims and templates of the tests, and wait until they are gone."""
        for kind in ("Pod", "ResourceClaim", "ResourceClaimTemplate", "Event"):
            self.request("DELETE", self.path(kind))
        wait("the tests' pods and claims are gone",
             lambda: not self.list("Pod") and not self.list("ResourceClaim"), timeout)

    def foreign_claims(self):
        """Claims of other namespaces that hold devices of our driver."""
        claims = self.request("GET", f"{DRA}/resourceclaims")["items"]
        return [f"{claim['metadata']['namespace']}/{claim['metadata']['name']}" for claim in claims
                if claim["metadata"]["namespace"] != self.ns and self.results(claim)]

    def leftovers(self):
        """What the driver keeps on the nodes for claims: CDI specs and journal records."""
        found = []
        if self.existing:
            return found
        for machine in self.nodes:
            out = self.node_exec(machine, "sh", "-c", f"ls {CDI_DIR}/{DRIVER}-* {JOURNAL_DIR}/* 2>/dev/null; true").stdout
            found += [f"{machine}:{line}" for line in out.split() if not line.endswith(".lock")]
        return found


def hold_instance():
    """Wait until no other run, demo or bench uses this instance of the lab, and keep it until this process ends."""
    if HELD:
        return
    state = pathlib.Path(run(LAB, "state").stdout.strip())
    state.mkdir(parents=True, exist_ok=True)
    HELD.append(open(state / "use.lock", "w", encoding="utf-8"))
    try:
        fcntl.flock(HELD[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"waiting for another run, demo or bench on {state}", file=sys.stderr, flush=True)
        fcntl.flock(HELD[0], fcntl.LOCK_EX)


HELD = []


def bring_up(image=True):
    """The lab's cluster with the present image and machines; whether it had to be brought up. CalledProcessError."""
    hold_instance()
    if image:
        subprocess.run([HERE / "image"], check=True)
    if subprocess.run([LAB, "status"], stdout=subprocess.DEVNULL, check=False).returncode:
        subprocess.run([LAB, "up"], check=True)
        return True
    subprocess.run([LAB, "machines"], check=True)
    if image:
        for archive in ("twinrail-image.tar", "test-busybox.tar"):
            subprocess.run([LAB, "load", TOP / "build" / archive], check=True)
    return False


def unschedulable(condition):
    return (condition["type"] == "PodScheduled" and condition["status"] == "False"
            and "cannot allocate all claims" in condition.get("message", ""))


def image_stamp():
    """Changes when the image archive does, so that an upgrade restarts the agents."""
    archive = TOP / "build/twinrail-image.tar"
    stamp = TOP / "build/twinrail-image.id"
    if stamp.exists():
        return stamp.read_text().strip()
    return str(int(archive.stat().st_mtime)) if archive.exists() else "none"


def dra_durations(metrics):
    """{method: (seconds in all, calls)} of our driver, out of a kubelet's metrics."""
    found = {}
    pattern = re.compile(r'^dra_grpc_operations_duration_seconds_(sum|count)\{(.*)\} (\S+)$', re.M)
    for what, labels, value in pattern.findall(metrics):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if labels.get("driver_name") == DRIVER:
            method = labels["method_name"].rsplit("/", 1)[-1]
            total, count = found.get(method, (0.0, 0))
            found[method] = (total + float(value), count) if what == "sum" else (total, count + int(float(value)))
    return found


def attributes(device):
    """{qualified name: value} of a device in a slice; own names get the driver's domain."""
    out = {}
    for name, value in device.get("attributes", {}).items():
        out[name if "/" in name else f"{DRIVER}/{name}"] = next(iter(value.values()))
    return out


def request(name, device_class, count=1, selector=None):
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": exactly}
