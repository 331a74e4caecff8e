"use strict";
// Tables that sort, choose their columns and hand themselves on as CSV or JSON; what is chosen stands in the address.
{
  const { h, format } = explorer;
  const AT_ONCE = 60;

  /**
   * The body of a table, `line` making an element of a row. What is below the screen can wait, unless it is there that
   * somebody looks.
   */
  explorer.body = (rows, line) => {
    const first = scrollY > 200 ? rows.length : AT_ONCE;
    const body = h("tbody", { "data-rows": rows.length }, rows.slice(0, first).map(line));
    if (rows.length > first) setTimeout(() => body.append(...rows.slice(first).map(line)), 50);
    return body;
  };

  /** The arrow at the head that a table is sorted by. */
  explorer.arrow = (down) => h("span.arrow", { "aria-hidden": "true" }, down ? " ↓" : " ↑");

  /** The columns that the address names; those that are no extra ones without. */
  const shownColumns = (page, spec, prefix) => {
    const chosen = page.get(`${prefix}columns`);
    if (!chosen) return spec.columns.filter((one) => !one.extra);
    const columns = chosen.split(",").map((name) => spec.columns.find((one) => one.key === name)).filter(Boolean);
    if (columns.length) return columns;
    const there = spec.columns.map((one) => one.key).join(", ");
    throw new explorer.AnswerError(`\`${prefix}columns\`: there is no '${chosen}'`, `There are: ${there}`);
  };

  const head = (page, column, { key, down }, prefix) => {
    const mine = column.key === key;
    const first = Boolean(column.descending ?? !column.left); // whether the first click brings the largest to the top
    const next = mine && down === first ? !down : first;
    const sort = () => page.set({ [`${prefix}sort`]: `${next ? "-" : ""}${column.key}`, [`${prefix}page`]: null });
    const button = { type: "button", id: `${prefix}sort-${column.key}`, title: column.hint, onclick: sort };
    const label = column.fixed
      ? h("span", { title: column.hint }, column.title)
      : h("button", button, column.title, mine ? explorer.arrow(down) : null);
    const order = mine ? (down ? "descending" : "ascending") : null;
    return h("th", { scope: "col", class: column.left ? "left" : "", "aria-sort": order }, label);
  };

  const shownValue = (column, row) => {
    if (column.show) return column.show(row);
    const value = column.value(row);
    if (typeof value !== "string") return format.number(value);
    return column.wide ? value : h("span.words", {}, value);
  };

  const cell = (column, row) => {
    const folds = column.wide ? "wide" : column.short ? "short" : "";
    return h("td", { class: [column.left ? "left" : "", folds].join(" ") }, shownValue(column, row));
  };

  /**
   * A table.
   *
   * A column is {key, title, value, show, left, hint, extra}: `value(row)` is what it sorts and exports by, `show(row)`
   * an element or text (default: the value), `left` aligns texts, `wide` and `short` fold them, `hint` is told on
   * hover, and an `extra` column is only shown if it is chosen. In the address are `sort` (a key, with - for the
   * largest first) and `columns`.
   *
   * @param {any} page
   * @param {{columns: any[], rows: any[], name: string, sort?: string, mark?: (row: any) => string, choose?: boolean,
   *   sorted?: boolean, prefix?: string, caption?: string, empty?: string|null}} spec - `sorted`: rows come in order; a
   *   click on a head only changes the address. `prefix`: before the names in the address, where a view has several
   *   tables. `empty`: what is said without rows.
   */
  explorer.table = (page, spec) => {
    const prefix = spec.prefix || "";
    const columns = shownColumns(page, spec, prefix);
    const order = page.get(`${prefix}sort`) || spec.sort || "";
    const [key, down] = [order.replace(/^-/, ""), order.startsWith("-")];
    const rows = spec.sorted ? spec.rows : sorted(spec.rows, spec.columns.find((one) => one.key === key), down);
    const heads = columns.map((column) => head(page, column, { key, down }, prefix));
    const mark = (row) => (spec.mark ? spec.mark(row) : "");
    const line = (row) => h("tr", { class: mark(row) }, columns.map((column) => cell(column, row)));
    const body = explorer.body(rows, line);
    return h(
      "div.tabled",
      {},
      tools(page, spec, columns, rows, prefix),
      h(
        "div.scroll",
        { tabindex: "0", role: "region", "aria-label": spec.caption || spec.name },
        h("table", {}, h("thead", {}, h("tr", {}, heads)), body),
      ),
      rows.length ? null : h("p.empty", {}, spec.empty || "Nothing fulfils all of this."),
    );
  };

  const present = (value) => value !== null && value !== undefined && value !== "" && !Number.isNaN(value);

  const compare = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  };

  /** Rows by a column; what is absent comes last, either way. */
  const sorted = (rows, column, down) => {
    if (!column) return rows;
    const items = rows.map((row, place) => ({ row, place, value: column.value(row) }));
    items.sort((a, b) => {
      if (present(a.value) !== present(b.value)) return present(a.value) ? -1 : 1;
      return (present(a.value) ? (down ? -1 : 1) * compare(a.value, b.value) : 0) || a.place - b.place;
    });
    return items.map((item) => item.row);
  };

  /** The list of boxes that chooses columns. */
  const columnPick = (page, spec, columns, name) => {
    const shown = new Set(columns.map((one) => one.key));
    const toggle = (key) => {
      const next = spec.columns.filter((one) => (one.key === key ? !shown.has(key) : shown.has(one.key)));
      page.set({ [name]: next.map((one) => one.key).join(",") || null });
    };
    const option = (one) => ({ value: one.key, label: one.choice || one.title, checked: shown.has(one.key) });
    const clear = page.get(name) ? () => page.set({ [name]: null }) : null;
    return explorer.pick(name, "Columns", spec.columns.map(option), toggle, clear);
  };

  const tools = (page, spec, columns, rows, prefix) => {
    const saveCsv = () => save(`${spec.name}.csv`, "text/csv", csv(columns, rows));
    const saveJson = () => save(`${spec.name}.json`, "application/json", json(columns, rows));
    return h(
      "div.tools",
      {},
      spec.choose === false ? null : columnPick(page, spec, columns, `${prefix}columns`),
      h("button", { type: "button", onclick: saveCsv }, "CSV"),
      h("button", { type: "button", onclick: saveJson }, "JSON"),
    );
  };

  const fields = (column, row) => {
    if (!column.parts) return [[column.key, column.value(row)]];
    return Object.entries(column.parts(row)).map(([part, value]) => [`${column.key}_${part}`, value]);
  };

  const exported = (columns, rows) =>
    rows.map((row) => Object.fromEntries(columns.flatMap((column) => fields(column, row))));

  const json = (columns, rows) => JSON.stringify(exported(columns, rows), null, 1);

  // What a spreadsheet takes for the beginning of a formula, or skips before one; the same as Python's `csv_text`.
  const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

  const csvField = (value) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  const csv = (columns, rows) => {
    const objects = exported(columns, rows);
    const names = [...new Set(objects.flatMap(Object.keys))];
    const lines = [names, ...objects.map((one) => names.map((name) => one[name]))];
    return lines.map((line) => `${line.map(csvField).join(",")}\r\n`).join("");
  };

  const save = (name, type, text) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = h("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  explorer.csv = csv;
}
