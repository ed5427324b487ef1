"use strict";
// Draws documents of the lake. Text reaches the page by textContent and setAttribute alone, never as markup.
(function () {
  const given = JSON.parse(document.getElementById("data").textContent);
  const isStatic = given !== null;
  const main = document.getElementById("main");
  const SVG = "http://www.w3.org/2000/svg";
  let lake = null, drawn = "", timer = null;

  // --- elements ---
  function el(tag, options, ...children) {
    const node = document.createElement(tag);
    fill(node, options, children);
    return node;
  }
  function svg(tag, options, ...children) {
    const node = document.createElementNS(SVG, tag);
    fill(node, options, children);
    return node;
  }
  function fill(node, options, children) {
    for (const [name, value] of Object.entries(options || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  const link = (kind, name) => "#/" + kind + "/" + encodeURIComponent(name);

  // --- numbers for people ---
  const count = (n) => (n === null || n === undefined ? "–" : Number(n).toLocaleString("en"));
  function seconds(s) {
    if (s === null || s === undefined) return "–";
    if (s < 1) return Math.max(1, Math.round(s * 1000)) + " ms";
    if (s < 120) return (s < 10 ? s.toFixed(2) : s.toFixed(1)) + " s";
    for (const [length, unit] of [[86400, "days"], [3600, "h"], [60, "min"]]) if (s >= 2 * length || unit === "min") return Math.round(s / length) + " " + unit;
  }
  const ago = (ms) => { const s = ((isStatic ? given.lake.at : Date.now()) - ms) / 1000; return s < 1 ? "now" : (s < 120 ? Math.round(s) + " s" : seconds(s)) + " ago"; };
  const moment = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ") + " UTC";
  function bytes(n) {
    if (n === null || n === undefined) return "–";
    let unit = "B";
    for (const larger of ["kB", "MB", "GB", "TB"]) { if (n < 1000) break; n /= 1000; unit = larger; }
    return (unit === "B" ? n : n.toFixed(1)) + " " + unit;
  }
  const times = (r) => (r ? (r < 100 ? r.toFixed(1) : count(Math.round(r))) + "×" : "–");
  const cell = (v) => (v === null || v === undefined ? "NULL" : typeof v === "object" ? JSON.stringify(v) : String(v));

  // --- where documents come from ---
  async function ask(path, body) {
    const options = { credentials: "same-origin", headers: { "X-Viewkeep": "1" } };
    if (body) { options.method = "POST"; options.body = JSON.stringify(body); options.headers["Content-Type"] = "application/json"; }
    const answer = await fetch(path, options);
    const document = await answer.json();
    if (!answer.ok) throw new Error(document.error || answer.statusText);
    return document;
  }
  const read = {
    lake: async () => (isStatic ? given.lake : ask("api/lake")),
    entry: async (kind, name) => (isStatic ? given[kind][name] : ask("api/" + kind + "/" + encodeURIComponent(name))),
  };

  // --- pieces ---
  function table(columns, rows, kinds) {
    const head = columns.map((c, i) => el("th", { class: (kinds || [])[i] || null }, c));
    const body = rows.map((row) => {
      const cells = Array.isArray(row) ? row : row.cells;
      return el("tr", { class: row.kind || null, "data-name": row.name }, cells.map((v, i) => (v instanceof Element && v.tagName === "TD" ? v : el("td", { class: (kinds || [])[i] || null }, v))));
    });
    return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
  }
  const card = (title, ...content) => el("section", { class: "card" }, title ? el("h2", {}, title) : null, content);
  const facts = (pairs) => el("dl", {}, pairs.filter((p) => p && p[1] !== null && p[1] !== "").map(([n, v]) => [el("dt", {}, n), el("dd", {}, v)]));
  const soft = (name) => name.split(/(?<=_)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));  // long names break after underscores
  const names = (list, kind) => list.length ? list.map((n, i) => [i ? ", " : "", el("a", { href: link(kind || (lake.tables.some((t) => t.name === n) ? "table" : "view"), n) }, n)]) : "–";
  function state(status) {
    if (status.problem) return ["bad", "broken"];
    if (status.fresh) return ["good", "fresh"];
    const known = Object.values(status.behind).reduce((a, b) => a + (b || 0), 0);
    const more = Object.values(status.behind).includes(null) ? "+" : "";
    return ["fair", known ? count(known) + more + " behind" : "behind"];
  }
  function longText(title, text) {
    const lines = text.split("\n").length;
    return card(null, el("details", { open: lines <= 40 ? "" : null }, el("summary", {}, title, el("span", { class: "muted" }, " " + count(lines) + " lines")), el("pre", {}, text)));
  }
  const WORDS = "select|from|where|group|by|having|order|limit|as|on|and|or|not|in|is|null|join|left|right|full|inner|outer|cross|semi|anti|union|all|intersect|except|distinct|case|when|then|else|end|with|over|partition|exists|between|like|cast|filter|qualify|values|asc|desc|using|rows|range|rollup|cube|interval|date|lateral|pivot|unpivot";
  const PARTS = new RegExp("(--[^\\n]*|/\\*[^]*?\\*/)|('(?:\\\\.|[^'\\\\])*')|(`[^`]*`)|\\b(" + WORDS + ")\\b", "gi");
  function coloured(sql) {
    const out = []; let at = 0;
    for (const m of sql.matchAll(PARTS)) {
      out.push(sql.slice(at, m.index), m[3] ? m[0] : el("span", { class: m[1] ? "comment" : m[2] ? "string" : "word" }, m[0]));
      at = m.index + m[0].length;
    }
    return [...out, sql.slice(at)];
  }
  const badge = (kind, text) => el("span", { class: "badge " + kind }, text);

  // --- the lake ---
  function overview() {
    const views = lake.views, fresh = views.filter((v) => v.status.fresh).length;
    const broken = views.filter((v) => v.status.problem).length;
    const oldest = Math.max(0, ...views.filter((v) => !v.status.fresh).map((v) => v.status.waiting_seconds || 0));
    const tile = (text, value, kind) => el("div", { class: "tile" }, el("b", { class: kind }, value), text);
    const order = views.slice().sort((a, b) => rank(a) - rank(b));
    const picture = card("Lineage", lineage());
    const list = card("Views", views.length > MANY ? finder() : null, views.length ? table(["view", "freshness", "rows", "waiting", "refreshed", "by", "took", "speed-up"], order.map((v) => {
      const s = v.status, [kind, text] = state(s), last = s.last;
      return { name: v.name, cells: [el("td", { class: "name" }, el("a", { href: link("view", v.name) }, soft(v.name))), badge(kind, text), count(s.rows),
        s.fresh ? "–" : seconds(s.waiting_seconds), last ? ago(last.at) : "–", last ? how(last) : "–", last ? seconds(last.seconds) : "–", times(s.speed_up)] };
    }), ["name", null, "number", "number", null, null, "number", "number"]) : el("p", { class: "muted" }, "no views yet; `viewkeep view create` makes one"));
    return [
      el("h1", {}, lake.name),
      el("div", { class: "tiles" }, tile("views", count(views.length)), tile("fresh", count(fresh), "good"),
        tile("behind", count(views.length - fresh - broken), views.length - fresh - broken ? "fair" : null),
        tile("broken", count(broken), broken ? "bad" : null), tile("longest wait", oldest ? seconds(oldest) : "–"), tile("tables", count(lake.tables.length))),
      matchMedia("(max-width: 640px)").matches ? [list, picture] : [picture, list],
      card("Tables", lake.tables.length ? table(["table", "rows", "size", "version", "written by", "key", "read by"], lake.tables.map((t) => [
        el("td", { class: "name" }, el("a", { href: link("table", t.name) }, soft(t.name))), count(t.rows), bytes(t.size), count(t.version),
        t.problem ? badge("bad", "broken") : t.owned ? "Viewkeep" : "others", t.key.join(", ") || "–", el("span", {}, names(t.readers, "view"))]),
      ["name", "number", "number", "number"]) : el("p", { class: "muted" }, "no tables yet")),
    ];
  }
  // A search among many views; what is looked for stays when the page is drawn again.
  const MANY = 12;
  let wanted = "";
  function finder() {
    return el("input", { id: "find", type: "search", value: wanted, placeholder: "Find views: a part of the name, fresh, behind, broken", "aria-label": "Find views", oninput: (event) => { wanted = event.target.value; find(); } });
  }
  function find() {
    if (!document.getElementById("find")) return;
    const text = wanted.trim().toLowerCase();
    const found = new Set(lake.views.filter((v) => !text || v.name.toLowerCase().includes(text) || state(v.status)[1].endsWith(text)).map((v) => v.name));
    main.querySelectorAll("tr[data-name]").forEach((row) => (row.hidden = !found.has(row.dataset.name)));
    main.querySelectorAll("a[data-name]").forEach((box) => box.classList.toggle("out", !!text && !found.has(box.dataset.name)));
  }
  const rank = (v) => (v.status.problem ? 0 : v.status.fresh ? 2 : 1);
  const how = (r) => (r.error ? "failed" : r.strategy === "none" ? "nothing to do" : r.strategy + (r.from_scratch && r.strategy !== "recompute" ? " (first)" : ""));

  // Tables and views in columns, each to the right of what it reads; an edge has a lane of its own past the columns between.
  function lineage(about) {
    const nodes = new Map();
    for (const t of lake.tables) nodes.set(t.name, { name: t.name, kind: "table", reads: [], state: t.problem ? "bad" : "", note: t.rows === null ? "" : count(t.rows) + " rows" });
    for (const v of lake.views) nodes.set(v.name, { name: v.name, kind: "view", reads: v.reads, state: state(v.status)[0], note: state(v.status)[1] });
    for (const n of nodes.values()) { n.reads = n.reads.filter((r) => nodes.has(r)); n.readers = []; }
    for (const n of nodes.values()) for (const r of n.reads) nodes.get(r).readers.push(n.name);
    const reach = (name, way, found = new Set()) => { for (const other of nodes.get(name)[way]) if (!found.has(other)) { found.add(other); reach(other, way, found); } return found; };
    const related = (name) => new Set([name, ...reach(name, "reads"), ...reach(name, "readers")]);
    if (about) { const near = related(about); for (const name of [...nodes.keys()]) if (!near.has(name)) nodes.delete(name); }
    for (const n of nodes.values()) { n.reads = n.reads.filter((r) => nodes.has(r)); n.readers = n.readers.filter((r) => nodes.has(r)); }
    if (!nodes.size) return el("p", { class: "muted" }, "nothing here yet");

    const [layers, edges] = layered(nodes);
    const room = Math.min(1200, document.documentElement.clientWidth) - 90, gaps = Math.max(1, layers.length - 1), H = 44;
    const W = Math.max(150, Math.min(190, (room - gaps * 44) / layers.length)), GX = Math.max(44, Math.min(90, (room - layers.length * W) / gaps));
    layers.forEach((layer, x) => layer.forEach((n) => (n.x = x * (W + GX) + 2)));
    const height = stacked(layers, (n) => (n.name ? H : 4), 12);
    const width = layers.length * (W + GX) - GX + 4;
    const bend = (x, y, X, Y) => `C${x + (X - x) / 2},${y} ${x + (X - x) / 2},${Y} ${X},${Y}`;
    const shapes = edges.map((lane) => {
      const from = lane[0]; let x = from.x + W, d = `M${x},${from.c}`, y = from.c;
      for (const n of lane.slice(1)) { d += bend(x, y, n.x, n.c); x = n.x + W; y = n.c; if (!n.name) d += `L${x},${y}`; }
      return { from: from.name, to: lane[lane.length - 1].name, shape: svg("path", { class: "edge", d }) };
    });
    const boxes = new Map();
    const light = (name) => {
      const near = name && related(name);
      for (const [other, box] of boxes) box.classList.toggle("dim", !!near && !near.has(other));
      for (const e of shapes) { const on = !!near && near.has(e.from) && near.has(e.to); e.shape.classList.toggle("on", on); e.shape.classList.toggle("dim", !!near && !on); }
    };
    const fits = Math.floor((W - 28) / 6.7), short = (text) => (text.length > fits ? text.slice(0, fits - 1) + "…" : text);
    for (const n of nodes.values()) boxes.set(n.name, svg("a", { href: link(n.kind, n.name), class: "node " + n.state + (n.name === about ? " here" : ""), "data-name": n.name, onmouseenter: () => light(n.name), onmouseleave: () => light(null) },
      svg("title", {}, n.name + (n.note ? ": " + n.note : "")),
      svg("rect", { x: n.x, y: n.c - H / 2, width: W, height: H, rx: n.kind === "table" ? 3 : 10 }), svg("rect", { class: "state", x: n.x + 8, y: n.c - H / 2 + 10, width: 4, height: H - 20, rx: 2 }),
      svg("text", { x: n.x + 20, y: n.c - 3 }, short(n.name)), svg("text", { class: "small", x: n.x + 20, y: n.c + 13 }, n.kind === "table" ? "table · " + n.note : n.note)));
    return el("div", { class: "scroll" }, svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "What reads what" }, shapes.map((e) => e.shape), [...boxes.values()]));
  }
  function layered(nodes) {
    const depth = (n) => (n.depth ??= n.reads.length ? 1 + Math.max(...n.reads.map((r) => depth(nodes.get(r)))) : n.kind === "table" ? 0 : 1);
    const layers = [], edges = [];
    const put = (n, at) => { (layers[at] ||= []).push(n); n.left = []; n.right = []; return n; };
    const least = Math.min(...[...nodes.values()].map(depth));
    for (const n of nodes.values()) { n.depth -= least; put(n, n.depth); }
    for (const n of nodes.values()) for (const r of n.reads) {
      const lane = [nodes.get(r)];
      for (let at = lane[0].depth + 1; at < n.depth; at++) lane.push(put({}, at));
      lane.push(n);
      lane.slice(1).forEach((each, i) => { each.left.push(lane[i]); lane[i].right.push(each); });
      edges.push(lane);
    }
    const number = (layer) => layer.forEach((n, i) => (n.row = i));
    layers.forEach(number);
    for (let round = 0; round < 8; round++) {
      const side = round % 2 ? "right" : "left";
      for (const layer of round % 2 ? layers.slice().reverse() : layers) {
        for (const n of layer) n.middle = n[side].length ? n[side].reduce((sum, each) => sum + each.row, 0) / n[side].length : n.row;
        layer.sort((a, b) => a.middle - b.middle || a.row - b.row);
        number(layer);
      }
    }
    return [layers, edges];
  }
  // Centers `c` near those of neighbours, in the order of each layer and apart from each other.
  function stacked(layers, size, gap) {
    for (const layer of layers) { let y = 2; for (const n of layer) { n.c = y + size(n) / 2; y += size(n) + gap; } }
    for (let round = 0; round < 8; round++) for (const layer of round % 2 ? layers.slice().reverse() : layers) {
      const side = round % 2 ? "right" : "left", apart = (a, b) => (size(a) + size(b)) / 2 + gap;
      const aim = layer.map((n) => (n[side].length ? n[side].reduce((sum, each) => sum + each.c, 0) / n[side].length : n.c));
      const low = [], high = [];
      layer.forEach((n, i) => (low[i] = i ? Math.max(aim[i], low[i - 1] + apart(layer[i - 1], n)) : aim[i]));
      for (let i = layer.length - 1; i >= 0; i--) high[i] = i < layer.length - 1 ? Math.min(aim[i], high[i + 1] - apart(layer[i], layer[i + 1])) : aim[i];
      layer.forEach((n, i) => (n.c = (low[i] + high[i]) / 2));
    }
    const all = layers.flat(), top = Math.min(...all.map((n) => n.c - size(n) / 2)) - 2;
    for (const n of all) n.c -= top;
    return Math.max(...all.map((n) => n.c + size(n) / 2)) + 4;
  }

  // --- one view ---
  const TABS = [["about", "About"], ["history", "History"], ["plan", "Plan"], ["analysis", "Analysis"], ["rows", "Rows"], ["changes", "Changes"]];
  function viewPage(v, tab) {
    const s = v.status, [kind, text] = state(s);
    const tabs = el("div", { class: "tabs", role: "tablist" }, TABS.map(([id, title]) => el("a", { href: link("view", v.name) + "/" + id, role: "tab", class: id === tab ? "on" : null, "aria-selected": id === tab ? "true" : "false" }, title)));
    const panels = { about: aboutView, history: historyPanel, plan: planPanel, analysis: analysisPanel, rows: rowsPanel, changes: changesPanel };
    return [
      el("h1", {}, v.name, " ", badge(kind, text)),
      s.problem ? el("p", { class: "notice bad" }, s.problem) : null, s.advice ? el("p", { class: "notice fair" }, s.advice) : null,
      tabs, el("div", { id: "panel", role: "tabpanel" }, (panels[tab] || aboutView)(v)),
    ];
  }
  function aboutView(v) {
    const s = v.status, last = s.last;
    const behind = Object.entries(s.behind).map(([t, n]) => (n === null ? "changes" : count(n)) + " of " + t).join(", ");
    return [
      card(null, facts([["rows", count(s.rows)], ["reads", el("span", {}, names(v.reads))], ["read by", el("span", {}, names(v.readers, "view"))],
        ["kept by", s.strategy + (v.strategy !== s.strategy && v.strategy !== "auto" ? " (asked for: " + v.strategy + ")" : "") + ", policy " + s.policy], ["lag", v.lag || null],
        ["not seen yet", behind || null], ["waiting", s.fresh ? null : seconds(s.waiting_seconds)],
        ["last refresh", last ? ago(last.at) + ", version " + last.version + ", " + how(last) + " in " + seconds(last.seconds) : null],
        ["speed-up", s.speed_up ? times(s.speed_up) + " faster than anew" : null], ["next refresh", v.next || null], ["key", v.key.join(", ") || "–"],
        ["project", v.project || null], ["folder", v.location]])),
      v.reads.length ? card("Lineage", lineage(v.name)) : null,
      card("SQL", el("pre", { class: "wrap" }, coloured(v.sql.trim()))),
      card("Columns", table(["column", "type"], Object.entries(v.columns).map(([n, t]) => [el("td", { class: "name" }, n), t]))),
    ];
  }
  function historyPanel(v) {
    const all = v.history.slice().reverse();
    if (!all.length) return card("History", el("p", { class: "muted" }, "no refreshes yet"));
    const legend = el("div", { class: "legend" }, el("span", {}, el("i", { class: "bar" }), "changes brought in"), el("span", {}, el("i", { class: "other" }), "computed anew"), all.some((r) => r.expected !== null) ? el("span", {}, el("i", { class: "dot" }), "expected") : null);
    return [
      el("div", { class: "charts" }, card("Seconds of each refresh", chart(all, (r) => r.seconds, seconds, (r) => r.expected), legend),
        card("Rows changed in the view", chart(all, (r) => (r.from_scratch ? r.rows : r.rows_changed), count)),
        card("Rows of the view", chart(all, (r) => r.rows, count)), card("Changes of its inputs", chart(all, (r) => Object.values(r.changes).reduce((a, b) => a + b, 0), count))),
      card("Refreshes" + (v.more_history ? " (the last " + all.length + ")" : ""), table(["version", "when", "by", "engine", "changes", "changed", "rows", "took", "expected", "why"], v.history.slice(0, 50).map((r) => [
        count(r.version), el("span", { title: moment(r.at) }, ago(r.at)), r.error ? badge("bad", "failed") : how(r), r.backend || "–",
        Object.entries(r.changes).map(([t, n]) => t + " " + count(n)).join(", ") || "–", r.from_scratch ? "all" : count(r.rows_changed), count(r.rows), seconds(r.seconds), seconds(r.expected), r.error || r.reason]),
      ["number", null, null, null, null, "number", "number", "number", "number", "value"])),
    ];
  }
  function chart(reports, value, text, expected) {
    const W = 460, H = 150, L = 54, B = 18, values = reports.map(value), others = expected ? reports.map(expected) : [];
    const real = [...values, ...others.filter((v) => v !== null && v !== undefined)], most = Math.max(...real, 1e-9), least = Math.min(...real.filter((v) => v > 0), most);
    const isLog = most / least > 50;
    const y = (v) => { const part = isLog ? (v <= 0 ? 0 : (Math.log10(v) - Math.log10(least) + .3) / (Math.log10(most) - Math.log10(least) + .3)) : v / most; return H - B - part * (H - B - 10); };
    const step = (W - L) / reports.length, wide = Math.max(1, Math.min(18, step * .75));
    const bars = reports.map((r, i) => svg("rect", { class: "bar" + (r.error ? " failed" : r.from_scratch ? " other" : ""), x: (L + i * step + (step - wide) / 2).toFixed(1), width: wide.toFixed(1), y: y(values[i]).toFixed(1), height: Math.max(0, H - B - y(values[i])).toFixed(1) },
      svg("title", {}, `version ${r.version}, ${moment(r.at)}: ${text(values[i])}, ${how(r)}`)));
    const dots = others.map((v, i) => (v === null || v === undefined ? null : svg("circle", { class: "expected", cx: (L + i * step + step / 2).toFixed(1), cy: y(v).toFixed(1), r: 3 }, svg("title", {}, "expected " + text(v)))));
    return svg("svg", { viewBox: `0 0 ${W} ${H}`, width: "100%", role: "img" }, svg("line", { class: "axis", x1: L, x2: W, y1: H - B, y2: H - B }),
      svg("text", { class: "small", x: L - 6, y: 16, "text-anchor": "end" }, text(most)), isLog ? svg("text", { class: "small", x: L - 6, y: H - B - 6, "text-anchor": "end" }, text(least)) : svg("text", { class: "small", x: L - 6, y: H - B, "text-anchor": "end" }, "0"),
      bars, dots, svg("text", { class: "small", x: L, y: H - 4 }, "version " + reports[0].version), svg("text", { class: "small", x: W, y: H - 4, "text-anchor": "end" }, String(reports[reports.length - 1].version) + (isLog ? " (log scale)" : "")));
  }
  function planPanel(v) {
    const script = v.script;
    return [
      card("How it is kept", el("pre", { class: "wrap" }, v.explanation)),
      v.caches.length ? card("Caches", table(["cache", "rows", "size", "IDs", "why"], v.caches.map((c) => [el("td", { class: "name" }, c.name), count(c.rows), bytes(c.size), c.ids.join(", ") || "–", c.why]), ["name", "number", "number", null, "value"])) : null,
      v.heavy.length ? card("Heavy values", el("ul", { class: "plain" }, v.heavy.map((h) => el("li", {}, h)))) : null,
      v.picture ? card("Plan with IDs", el("div", { class: "picture" }, el("img", { onload: ({ target: { parentElement: box } }) => (box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2), alt: "The operators of the view, their IDs and diffs", src: "data:image/svg+xml;base64," + v.picture }))) : null,
      script ? longText("Delta script", script) : card("Delta script", el("p", { class: "muted" }, v.script_problem || "none: the view is computed anew")),
    ];
  }
  const TITLES = { alpha_acyclic: "α-acyclic", free_connex: "free-connex", q_hierarchical: "q-hierarchical", reduct_q_hierarchical: "reduct q-hierarchical", foreign_key_join: "foreign-key join", insert_only: "insert-only", adaptive: "heavy and light values" };
  function analysisPanel(v) { return analysis(v.analysis); }
  function analysis(a) {
    if (!a) return card("Analysis", el("p", { class: "muted" }, "only Spark reads this SQL, so that it has no analysis"));
    if (a.status === "error") return card("Analysis", el("p", { class: "notice bad" }, a.reason.message + (a.reason.line ? " (line " + a.reason.line + ", column " + a.reason.column + ")" : "")));
    if (a.status === "not_conjunctive") return [card("Analysis", el("p", {}, "Not a conjunctive query, so that the theory of bounds says nothing: " + a.reason.message), el("pre", {}, a.operators))];
    const b = a.bounds, lower = a.lower_bound;
    return [
      card(a.class, el("p", {}, a.summary), facts([["strategy", a.strategy.name + ": " + a.strategy.reason],
        ["update", b.update.order + (b.amortized ? " on average" : "")], ["delay", b.delay.order], ["preprocessing", b.preprocessing.order], ["space", b.space.order],
        ["lower bound", (lower.reason || "none is known") + (lower.reached && !/^reached/.test(lower.reason) ? " (reached)" : "")], ["query", el("code", {}, a.query)]])),
      card("Why", table(["property", "", "because"], Object.entries(a.verdicts).map(([n, x]) => [el("td", { class: "name" }, (TITLES[n] || n.replaceAll("_", " "))), x.holds ? badge("good", "yes") : badge("plain", "no"), x.because]), [null, null, "value"])),
      a.hints.length ? card("What would help", el("ul", { class: "plain" }, a.hints.map((h) => el("li", {}, h.text)))) : null,
    ];
  }
  function rowsPanel(v) {
    if (v.rows.error) return card("Rows", el("p", { class: "notice bad" }, v.rows.error));
    return card("Rows", rows(v.rows));
  }
  function rows(answer) {
    const columns = Object.keys(answer.columns);
    const kinds = Object.values(answer.columns).map((k) => (/^(u?int|float|double|decimal)/.test(k) ? "number" : "value"));
    return [table(columns, answer.rows.map((r) => columns.map((c, i) => el("td", { class: kinds[i] + (r[c] === null ? " muted" : "") }, cell(r[c])))), kinds),
      el("p", { class: "muted" }, !answer.rows.length ? "no rows" : answer.more ? "the first " + count(answer.rows.length) + " rows" : count(answer.rows.length) + " rows")];
  }
  function changesPanel(v) {
    if (v.changes.error) return card("Last changes", el("p", { class: "notice bad" }, v.changes.error));
    const list = v.changes.changes;
    if (!list.length) return card("Last changes", el("p", { class: "muted" }, "no changes in the last versions"));
    const columns = Object.keys(list[0].after || list[0].before);
    return card("Last changes", table(["version", "change", ...columns], list.map((c) => ({ kind: c.operation, cells: [count(c.version), c.operation, ...columns.map((n) => {
      const before = c.before && cell(c.before[n]), after = c.after && cell(c.after[n]);
      const isOther = c.before && c.after && before !== after;
      return el("td", { class: isOther ? "value changed" : "value" }, isOther ? before + " → " + after : c.after ? after : before);
    })] })), ["number"]), v.changes.more ? el("p", { class: "muted" }, "and more: `viewkeep changes` tells all") : null);
  }
  function tablePage(t, tab) {
    return [el("h1", {}, t.name, " ", badge("plain", "table")), t.problem ? el("p", { class: "notice bad" }, t.problem) : null,
      card(null, facts([["rows", count(t.row_count)], ["size", bytes(t.size)], ["version", count(t.version)], ["written by", t.owned ? "Viewkeep" : "others"], ["key", t.key.join(", ") || "–"],
        ["foreign keys", t.foreign_keys.join("; ") || null], ["static", t.static ? "yes" : null], ["in quarantine", t.quarantined ? count(t.quarantined) + " records" : null], ["read by", el("span", {}, names(t.readers, "view"))], ["folder", t.location]])),
      t.readers.length ? card("Lineage", lineage(t.name)) : null, card("Columns", table(["column", "type"], Object.entries(t.columns).map(([n, k]) => [el("td", { class: "name" }, n), k]))), rowsPanel(t), changesPanel(t)];
  }

  // --- the playground ---
  function playground() {
    if (isStatic) return [el("h1", {}, "Playground"), card(null, el("p", {}, "This file is a report and runs nothing: `viewkeep serve` has a playground."))];
    const text = el("textarea", { id: "sql", spellcheck: "false", "aria-label": "SQL", placeholder: "SELECT … over the tables and views of the lake, or Q(a, c) = R(a, b) * S(b, c)" });
    text.value = sessionStorage.getItem("sql") || "";
    const out = el("div", { id: "answer" });
    const buttons = [];
    const run = (path, draw) => async () => {
      sessionStorage.setItem("sql", text.value);
      buttons.forEach((b) => (b.disabled = true));
      out.replaceChildren(el("p", { class: "muted" }, "…"));
      try { out.replaceChildren(...[draw(await ask(path, { sql: text.value }))].flat(9).filter(Boolean)); }
      catch (error) { out.replaceChildren(el("pre", { class: "notice bad wrap" }, error.message)); }
      buttons.forEach((b) => (b.disabled = false));
    };
    const explained = (d) => [analysis(d.analysis), d.script ? longText("Delta script", d.script) : d.script_problem && d.analysis.status !== "error" ? card("Delta script", el("p", { class: "muted" }, d.script_problem)) : null];
    buttons.push(el("button", { id: "explain", onclick: run("api/explain", explained) }, "Explain"),
      el("button", { id: "run", class: "second", onclick: run("api/query", (d) => card("Rows", rows(d))) }, "Show rows"));
    return [el("h1", {}, "Playground"), card(null, el("p", { class: "muted" }, "What could be kept of a query, how fast, and why not faster. Nothing is changed."), text, el("div", { class: "row" }, buttons)), out];
  }

  // --- routes ---
  async function draw(force) {
    const [kind, name, tab] = location.hash.replace(/^#\/?/, "").split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
    try {
      const now = await read.lake();
      const key = JSON.stringify([location.hash, { ...now, at: 0 }]);
      if (!force && key === drawn && kind !== "") { lake = now; told(); return; }
      lake = now;
      document.getElementById("lake").textContent = lake.place;
      let content;
      if (kind === "view" || kind === "table") {
        const known = (kind === "view" ? lake.views : lake.tables).some((e) => e.name === name);
        if (!known) content = el("p", { class: "notice bad" }, "There is no " + kind + " “" + name + "” in this lake.");
        else content = (kind === "view" ? viewPage : tablePage)(await read.entry(kind, name), tab || "about");
      } else if (kind === "play") { if (drawn && document.getElementById("sql")) { told(); return; } content = playground(); }
      else content = overview();
      drawn = key;
      document.title = (name || (kind === "play" ? "Playground" : lake.name)) + " · Viewkeep";
      const isTyping = document.activeElement && document.activeElement.id === "find";
      main.replaceChildren(...[content].flat(9).filter(Boolean));
      find();
      if (isTyping) { const box = document.getElementById("find"); if (box) { box.focus(); box.setSelectionRange(wanted.length, wanted.length); } }
      if (!performance.getEntriesByName("drawn").length) performance.mark("drawn");
      told();
    } catch (error) { main.replaceChildren(el("p", { class: "notice bad" }, "The lake cannot be read: " + error.message)); drawn = ""; }
  }
  const told = () => { document.getElementById("updated").textContent = (isStatic ? "A report of " : "As of ") + moment(lake.at); };
  window.addEventListener("hashchange", () => { drawn = ""; window.scrollTo(0, 0); draw(true); });
  if (isStatic) document.getElementById("play-link").remove();
  else timer = setInterval(() => { if (document.visibilityState === "visible" && !location.hash.startsWith("#/play")) draw(false); }, 5000);
  draw(true);
})();
