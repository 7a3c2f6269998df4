#!/usr/bin/env python3
"""usage: conformance.py DIRECTORY-OF-CLIENTS URL KEY OUTDIR SET...

Sets:
  core   scenarios that every server of our kind passes without test tools, on the production route
  lists  scenarios about prompts, resources, completion and caching, on the production route
  full   the frozen requirement sets of both revisions, on /conformance/mcp, where the suite's test tools are

A scenario counts by the suite's exit code and by its checks.json; its printed words change between releases. On the
production route four checks of server-stateless cannot be made, because they call test tools that production must not
have. They are named below, and only with the suite's own words "Not testable" do they count as that.
"""

import glob
import json
import os
import subprocess
import sys
import time
from urllib.parse import urlsplit

LEGACY, MODERN = "2025-11-25", "2026-07-28"
SETS = {
    "core": [
        (LEGACY, "server-initialize"),
        (LEGACY, "server-session-lifecycle"),
        (LEGACY, "ping"),
        (LEGACY, "tools-list"),
        (LEGACY, "dns-rebinding-protection"),
        (LEGACY, "server-sse-multiple-streams"),
        (MODERN, "tools-list"),
        (MODERN, "http-header-validation"),
        (MODERN, "dns-rebinding-protection"),
        (MODERN, "server-sse-multiple-streams"),
        (MODERN, "server-stateless"),
        (MODERN, "input-required-result-missing-input-response"),
        (MODERN, "input-required-result-unsupported-methods"),
        (MODERN, "input-required-result-ignore-extra-params"),
        (MODERN, "input-required-result-validate-input"),
    ],
    "lists": [
        (LEGACY, "prompts-list"),
        (LEGACY, "resources-list"),
        (LEGACY, "completion-complete"),
        (MODERN, "prompts-list"),
        (MODERN, "resources-list"),
        (MODERN, "completion-complete"),
        (MODERN, "caching"),
        (MODERN, "sep-2164-resource-not-found"),
    ],
}
NEEDS_FIXTURES = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
# Scenarios where a warning of the suite is a failure of ours, and the fewest checks that must have passed.
NO_WARNINGS = {"sep-2164-resource-not-found"}
AT_LEAST = {(MODERN, "http-header-validation"): 14, (MODERN, "caching"): 7, (MODERN, "server-stateless"): 21}


class Suite:
    def __init__(self, place, url, out):
        self.url, self.out = url, out
        self.command = [os.path.join(place, "node_modules/.bin/conformance"), "server", "--url", url]
        self.requirements = os.path.join(place, "node_modules/@modelcontextprotocol/conformance/requirements")

    def run(self, out, words, limit):
        os.makedirs(out, exist_ok=True)
        with open(os.path.join(out, "log.txt"), "w") as log:
            try:
                return subprocess.run(
                    self.command + words + ["-o", out], stdout=log, stderr=subprocess.STDOUT, timeout=limit
                ).returncode
            except subprocess.TimeoutExpired:
                return 124


def checks_below(directory):
    """{scenario: its newest checks}, from directories that are called server-<scenario>-<time>."""
    found = {}
    for path in sorted(glob.glob(os.path.join(directory, "server-*", "checks.json")), key=os.path.getmtime):
        name = os.path.basename(os.path.dirname(path))[len("server-") :]
        scenario = name.rsplit("-", 6)[0]  # the time is 2026-01-31T13-56-06-090Z: six dashes from the end
        with open(path) as file:
            found[scenario] = json.load(file)
    return found


