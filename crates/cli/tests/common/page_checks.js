// Returns the faults of the open page as sentences. `mode` is light, dark, narrow or print.
(mode) => {
  const faults = [];
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const named = (node) => node.closest("figure, section, svg[role=img]")?.id || node.closest("[aria-label]")?.getAttribute("aria-label")?.slice(0, 60) || node.tagName;
  const box = (node) => node.getBoundingClientRect();
  const shown = (node) => { const { width, height } = box(node); return width > 0 && height > 0; };
  const meet = (a, b, slack = 1) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;

  // Nothing extends beyond the page's edge, except the contents of a scrolling box.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) faults.push(`the page is ${document.documentElement.scrollWidth} wide, of ${width}`);
  for (const node of all("main *")) {
    const scrolls = node.parentElement.closest("[tabindex='0'], pre");
    if (scrolls && mode !== "print" && ["auto", "scroll"].includes(getComputedStyle(scrolls).overflowX)) continue;
    if (shown(node) && box(node).right > width + 1) { faults.push(`${named(node)}: ${node.tagName} ends at ${Math.round(box(node).right)} of ${width}: ${node.textContent.slice(0, 40)}`); break; }
  }

  const root_of_figures = document.documentElement.localName === "svg" ? [document.documentElement] : [];
  const charts = [...all("svg[role=img]"), ...root_of_figures];
  for (const chart of charts) {
    const figure = chart.closest("figure") ?? chart, whole = box(chart);
    const texts = all("text", chart).filter(shown);
    texts.forEach((one, at) => {
      for (const other of texts.slice(at + 1))
        if (meet(box(one), box(other), 1.5)) faults.push(`${named(one)}: "${one.textContent}" covers "${other.textContent}"`);
      const own = box(one);
      if (own.left < whole.left - 1 || own.right > whole.right + 1 || own.top < whole.top - 3 || own.bottom > whole.bottom + 3) faults.push(`${named(one)}: "${one.textContent}" stands beyond its figure`);
    });
    // Each chart has a text for screen readers.
    if (chart === document.documentElement) {
      // In a figure file, heading and legends around the drawings cover no drawing.
      for (const around of [...chart.children].filter((node) => ["text", "rect", "path"].includes(node.localName) && node.getAttribute("class") !== "paper"))
        for (const drawing of all("svg[role=img]")) if (meet(box(around), box(drawing))) faults.push(`"${around.textContent || around.getAttribute("class")}" covers ${named(drawing)}`);
      continue;
    }
    const labels = (chart.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent);
    if (!chart.getAttribute("aria-label") && labels.some((label) => !label)) faults.push(`${named(chart)}: no words for those who do not see it`);
    // A legend covers nothing and names the look of every mark.
    const legend = figure.querySelector(".legend");
    if (legend && meet(box(legend), whole)) faults.push(`${named(chart)}: the legend covers the drawing`);
    const looks = (nodes) => new Set(nodes.flatMap((node) => [...node.classList].filter((name) => /^(series-|cause-|band$)/.test(name))));
    const keys = looks(all(".legend .swatch *", figure));
    if (chart.closest("figure")) for (const look of looks(all("path, rect, circle", chart))) if (!keys.has(look)) faults.push(`${named(chart)}: no legend names ${look}`);
    for (const key of all(".legend li", figure)) if (!key.textContent.trim()) faults.push(`${named(chart)}: a series has no name`);
    // An axis with numbers has a name with a unit, or counts something.
    const names = all("text.name", chart).map((node) => node.textContent);
    const numbers = texts.filter((node) => /^[-+]?[\d.]+(e-?\d+)?$/.test(node.textContent));
    if (numbers.length && chart.closest("figure") && !names.length) faults.push(`${named(chart)}: numbers without the name of an axis`);
    for (const name of all("text.name", chart)) {
      const words = name.textContent.trim(), turned = name.hasAttribute("transform");
      const own = numbers.filter((node) => (box(node).bottom < box(name).top + 2) === !turned && node.classList.contains(turned ? "end" : "middle"));
      // A study chooses the words of its axes. The values of a key contain their units.
      const free = /^figure-/.test(chart.getAttribute("aria-labelledby") ?? "") || /^[a-z_]+(\.[a-z_]+)+$/.test(words);
      if (!words) faults.push(`${named(chart)}: an axis has no name`);
      else if (own.length && !free && !/\([^()]+\)$|^requests$|^streams$/.test(words)) faults.push(`${named(chart)}: the axis "${words}" has no unit`);
    }
  }

  // Colours: words 4.5 to 1 (WCAG 2.1, 1.4.3), lines and marks 3 to 1 (1.4.11).
  const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((value, at) => value * a + below[at] * (1 - a));
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => { const c = value / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => { const [a, b] = [light(one), light(other)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
  const root = channels(getComputedStyle(document.documentElement).backgroundColor);
  const sheet = document.querySelector("svg > .paper");
  const paper = sheet ? channels(getComputedStyle(sheet).fill) : (root[3] ?? 1) > 0 && root.length ? root.slice(0, 3) : [255, 255, 255];
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if ((colour[3] ?? 1) > 0) return over(colour, paper);
    }
    return paper;
  };
  if (mode === "dark" && light(paper) > 0.1) faults.push(`the paper is not dark: ${paper}`);
  if (mode !== "dark" && light(paper) < 0.9) faults.push(`the paper is not light: ${paper}`);
  const faint = new Set();
  for (const node of all("main *")) {
    if (!shown(node)) continue;
    const style = getComputedStyle(node), own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const drawn = node.closest("svg");
    let ratio = Infinity, least = 4.5;
    if (own && !drawn) ratio = contrast(over(channels(style.color), behind(node)), behind(node));
    else if (own && ["text", "tspan"].includes(node.localName)) ratio = contrast(over(channels(style.fill), paper), style.stroke === "none" ? paper : over(channels(style.stroke), paper));
    else if (drawn && /(^| )(series-|line|zero|whisker|head|queue)/.test(node.getAttribute("class") ?? "")) {
      const look = style.stroke !== "none" ? style.stroke : style.fill;
      [ratio, least] = [contrast(over(channels(look), paper), paper), 3];
    }
    if (ratio < least) faint.add(`${ratio.toFixed(2)} to 1 is the contrast of ${node.tagName}.${node.getAttribute("class") ?? ""}, of ${least}`);
  }
  faults.push(...faint);

  // Headings, tables, and controls for the keyboard.
  const levels = all("h1, h2, h3, h4, h5, h6").map((node) => Number(node.tagName[1]));
  if (charts.length && document.querySelector("main")) {
    if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1) faults.push(`headings ${levels}`);
    levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) faults.push(`a heading of level ${level} follows one of ${levels[at - 1]}`); });
  }
  for (const heading of all("h1, h2, h3, figcaption, caption, summary")) if (!heading.textContent.trim()) faults.push(`an empty ${heading.tagName}`);
  for (const section of all("section")) if (!section.textContent.replace(section.querySelector("h2")?.textContent ?? "", "").trim()) faults.push(`section ${section.id} has nothing but its heading`);
  for (const table of all("table")) {
    if (!table.caption?.textContent.trim()) faults.push("a table without a caption");
    if (all("th", table).some((head) => !["row", "col"].includes(head.getAttribute("scope")))) faults.push(`${table.caption?.textContent}: a heading without scope`);
    if (all("tbody tr", table).some((row) => !row.querySelector("th[scope=row]"))) faults.push(`${table.caption?.textContent}: a row without a heading`);
    if (!table.tBodies[0]?.rows.length) faults.push(`${table.caption?.textContent}: no rows`);
    if (table.tHead.rows[0].cells.length < 2) faults.push(`${table.caption?.textContent}: no columns`);
    const widths = new Set([...table.rows].map((row) => row.cells.length));
    if (widths.size > 1) faults.push(`${table.caption?.textContent}: rows of ${[...widths]} cells`);
  }
  for (const node of all("main *")) {
    const scrolls = ["auto", "scroll"].includes(getComputedStyle(node).overflowX) && node.scrollWidth > node.clientWidth + 1;
    if (scrolls && node.tabIndex < 0) faults.push(`${named(node)}: ${node.tagName} scrolls, and no key reaches it`);
    if (node.getAttribute("role") === "region" && !node.getAttribute("aria-label")) faults.push("a region without a name");
  }
  const ids = all("[id]").map((node) => node.id);
  if (new Set(ids).size < ids.length) faults.push("an id stands twice");

  // The page loads nothing from another origin.
  for (const entry of performance.getEntriesByType("resource")) if (new URL(entry.name).origin !== location.origin) faults.push(`loads ${entry.name}`);
  for (const node of all("[src], [href], [style]")) {
    const from = node.getAttribute("src") ?? node.getAttribute("href") ?? "";
    if (location.protocol === "file:" && !from.startsWith("#")) faults.push(`${node.tagName} has ${from}`);
  }
  return faults;
}
