// Elements made of text, never of markup; and an update that keeps focus and scroll positions.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// Make `old` like `fresh`, changing only what differs. What has `data-keep` is left as it is.
export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || key(old) !== key(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.dataset?.keep && old.dataset.keep === fresh.dataset.keep) return;
  for (const { name } of [...old.attributes]) {
    // What the user has opened stays open.
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const [had, has] = [[...old.childNodes], [...fresh.childNodes]];
  has.forEach((child, place) => {
    if (place < had.length) morph(had[place], child);
    else old.append(child);
  });
  had.slice(has.length).forEach((child) => child.remove());
}

function key(node) {
  return node.dataset?.key;
}

export function table(caption, heads, rows, { numbers = [] } = {}) {
  const side = (place) => (numbers.includes(place) ? "number" : null);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {},
        heads.map((text, place) => el("th", { scope: "col", class: side(place) }, text)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, place) =>
        place === 0
          ? el("th", { scope: "row", class: side(place) }, cell)
          : el("td", { class: side(place) }, cell ?? "–")))))));
}
