#!/usr/bin/env python3
"""Recall quality on LoCoMo, through the same MCP calls that an agent makes.

usage: locomo.py --data DIRECTORY [--scorer score.py] [--run run.json] [--url URL --key KEY] [--binary waggle]

The data set is not part of this project (its licence forbids that), so DIRECTORY has to be brought along: memories.jsonl
and queries.jsonl, directly in it or in its folder data/, and the scorer score.py beside them. Every conversation becomes
a project, every turn one observe_conversation in the order and at the time at which it was said, every question one
query_graph. A hit on a turn counts as that turn, a hit on a memory as the turns that it was extracted from. The run file
{question id: [turn ids, best first]} goes to the scorer; the last line of the output is one JSON object with figures.

Without --url (or WAGGLE_URL and WAGGLE_KEY) it starts a `waggle dev` of its own on data that are deleted at the end.
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

PROTOCOL = "2025-11-25"
READY_SECONDS = 120
IDS_WANTED = 50
VECTORS_SECONDS_MAX = 600
PAGES_MAX = 10
TRIES = 5


def say(text):
    print(f"[{time.monotonic() - STARTED:6.1f}s] {text}", file=sys.stderr, flush=True)


STARTED = time.monotonic()


class Mcp:
    """Calls tools over connections that stay open, one for each thread."""

    def __init__(self, url, key):
        self.url, self.key = urlsplit(url), key
        self.local = threading.local()

    def post(self, body, request_id):
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Idempotency-Key": request_id,
        }
        if not hasattr(self.local, "connection"):
            kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
            self.local.connection = kind(self.url.hostname, self.url.port, timeout=60)
        connection = self.local.connection
        try:
            connection.request("POST", self.url.path, body=body, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            del self.local.connection
            raise

    def call(self, tool, arguments):
        """The structured answer of a tool. What may have been a passing trouble is tried again, under the same id."""
        request_id = uuid.uuid4().hex
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        body = json.dumps(message).encode()
        for attempt in range(1, TRIES + 1):
            try:
                status, text = self.post(body, request_id)
                trouble = f"HTTP {status}: {text[:300]!r}"
                if status == 200:
                    answer = json.loads(text)
                    if "error" in answer:
                        raise SystemExit(f"{tool}: {answer['error']}")
                    result = answer["result"]
                    if not result.get("isError"):
                        return result["structuredContent"]
                    told = result["content"][0]["text"]
                    if not told.startswith(("service_unavailable", "rate_limited")):
                        raise SystemExit(f"{tool} {json.dumps(arguments)[:200]}: {told}")
                    trouble = told
                elif status < 500 and status != 429:
                    raise SystemExit(f"{tool}: {trouble}")
            except (OSError, http.client.HTTPException) as problem:
                trouble = str(problem)
            if attempt == TRIES:
                raise SystemExit(f"{tool}: gave up after {TRIES} tries: {trouble}")
            time.sleep(0.2 * 2**attempt)


@contextlib.contextmanager
def own_server(binary):
    """A `waggle dev` on a free loopback port; gives its URL and key."""
    with tempfile.TemporaryDirectory(prefix="waggle-eval-") as folder:
        log_path = os.path.join(folder, "log")
        with open(log_path, "wb") as log:
            server = subprocess.Popen(
                [binary, "dev", "--json", "--listen", "127.0.0.1:0", "--data", os.path.join(folder, "data")],
                stdout=subprocess.PIPE,
                stderr=log,
            )
        lines = []
        ready = threading.Event()

        def read():
            for line in server.stdout:
                lines.append(line)
                ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        try:
            ready.wait(READY_SECONDS)
            if not lines:
                with open(log_path, errors="replace") as log:
                    raise SystemExit(f"waggle dev did not become ready; its log ends with\n{log.read()[-3000:]}")
            hello = json.loads(lines[0])
            yield hello["mcp_url"], hello["api_key"]
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def find_data(directory):
    for folder in (directory, os.path.join(directory, "data")):
        paths = [os.path.join(folder, name) for name in ("memories.jsonl", "queries.jsonl")]
        if all(os.path.isfile(path) for path in paths):
            return paths
    print(
        f"There is no LoCoMo in {directory!r}: memories.jsonl and queries.jsonl are looked for there and in its folder\n"
        "data/. The data set is not part of this project; tests/eval/README.md describes the files.",
        file=sys.stderr,
    )
    raise SystemExit(2)


def find_scorer(directory, given):
    if given:
        return given
    for path in (os.path.join(directory, "score.py"), os.path.join(directory, "..", "score.py")):
        if os.path.isfile(path):
            return path
    return None


def load(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def session_start(text):
    """'1:56 pm on 8 May, 2023' in UTC; an unknown shape ends the run rather than moving the whole session in time."""
    return datetime.strptime(re.sub(r"\s+", " ", text.strip()), "%I:%M %p on %d %B, %Y").replace(tzinfo=timezone.utc)


class Conversation:
    def __init__(self, name, project, turns):
        self.name, self.project, self.turns = name, project, turns
        self.turn_of_transcript = {}
        self.turns_of_node = {}
        self.nodes_extracted = 0

    def observe(self, mcp, progress):
        place = {}
        for turn in self.turns:
            session = turn["session"]
            place[session] = place.get(session, -1) + 1
            said_at = session_start(turn["date"]) + timedelta(seconds=place[session])
            text = f"{turn['speaker']}: {turn['text']}"
            if turn.get("caption"):
                text += f" [{turn['caption']}]"
            answer = mcp.call(
                "observe_conversation",
                {
                    "user_message": text,
                    "assistant_response": "",
                    "project": self.project,
                    "session_id": f"session-{session}",
                    "observed_at": said_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                },
            )
            for transcript in answer.get("transcript_ids", []):
                self.turn_of_transcript[transcript] = turn["id"]
            for node in answer.get("stored_nodes", []):
                node_id = node["id"] if isinstance(node, dict) else node
                self.turns_of_node.setdefault(node_id, {})[turn["id"]] = None
            self.nodes_extracted += answer.get("nodes_extracted", 0)
            progress()

    def ask(self, mcp, question):
        """Turn ids, best first, and the number of hits that belong to no turn."""
        arguments = {
            "query": question,
            "project": self.project,
            "max_nodes": IDS_WANTED,
            "token_budget": 20000,
        }
        ranked, seen, unmapped, pages, cursor = {}, set(), 0, 0, None
        while pages < PAGES_MAX:
            answer = mcp.call("query_graph", {**arguments, "cursor": cursor} if cursor else arguments)
            pages += 1
            turns_of_node = {node["id"]: node.get("turn_ids", []) for node in answer.get("nodes", [])}
            for hit in sorted(answer.get("fusion_hits", []), key=lambda hit: hit["rank"]):
                if (hit["kind"], hit["id"]) in seen:
                    continue
                seen.add((hit["kind"], hit["id"]))
                turns = self.turns_of_hit(hit, turns_of_node)
                unmapped += not turns
                ranked.update(dict.fromkeys(turns))
            cursor = answer.get("next_cursor")
            if not cursor:
                break
        return list(ranked), unmapped, pages

    def turns_of_hit(self, hit, turns_of_node):
        if hit["kind"] == "turn":
            turn = self.turn_of_transcript.get(hit["id"])
            return [turn] if turn else []
        named = [self.turn_of_transcript[t] for t in turns_of_node.get(hit["id"], []) if t in self.turn_of_transcript]
        return named or list(self.turns_of_node.get(hit["id"], []))


def share(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def counter(total, what):
    """Says now and then how far it is."""
    state = {"done": 0, "said": time.monotonic()}
    lock = threading.Lock()

    def progress():
        with lock:
            state["done"] += 1
            if time.monotonic() - state["said"] > 5 or state["done"] == total:
                state["said"] = time.monotonic()
                say(f"{state['done']} of {total} {what}")

    return progress


def wait_for_vectors(mcp):
    """Loading is faster than embedding: texts are stored first and their vectors follow. Quality is asked of the end."""
    began = time.monotonic()
    while time.monotonic() - began < VECTORS_SECONDS_MAX:
        awaiting = mcp.call("get_stats", {}).get("embedding_status", {}).get("awaiting", 0)
        if not awaiting:
            return time.monotonic() - began
        say(f"{awaiting} items wait for their vectors")
        time.sleep(1)
    raise SystemExit(f"vectors were still missing after {VECTORS_SECONDS_MAX} s")


def evaluate(mcp, conversations, queries, workers):
    began = time.monotonic()
    turns = sum(len(conversation.turns) for conversation in conversations.values())
    progress = counter(turns, "turns stored")
    with ThreadPoolExecutor(max_workers=len(conversations)) as pool:
        # list() so that the first failure ends the run
        list(pool.map(lambda conversation: conversation.observe(mcp, progress), conversations.values()))
    load_seconds = time.monotonic() - began
    vector_seconds = wait_for_vectors(mcp)

    began = time.monotonic()
    progress = counter(len(queries), "questions asked")
    times = []

    def ask(query):
        sent = time.monotonic()
        answer = conversations[query["conv"]].ask(mcp, query["question"])
        times.append(time.monotonic() - sent)
        progress()
        return answer

    with ThreadPoolExecutor(max_workers=workers) as pool:
        answers = list(pool.map(ask, queries))
    ask_seconds = time.monotonic() - began
    run = {query["qid"]: ids for query, (ids, _, _) in zip(queries, answers)}
    figures = {
        "turns": turns,
        "questions": len(queries),
        "nodes_extracted": sum(conversation.nodes_extracted for conversation in conversations.values()),
        "turns_per_s": round(turns / load_seconds, 1),
        "waited_for_vectors_s": round(vector_seconds, 1),
        "questions_per_s": round(len(queries) / ask_seconds, 1),
        "question_ms_p50": round(1000 * share(times, 0.5), 1),
        "question_ms_p95": round(1000 * share(times, 0.95), 1),
        "ids_per_question": round(sum(map(len, run.values())) / max(1, len(run)), 1),
        "questions_with_fewer_ids": sum(len(ids) < IDS_WANTED for ids in run.values()),
        "pages_per_question": round(sum(pages for _, _, pages in answers) / max(1, len(answers)), 2),
        "hits_of_no_turn": sum(unmapped for _, unmapped, _ in answers),
    }
    return run, figures


def score(scorer, run_path):
    """Runs the scorer of the data set; its table goes through, its figures come back."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "score.json")
        subprocess.run([sys.executable, scorer, run_path, "--cats", "--json", out], check=True)
        with open(out) as file:
            groups = next(iter(json.load(file).values()))
    pick = lambda group, name: groups.get(group, {}).get(name)
    return {
        "recall@10_cat1-4": pick("cat1-4", "recall@10"),
        "recall@10_cat5": pick("cat5", "recall@10"),
        "mrr_cat1-4": pick("cat1-4", "mrr"),
        "session_hit@5_all": pick("all", "sess_hit@5"),
        "recall@10_by_category": {str(c): pick(f"cat{c}", "recall@10") for c in range(1, 6)},
    }