def judge(label, scenario, revision, checks, code):
    """Prints a line; gives True when the scenario passed."""
    if not checks:
        print(f"FAIL {label}: no result (exit code {code})")
        return False
    by = {state: [c for c in checks if c["status"] == state] for state in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED")}
    untestable = [
        c
        for c in by["FAILURE"]
        if scenario == "server-stateless"
        and c["id"] in NEEDS_FIXTURES
        and (c.get("errorMessage") or "").startswith("Not testable")
    ]
    bad = [c for c in by["FAILURE"] if c not in untestable]
    if scenario in NO_WARNINGS:
        bad += by["WARNING"]
    passed, least = len(by["SUCCESS"]), AT_LEAST.get((revision, scenario), 0)
    # The exit code says nothing new when the failures are those that need fixtures.
    good = not bad and passed >= least and (code == 0 or bool(untestable))
    words = f"{passed} passed, {len(bad)} failed, {len(by['WARNING'])} warnings, {len(by['SKIPPED'])} skipped"
    if untestable:
        words += f", {len(untestable)} need fixtures"
    print(f"{'ok  ' if good else 'FAIL'} {label}: {words}")
    if not good and not bad:
        print(f"       exit code {code}, at least {least} checks must pass")
    for check in bad + by["WARNING"]:
        reason = " ".join((check.get("errorMessage") or check.get("description") or "").split())
        print(f"       {check['status'].lower()} {check['id']}: {reason[:220]}")
    for check in untestable:
        print(f"       needs fixtures: {check['id']}")
    return good


def run_scenarios(suite, chosen):
    results = []
    for revision, scenario in chosen:
        out = os.path.join(suite.out, revision, scenario)
        code = suite.run(out, ["--scenario", scenario, "--spec-version", revision], 120)
        checks = checks_below(out).get(scenario)
        results.append(judge(f"{revision} {scenario}", scenario, revision, checks, code))
    return results


def scored_scenarios(suite, revision):
    """The list below `server:` in the requirement file of a revision."""
    scenarios, inside = [], False
    with open(os.path.join(suite.requirements, f"{revision}.yaml")) as file:
        for line in file:
            if line[:1].isalpha():
                inside = line.startswith("server:")
            elif inside and line.strip().startswith("- "):
                scenarios.append(line.strip()[2:].split(" #")[0].strip())
    return scenarios


def run_requirements(suite, revision):
    out = os.path.join(suite.out, f"requirements-{revision}")
    code = suite.run(out, ["--requirements", revision], 600)
    found = checks_below(out)
    scored = scored_scenarios(suite, revision)
    results = []
    for scenario in scored:
        checks = found.get(scenario)
        failed = [c for c in checks or [] if c["status"] == "FAILURE"]
        results.append(bool(checks) and not failed)
        if not results[-1]:
            judge(f"{revision} {scenario}", "", "", checks, code)
    good = all(results) and bool(results) and code == 0
    print(f"{'ok  ' if good else 'FAIL'} requirements {revision}: {sum(results)} of {len(results)} scenarios, exit code {code}")
    return [good]


def through_proxy(place, url, key, work):
    """Runs `work(url of the proxy)` with the proxy up; it ends when its standard input closes."""
    proxy = subprocess.Popen(
        ["node", os.path.join(place, "auth_proxy.mjs"), url],
        env=dict(os.environ, WAGGLE_MCP_KEY=key),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        own = proxy.stdout.readline().strip()
        if not own:
            raise SystemExit(f"the proxy for {url} did not start")
        return work(own)
    finally:
        proxy.stdin.close()
        proxy.wait(timeout=10)


def main():
    place, url, key, out, *chosen = sys.argv[1:]
    parts = urlsplit(url)
    fixtures = f"{parts.scheme}://{parts.netloc}/conformance/mcp"
    out = os.path.join(os.path.abspath(out), time.strftime("run-%Y%m%d-%H%M%S"))  # old results must not count
    results = []
    for name in chosen:
        if name == "full":
            for revision in (LEGACY, MODERN):
                results += through_proxy(
                    place, fixtures, key, lambda own, revision=revision: run_requirements(Suite(place, own, out), revision)
                )
        elif name in SETS:
            results += through_proxy(
                place, url, key, lambda own, name=name: run_scenarios(Suite(place, own, os.path.join(out, name)), SETS[name])
            )
        else:
            raise SystemExit(f"unknown set {name}: there are {', '.join([*SETS, 'full'])}")
    print(f"conformance: {sum(results)} passed, {len(results) - sum(results)} failed (details in {out})")
    return 0 if results and all(results) else 1


sys.exit(main())
