# SPDX-License-Identifier: Apache-2.0
"""Restarts and failures around the driver: running pods do not notice, waiting ones get there."""
import contextlib
import threading
import time

import facts
import k8s

MACHINE = "hgx-h100"


def setup(c):
    machine = facts.Machine(c, MACHINE)
    c.install()
    c.template("pair", *facts.PAIR)
    return machine


def complete(c):
    """The number of devices of a complete pool, 0 while slices are missing."""
    return len(c.slices(MACHINE))


def same_container(c, name):
    return c.get("Pod", name)["status"]["containerStatuses"][0]["containerID"]


def test_driver_pod_is_replaced_while_pods_run(c):
    m = setup(c)
    c.pod("stays", ["pair"], MACHINE)
    c.wait_running("stays")
    container = same_container(c, "stays")
    slices = {s["metadata"]["name"]: s["metadata"]["uid"] for s in c.raw_slices(MACHINE)}
    old = c.driver_pod(MACHINE)["metadata"]
    c.delete("Pod", old["name"], k8s.NAMESPACE)
    k8s.wait("a new driver pod is ready", lambda: any(
        p["metadata"]["uid"] != old["uid"] and all(s["ready"] for s in p["status"].get("containerStatuses", [{"ready": False}]))
        for p in c.driver_pods() if p["spec"].get("nodeName") == c.nodes[MACHINE]), 60)
    c.wait_rollout()
    c.wait_registered(MACHINE)
    assert same_container(c, "stays") == container, "the pod's container was restarted"
    assert {s["metadata"]["name"]: s["metadata"]["uid"] for s in c.raw_slices(MACHINE)} == slices, "slices were made anew"
    # devices in use stay in use, and the new agent serves the rest
    c.pod("new", ["pair"] * 7, MACHINE)
    c.wait_running("new")
    facts.check_disjoint([c.results(claim) for name in ("stays", "new") for claim in c.claims(name)])
    facts.check_pod(m, "stays", m.pairs_of(c.claims("stays")))
    # the new agent undoes what the old one prepared (checked after each test: nothing is left)


def test_upgrade_leaves_no_gap(c):
    """Pods start all the time while the chart replaces the agents: kubelet always finds one that serves."""
    setup(c)
    names, done = [], threading.Event()

    def upgrade():
        try:
            c.install(restart=True)
        finally:
            done.set()
    thread = threading.Thread(target=upgrade)
    thread.start()
    while not done.is_set() or len(names) < 8:
        names.append(f"p{len(names)}")
        c.pod(names[-1], ["pair"], MACHINE)
        time.sleep(0.3)
        if len(names) > 6:
            c.delete("Pod", names[-7])
    thread.join()
    c.wait_running(*names[-6:])
    refused = [e["message"] for e in c.list("Event") if e["reason"] == "FailedPrepareDynamicResources"]
    assert not refused, f"{len(refused)} times: {refused[0]}"


def test_agent_is_killed(c):
    """SIGKILL: the container comes back and goes on where the journal says."""
    m = setup(c)
    c.need_node_access()
    c.pod("stays", ["pair"], MACHINE)
    c.wait_running("stays")
    before = c.driver_pod(MACHINE)["status"]["containerStatuses"][0]["restartCount"]
    c.node_exec(MACHINE, "pkill", "-KILL", "-f", "twinrail agent")
    k8s.wait("the agent's container was restarted", lambda: (
        lambda s: s["restartCount"] == before + 1 and s["ready"])(c.driver_pod(MACHINE)["status"]["containerStatuses"][0]), 60)
    c.wait_registered(MACHINE)
    c.pod("new", ["pair"] * 7, MACHINE)
    c.wait_running("new")
    facts.check_pod(m, "stays", m.pairs_of(c.claims("stays")))


def kubelet_answers(c):
    return c.node_exec(MACHINE, "curl", "-sf", "-m", "1", "http://127.0.0.1:10248/healthz", check=False).stdout == "ok"


def test_kubelet_restart(c):
    """kubelet wipes the slices of its node when it starts; they are back within 5 s, and pods run on."""
    m = setup(c)
    c.need_node_access()
    c.pod("stays", ["pair"], MACHINE)
    c.wait_running("stays")
    container, devices = same_container(c, "stays"), complete(c)
    node = c.nodes[MACHINE]
    with c.watch("ResourceSlice", fieldSelector=f"spec.driver={k8s.DRIVER},spec.nodeName={node}") as watch:
        c.node_exec(MACHINE, "systemctl", "restart", "kubelet")
        k8s.wait("kubelet answers", lambda: kubelet_answers(c), 60)
        up = time.monotonic()
        deleted, _, _ = watch.wait("kubelet deletes the slices", lambda kind, _: kind == "DELETED", 60)
        k8s.wait("the slices are complete again", lambda: complete(c) == devices, 30, every=0.05)
        back = time.monotonic() - max(up, deleted)
    assert back <= 5, f"the slices took {back:.1f} s"
    assert same_container(c, "stays") == container, "the pod's container was restarted"
    c.pod("new", ["pair"] * 7, MACHINE)
    c.wait_running("new", timeout=90)
    facts.check_pod(m, "stays", m.pairs_of(c.claims("stays")))


def test_slices_deleted_by_hand(c):
    setup(c)
    devices = complete(c)
    node = c.nodes[MACHINE]
    start = time.monotonic()
    c.request("DELETE", c.path("ResourceSlice", fieldSelector=f"spec.driver={k8s.DRIVER},spec.nodeName={node}"))
    k8s.wait("the slices are complete again", lambda: complete(c) == devices, 20, every=0.02)
    took = time.monotonic() - start
    assert took <= 2, f"the slices took {took:.1f} s"
    # one of several only
    names = [s["metadata"]["name"] for s in c.raw_slices(MACHINE)]
    start = time.monotonic()
    c.delete("ResourceSlice", names[0])
    k8s.wait("the slices are complete again", lambda: complete(c) == devices, 20, every=0.02)
    took = time.monotonic() - start
    assert took <= 2, f"one slice took {took:.1f} s"


