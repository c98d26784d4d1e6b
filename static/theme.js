// Runs before the first paint, so that a dark page never flashes light.
document.documentElement.dataset.bsTheme =
  localStorage.getItem("rankwire-theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
