"use strict";
// The parts of the page: elements, signs of the kinds, and everything about one memory. Every text of the graph enters
// the page as text (textContent, fillText), never as markup.

const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
};

const day = (text) => (text ? text.replace(/T00:00:00\.000Z$/, "").replace("T", " ").replace(/:\d\d\.\d{3}Z$/, " UTC") : "");

// Colours and shapes of the kinds, readable on both grounds and apart without colour.
const KINDS = {
  fact: ["#3478c6", "circle"], entity: ["#0f8f80", "square"], concept: ["#8258c9", "hexagon"], preference: ["#cf7414", "circle"],
  decision: ["#2f8f46", "diamond"], question: ["#b08900", "triangle"], note: ["#77838f", "square"],
};
const colourOf = (kind) => (KINDS[kind] || KINDS.note)[0];
const trace = (c, kind, x, y, r) => {
  c.beginPath();
  const shape = (KINDS[kind] || KINDS.note)[1];
  const corners = { square: 4, diamond: 4, triangle: 3, hexagon: 6 }[shape];
  if (!corners) return c.arc(x, y, r, 0, 7);
  const turn = shape === "square" ? Math.PI / 4 : shape === "hexagon" ? 0 : -Math.PI / 2;
  const size = shape === "square" ? r * 1.2 : r * 1.3;
  for (let i = 0; i < corners; i += 1) {
    const angle = turn + (i * 2 * Math.PI) / corners;
    c.lineTo(x + size * Math.cos(angle), y + size * Math.sin(angle));
  }
  c.closePath();
};
const swatch = (kind) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 28;
  canvas.setAttribute("aria-hidden", "true");
  const c = canvas.getContext("2d");
  trace(c, kind, 14, 14, 9);
  c.fillStyle = colourOf(kind);
  c.fill();
  return canvas;
};

// All that is known of one memory.
const detailsOf = (n, links, choose) => {
  const head = make("header"), close = make("button", "Close");
  close.type = "button";
  close.addEventListener("click", () => choose(null));
  head.append(make("h2", n.label), close);
  const badges = make("div", undefined, "badges");
  badges.append(make("span", n.kind, "badge"), make("span", n.state, "badge"), make("span", n.confidence, "badge"));
  if (n.open) badges.append(make("span", "open conflict", "badge alarm"));
  for (const tag of n.tags) badges.append(make("span", `#${tag}`, "badge"));
  const parts = [head, badges, make("p", n.content)];
  if (n.cut) parts.push(make("p", "The text is longer; the page shows its beginning.", "how"));
  const facts = make("dl");
  const fact = (name, value) => value && facts.append(make("dt", name), make("dd", value));
  fact("Holds from", day(n.valid_from));
  fact("Holds until", n.valid_to ? day(n.valid_to) : "no end known");
  fact("Recorded", day(n.recorded_at));
  fact("Last changed", n.version > 1 ? `${day(n.updated_at)} (version ${n.version})` : "");
  fact("Superseded by", n.superseded_by);
  fact("Project", n.project);
  fact("Agent", n.agent);
  fact("Session", n.session);
  fact("Author", n.author);
  fact("Id", n.id);
  parts.push(make("h3", "Validity and origin"), facts);
  if (n.aliases.length) {
    parts.push(make("h3", "Also said as"), ...n.aliases.map((alias) => make("blockquote", alias)));
  }
  parts.push(make("h3", `Evidence (${n.evidence_count})`));
  for (const [who, when, text] of n.evidence) {
    const quote = make("blockquote", text);
    quote.append(make("footer", `${who}, ${day(when)}`));
    parts.push(quote);
  }
  if (n.evidence.length < n.evidence_count) {
    parts.push(make("p", n.evidence.length ? "Older evidence is not in this page." : "Not in this page.", "how"));
  }
  const list = make("ul", undefined, "links");
  for (const link of links) list.append(linkItem(link, n, choose));
  if (list.childElementCount) parts.push(make("h3", `Links (${list.childElementCount})`), list);
  return parts;
};
const linkItem = (link, n, choose) => {
  const item = make("li", undefined, link.confidence === "weak" ? "weak" : ""), other = link.source === n ? link.target : link.source;
  const word = link.relationship.replace(/_/g, " ");
  const says = link.source === n ? `${word} →` : `← ${word}`;
  const extra = [link.confidence, link.state ? `${link.state} conflict` : "", link.reason].filter(Boolean).join(", ");
  const button = make("button", other.label);
  button.type = "button";
  button.addEventListener("click", () => choose(other, true));
  item.append(make("span", `${says} (${extra})`, link.state === "open" ? "how alarm" : "how"), button);
  return item;
};
