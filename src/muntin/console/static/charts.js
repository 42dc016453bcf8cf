// Charts as SVG, each with the same numbers as a table behind it.

import { el, svg, table } from "./dom.js";
import { clock } from "./format.js";

const HEIGHT = 180;
const LEFT = 62;
const BOTTOM = 22;
const TOP = 10;

// `series` have a name and one value, or null, per moment of `times`.
export function lineChart({ title, times, series, format, width, most = null }) {
  const values = series.flatMap((each) => each.values).filter((value) => value !== null);
  if (times.length < 2 || !values.length) {
    return el("figure", { class: "chart" }, el("figcaption", {}, title),
      el("p", { class: "none" }, "Nothing measured yet."));
  }
  const top = most ?? niceCeiling(Math.max(...values, 1e-9));
  const [begin, end] = [times[0], times.at(-1)];
  const x = (at) => LEFT + ((at - begin) / (end - begin || 1)) * (width - LEFT - 8);
  const y = (value) => TOP + (1 - Math.min(value / top, 1)) * (HEIGHT - TOP - BOTTOM);
  const grid = [0, 0.5, 1].map((part) => [
    svg("line", { class: "grid", x1: LEFT, x2: width - 8, y1: y(top * part), y2: y(top * part) }),
    svg("text", { x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end" }, format(top * part)),
  ]);
  const ends = [
    svg("text", { x: LEFT, y: HEIGHT - 4 }, clock(begin)),
    svg("text", { x: width - 8, y: HEIGHT - 4, "text-anchor": "end" }, clock(end)),
  ];
  const lines = series.map((each, place) =>
    svg("path", { class: `line s${place % 6}`, d: pathOf(times, each.values, x, y) }));
  return el("figure", { class: "chart" },
    el("figcaption", {}, title),
    svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img",
      "aria-label": `${title}; the same numbers are in the table below` }, grid, ends, lines),
    el("ul", { class: "legend" }, series.map((each, place) =>
      el("li", {}, el("span", { class: `dot s${place % 6}`, "aria-hidden": "true" }), each.name, " ",
        el("b", {}, format(lastOf(each.values)))))),
    behind(table(title, ["time", ...series.map((each) => each.name)],
      times.slice(-30).reverse().map((at) => {
        const place = times.indexOf(at);
        return [clock(at), ...series.map((each) => format(each.values[place]))];
      }), { numbers: series.map((_, place) => place + 1) })));
}

export function behind(content) {
  return el("details", {}, el("summary", {}, "Table"), content);
}

function lastOf(values) {
  return values.findLast((value) => value !== null) ?? null;
}

function pathOf(times, values, x, y) {
  let [path, pen] = ["", "M"];
  values.forEach((value, place) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${x(times[place]).toFixed(1)} ${y(value).toFixed(1)}`;
    // A lone point is a dot.
    if (pen === "M" && (values[place + 1] ?? null) === null) path += "h1";
    pen = "L";
  });
  return path || "M0 0";
}

function niceCeiling(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * unit >= value) * unit;
}

// Horizontal bars of parts, one per row: `parts` are pairs of a name and a number.
export function stackedBars({ title, rows, names, format, width, heads }) {
  const most = Math.max(...rows.map((row) => row.total), 1e-9);
  const [line, label] = [18, 70];
  const bars = rows.map((row, place) => {
    let left = label;
    const top = place * line + 2;
    const pieces = names.map((name, number) => {
      const size = ((row.parts[name] ?? 0) / most) * (width - label - 8);
      const piece = svg("rect", { class: `bar s${number % 6}`, x: left.toFixed(1), y: top,
        width: Math.max(size, 0).toFixed(1), height: line - 4 },
      svg("title", {}, `${row.label}, ${name}: ${format(row.parts[name] ?? 0)}`));
      left += size;
      return piece;
    });
    return [svg("text", { x: label - 6, y: top + 11, "text-anchor": "end" }, row.label), pieces];
  });
  return el("figure", { class: "chart" },
    el("figcaption", {}, title),
    svg("svg", { viewBox: `0 0 ${width} ${rows.length * line + 4}`, width,
      height: rows.length * line + 4, role: "img",
      "aria-label": `${title}; the same numbers are in the table below` }, bars),
    el("ul", { class: "legend" }, names.map((name, place) =>
      el("li", {}, el("span", { class: `dot s${place % 6}`, "aria-hidden": "true" }), name))),
    behind(table(title, [...heads, "total", ...names],
      rows.toReversed().map((row) => [...row.cells, format(row.total),
        ...names.map((name) => format(row.parts[name] ?? 0))]),
      { numbers: [...names, 0, 0].map((_, place) => place + 1) })));
}
