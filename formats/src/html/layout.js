"use strict";
// Where memories stand. Deterministic: the same graph gives the same picture.
function layoutOf(nodes, links, byWorth, physics) {
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
  const layout = { heat: physics ? 1 : 0, held: null, step };
  function step() {
    const heat = layout.heat;
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
      n.vx += (n.group.x - n.x) * 0.012 * heat;
      n.vy += (n.group.y - n.y) * 0.012 * heat;
    }
    for (const link of links) {
      const { source: a, target: b } = link;
      const ox = b.x - a.x, oy = b.y - a.y, far = Math.sqrt(ox * ox + oy * oy) || 0.1;
      const pull = ((far - 70) / far) * 0.09 * heat * (link.confidence === "weak" ? 0.3 : 1);
      const ratio = a.degree / (a.degree + b.degree);
      b.vx -= ox * pull * ratio;
      b.vy -= oy * pull * ratio;
      a.vx += ox * pull * (1 - ratio);
      a.vy += oy * pull * (1 - ratio);
    }
    for (const n of nodes) {
      n.vx *= 0.6;
      n.vy *= 0.6;
      if (n !== layout.held) {
        n.x += Math.max(-40, Math.min(40, n.vx));
        n.y += Math.max(-40, Math.min(40, n.vy));
      }
    }
    layout.heat = heat > 0.02 ? heat * 0.985 : 0;
  }
  return layout;
}