def test_slice_edited_by_hand(c):
    setup(c)
    before = c.slices(MACHINE)
    one = c.raw_slices(MACHINE)[0]
    one["spec"]["devices"] = one["spec"].get("devices", [])[:1]
    one["spec"]["pool"]["generation"] += 5
    if not one["spec"]["devices"]:
        raise k8s.Skip("the first slice holds no devices")
    c.request("PUT", c.path("ResourceSlice", one["metadata"]["name"]), one)
    k8s.wait("the devices are as before", lambda: c.slices(MACHINE) == before, 10, every=0.05)


@contextlib.contextmanager
def stopped(c, node, pattern):
    """A process of a node that stands still (connections stay open, nothing is answered)."""
    c.node_exec(node, "pkill", "-STOP", "-f", pattern)
    try:
        yield
    finally:
        c.node_exec(node, "pkill", "-CONT", "-f", pattern)


def control_plane(c):
    c.need_node_access()
    (name,) = [n["metadata"]["name"] for n in c.list("Node") if "node-role.kubernetes.io/control-plane" in n["metadata"]["labels"]]
    return name


def test_api_server_stands_still_during_prepare(c):
    """The agent is held until kubelet has called it, then the API server for 20 s: Prepare gets there all the same."""
    m = setup(c)
    api_node = control_plane(c)
    restarts = c.driver_pod(MACHINE)["status"]["containerStatuses"][0]["restartCount"]
    with stopped(c, MACHINE, "twinrail agent"):
        c.pod("waits", ["pair"], MACHINE)
        k8s.wait("the pod is scheduled", lambda: c.get("Pod", "waits")["spec"].get("nodeName"), 20)
        time.sleep(2)  # kubelet has fetched the claim and is waiting for the driver
        c.node_exec(api_node, "pkill", "-STOP", "-f", "kube-apiserver")
    try:
        time.sleep(20)
    finally:
        c.node_exec(api_node, "pkill", "-CONT", "-f", "kube-apiserver")
    start = time.monotonic()
    k8s.wait("the API server answers", lambda: c.request("GET", "/readyz", raw=True) == b"ok", 60)
    c.wait_running("waits", timeout=120)
    facts.check_pod(m, "waits", m.pairs_of(c.claims("waits")))
    k8s.wait("the agent's state is known", lambda: c.driver_pod(MACHINE)["status"]["containerStatuses"][0]["ready"], 60)
    assert c.driver_pod(MACHINE)["status"]["containerStatuses"][0]["restartCount"] == restarts, "the agent was restarted"
    print(f"      pod ready {time.monotonic() - start:.1f} s after the API server", flush=True)


def test_api_server_refuses_connections_during_prepare(c):
    """The same with connections that are refused on the node, as when the API server is down."""
    m = setup(c)
    api_node = control_plane(c)
    address = [a["address"] for a in c.get("Node", api_node)["status"]["addresses"] if a["type"] == "InternalIP"][0]
    rules = "add table inet cut\n" + "".join(
        f"add chain inet cut {hook} {{ type filter hook {hook} priority 10; }}\n"
        f"add rule inet cut {hook} ip daddr {address} tcp dport 6443 reject with tcp reset\n" for hook in ("output", "forward"))
    with stopped(c, MACHINE, "twinrail agent"):
        c.pod("waits", ["pair"], MACHINE)
        k8s.wait("the pod is scheduled", lambda: c.get("Pod", "waits")["spec"].get("nodeName"), 20)
        time.sleep(2)
        c.node_exec(MACHINE, "nft", "-f", "-", input=rules)
    try:
        time.sleep(20)
    finally:
        c.node_exec(MACHINE, "nft", "delete", "table", "inet", "cut")
    c.wait_running("waits", timeout=120)
    facts.check_pod(m, "waits", m.pairs_of(c.claims("waits")))


def test_unprepare_without_the_agent(c):
    """A pod that is deleted while the agent stands still terminates when it goes on, and nothing is left."""
    setup(c)
    c.need_node_access()
    c.pod("gone", ["pair"], MACHINE)
    c.wait_running("gone")
    with stopped(c, MACHINE, "twinrail agent"):
        c.delete("Pod", "gone")
        time.sleep(3)
        assert c.leftovers(), "who undid the claim?"
    k8s.wait("the pod is gone", lambda: c.get("Pod", "gone") is None, 90)
    assert c.leftovers() == []


def test_pods_come_and_go_in_parallel(c):
    """Eight pods at once, three times: each has its own pair, and afterwards nothing is left."""
    m = setup(c)
    for _ in range(3):
        names = [f"p{i}" for i in range(8)]
        threads = [threading.Thread(target=c.pod, args=(name, ["pair"], MACHINE)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        c.wait_running(*names, timeout=90)
        facts.check_disjoint([c.results(c.claims(name)[0]) for name in names])
        for name in names[:2]:
            facts.check_pod(m, name, m.pairs_of(c.claims(name)))
        for name in names:
            c.delete("Pod", name)
        k8s.wait("the pods are gone", lambda: not c.list("Pod"), 60)
    if not c.existing:
        assert c.leftovers() == [], c.leftovers()


test_kubelet_restart.limit = 300
test_api_server_stands_still_during_prepare.limit = 300
test_api_server_refuses_connections_during_prepare.limit = 300
