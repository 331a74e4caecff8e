"use strict";
// Tables that sort, choose their columns and hand themselves on as CSV or JSON; what is chosen stands in the address.
{
  const { h, format } = explorer;
  const AT_ONCE = 60;

  /** The body of a table, `line` making an element of a row. What is below the screen can wait, unless it is there that somebody looks. */
  explorer.body = (rows, line) => {
    const first = scrollY > 200 ? rows.length : AT_ONCE;
    const body = h("tbody", {}, rows.slice(0, first).map(line));
    if (rows.length > first) setTimeout(() => body.append(...rows.slice(first).map(line)), 50);
    return body;
  };

  /**
   * A table.
   *
   * A column is {key, title, value, show, left, hint, extra}: `value(row)` is what it sorts and exports by, `show(row)`
   * an element or text (default: the value), `left` aligns texts, `wide` and `short` fold them, `hint` is told on hover, and an `extra` column is
   * only shown if it is chosen. In the address are `sort` (a key, with - for the largest first) and `columns`.
   *
   * @param {any} page
   * @param {{columns: any[], rows: any[], name: string, sort?: string, mark?: (row: any) => string, choose?: boolean,
   *   sorted?: boolean, prefix?: string, caption?: string, empty?: string|null}} spec - `sorted`: rows come in order; a click on a head only
   *   changes the address. `prefix`: before the names in the address, where a view has several tables. `empty`: what is said without rows.
   */
  explorer.table = (page, spec) => {
    const prefix = spec.prefix || "";
    const chosen = page.get(`${prefix}columns`);
    const names = chosen ? chosen.split(",") : [];
    const columns = chosen
      ? names.map((name) => spec.columns.find((one) => one.key === name)).filter(Boolean)
      : spec.columns.filter((one) => !one.extra);
    if (chosen && !columns.length) {
      throw new explorer.AnswerError(
        `\`${prefix}columns\`: there is no '${chosen}'`,
        `There are: ${spec.columns.map((one) => one.key).join(", ")}`,
      );
    }
    const order = page.get(`${prefix}sort`) || spec.sort || "";
    const [key, down] = [order.replace(/^-/, ""), order.startsWith("-")];
    const rows = spec.sorted ? spec.rows : sorted(spec.rows, spec.columns.find((one) => one.key === key), down);
    const head = columns.map((column) => {
      const mine = column.key === key;
      const next = mine && down === Boolean(column.descending ?? !column.left)
        ? `${down ? "" : "-"}${column.key}`
        : `${column.descending ?? !column.left ? "-" : ""}${column.key}`;
      const label = column.fixed ? h("span", { title: column.hint }, column.title) : h(
        "button",
        {
          type: "button",
          id: `${prefix}sort-${column.key}`,
          title: column.hint,
          onclick: () => page.set({ [`${prefix}sort`]: next, [`${prefix}page`]: null }),
        },
        column.title,
        mine ? h("span.arrow", { "aria-hidden": "true" }, down ? " ↓" : " ↑") : null,
      );
      return h("th", {
        scope: "col",
        class: column.left ? "left" : "",
        "aria-sort": mine ? (down ? "descending" : "ascending") : null,
      }, label);
    });
    const line = (row) =>
      h(
        "tr",
        { class: spec.mark ? spec.mark(row) : "" },
        columns.map((column) => {
          const value = column.value(row);
          const shown = column.show
            ? column.show(row)
            : typeof value === "string"
            ? (column.wide ? value : h("span.words", {}, value))
            : format.number(value);
          return h("td", {
            class: [column.left ? "left" : "", column.wide ? "wide" : column.short ? "short" : ""].join(" "),
          }, shown);
        }),
      );
    const body = explorer.body(rows, line);
    return h(
      "div.tabled",
      {},
      tools(page, spec, columns, rows, prefix),
      h(
        "div.scroll",
        { tabindex: "0", role: "region", "aria-label": spec.caption || spec.name },
        h("table", {}, h("thead", {}, h("tr", {}, head)), body),
      ),
      rows.length ? null : h("p.empty", {}, spec.empty || "Nothing fulfils all of this."),
    );
  };

  const sorted = (rows, column, down) => {
    if (!column) return rows;
    const present = (value) => value !== null && value !== undefined && value !== "" && !Number.isNaN(value);
    const compare = (
      a,
      b,
    ) => (typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true }));
    return rows.map((row, place) => ({ row, place, value: column.value(row) })).sort((a, b) => {
      if (present(a.value) !== present(b.value)) return present(a.value) ? -1 : 1; // what is absent comes last, either way
      return (present(a.value) ? (down ? -1 : 1) * compare(a.value, b.value) : 0) || a.place - b.place;
    }).map((item) => item.row);
  };

  const tools = (page, spec, columns, rows, prefix) => {
    const shown = new Set(columns.map((one) => one.key));
    const toggle = (key) => {
      const next = spec.columns.filter((one) => (one.key === key ? !shown.has(key) : shown.has(one.key))).map((one) =>
        one.key
      );
      page.set({ [`${prefix}columns`]: next.join(",") || null });
    };
    return h(
      "div.tools",
      {},
      spec.choose === false ? null : explorer.pick(
        `${prefix}columns`,
        "Columns",
        spec.columns.map((one) => ({ value: one.key, label: one.choice || one.title, checked: shown.has(one.key) })),
        toggle,
        page.get(`${prefix}columns`) ? () => page.set({ [`${prefix}columns`]: null }) : null,
      ),
      h("button", { type: "button", onclick: () => save(`${spec.name}.csv`, "text/csv", csv(columns, rows)) }, "CSV"),
      h(
        "button",
        { type: "button", onclick: () => save(`${spec.name}.json`, "application/json", json(columns, rows)) },
        "JSON",
      ),
    );
  };

  const exported = (columns, rows) =>
    rows.map((row) =>
      Object.fromEntries(
        columns.flatMap((column) => (column.parts
          ? Object.entries(column.parts(row)).map(([part, value]) => [`${column.key}_${part}`, value])
          : [[column.key, column.value(row)]])
        ),
      )
    );

  const json = (columns, rows) => JSON.stringify(exported(columns, rows), null, 1);

  // What a spreadsheet takes for the beginning of a formula, or skips before one; the same as in flows/read/trials/escaped.py.
  const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

  const csv = (columns, rows) => {
    const objects = exported(columns, rows);
    const names = [...new Set(objects.flatMap(Object.keys))];
    const cell = (value) => {
      if (value === null || value === undefined) return "";
      const text = typeof value === "object" ? JSON.stringify(value) : String(value);
      const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    return `${
      [names, ...objects.map((one) => names.map((name) => one[name]))].map((line) => line.map(cell).join(",")).join(
        "\r\n",
      )
    }\r\n`;
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
