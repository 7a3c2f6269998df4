// What the three JavaScript clients have in common: where the server is, what to call, and how an answer is printed.
//
// Every client is a process of its own, because that is what an agent is. It takes pairs of TOOL JSON-ARGUMENTS, prints
// one JSON line about the connection and then one line for each call, and ends with 0. A tool that answers with an error
// is an answer; a transport or protocol error is not, and ends the process with 1.

import { readFile } from "node:fs/promises";

export const url = process.env.WAGGLE_MCP_URL;
export const key = process.env.WAGGLE_MCP_KEY ?? "";
export const era = process.env.WAGGLE_MCP_ERA ?? "auto";
export const headers = key ? { Authorization: `Bearer ${key}` } : {};

function calls() {
  const words = process.argv.slice(2);
  if (words.length % 2) throw new Error("give pairs: TOOL JSON-ARGUMENTS");
  const pairs = [];
  for (let i = 0; i < words.length; i += 2) pairs.push({ tool: words[i], args: JSON.parse(words[i + 1]) });
  return pairs;
}

// Makes the calls of the command line, then those of the file that WAGGLE_MCP_CALLS names: a list of {tool, arguments,
// keep}, where "${name}" stands for WAGGLE_MCP_PROJECT or for what an earlier answer gave, and keep takes it by its path.
export async function converse(call) {
  for (const { tool, args } of calls()) sayAnswer(tool, await call(tool, args));
  const file = process.env.WAGGLE_MCP_CALLS;
  if (!file) return;
  const known = { project: process.env.WAGGLE_MCP_PROJECT ?? "" };
  for (const step of JSON.parse(await readFile(file, "utf8"))) {
    const answer = await call(step.tool, filled(step.arguments, known));
    sayAnswer(step.tool, answer);
    for (const [name, path] of Object.entries(step.keep ?? {})) {
      known[name] = path.split(".").reduce((value, part) => value?.[part], answer.structuredContent);
    }
  }
}

function filled(value, known) {
  if (typeof value === "string") return value.replace(/\$\{(\w+)\}/g, (_, name) => known[name] ?? "");
  if (Array.isArray(value)) return value.map((one) => filled(one, known));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, known)]));
  }
  return value;
}

export function say(line) {
  console.log(JSON.stringify(line));
}

function sayAnswer(tool, answer) {
  const text = (answer.content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
  say({ tool, isError: answer.isError === true, structured: answer.structuredContent ?? null, text });
}

// The transports keep sockets alive; an agent that is done goes away, so this does too.
export async function run(main) {
  if (!url) {
    console.error("WAGGLE_MCP_URL is not set");
    process.exit(2);
  }
  try {
    await main();
    process.exit(0);
  } catch (problem) {
    console.error(`${problem?.name ?? "error"}: ${problem?.message ?? problem}`);
    process.exit(1);
  }
}