def main():
    parser = argparse.ArgumentParser(description="Recall quality on LoCoMo over MCP.")
    parser.add_argument("--data", default=os.environ.get("DATA", ""), help="directory with the data set")
    parser.add_argument("--scorer", help="score.py, when it does not lie beside the data")
    parser.add_argument("--run", default=os.path.join(tempfile.gettempdir(), "locomo-run.json"), help="where the run file goes")
    parser.add_argument("--url", default=os.environ.get("WAGGLE_URL"), help="MCP URL of a running server")
    parser.add_argument("--key", default=os.environ.get("WAGGLE_KEY", ""), help="its API key")
    parser.add_argument("--binary", default=os.environ.get("WAGGLE_BIN", "waggle"), help="the waggle to start otherwise")
    parser.add_argument("--workers", type=int, default=8, help="questions at the same time")
    parser.add_argument("--conversations", type=int, default=0, help="only the first N, for a quick look")
    options = parser.parse_args()
    if not options.data:
        parser.error("--data (or DATA) must name the directory with the data set; see tests/eval/README.md")
    memories_path, queries_path = find_data(options.data)
    memories, queries = load(memories_path), load(queries_path)
    names = list(dict.fromkeys(memory["conv"] for memory in memories))
    if options.conversations:
        names = names[: options.conversations]
        queries = [query for query in queries if query["conv"] in names]
    # A server that others use, too, may hold an earlier run.
    suffix = f"-{uuid.uuid4().hex[:8]}" if options.url else ""
    conversations = {
        name: Conversation(name, name + suffix, [memory for memory in memories if memory["conv"] == name]) for name in names
    }
    turns = sum(len(conversation.turns) for conversation in conversations.values())
    say(f"{turns} turns of {len(conversations)} conversations, {len(queries)} questions")
    if options.conversations:
        say("only a part of the data: the scorer counts the questions of the rest as missed")

    with contextlib.ExitStack() as stack:
        url, key = options.url, options.key
        if not url:
            url, key = stack.enter_context(own_server(options.binary))
            say(f"started {options.binary} at {url}")
        run, figures = evaluate(Mcp(url, key), conversations, queries, options.workers)
    with open(options.run, "w") as file:
        json.dump(run, file)
    say(f"wrote {options.run}")
    scorer = find_scorer(options.data, options.scorer)
    if scorer:
        figures.update(score(scorer, options.run))
    else:
        say("no score.py beside the data: the run file is all there is (--scorer names one)")
    print(json.dumps({"eval": "locomo", **figures}))


if __name__ == "__main__":
    main()
