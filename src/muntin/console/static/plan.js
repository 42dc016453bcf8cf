// The plan of all queries as a graph, from the streams on the left to the queries on the right.

import { behind } from "./charts.js";
import { el, svg, table } from "./dom.js";
import { bytes, count, instant, rate, short } from "./format.js";
import { queryNamed, rateOf, state } from "./store.js";

const WIDE = 220;
const ACROSS = 56;
const DOWN = 16;
const LINE = 16;
const BAND = 14;
const MOST_BANDS = 8;
const MOST_LINES = 5;

export function planView() {
  const snapshot = state.snapshot;
  const { nodes, edges } = snapshot.graph;
  return el("section", {},
    el("h2", {}, "Plan"),
    nodes.length
      ? el("div", { class: "scroll graph", tabindex: "0", role: "region", "aria-label": "Plan" }, draw(nodes, edges))
      : el("p", {}, "No streams yet."),
    behind(edgesTable(nodes, edges)),
    streamsTable(snapshot),
    queriesTable(snapshot));
}

function draw(nodes, edges) {
  const placed = place(nodes.map((node) => ({ ...node, ...contentOf(node) })), edges);
  const at = new Map(placed.map((node) => [node.id, node]));
  const width = Math.max(...placed.map((node) => node.x + WIDE)) + 2;
  const height = Math.max(...placed.map((node) => node.y + node.height)) + 2;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
    "aria-label": "Graph of streams, joins, operators and queries; the same is in the table below" },
  edges.map(([from, to]) => edge(at.get(from), at.get(to))),
  placed.map(box));
}

// Columns by layer; in a column, nodes are in the order of the middle of what they read.
function place(nodes, edges) {
  const columns = [];
  for (const node of nodes) (columns[node.layer] ??= []).push(node);
  const middle = new Map();
  columns.filter(Boolean).forEach((column, across) => {
    for (const node of column) {
      const inputs = edges.filter(([, to]) => to === node.id).map(([from]) => middle.get(from) ?? 0);
      node.wish = inputs.length ? inputs.reduce((sum, each) => sum + each, 0) / inputs.length : 0;
    }
    column.sort((one, other) => one.wish - other.wish);
    let y = 1;
    for (const node of column) {
      node.x = 1 + across * (WIDE + ACROSS);
      node.y = Math.max(y, node.wish - node.height / 2);
      y = node.y + node.height + DOWN;
      middle.set(node.id, node.y + node.height / 2);
    }
  });
  return nodes;
}

function contentOf(node) {
  const facts = [];
  if (node.kind === "stream") {
    const stream = state.snapshot.streams.find((each) => each.name === node.label);
    facts.push(rate(rateOf("streams", node.label)));
    if (stream?.watermark) facts.push(`watermark ${instant(stream.watermark).slice(11)}`);
    if (stream?.rows_logged !== undefined) facts.push(`${count(stream.rows_logged)} rows held`);
  } else if (node.kind === "query") {
    const query = queryNamed(node.label);
    facts.push(`${rate(rateOf("queries", node.label))} results`);
    facts.push(query?.suspended ? "suspended" : node.lines[0]);
  } else {
    facts.push(...node.lines.slice(0, MOST_LINES));
    if (node.rows_held !== null) facts.push(`holds ${count(node.rows_held)}`);
  }
  const bands = bandsOf(node);
  const height = 14 + (1 + facts.length) * LINE + bands.length * BAND;
  return { facts, bands, height };
}

// The windows of the queries that share a join: the longer, the wider.
function bandsOf(node) {
  if (node.kind !== "join" || node.queries.length < 2) return [];
  const found = node.queries.map((name) => {
    const lengths = (queryNamed(name)?.windows ?? []).map((each) => each.seconds ?? 0);
    return { name, seconds: Math.max(...lengths, 0) };
  }).filter((each) => each.seconds > 0).sort((one, other) => one.seconds - other.seconds);
  return found.slice(-MOST_BANDS);
}

function edge(from, to) {
  const [x1, y1] = [from.x + WIDE, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const bend = (x1 + x2) / 2;
  return svg("path", { class: "edge", d: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}` });
}

function box(node) {
  const longest = Math.max(...node.bands.map((each) => each.seconds), 1e-9);
  const parts = [
    svg("rect", { x: node.x, y: node.y, width: WIDE, height: node.height, rx: 6 }),
    text(node.x + 10, node.y + 19, cut(node.label, 24), "name"),
    node.facts.map((fact, place) =>
      text(node.x + 10, node.y + 19 + (place + 1) * LINE, cut(fact, 30), "fact")),
    node.bands.map((each, place) => {
      const top = node.y + 12 + (1 + node.facts.length) * LINE + place * BAND;
      return [
        svg("rect", { class: "band", x: node.x + 10, y: top, height: BAND - 4, rx: 2,
          width: Math.max((each.seconds / longest) * 80, 2).toFixed(1) }),
        text(node.x + 96, top + 9, cut(`${short(each.seconds)} s ${each.name}`, 18), "fact"),
      ];
    }),
  ];
  const title = svg("title", {}, [node.label, ...node.lines].join("\n"));
  const group = svg("g", { class: `node ${node.kind}`, "data-key": node.id }, title, parts);
  if (node.kind !== "query") return group;
  return svg("a", { href: `#query=${encodeURIComponent(node.label)}`, "data-key": node.id,
    "aria-label": `query ${node.label}` }, group);
}

const text = (x, y, words, kind) => svg("text", { x, y, class: kind }, words);

const cut = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

function edgesTable(nodes, edges) {
  const names = new Map(nodes.map((node) => [node.id, `${node.kind} ${node.label}`]));
  return table("Parts of the plan", ["part", "reads", "for queries", "about it"],
    nodes.map((node) => [
      names.get(node.id),
      edges.filter(([, to]) => to === node.id).map(([from]) => names.get(from)).join(", ") || "–",
      node.queries.join(", "),
      node.lines.join("; ") || "–",
    ]));
}

function streamsTable(snapshot) {
  return table("Streams", ["stream", "rows/s", "rows", "late", "ahead", "waiting", "held", "memory", "watermark"],
    snapshot.streams.map((each) => [each.name, short(rateOf("streams", each.name)),
      count(each.rows_in), count(each.rows_late), count(each.rows_ahead), count(each.rows_waiting),
      count(each.rows_logged), bytes(each.log_bytes), instant(each.watermark)]),
    { numbers: [1, 2, 3, 4, 5, 6, 7] });
}

export function queriesTable(snapshot) {
  return table("Queries", ["query", "results/s", "results", "state", "watermark", "status"],
    snapshot.queries.map((each) => [
      el("a", { href: `#query=${encodeURIComponent(each.name)}` }, each.name),
      short(rateOf("queries", each.name)), count(each.rows_out), bytes(each.state_bytes),
      instant(each.watermark), statusOf(each)]),
    { numbers: [1, 2, 3] });
}

export function statusOf(query) {
  if (query.suspended) return `suspended: ${query.suspended}`;
  if (query.overload?.overloaded) return "overloaded";
  if (query.waiting_for && query.waiting_for.since_seconds > 5) {
    return `waiting for ${query.waiting_for.stream}`;
  }
  return "running";
}
