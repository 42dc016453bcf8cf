// Join orders: what was predicted, what was measured, and when the plan has changed.

import { el, table } from "./dom.js";
import { short } from "./format.js";
import { queryNamed, state } from "./store.js";

export function ordersView() {
  const orders = (state.snapshot.graph.orders ?? []).filter((each) => each.joins.length);
  return el("section", {},
    el("h2", {}, "Join orders"),
    orders.length ? orders.map(one) : el("p", {}, "No query joins streams."));
}

function one({ query, joins }) {
  const switches = queryNamed(query)?.order_switches ?? [];
  return el("div", { class: "card", "data-key": `orders ${query}` },
    el("h3", {}, query),
    joins.map((join, number) => {
      const name = joins.length > 1 ? `${query}, join ${number + 1}` : query;
      const { prediction, measured } = join;
      const rows = [[orderOf(prediction?.order) ?? "in force",
        short(prediction?.comparisons_a_second), short(measured?.comparisons_a_second), "in force"]];
      for (const other of prediction?.alternatives ?? []) {
        rows.push([orderOf(other.order) ?? "a separate order for each origin",
          short(other.comparisons_a_second), "–", "not chosen"]);
      }
      return el("div", {},
        table(`Orders of ${name}: ${join.sources.join(", ")}`,
          ["order", "comparisons/s predicted", "measured", "status"], rows, { numbers: [1, 2] }),
        table(`Where a new row looks in ${name}`, ["new row of", "looks into"],
          Object.entries(join.orders).map(([alias, steps]) => [alias, steps.filter(Boolean).join(" › ") || "–"])));
    }),
    switches.length
      ? table(`Changes of the plan of ${query}`, ["change", "what is known of it"], switches.map((each, place) =>
        [String(place + 1), Object.entries(each).map(([key, value]) =>
          `${key.replaceAll("_", " ")}: ${words(value)}`).join("; ")]))
      : el("p", {}, "The plan has not changed."));
}

const orderOf = (order) => (order?.length ? order.join(" › ") : null);

const words = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));
