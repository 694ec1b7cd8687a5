# SPDX-License-Identifier: Apache-2.0
"""What we tell people to copy works as it stands in the repository."""
import json

import k8s

EXAMPLES = sorted((k8s.TOP / "deploy/examples").glob("*.yaml"))
# What README.md and the files say that the chart is installed with.
PLAIN = {"gpu": "own", "aliases": {}}
INSTALL_WITH = {"pair": PLAIN, "four-pairs": PLAIN, "pf-pair-card": {**PLAIN, "publish": ["card", "nic", "pf"]},
                "pf-pair-chain": {"aliases": {"mrdma": True}}}


def example(path):
    def test(c):
        for machine in ("gb300", "hgx-h100"):
            c.need_machine(machine)
        c.install(**INSTALL_WITH[path.stem])
        out = c.kubectl("apply", "-n", c.ns, "-f", path, "-o", "json").stdout
        objects = json.loads(out)
        objects = objects.get("items", [objects])
        pods = [o["metadata"]["name"] for o in objects if o["kind"] == "Pod"]
        assert pods, f"{path.name} has no pod"
        c.wait_running(*pods)
        for name in pods:
            assert c.claims(name), f"pod {name} has no claim"
            assert any(p.startswith("/dev/infiniband/uverbs") for p in c.device_nodes(name)), f"pod {name}: {c.device_nodes(name)}"
            assert c.env(name).get("UCX_NET_DEVICES"), f"pod {name}: no UCX_NET_DEVICES"
    return test


for _path in EXAMPLES:
    globals()["test_" + _path.stem.replace("-", "_")] = example(_path)
