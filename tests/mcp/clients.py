#!/usr/bin/env python3
"""usage: clients.py DIRECTORY-OF-CLIENTS URL KEY

Every client stores a memory in one process and every other client recalls it in another: what one agent learns, another
knows. Beside that, for each client: the protocol revision it must end up with, no session id, all core tools listed, text
and structured answer both complete, a mistake in the arguments told as a tool error, an unknown tool and a wrong key as
failures. Then each client calls every tool once, with the arguments of every_tool.json. Prints one line for each client
and a summary; exits with 1 if anything is wrong.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

LEGACY, MODERN = "2025-11-25", "2026-07-28"
# (name, command, era, protocol revision that it must negotiate)
CLIENTS = [
    ("ts1", ["node", "ts1.mjs"], "", LEGACY),
    ("ts2-auto", ["node", "ts2.mjs"], "auto", MODERN),
    ("ts2-legacy", ["node", "ts2.mjs"], "legacy", LEGACY),
    ("ts2-modern", ["node", "ts2.mjs"], MODERN, MODERN),
    ("pi", ["node", "pi.mjs"], "", LEGACY),
    ("py1", ["py1/bin/python", "py1.py"], "", LEGACY),
    ("py2-auto", ["py2/bin/python", "py2.py"], "auto", MODERN),
    ("py2-legacy", ["py2/bin/python", "py2.py"], "legacy", LEGACY),
    ("py2-modern", ["py2/bin/python", "py2.py"], MODERN, MODERN),
]
CORE_TOOLS = {
    "memory_capabilities",
    "observe_conversation",
    "prime_context",
    "query_graph",
    "resolve_conflict",
    "store_edge",
    "store_node",
}
# One fact for each client; nothing that the duplicate rules could take for the same statement.
FACTS = [
    "The billing service keeps invoices in a ledger named {}.",
    "Nightly reports are built by the job runner {}.",
    "Our warehouse in Ghent scans parcels with the device {}.",
    "The mobile team signs releases with certificate {}.",
    "Search queries are cached by the proxy called {}.",
    "Customer letters are printed on the machine {}.",
    "The meeting room on the third floor is called {}.",
    "Sensor data from the greenhouse arrives on topic {}.",
    "The payroll spreadsheet was replaced by the tool {}.",
]


class Client:
    def __init__(self, place, url, key, spec):
        self.place, self.url, self.key = place, url, key
        self.name, self.command, self.era, self.protocol = spec

    def run(self, *pairs, key=None, more=None):
        """Runs one process; gives its exit code, its lines and what it said about errors."""
        env = dict(os.environ, WAGGLE_MCP_URL=self.url, WAGGLE_MCP_KEY=self.key if key is None else key)
        env.update(more or {})
        if self.era:
            env["WAGGLE_MCP_ERA"] = self.era
        words = [word for tool, args in pairs for word in (tool, json.dumps(args))]
        command = [os.path.join(self.place, self.command[0]) if "/" in self.command[0] else self.command[0]]
        command += self.command[1:] + words
        try:
            done = subprocess.run(command, cwd=self.place, env=env, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return 124, [], "no answer within 120 s"
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return done.returncode, lines, done.stderr.strip()


def check_hello(client, hello, problems):
    if hello.get("protocol") != client.protocol:
        problems.append(f"negotiated {hello.get('protocol')}, not {client.protocol}")
    if hello.get("session") is not None:
        problems.append(f"was given a session id: {hello['session']}")
    if missing := CORE_TOOLS - set(hello.get("tools", [])):
        problems.append(f"does not see the tools {', '.join(sorted(missing))}")
    if hello.get("tools") != sorted(hello.get("tools", [])):
        problems.append("sees a tool list that is not sorted by name")


def store(client, fact, project, problems):
    """The id of the stored memory, or None."""
    scope = {"project": project, "agent_id": client.name, "session_id": f"store-{client.name}"}
    memory = {"label": fact[:60], "content": fact, "node_type": "fact", **scope}
    code, lines, error = client.run(("store_node", memory), ("store_node", {**memory, "colour": "blue"}))
    if code != 0 or len(lines) != 3:
        problems.append(f"store: exit code {code}, {len(lines)} lines of 3: {error[-300:]}")
        return None
    hello, stored, mistake = lines
    check_hello(client, hello, problems)
    if stored["isError"]:
        problems.append(f"store: {stored['text']}")
        return None
    node_id = (stored["structured"] or {}).get("id")
    if not node_id or node_id not in stored["text"]:
        problems.append(f"store: the id is not both in text and in structuredContent: {stored}")
    if not mistake["isError"] or "validation_failed" not in mistake["text"] or "colour" not in mistake["text"]:
        problems.append(f"an unknown field was not refused by name: {mistake['text'][:200]}")
    return node_id


def recall(client, facts, stored, project, problems):
    """One new process asks for the memory of every other client."""
    others = [name for name in stored if name != client.name and stored[name]]
    asks = [("query_graph", {"query": facts[name], "project": project, "max_nodes": 10}) for name in others]
    code, lines, error = client.run(*asks)
    if code != 0 or len(lines) != len(asks) + 1:
        problems.append(f"recall: exit code {code}, {len(lines)} lines of {len(asks) + 1}: {error[-300:]}")
        return 0
    check_hello(client, lines[0], problems)
    found = 0
    for name, answer in zip(others, lines[1:]):
        nodes = (answer["structured"] or {}).get("nodes", [])
        if answer["isError"] or stored[name] not in [node["id"] for node in nodes]:
            problems.append(f"does not recall what {name} stored: {answer['text'][:200]}")
        elif stored[name] not in answer["text"]:
            problems.append(f"the memory of {name} is in structuredContent but not in the text")
        else:
            found += 1
    return found


def refusals(client, problems):
    code, _, _ = client.run(("no_such_tool", {}))
    if code == 0:
        problems.append("a call of an unknown tool succeeded")
    code, lines, _ = client.run(key="wg_wrong_key")
    if code == 0 or lines:
        problems.append("a wrong key was let in")


def every_tool(client, run, problems):
    """One process calls each tool once; no answer may be an error, and each has both forms."""
    file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "every_tool.json")
    with open(file, encoding="utf-8") as steps:
        steps = [step["tool"] for step in json.load(steps)]
    more = {"WAGGLE_MCP_CALLS": file, "WAGGLE_MCP_PROJECT": f"every-{client.name}-{run}"}
    code, lines, error = client.run(more=more)
    if code != 0 or len(lines) != len(steps) + 1:
        done = [line["tool"] for line in lines[1:]]
        problems.append(f"every tool: exit code {code}, {len(done)} answers of {len(steps)}: {error[-300:]}")
    if lines and (missing := set(lines[0].get("tools", [])) ^ set(steps)):
        problems.append(f"every_tool.json and the list of tools differ in {', '.join(sorted(missing))}")
    for answer in lines[1:]:
        if answer["isError"]:
            problems.append(f"{answer['tool']}: {answer['text'][:200]}")
        elif not isinstance(answer["structured"], dict) or not answer["text"].strip():
            problems.append(f"{answer['tool']}: text and structuredContent are not both there")
    return len({answer["tool"] for answer in lines[1:] if not answer["isError"]})


def main():
    place, url, key = sys.argv[1:4]
    run = uuid.uuid4().hex[:12]
    project = f"clients-{run}"
    clients = [Client(place, url, key, spec) for spec in CLIENTS]
    marks = {client.name: f"{client.name.replace('-', '')}{uuid.uuid4().hex[:8]}" for client in clients}
    facts = {client.name: fact.format(marks[client.name]) for client, fact in zip(clients, FACTS)}
    problems = {client.name: [] for client in clients}
    began = time.monotonic()

    def each(work):
        with ThreadPoolExecutor(max_workers=3) as pool:
            return dict(zip(marks, pool.map(work, clients)))

    stored = each(lambda client: store(client, facts[client.name], project, problems[client.name]))
    found = each(lambda client: recall(client, facts, stored, project, problems[client.name]))
    each(lambda client: refusals(client, problems[client.name]))
    called = each(lambda client: every_tool(client, run, problems[client.name]))

    bad = 0
    for client in clients:
        mine = list(dict.fromkeys(problems[client.name]))
        bad += bool(mine)
        state = "FAIL" if mine else "ok  "
        done = f"stored 1, recalled {found[client.name]} of {len(clients) - 1}, called {called[client.name]} tools"
        print(f"{state} {client.name:11s} {client.protocol}  {done}")
        for problem in mine:
            print(f"       {' '.join(problem.split())}")
    print(f"clients: {len(clients) - bad} passed, {bad} failed ({time.monotonic() - began:.0f} s)")
    return 1 if bad else 0


sys.exit(main())
