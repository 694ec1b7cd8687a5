# SPDX-License-Identifier: Apache-2.0
"""GPU and NIC on one switch: one template, on a node with eight GPUs and eight rail NICs."""
import time

import facts
import k8s

MACHINE = "hgx-h100"


def setup(c):
    machine = facts.Machine(c, MACHINE)
    c.install()
    c.template("pair", *facts.PAIR)
    return machine


def test_four_claims_in_one_pod(c):
    m = setup(c)
    c.pod("four", ["pair"] * 4, MACHINE)
    c.wait_running("four")
    claims = c.claims("four")
    facts.check_disjoint([c.results(claim) for claim in claims])
    facts.check_pcie_roots(c, MACHINE, claims)
    pairs = m.pairs_of(claims)
    for gpu, nics in pairs:
        path = m.paths[gpu["name"], nics[0]["name"]]
        assert len(nics) == 1 and path["path"] == "PIX" and path["best"], f"{gpu['name']} and {nics[0]['name']}: {path}"
    facts.check_pod(m, "four", pairs)


def test_all_eight_pairs_in_one_pod(c):
    m = setup(c)
    c.pod("eight", ["pair"] * 8, MACHINE)
    c.wait_running("eight")
    pairs = m.pairs_of(c.claims("eight"))
    assert {g["name"] for g, _ in pairs} == set(m.gpus)
    assert {n["role"] for _, nics in pairs for n in nics} == {"rail"}
    facts.check_pod(m, "eight", pairs)


def test_more_pairs_than_are_left(c):
    """The scheduler answers at once, and the pod starts when the devices come back."""
    setup(c)
    c.pod("one", ["pair"], MACHINE)
    c.wait_running("one")
    with c.watch("Pod", fieldSelector="metadata.name=eight") as watch:
        start = time.monotonic()
        c.pod("eight", ["pair"] * 8, MACHINE)
        when, _, _ = watch.wait("the scheduler refuses the pod", lambda _, pod: any(
            k8s.unschedulable(cond) for cond in pod["status"].get("conditions", [])), 30)
    assert when - start < 1, f"the scheduler took {when - start:.2f} s"
    c.delete("Pod", "one")
    c.wait_running("eight")
    facts.check_disjoint([c.results(claim) for claim in c.claims("eight")])


def test_nothing_is_left_after_deletion(c):
    m = setup(c)
    c.need_node_access()
    c.pod("gone", ["pair"], MACHINE)
    c.wait_running("gone")
    uid = c.claims("gone")[0]["metadata"]["uid"]
    for path in (f"{k8s.CDI_DIR}/{k8s.DRIVER}-{uid}.json", f"{k8s.JOURNAL_DIR}/{uid}.json"):
        assert c.node_exec(MACHINE, "test", "-s", path, check=False).returncode == 0, f"{path} is not there while the pod runs"
    record = c.node_exec(MACHINE, "cat", f"{k8s.JOURNAL_DIR}/{uid}.json").stdout
    assert "Completed" in record, record
    c.delete("Pod", "gone")
    k8s.wait("the pod is gone", lambda: c.get("Pod", "gone") is None, 30)
    assert c.leftovers() == [], c.leftovers()
    # and the devices serve the next one
    c.pod("next", ["pair"] * 8, MACHINE)
    c.wait_running("next")
    assert len(m.pairs_of(c.claims("next"))) == 8


def test_container_without_the_claim_gets_nothing(c):
    """Two containers, one claim: only the one that names it has the devices."""
    m = setup(c)
    main = {**k8s.CONTAINER, "resources": {"claims": [{"name": "c0"}]}}
    side = {**k8s.CONTAINER, "name": "side"}
    c.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"}, "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "nodeSelector": {k8s.MACHINE_LABEL: MACHINE},
        "resourceClaims": [{"name": "c0", "resourceClaimTemplateName": "pair"}], "containers": [main, side]}})
    c.wait_running("two")
    facts.check_pod(m, "two", m.pairs_of(c.claims("two")))
    out = c.kubectl("exec", "-n", c.ns, "two", "-c", "side", "--", "sh", "-c", "ls /dev; env").stdout
    assert "infiniband" not in out and "nvidia" not in out and "UCX_NET_DEVICES" not in out, out


def test_claim_shared_by_two_pods(c):
    """Prepared once, undone when the last pod has gone."""
    m = setup(c)
    c.need_node_access()
    requests, constraints = facts.PAIR
    c.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"},
              "spec": {"devices": {"requests": requests, "constraints": constraints}}})
    for name in ("first", "second"):
        c.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "nodeSelector": {k8s.MACHINE_LABEL: MACHINE},
            "resourceClaims": [{"name": "c0", "resourceClaimName": "shared"}],
            "containers": [{**k8s.CONTAINER, "resources": {"claims": [{"name": "c0"}]}}]}})
    c.wait_running("first", "second")
    (gpu, nics), = m.pairs_of([c.get("ResourceClaim", "shared")])
    for name in ("first", "second"):
        assert c.device_nodes(name) == m.device_nodes([gpu], nics), name
    c.delete("Pod", "first")
    k8s.wait("the first pod is gone", lambda: c.get("Pod", "first") is None, 30)
    assert len(c.leftovers()) == 2, c.leftovers()
    assert c.device_nodes("second") == m.device_nodes([gpu], nics)
