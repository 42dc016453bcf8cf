// Overload: load, budgets of half joins, the share of results, and how fresh they are.

import { lineChart } from "./charts.js";
import { el, table } from "./dom.js";
import { count, percent, seconds, short } from "./format.js";
import { state } from "./store.js";

export function overloadView() {
  const queries = state.snapshot.queries;
  const limited = queries.flatMap(partsOf);
  const at = state.points.map((point) => point.at);
  return el("section", {},
    el("h2", {}, "Overload"),
    lineChart({ title: "Lag of joins in event time", times: at, format: seconds, width: state.width,
      series: queries.map((each) => ({ name: each.name,
        values: state.points.map((point) => point.queries[each.name]?.lag ?? null) })) }),
    limited.length ? limited.map(part) : el("p", {}, "No query is limited under overload. ",
      "A query with overload = 'adapt' leaves results out instead of falling behind."),
    limited.length ? lineChart({ title: "Share of results", times: at, format: percent, width: state.width, most: 1,
      series: queries.filter((each) => each.overload?.mode === "adapt").map((each) => ({ name: each.name,
        values: state.points.map((point) => point.queries[each.name]?.share ?? null) })) }) : null);
}

function partsOf(query) {
  const own = query.overload?.mode === "adapt" && query.overload.decisions ? [[query.name, query.overload]] : [];
  return [...own, ...Object.entries(query.overload_of_joins ?? {})];
}

function part([name, found]) {
  const budgets = found.budgets ?? {};
  const halves = Object.keys(found.arrivals ?? budgets);
  return el("div", { class: "card", "data-key": `overload ${name}` },
    el("h3", {}, name),
    table(`Load of ${name}`, ["what", "value"], [
      ["state", found.overloaded ? "overloaded" : "not overloaded"],
      ["probes needed per second", short(found.resources_needed)],
      ["probes available per second", short(found.resources)],
      ["share of results", percent(found.share_of_results)],
      ["share of keys", percent(found.part_of_keys)],
      ["lag", seconds(found.lag_seconds)],
      ["stale results", count(found.stale_results)],
      ["oldest rows in results", Object.entries(found.oldest_rows ?? {}).map(([alias, age]) => `${alias} ${ageOf(age)}`).join(", ") || "–"],
    ], { numbers: [1] }),
    halves.length ? table(`Half joins of ${name}`, ["half join", "budget of probes/s", "rows", "probes", "matches"],
      halves.map((half) => [half, half in budgets ? (budgets[half] === null ? "no limit" : short(budgets[half])) : "no limit",
        count(found.arrivals?.[half]), count(found.probes?.[half]), count(found.matches?.[half])]),
      { numbers: [1, 2, 3, 4] }) : null,
    found.decisions?.length ? el("details", {}, el("summary", {}, "Decisions"),
      el("ul", {}, found.decisions.slice(-20).reverse().map((each) => el("li", {}, String(each))))) : null);
}

// The engine writes times in the largest unit that divides them.
function ageOf(text) {
  const found = /^(\d+) microseconds?$/.exec(text);
  return found ? seconds(Number(found[1]) / 1e6) : text;
}
