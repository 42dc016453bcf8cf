// One query: its results as they come, answer, response times, text and plan.

import { lineChart } from "./charts.js";
import { el, table } from "./dom.js";
import { bytes, count, instant, seconds, short } from "./format.js";
import { queriesTable, statusOf } from "./plan.js";
import { queryNamed, ratesOver, state } from "./store.js";

const TABS = [["results", "Results"], ["answer", "Answer"], ["times", "Response times"],
  ["sql", "SQL"], ["plan", "Plan"]];

export function queriesView() {
  return el("section", {},
    el("h2", {}, "Queries"),
    state.about.read_only ? null : el("p", {}, el("a", { class: "button", href: "#new" }, "New query")),
    queriesTable(state.snapshot));
}

export function queryView({ query: name, tab = "results" }) {
  const query = queryNamed(name);
  if (!query) {
    return el("section", {}, el("h2", {}, name), el("p", {}, "There is no such query."),
      el("p", {}, el("a", { href: "#queries" }, "All queries")));
  }
  const where = (key) => `#query=${encodeURIComponent(name)}&tab=${key}`;
  return el("section", { "data-key": `query ${name}` },
    el("h2", {}, name),
    el("p", { class: "facts" }, fact("status", statusOf(query)), fact("results", count(query.rows_out)),
      fact("p95", seconds(query.response?.p95)), fact("state", bytes(query.state_bytes)),
      fact("watermark", instant(query.watermark)), fact("late", count(query.rows_late))),
    state.about.read_only ? null : el("p", {}, el("button", { type: "button", class: "danger",
      "data-action": "drop", "data-name": name }, "Drop query")),
    el("nav", { class: "tabs", "aria-label": `Query ${name}` }, TABS.map(([key, text]) =>
      el("a", { href: where(key), "aria-current": key === tab ? "page" : null }, text))),
    el("div", { "data-key": tab }, { results, answer, times, sql, plan }[tab]?.(name, query)));
}

function fact(name, value) {
  return el("span", {}, el("small", {}, name), " ", el("b", {}, value));
}

function results(name) {
  const found = state.results;
  if (found.obstacle) return el("p", { class: "error" }, found.obstacle);
  if (found.query !== name || !found.count) {
    return el("p", { class: "none" }, "No results since this page looks; they appear as they come.");
  }
  const [, , ...columns] = found.columns;
  const left = found.leftOut ? `, ${count(found.leftOut)} of them left out here` : "";
  return el("div", {},
    el("p", { "aria-live": "off" }, `${count(found.count)} results since this page looks${left}. Newest first.`),
    el("div", { class: "scroll results", tabindex: "0", role: "region", "aria-label": `Results of ${name}` },
      el("table", {},
        el("caption", {}, `Results of ${name}`),
        el("thead", {}, el("tr", {}, ["", "time", ...columns].map((text, place) =>
          el("th", { scope: "col" }, place ? text : el("span", { class: "hidden" }, "change"))))),
        el("tbody", {}, found.rows.toReversed().map(([sign, time, ...values]) =>
          el("tr", { class: sign === "-" ? "retract" : "insert" },
            el("td", {}, el("span", { title: sign === "-" ? "retracted" : "inserted" }, sign === "-" ? "−" : "+")),
            el("td", { class: "time" }, time), values.map(cell)))))));
}

const cell = (value) => el("td", {}, value === null ? el("i", {}, "NULL") : value);

function answer(name) {
  const found = state.answers[name];
  const again = el("p", {}, el("button", { type: "button", "data-action": "answer", "data-name": name }, "Read again"));
  if (!found) return el("p", {}, "Reading the answer …");
  if (found.errors) return el("div", {}, again, errors(found.errors));
  const cut = found.rows.length < found.count ? `, the last ${count(found.rows.length)} are shown` : "";
  return el("div", {}, again, el("p", {}, `${count(found.count)} rows${cut}.`),
    table(`Answer of ${name}`, found.columns, found.rows.map((row) => row.map((value) => value ?? "NULL"))));
}

export function errors(list) {
  return el("ul", { class: "error" }, list.map((each) =>
    el("li", {}, each.line ? `Line ${each.line}, column ${each.column}: ` : "", each.fact, ". ", each.hint)));
}

function times(name) {
  const at = state.points.map((point) => point.at);
  const of = (key) => state.points.map((point) => point.queries[name]?.response?.[key] ?? null);
  return el("div", {},
    lineChart({ title: "Response time", times: at, format: seconds, width: state.width, series:
      ["p50", "p95", "p99"].map((key) => ({ name: key, values: of(key) })) }),
    lineChart({ title: "Results per second", times: at, format: short, width: state.width,
      series: [{ name: "results", values: ratesOver("queries", name) }] }));
}

function sql(name) {
  const found = state.details[name];
  if (!found) return el("p", {}, "Reading …");
  if (found.errors) return errors(found.errors);
  return el("div", {},
    el("pre", { tabindex: "0" }, found.sql),
    table("Columns", ["column", "type"], found.columns.map((each) => [each.name, each.type])),
    table("Windows", ["source", "stream", "window"],
      found.windows.map((each) => [each.alias, each.relation, each.text])));
}

function plan(name, query) {
  const found = state.details[name];
  if (!found) return el("p", {}, "Reading …");
  if (found.errors) return errors(found.errors);
  const work = Object.entries(query.work ?? {});
  return el("div", {},
    el("pre", { tabindex: "0" }, found.explain),
    work.length
      ? table("Work", ["count", "number"], work.map(([key, value]) => [key.replaceAll("_", " "), count(value)]),
        { numbers: [1] })
      : null);
}
