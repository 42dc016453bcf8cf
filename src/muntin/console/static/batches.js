// Micro-batches on Spark: how long each took, and where the time went.

import { stackedBars } from "./charts.js";
import { el } from "./dom.js";
import { bytes, count, seconds } from "./format.js";
import { state } from "./store.js";

const SHOWN = 30;

export function batchesView() {
  const { batches = [], rebuilds, rows_held: held, bytes_held: memory } = state.snapshot;
  const recent = batches.slice(-SHOWN);
  const names = [...new Set(recent.flatMap((each) => Object.keys(each.parts)))];
  return el("section", {},
    el("h2", {}, "Micro-batches"),
    el("p", { class: "facts" },
      el("span", {}, el("small", {}, "rows held"), " ", el("b", {}, count(held))),
      el("span", {}, el("small", {}, "state"), " ", el("b", {}, bytes(memory))),
      el("span", {}, el("small", {}, "rebuilt partitions"), " ", el("b", {}, count(rebuilds?.partitions)))),
    recent.length
      ? stackedBars({ title: "Time of the last micro-batches, newest below", names, width: state.width,
        format: (value) => seconds(value / 1000), heads: ["batch", "began", "rows"],
        rows: recent.map((each) => ({ label: String(each.number), total: each.milliseconds, parts: each.parts,
          cells: [String(each.number), each.at.slice(11, 23), count(each.rows)] })) })
      : el("p", {}, "No batch yet."));
}
