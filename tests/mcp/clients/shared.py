"""What the two Python clients have in common; the counterpart of shared.mjs, where the output is described."""

import json
import os
import re
import sys
import traceback

URL = os.environ.get("WAGGLE_MCP_URL", "")
KEY = os.environ.get("WAGGLE_MCP_KEY", "")
ERA = os.environ.get("WAGGLE_MCP_ERA", "auto")
HEADERS = {"Authorization": f"Bearer {KEY}"} if KEY else {}


def calls():
    words = sys.argv[1:]
    if len(words) % 2:
        raise SystemExit("give pairs: TOOL JSON-ARGUMENTS")
    return [(words[i], json.loads(words[i + 1])) for i in range(0, len(words), 2)]


async def converse(call):
    """Makes the calls of the command line, then those of the file that WAGGLE_MCP_CALLS names (see shared.mjs)."""
    for tool, args in calls():
        say_answer(tool, await call(tool, args))
    if not (file := os.environ.get("WAGGLE_MCP_CALLS")):
        return
    known = {"project": os.environ.get("WAGGLE_MCP_PROJECT", "")}
    with open(file, encoding="utf-8") as steps:
        steps = json.load(steps)
    for step in steps:
        structured = say_answer(step["tool"], await call(step["tool"], filled(step["arguments"], known)))
        for name, path in step.get("keep", {}).items():
            known[name] = at(structured, path)


def at(value, path):
    for part in path.split("."):
        try:
            value = value[int(part) if isinstance(value, list) else part]
        except (KeyError, IndexError, TypeError, ValueError):
            return ""
    return value


def filled(value, known):
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda found: str(known.get(found[1], "")), value)
    if isinstance(value, list):
        return [filled(one, known) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, known) for name, one in value.items()}
    return value


def say(line):
    print(json.dumps(line), flush=True)


def say_answer(tool, answer):
    # The two generations of the SDK name their fields differently; the wire names are the same.
    wire = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = "\n".join(block["text"] for block in wire.get("content", []) if block["type"] == "text")
    structured = wire.get("structuredContent")
    say({"tool": tool, "isError": wire.get("isError", False), "structured": structured, "text": text})
    return structured


def run(runner, main):
    if not URL:
        print("WAGGLE_MCP_URL is not set", file=sys.stderr)
        raise SystemExit(2)
    try:
        runner(main)
    except Exception:  # the SDK wraps errors in groups: any of them means that the client gave up
        traceback.print_exc(limit=1)
        raise SystemExit(1) from None
