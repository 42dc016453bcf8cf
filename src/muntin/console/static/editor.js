// A query is typed here; the engine checks it while it is typed, and errors are underlined.

import { ask, tell } from "./api.js";
import { el } from "./dom.js";
import { errors } from "./queries.js";
import { state } from "./store.js";

const PAUSE = 400;

export function editorView() {
  return el("section", { "data-keep": "editor" },
    el("h2", {}, "New query"),
    el("form", { id: "editor", "data-action": "add" },
      el("p", {}, el("label", { for: "query-name" }, "Name"),
        el("input", { id: "query-name", name: "name", autocomplete: "off", spellcheck: "false",
          placeholder: "the next free one of q1, q2, …" })),
      el("label", { for: "query-sql" }, "SQL"),
      el("div", { class: "code" },
        el("pre", { id: "query-marks", "aria-hidden": "true" }),
        el("textarea", { id: "query-sql", name: "sql", rows: "8", spellcheck: "false",
          autocapitalize: "off", autocomplete: "off", "aria-describedby": "query-errors",
          placeholder: example() })),
      el("div", { id: "query-errors", role: "status" }),
      el("p", {}, el("button", { type: "submit" }, "Add query"), " ", el("small", {}, "or Ctrl+Enter"))),
    el("h3", {}, "Streams and tables"),
    el("ul", { class: "relations" }, state.about.relations.map((each) =>
      el("li", {}, el("b", {}, each.name), each.kind === "table" ? " (table)" : "", ": ",
        each.columns.map((column) => `${column.name} ${column.type}`).join(", ")))));
}

function example() {
  const first = state.about.relations.find((each) => each.kind === "stream");
  return first ? `SELECT ${first.columns[0].name} FROM ${first.name} WINDOW 10 SECONDS` : "SELECT …";
}

let timer = 0;
let turn = 0;

document.addEventListener("input", (event) => {
  if (event.target.id === "query-sql") mark([]);
  if (!["query-sql", "query-name"].includes(event.target.id)) return;
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
});

document.addEventListener("scroll", (event) => {
  if (event.target.id === "query-sql") follow();
}, true);

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.id === "query-sql") {
    event.target.form.requestSubmit();
  }
});

function given() {
  const form = document.getElementById("editor");
  return { sql: form.elements.sql.value, name: form.elements.name.value.trim() };
}

async function check() {
  const own = ++turn;
  const text = given();
  if (!text.sql.trim()) {
    show([]);
    return;
  }
  const found = await tell("/api/check", text);
  const list = found.errors ?? found.done;
  if (own === turn && document.getElementById("editor")) show(list, !list.length);
}

// Add the query, and return its name; or show why it is none.
export async function add() {
  clearTimeout(timer);
  turn += 1;
  const found = await tell("/api/add", given());
  if (found.errors) {
    show(found.errors);
    document.getElementById("query-sql").focus();
    return null;
  }
  return found.done;
}

export async function readRelations() {
  const found = await ask("/api/about");
  if (!found.errors) state.about = found;
}

function show(list, right = false) {
  const place = document.getElementById("query-errors");
  place.replaceChildren(...(list.length ? [errors(list)] : right ? [el("p", { class: "right" }, "No errors.")] : []));
  mark(list);
}

// The same text lies below the transparent one of the text area; wrong words are underlined in it.
function mark(list) {
  const marks = document.getElementById("query-marks");
  const text = document.getElementById("query-sql").value;
  const spans = list.filter((each) => each.line).map((each) => spanOf(text, each));
  spans.sort(([one], [other]) => one - other);
  const pieces = [];
  let done = 0;
  for (const [begin, end] of spans) {
    if (begin < done) continue;
    pieces.push(text.slice(done, begin), el("span", { class: "wrong" }, text.slice(begin, end) || " "));
    done = end;
  }
  pieces.push(`${text.slice(done)}\n`);
  marks.replaceChildren(...pieces);
  follow();
}

function spanOf(text, { line, column }) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  // The engine counts characters, JavaScript halves of some.
  const ahead = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  const begin = Math.min(before + ahead, text.length);
  const word = /^(\w+|"[^"]*"|'[^']*'|\S)/u.exec(text.slice(begin));
  return [begin, begin + (word ? word[0].length : 0)];
}

function follow() {
  const [marks, area] = [document.getElementById("query-marks"), document.getElementById("query-sql")];
  marks.scrollTop = area.scrollTop;
  marks.scrollLeft = area.scrollLeft;
}
