// What every page has around its sections: the bar at the top, light and dark.

import { element, toggle } from "./dom.js";

/** What has colours of its own, to be drawn anew when the page goes dark or light. */
export const drawn = [];

/** Goes light or dark as the system is, before anything is drawn; the button with which people choose. */
export function theme() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const printed = window.matchMedia("print");
  let chosen = null;
  const apply = () => {
    document.documentElement.dataset.theme = (!printed.matches && (chosen ?? system.matches)) ? "dark" : "light";
    button.setAttribute("aria-pressed", document.documentElement.dataset.theme === "dark");
    for (const redraw of drawn) redraw();
  };
  const button = toggle("Dark", false, (dark) => {
    chosen = dark;
    apply();
  });
  button.id = "theme";
  system.addEventListener("change", apply);
  printed.addEventListener("change", apply);
  apply();
  return button;
}

function navigation(sections, button) {
  const links = sections.map((part) => element("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  const bar = element("nav", { "aria-label": "Sections" }, element("a", { href: "#top", class: "brand" }, "mpiprobe"), element("div", { class: "links" }, ...links), button);
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const link = links[sections.indexOf(entry.target)];
        if (entry.isIntersecting) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-30% 0px -60% 0px" },
  );
  for (const part of sections) seen.observe(part);
  return bar;
}

/** Shows a page of these sections, of which the first is what people are after. */
export function put({ title, version, button, header, parts }) {
  document.title = `${title}: mpiprobe`;
  document.body.replaceChildren(
    element("a", { class: "skip", href: `#${parts[0].id}` }, `To the ${parts[0].id}`),
    navigation(parts, button),
    element("main", {}, header, ...parts),
    element("footer", {}, `Written by mpiprobe ${version}. This page is complete in itself and asks no network.`),
  );
  document.documentElement.dataset.ready = "true";
}
