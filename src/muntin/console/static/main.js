// The page: which view is shown, and what keys and buttons do.

import { ask, Events, tell } from "./api.js";
import { batchesView } from "./batches.js";
import { el, morph } from "./dom.js";
import { add, editorView, readRelations } from "./editor.js";
import { instant } from "./format.js";
import { ordersView } from "./orders.js";
import { overloadView } from "./overload.js";
import { planView } from "./plan.js";
import { queriesView, queryView } from "./queries.js";
import { emptyResults, state, takeHistory, takeResults, takeSnapshot } from "./store.js";

const VIEWS = {
  plan: ["Plan", planView],
  queries: ["Queries", queriesView],
  overload: ["Overload", overloadView],
  orders: ["Join orders", ordersView],
  batches: ["Micro-batches", batchesView],
};
const THEMES = ["system", "light", "dark"];

function place() {
  const found = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (found.query !== undefined) return { view: "query", ...found };
  const view = location.hash.slice(1) || "plan";
  return { view: view === "new" || view in VIEWS ? view : "plan" };
}

// -- drawing ----------------------------------------------------------------------------------

let pending = false;

function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    draw();
  });
}

function draw() {
  const main = document.getElementById("main");
  const { paddingLeft, paddingRight } = getComputedStyle(main);
  state.width = Math.max(main.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight), 240);
  drawStatus();
  drawNav();
  if (!state.snapshot || !state.about) return;
  const where = place();
  const view = where.view === "query" ? queryView(where)
    : where.view === "new" ? editorView() : VIEWS[where.view][1]();
  view.dataset.key ??= where.view;
  if (main.firstElementChild) morph(main.firstElementChild, view);
  else main.append(view);
}

function drawStatus() {
  const status = document.getElementById("status");
  const words = state.failure ? `failed: ${state.failure}`
    : state.connected ? "live" : "disconnected, trying again";
  const facts = [el("span", { class: state.connected && !state.failure ? "live" : "gone" }, words)];
  if (state.about) facts.push(el("span", {}, state.about.kind === "spark" ? "on Spark" : "in process"));
  if (state.about?.read_only) facts.push(el("span", {}, "read-only"));
  if (state.snapshot) facts.push(el("span", { class: "wide" }, `watermark ${instant(state.snapshot.watermark)}`));
  if (state.missed) facts.push(el("span", {}, `${state.missed} updates dropped`));
  if (state.snapshot?.run_failure) facts.push(el("span", { class: "gone" }, state.snapshot.run_failure));
  morph(status, el("div", { id: "status", role: "status" }, facts));
}

function drawNav() {
  const now = place().view;
  const shown = Object.entries(VIEWS).filter(([key]) => key !== "batches" || state.about?.kind === "spark");
  const current = (key) => key === now || (key === "queries" && ["query", "new"].includes(now));
  morph(document.getElementById("nav"), el("nav", { id: "nav", "aria-label": "Views" },
    shown.map(([key, [text]]) => el("a", { href: `#${key}`, "aria-current": current(key) ? "page" : null }, text))));
}

// -- data -------------------------------------------------------------------------------------

const events = new Events({
  history: takeHistory,
  snapshot(found) {
    takeSnapshot(found);
    redraw();
  },
  results(found) {
    takeResults(found);
    redraw();
  },
  obstacle(found) {
    if (found.query === state.results.query) state.results.obstacle = found.text;
    redraw();
  },
  connected(is) {
    state.connected = is;
    redraw();
  },
});

async function arrive() {
  const where = place();
  const query = where.view === "query" ? where.query : null;
  if (state.results.query !== query) state.results = emptyResults(query);
  events.open(query);
  redraw();
  if (query !== null) await read(query, where.tab ?? "results");
}

async function read(query, tab) {
  if (tab === "answer") {
    state.answers[query] = await ask(`/api/answer?name=${encodeURIComponent(query)}`);
  } else if (tab === "sql" || tab === "plan") {
    state.details[query] = await ask(`/api/query?name=${encodeURIComponent(query)}`);
  }
  redraw();
}

// -- actions ----------------------------------------------------------------------------------

const actions = {
  theme() {
    const next = THEMES[(THEMES.indexOf(localStorage.getItem("theme") ?? "system") + 1) % THEMES.length];
    localStorage.setItem("theme", next);
    showTheme();
  },
  async answer({ name }) {
    await read(name, "answer");
  },
  drop({ name }) {
    const dialog = document.getElementById("ask");
    document.getElementById("ask-text").textContent = `Drop query ${name}? Its state and results are lost.`;
    dialog.returnValue = "";
    dialog.onclose = async () => {
      if (dialog.returnValue !== "yes") return;
      const found = await tell("/api/drop", { name });
      if (found.errors) {
        state.failure = found.errors[0].fact;
        redraw();
      } else {
        delete state.details[name];
        delete state.answers[name];
        location.hash = "#queries";
      }
    };
    dialog.showModal();
  },
};

function showTheme() {
  const theme = localStorage.getItem("theme") ?? "system";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = `Theme: ${theme}`;
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("button[data-action]");
  if (target) actions[target.dataset.action](target.dataset);
});

document.addEventListener("submit", async (event) => {
  if (event.target.id !== "editor") return;
  event.preventDefault();
  const name = await add();
  if (name !== null) location.hash = `#query=${encodeURIComponent(name)}`;
});

// Numbers choose a view, as the tabs are ordered; not while somebody types.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea")) return;
  const links = document.querySelectorAll("#nav a");
  const link = links[Number(event.key) - 1];
  if (link) link.click();
  else if (event.key === "n" && state.about && !state.about.read_only) location.hash = "#new";
});

addEventListener("hashchange", async () => {
  if (location.hash === "#main") {
    document.getElementById("main").focus();
    return;
  }
  if (place().view === "new") await readRelations();
  await arrive();
});
addEventListener("resize", redraw);

showTheme();
await readRelations();
await arrive();
