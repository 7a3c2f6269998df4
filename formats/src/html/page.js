"use strict";
// The page of an exported graph. Every text of the graph enters the page as text (textContent, fillText), never as
// markup. Nothing is loaded and nothing is sent.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const meta = data.meta;
  const byId = (id) => document.getElementById(id);
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

  const layout = layoutOf(nodes, links, byWorth, meta.physics);

  // The view.
  const canvas = byId("view"), c = canvas.getContext("2d");
  let over = null, chosen = null, scale = 1, left = 0, top = 0, width = 0, height = 0, due = false, touched = false;
  const dark = () => document.documentElement.classList.contains("dark");
  // Far away, dots stay large enough to be seen.
  let dot = 0;
  const radius = (n) => Math.max(dot, 5 + Math.min(11, Math.sqrt(n.degree) * 2.1));
  const draw = () => {
    due = false;
    const style = getComputedStyle(document.documentElement), paint = {};
    for (const name of ["ground", "text", "accent", "alarm"]) paint[name] = style.getPropertyValue(`--${name}`).trim();
    dot = 2.4 / scale;
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
    const grey = dark() ? "#5d6b7d" : "#9aa5b3", alarm = paint.alarm;
    for (const link of links) {
      if (!link.shown) continue;
      const { source: a, target: b } = link;
      if (!inside(a.x, a.y) && !inside(b.x, b.y) && !inside((a.x + b.x) / 2, (a.y + b.y) / 2)) continue;
      const lit = focus && (a === focus || b === focus), open = link.state === "open", weak = link.confidence === "weak";
      c.globalAlpha = focus && !lit ? 0.12 : weak ? 0.5 : 0.85;
      c.strokeStyle = open ? alarm : lit ? paint.accent : grey;
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
      c.strokeStyle = paint.ground;
      c.stroke();
      if (n.open || n === chosen) {
        c.beginPath();
        c.arc(n.x, n.y, r + 4, 0, 7);
        c.lineWidth = 2.2;
        c.strokeStyle = n === chosen ? paint.accent : alarm;
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
    let looked = 0;
    for (const n of order) {
      looked += 1;
      if (room <= 0 || (scale < 0.3 && looked > 40)) break;
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
      c.strokeStyle = paint.ground;
      c.strokeText(text, x, y);
      c.fillStyle = paint.text;
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
    if (layout.heat <= 0) return;
    const until = performance.now() + 12;
    do layout.step(); while (layout.heat > 0 && performance.now() < until);
    if (!touched) fit(); else redraw();
    if (layout.heat > 0) requestAnimationFrame(run);
  };
  const warm = (to) => {
    if (!meta.physics) return;
    const asleep = layout.heat <= 0;
    layout.heat = Math.max(layout.heat, to);
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
    layout.held = pointers.size === 1 ? find(...p) : null;
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
    } else if (layout.held && pressed.moved) {
      layout.held.x = (p[0] - left) / scale;
      layout.held.y = (p[1] - top) / scale;
      touched = true;
      warm(0.12);
      redraw();
    } else if (!layout.held) {
      left += p[0] - before[0];
      top += p[1] - before[1];
      touched = true;
      redraw();
    }
  });
  const release = (event) => {
    if (pointers.delete(event.pointerId) && event.type === "pointerup" && pressed && !pressed.moved && !pointers.size) choose(layout.held);
    if (!pointers.size) {
      layout.held = pressed = null;
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
  const choose = (n, move) => {
    chosen = n;
    const panel = byId("detail");
    panel.hidden = !n;
    panel.replaceChildren(...(n ? detailsOf(n, around[n.index], choose) : []));
    panel.scrollTop = 0;
    for (const button of document.querySelectorAll(".list button")) button.setAttribute("aria-current", String(n && button.dataset.index === String(n.index)));
    if (n && move) {
      // The panel has just taken its place: the map is as wide as it is now.
      const box = byId("map").getBoundingClientRect();
      left = box.width / 2 - n.x * scale;
      top = box.height / 2 - n.y * scale;
      touched = true;
    }
    redraw();
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
  if (nodes.length) facts.push(`last change ${day(meta.changed_at)}`);
  if (meta.redactions) facts.push(`${count(meta.redactions, "secret")} replaced`);
  byId("facts").textContent = facts.join(" · ");
  if (meta.notices.length) {
    byId("notice").textContent = meta.notices.join(" ");
    byId("notice").hidden = false;
  }
  theme();
  filter();
  // A first part of the layout before the first picture, so that it does not jump; the rest is seen.
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const until = performance.now() + (still ? 1500 : 350);
  while (layout.heat > 0 && performance.now() < until) layout.step();
  if (still) layout.heat = 0;
  requestAnimationFrame(run);
})();
