// Elements are made here and nowhere else. Strings become text nodes or attributes, never markup: names of files, hosts and
// communicators are whatever somebody chose.

/** An element with attributes and children; strings among the children are text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A label with a choice in it. `options` are pairs of value and text. */
export function choice(label, options, onchange, id) {
  const select = element("select", { id, onchange: () => onchange(select.value) });
  for (const [value, shown] of options) select.append(element("option", { value }, shown));
  return [element("label", { class: "control" }, label, select), select];
}

/** A button that stays pressed. */
export function toggle(label, pressed, onchange) {
  const button = element("button", { type: "button", class: "toggle", "aria-pressed": pressed }, label);
  button.addEventListener("click", () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", now);
    onchange(now);
  });
  return button;
}

const tip = element("div", { class: "tip", role: "status", hidden: true });

/** Shows lines of text beside the pointer; none: hides it. */
export function showTip(event, lines) {
  if (!tip.isConnected) document.body.append(tip);
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18;
  const top = below + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : below;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

/** A section of the page with its heading. */
export function section(id, title, note, ...children) {
  return element(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title),
    note ? element("p", { class: "note" }, note) : null,
    ...children,
  );
}
