"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  if (body.rows.length < 3) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent || "name";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => {
        const data = row.cells[column].querySelector("data");
        return data ? Number(data.value) : row.cells[column].textContent;
      };
      const order = (one, other) => {
        const [a, b] = [key(one), key(other)];
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
        return (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
      };
      body.append(...[...body.rows].sort(order));
    });
  });
}
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
