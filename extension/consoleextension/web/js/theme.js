// SPDX-License-Identifier: Apache-2.0
// Light or dark, before anything is drawn. Runs first, and is no module, so that nothing flashes.
{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("theme") ?? "auto";
    } catch {
      return "auto"; // storage is switched off
    }
  };
  let theme = stored();
  const apply = () => {
    document.documentElement.dataset.theme = theme;
    document.documentElement.dataset.dark = String(theme === "dark" || (theme === "auto" && dark.matches));
    dispatchEvent(new Event("restyle"));
  };
  dark.addEventListener("change", apply);
  globalThis.nextTheme = () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme] ?? "auto";
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // it lasts until the page is closed
    }
    apply();
  };
  apply();
}
