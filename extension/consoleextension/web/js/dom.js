// SPDX-License-Identifier: Apache-2.0
// Elements. Text goes in as text, never as HTML.

const svg = "http://www.w3.org/2000/svg";

/** Makes an element: props are attributes, except for class, data, on (events) and value/checked (properties). */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Makes an SVG element. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(svg, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false));
  return element;
}

/**
 * Replaces what is in an element. What is there already stays, with how far it is scrolled; what had the focus has it again
 * when it is made anew (by its data-key).
 */
export function replace(root, ...children) {
  const focused = root.contains(document.activeElement) ? document.activeElement.dataset?.key : undefined;
  let at = root.firstChild;
  const drop = () => { const next = at.nextSibling; at.remove(); at = next; };
  for (const child of children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false)) {
    const node = typeof child === "string" ? document.createTextNode(child) : child;
    if (node.parentNode === root) while (at !== node) drop();
    if (at === node) at = at.nextSibling;
    else root.insertBefore(node, at);
  }
  while (at) drop();
  if (root.contains(document.activeElement) && document.activeElement !== document.body) return;
  if (focused) [...root.querySelectorAll("[data-key]")].find((e) => e.dataset.key === focused)?.focus({ preventScroll: true });
}

/** A box that says what is missing and what to do about it: in a view, or instead of one. */
export const empty = (title, ...paragraphs) => box("h2", title, paragraphs);
export const emptyView = (title, ...paragraphs) => box("h1", title, paragraphs);

function box(heading, title, paragraphs) {
  return h("section", { class: "empty" }, h(heading, null, title), paragraphs.map((p) => (typeof p === "string" ? h("p", null, p) : p)));
}

export const code = (text) => h("code", null, text);
