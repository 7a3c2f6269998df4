"use strict";
// The page of an exported graph. Every text of the graph enters the page as text (textContent, fillText), never as
// markup. Nothing is loaded and nothing is sent.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const meta = data.meta;
  const byId = (id) => document.getElementById(id);
  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const count = (n, word, many = `${word}s`) => `${n.toLocaleString("en")} ${n === 1 ? word : many}`;

  // What is shown.
  const nodes = data.nodes.map((n, index) => ({ ...n, index, degree: 0, open: false, x: 0, y: 0, vx: 0, vy: 0, shown: true }));
  const links = data.links.map(([source, target, relationship, weight, confidence, state, reason]) => ({
    source: nodes[source], target: nodes[target], relationship, weight, confidence, state, reason, shown: true,
  }));
  const around = nodes.map(() => []);
  for (const link of links) {
    link.source.degree += 1;
    link.target.degree += 1;
    around[link.source.index].push(link);
    around[link.target.index].push(link);
    if (link.state === "open") link.source.open = link.target.open = true;
  }
  const haystacks = nodes.map((n) => [n.label, n.content, n.tags.join(" "), n.aliases.join(" "), n.project, n.id].join("\n").toLowerCase());
  const byWorth = [...nodes].sort((a, b) => b.degree - a.degree || a.index - b.index);

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

  // First places: each project a disc of its own, the best connected inside. Also the fixed layout.
  const SPACE = 46;
  const groups = new Map();
  for (const n of byWorth) {
    if (!groups.has(n.project)) groups.set(n.project, { members: [], x: 0, y: 0, radius: 0 });
    groups.get(n.project).members.push(n);
  }
  {
    const discs = [...groups.values()].sort((a, b) => b.members.length - a.members.length);
    let ring = 0, angle = 0, ringWidth = 0, inner = 0;
    discs.forEach((disc, index) => {
      disc.radius = SPACE * Math.sqrt(disc.members.length) * 0.62 + SPACE;
      if (index === 0) {
        inner = disc.radius;
      } else {
        if (ring === 0) ring = inner + disc.radius + SPACE;
        const step = 2 * Math.asin(Math.min(1, (disc.radius + SPACE / 2) / ring));
        if (angle + step > 2 * Math.PI + 0.001) {
          inner = ring + ringWidth;
          ring = inner + disc.radius + SPACE;
          angle = 0;
          ringWidth = 0;
        }
        const turn = 2 * Math.asin(Math.min(1, (disc.radius + SPACE / 2) / ring));
        angle += turn / 2;
        disc.x = ring * Math.cos(angle);
        disc.y = ring * Math.sin(angle);
        angle += turn / 2;
        ringWidth = Math.max(ringWidth, disc.radius);
      }
      disc.members.forEach((n, i) => {
        const r = SPACE * 0.62 * Math.sqrt(i), turn = i * 2.399963;
        n.x = disc.x + r * Math.cos(turn);
        n.y = disc.y + r * Math.sin(turn);
        n.group = disc;
      });
    });
  }

  // A small force layout: neighbours in a grid push each other away, links pull, projects stay together. The work of a
  // step grows with memories and links, not with pairs, and it cools down after a fixed number of steps.
  const REACH = 90, CROWD = 24;
  let heat = meta.physics ? 1 : 0;
  const step = () => {
    const cells = new Map();
    for (const n of nodes) {
      const key = Math.floor(n.x / REACH) * 65536 + Math.floor(n.y / REACH);
      const cell = cells.get(key);
      if (cell) cell.push(n); else cells.set(key, [n]);
      n.cell = key;
    }
    for (const n of nodes) {
      for (let dx = -1; dx <= 1; dx += 1) {
        for (let dy = -1; dy <= 1; dy += 1) {
          const cell = cells.get(n.cell + dx * 65536 + dy);
          if (!cell) continue;
          const crowd = Math.min(cell.length, CROWD), start = cell.length > CROWD ? n.index % cell.length : 0;
          for (let i = 0; i < crowd; i += 1) {
            const other = cell[(start + i) % cell.length];
            if (other === n) continue;
            const ox = n.x - other.x || (n.index - other.index) * 0.01, oy = n.y - other.y;
            const far = Math.sqrt(ox * ox + oy * oy) || 0.1;
            if (far >= REACH) continue;
            const push = ((REACH - far) / REACH) * 7 * heat / far;
            n.vx += ox * push;
            n.vy += oy * push;
          }
        }
      }
      n.vx += (n.group.x - n.x) * 0.006 * heat;
      n.vy += (n.group.y - n.y) * 0.006 * heat;
    }
    for (const link of links) {
      const { source: a, target: b } = link;
      const ox = b.x - a.x, oy = b.y - a.y, far = Math.sqrt(ox * ox + oy * oy) || 0.1;
      const pull = ((far - 70) / far) * 0.12 * heat * (link.confidence === "weak" ? 0.3 : 1);
      const ratio = a.degree / (a.degree + b.degree);
      b.vx -= ox * pull * ratio;
      b.vy -= oy * pull * ratio;
      a.vx += ox * pull * (1 - ratio);
      a.vy += oy * pull * (1 - ratio);
    }
    for (const n of nodes) {
      n.vx *= 0.6;
      n.vy *= 0.6;
      if (n !== held) {
        n.x += Math.max(-40, Math.min(40, n.vx));
        n.y += Math.max(-40, Math.min(40, n.vy));
      }
    }
    heat = heat > 0.02 ? heat * 0.985 : 0;
  };

  // The view.
  const canvas = byId("view"), c = canvas.getContext("2d");
  let held = null, over = null, chosen = null, scale = 1, left = 0, top = 0, width = 0, height = 0, due = false, touched = false;
  const dark = () => document.documentElement.classList.contains("dark");
  const radius = (n) => 5 + Math.min(11, Math.sqrt(n.degree) * 2.1);
  const draw = () => {
    due = false;
    const style = getComputedStyle(document.documentElement);
    const paint = (name) => style.getPropertyValue(name).trim();
    const ratio = devicePixelRatio || 1;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * left, ratio * top);
    const focus = over || chosen;
    const near = new Set();
    if (focus) {
      near.add(focus);
      for (const link of around[focus.index]) near.add(link.source).add(link.target);
    }
    const inside = (x, y) => x * scale + left > -60 && x * scale + left < width + 60 && y * scale + top > -60 && y * scale + top < height + 60;
    const grey = dark() ? "#5d6b7d" : "#9aa5b3", alarm = paint("--alarm");
    for (const link of links) {
      if (!link.shown) continue;
      const { source: a, target: b } = link;
      if (!inside(a.x, a.y) && !inside(b.x, b.y) && !inside((a.x + b.x) / 2, (a.y + b.y) / 2)) continue;
      const lit = focus && (a === focus || b === focus), open = link.state === "open", weak = link.confidence === "weak";
      c.globalAlpha = focus && !lit ? 0.12 : weak ? 0.5 : 0.85;
      c.strokeStyle = open ? alarm : lit ? paint("--accent") : grey;
      c.lineWidth = (open ? 2.4 : 0.7 + link.weight * 0.8) / Math.max(scale, 0.35) * Math.min(1, scale + 0.3);
      c.setLineDash(weak ? [5, 5] : []);
      c.beginPath();
      c.moveTo(a.x, a.y);
      c.lineTo(b.x, b.y);
      c.stroke();
      c.setLineDash([]);
      if (scale > 0.6 && link.relationship !== "contradicts" && link.relationship !== "similar_to") arrow(a, b, c.strokeStyle);
      if (open) mark((a.x + b.x) / 2, (a.y + b.y) / 2, alarm);
    }
    for (let i = byWorth.length - 1; i >= 0; i -= 1) {
      const n = byWorth[i];
      if (!n.shown || !inside(n.x, n.y)) continue;
      const r = radius(n);
      c.globalAlpha = focus && !near.has(n) ? 0.2 : n.state === "closed" ? 0.45 : 1;
      trace(c, n.kind, n.x, n.y, r);
      c.fillStyle = colourOf(n.kind);
      c.fill();
      c.lineWidth = 1.5 / scale;
      c.strokeStyle = paint("--ground");
      c.stroke();
      if (n.open || n === chosen) {
        c.beginPath();
        c.arc(n.x, n.y, r + 4, 0, 7);
        c.lineWidth = 2.2;
        c.strokeStyle = n === chosen ? paint("--accent") : alarm;
        c.stroke();
      }
    }
    labels(near, focus, paint);
    c.globalAlpha = 1;
  };
  const arrow = (a, b, colour) => {
    const angle = Math.atan2(b.y - a.y, b.x - a.x), r = radius(b) + 2;
    const x = b.x - r * Math.cos(angle), y = b.y - r * Math.sin(angle);
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(x - 7 * Math.cos(angle - 0.4), y - 7 * Math.sin(angle - 0.4));
    c.lineTo(x - 7 * Math.cos(angle + 0.4), y - 7 * Math.sin(angle + 0.4));
    c.fillStyle = colour;
    c.fill();
  };
  const mark = (x, y, colour) => {
    c.beginPath();
    c.arc(x, y, 7, 0, 7);
    c.fillStyle = colour;
    c.fill();
    c.fillStyle = dark() ? "#12161d" : "#ffffff";
    c.font = "bold 11px system-ui, sans-serif";
    c.textAlign = "center";
    c.fillText("!", x, y + 4);
  };
  // The best connected get their labels first; one that would lie on another is left out.
  const labels = (near, focus, paint) => {
    c.setTransform(devicePixelRatio || 1, 0, 0, devicePixelRatio || 1, 0, 0);
    c.font = "12px system-ui, -apple-system, 'Segoe UI', sans-serif";
    c.textAlign = "center";
    c.lineJoin = "round";
    const taken = new Set();
    let room = 140;
    const order = focus ? [focus, ...[...near].filter((n) => n !== focus), ...byWorth] : byWorth;
    for (const n of order) {
      if (room <= 0) break;
      const x = n.x * scale + left, y = n.y * scale + top + radius(n) * scale + 14;
      if (!n.shown || x < -50 || x > width + 50 || y < 0 || y > height + 20) continue;
      const text = n.label.length > 34 ? `${[...n.label].slice(0, 32).join("")}…` : n.label;
      const half = c.measureText(text).width / 2, row = Math.floor(y / 15);
      const cells = [];
      for (let col = Math.floor((x - half) / 20); col <= Math.floor((x + half) / 20); col += 1) cells.push(`${col},${row}`, `${col},${row + 1}`);
      if (cells.some((cell) => taken.has(cell))) continue;
      cells.forEach((cell) => taken.add(cell));
      room -= 1;
      c.globalAlpha = focus && !near.has(n) ? 0.25 : n.state === "closed" ? 0.6 : 1;
      c.lineWidth = 4;
      c.strokeStyle = paint("--ground");
      c.strokeText(text, x, y);
      c.fillStyle = paint("--text");
      c.fillText(text, x, y);
    }
  };
  const redraw = () => {
    if (!due) {
      due = true;
      requestAnimationFrame(draw);
    }
  };
  const fit = () => {
    const seen = nodes.filter((n) => n.shown);
    if (!seen.length || !width || !height) return redraw();
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const n of seen) {
      x0 = Math.min(x0, n.x); x1 = Math.max(x1, n.x); y0 = Math.min(y0, n.y); y1 = Math.max(y1, n.y);
    }
    scale = Math.max(0.03, Math.min(1.6, width / (x1 - x0 + 160), height / (y1 - y0 + 140)));
    left = width / 2 - ((x0 + x1) / 2) * scale;
    top = height / 2 - ((y0 + y1) / 2) * scale;
    redraw();
  };
  const zoom = (factor, x = width / 2, y = height / 2) => {
    const next = Math.max(0.03, Math.min(6, scale * factor));
    left = x - ((x - left) * next) / scale;
    top = y - ((y - top) * next) / scale;
    scale = next;
    touched = true;
    redraw();
  };
  const run = () => {
    if (heat <= 0) return;
    const until = performance.now() + 12;
    do step(); while (heat > 0 && performance.now() < until);
    if (!touched) fit(); else redraw();
    if (heat > 0) requestAnimationFrame(run);
  };
  const warm = (to) => {
    if (!meta.physics) return;
    const asleep = heat <= 0;
    heat = Math.max(heat, to);
    if (asleep) requestAnimationFrame(run);
  };
  new ResizeObserver(() => {
    const box = byId("map").getBoundingClientRect(), ratio = devicePixelRatio || 1;
    width = box.width;
    height = box.height;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    if (touched) draw(); else { fit(); draw(); }
  }).observe(byId("map"));

  // Pointer and keys.
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const find = (px, py) => {
    const x = (px - left) / scale, y = (py - top) / scale;
    for (const n of byWorth) {
      const r = radius(n) + 4 / scale;
      if (n.shown && (n.x - x) ** 2 + (n.y - y) ** 2 < r * r) return n;
    }
    return null;
  };
  const pointers = new Map();
  let pressed = null, spread = 0;
  canvas.addEventListener("pointerdown", (event) => {
    const p = at(event);
    pointers.set(event.pointerId, p);
    canvas.setPointerCapture(event.pointerId);
    pressed = { p, moved: false };
    held = pointers.size === 1 ? find(...p) : null;
    spread = 0;
    canvas.classList.add("moving");
  });
  canvas.addEventListener("pointermove", (event) => {
    const p = at(event), before = pointers.get(event.pointerId);
    if (!before) {
      const found = find(...p);
      if (found !== over) {
        over = found;
        canvas.classList.toggle("over", Boolean(over));
        redraw();
      }
      return;
    }
    pointers.set(event.pointerId, p);
    if (pressed && Math.hypot(p[0] - pressed.p[0], p[1] - pressed.p[1]) > 4) pressed.moved = true;
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()], far = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (spread) zoom(far / spread, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      spread = far;
    } else if (held && pressed.moved) {
      held.x = (p[0] - left) / scale;
      held.y = (p[1] - top) / scale;
      touched = true;
      warm(0.12);
      redraw();
    } else if (!held) {
      left += p[0] - before[0];
      top += p[1] - before[1];
      touched = true;
      redraw();
    }
  });
  const release = (event) => {
    if (pointers.delete(event.pointerId) && event.type === "pointerup" && pressed && !pressed.moved && !pointers.size) choose(held);
    if (!pointers.size) {
      held = pressed = null;
      canvas.classList.remove("moving");
    }
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { over = null; redraw(); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-Math.max(-100, Math.min(100, event.deltaY)) * 0.0022), ...at(event));
  }, { passive: false });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") return typing ? event.target.blur() : choose(null);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      "/": () => byId("search").focus(), f: fit, "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8),
    };
    const arrows = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (keys[event.key]) keys[event.key]();
    else if (event.target === canvas && arrows[event.key]) {
      left += arrows[event.key][0];
      top += arrows[event.key][1];
      touched = true;
      redraw();
    } else return;
    event.preventDefault();
  });
  byId("in").addEventListener("click", () => zoom(1.25));
  byId("out").addEventListener("click", () => zoom(0.8));
  byId("fit").addEventListener("click", fit);

  // Details of one memory.
  const day = (text) => (text ? text.replace(/T00:00:00\.000Z$/, "").replace("T", " ").replace(/:\d\d\.\d{3}Z$/, " UTC") : "");
  const choose = (n, move) => {
    chosen = n;
    const panel = byId("detail");
    panel.hidden = !n;
    panel.replaceChildren(...(n ? details(n) : []));
    panel.scrollTop = 0;
    for (const button of document.querySelectorAll(".list button")) button.setAttribute("aria-current", String(n && button.dataset.index === String(n.index)));
    if (n && move) {
      left = width / 2 - n.x * scale;
      top = height / 2 - n.y * scale;
      touched = true;
    }
    redraw();
  };
  const details = (n) => {
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
    for (const link of around[n.index]) list.append(linkItem(link, n));
    if (list.childElementCount) parts.push(make("h3", `Links (${list.childElementCount})`), list);
    return parts;
  };
  const linkItem = (link, n) => {
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

  // Filters and the list.
  const hidden = new Set();
  const kindsBox = byId("kinds");
  for (const kind of Object.keys(KINDS)) {
    const members = nodes.filter((n) => n.kind === kind).length;
    if (!members) continue;
    const button = make("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch(kind), make("span", `${kind} ${members}`));
    button.addEventListener("click", () => {
      if (!hidden.delete(kind)) hidden.add(kind);
      button.setAttribute("aria-pressed", String(!hidden.has(kind)));
      filter();
    });
    kindsBox.append(button);
  }
  const options = (select, counts, name) => {
    const all = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 500);
    for (const [value, members] of all) {
      const option = make("option", `${name(value)} (${members})`);
      option.value = `=${value}`;
      select.append(option);
    }
  };
  const tally = (values) => {
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
    return counts;
  };
  options(byId("project"), tally(nodes.map((n) => n.project)), (p) => p || "no project");
  options(byId("tag"), tally(nodes.flatMap((n) => n.tags)), (t) => t);
  options(byId("state"), tally(nodes.map((n) => n.state)), (s) => s);
  const LIST_MAX = 200;
  const filter = () => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const project = byId("project").value, tag = byId("tag").value, state = byId("state").value;
    const weak = byId("weak").checked, conflicts = byId("conflicts").checked;
    let total = 0;
    for (const n of nodes) {
      n.shown = !hidden.has(n.kind) && (!project || project === `=${n.project}`) && (!tag || n.tags.includes(tag.slice(1)))
        && (!state || state === `=${n.state}`) && (!conflicts || n.open) && words.every((word) => haystacks[n.index].includes(word));
      total += n.shown;
    }
    for (const link of links) {
      link.shown = link.source.shown && link.target.shown && (weak || link.confidence !== "weak") && (!conflicts || link.state === "open");
    }
    if (chosen && !chosen.shown) choose(null);
    if (over && !over.shown) over = null;
    const items = [];
    for (const n of byWorth) {
      if (items.length >= LIST_MAX) break;
      if (!n.shown) continue;
      const item = make("li"), button = make("button");
      button.type = "button";
      button.dataset.index = String(n.index);
      button.title = n.label;
      button.append(swatch(n.kind), make("span", n.label));
      if (n.open) button.append(make("span", "!", "mark"));
      button.addEventListener("click", () => choose(n, true));
      item.append(button);
      items.push(item);
    }
    byId("list").replaceChildren(...items);
    const listed = total > items.length ? `, the best connected ${items.length} listed` : "";
    const shown = `${count(total, "memory", "memories")} shown`;
    byId("count").textContent = nodes.length ? shown + listed : "Nothing is remembered here yet.";
    redraw();
  };
  let wait = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(() => { filter(); fit(); }, 120);
  });
  for (const id of ["project", "tag", "state", "conflicts"]) byId(id).addEventListener("change", () => { filter(); fit(); });
  byId("weak").addEventListener("change", filter);
  const openCount = links.filter((link) => link.state === "open").length;
  byId("conflict-count").textContent = `only open conflicts (${openCount})`;
  byId("conflicts").disabled = !openCount;

  // Light and dark.
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  let asked = null;
  const theme = () => {
    const on = asked === null ? prefers.matches : asked;
    document.documentElement.classList.toggle("dark", on);
    byId("theme").textContent = on ? "Light" : "Dark";
    redraw();
  };
  byId("theme").addEventListener("click", () => { asked = !dark(); theme(); });
  prefers.addEventListener("change", theme);

  // Start.
  const name = meta.project || meta.tenant;
  byId("title").textContent = `Memory of ${name}`;
  document.title = `Memory of ${name}`;
  const facts = [count(nodes.length, "memory", "memories"), count(links.length, "link"), count(openCount, "open conflict")];
  facts.push(`as of ${day(meta.generated_at)}`);
  if (meta.redactions) facts.push(`${count(meta.redactions, "secret")} replaced`);
  byId("facts").textContent = facts.join(" · ");
  if (meta.notices.length) {
    byId("notice").textContent = meta.notices.join(" ");
    byId("notice").hidden = false;
  }
  theme();
  filter();
  // A first part of the layout before the first picture, so that it does not jump; the rest is seen.
  const until = performance.now() + (matchMedia("(prefers-reduced-motion: reduce)").matches ? 1500 : 350);
  while (heat > 0 && performance.now() < until) step();
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) heat = 0;
  requestAnimationFrame(run);
})();
