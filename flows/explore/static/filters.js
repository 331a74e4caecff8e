"use strict";
// What part of the cubes is meant: tasks, tiers, facets and conditions, all of them in the address.
{
  const { h, format } = explorer;

  /** What is in the menu of a list of boxes. */
  const menu = (id, title, options, toggle, clear) => {
    const box = ({ value, checked }) =>
      h("input", { type: "checkbox", id: `pick-${id}-${value}`, checked, onchange: () => toggle(value) });
    const list = h("div.options", {}, options.map((one) => h("label", {}, box(one), " ", one.label)));
    const narrow = (event) => {
      const wanted = event.target.value.toLowerCase();
      for (const label of list.children) label.hidden = !label.textContent.toLowerCase().includes(wanted);
    };
    const search = { type: "search", placeholder: "Find …", "aria-label": `Find in ${title}`, oninput: narrow };
    return h(
      "div.menu",
      {},
      options.length > 12 ? h("input", search) : null,
      list,
      clear ? h("button", { type: "button", onclick: clear }, "Reset") : null,
    );
  };

  /**
   * A list of boxes to tick, behind a button.
   * @param {string} id - also what keeps it open while the page changes
   * @param {string} title
   * @param {{value: string, label: string, checked: boolean}[]} options
   * @param {(value: string) => void} toggle
   * @param {(() => void)|null} [clear]
   */
  explorer.pick = (id, title, options, toggle, clear) => {
    const made = h("details.pick", { id: `pick-${id}` }, h("summary", {}, title));
    // Not before it is opened: a page may have hundreds of options that nobody looks at.
    made.fill = () => {
      made.fill = () => {};
      made.append(menu(id, title, options, toggle, clear));
    };
    made.addEventListener("toggle", () => made.fill());
    return made;
  };

  /** One of several, as a row of buttons. Each is [value, label]; the first is what it is without being set. */
  explorer.choice = (page, name, options, label) => {
    const now = page.get(name) || options[0][0];
    return h(
      "div.choice",
      { role: "group", "aria-label": label || name },
      options.map(([value, text, hint]) =>
        h("button", {
          type: "button",
          id: `choice-${name}-${value}`,
          title: hint,
          "aria-pressed": String(value === now),
          onclick: () => page.set({ [name]: value === options[0][0] ? null : value }),
        }, text)
      ),
    );
  };

  /** One of several, as a list; each option is [value, label]. `now` is shown while the address says nothing. */
  explorer.select = (page, name, options, label, now = options[0][0]) =>
    h(
      "label.select",
      {},
      label ? `${label} ` : null,
      h("select", {
        id: `select-${name}`,
        "aria-label": label || name,
        onchange: (event) =>
          page.set({ [name]: event.target.value === now && !page.get(name) ? null : event.target.value || null }),
      }, options.map(([value, text]) => h("option", { value, selected: value === (page.get(name) || now) }, text))),
    );

  /** The part of the cubes that the address means, as endpoints take it. */
  explorer.part = (page) => ({ task: page.all("task"), tier: page.all("tier"), where: page.all("where") });

  /** How many of some values are chosen, in a word: the value itself, if it is the only one. */
  const counted = (now) => (now.length === 0 ? "all" : now.length === 1 ? now[0] : String(now.length));

  const boxes = (values, now) => values.map((value) => ({ value, label: value, checked: now.includes(value) }));

  const flipped = (now, value) => (now.includes(value) ? now.filter((one) => one !== value) : [...now, value]);

  /** A list of boxes that sets a name of the address. */
  const namePick = (page, name, title, values) => {
    const now = page.all(name);
    // A bundle has the answers for one part at a time.
    const alone = explorer.bundle && (name === "task" || name === "tier");
    const flip = (value) => {
      const next = flipped(now, value);
      page.set({ ...(alone ? { task: null, tier: null } : {}), [name]: alone ? next.slice(-1) : next, page: null });
    };
    const clear = now.length ? () => page.set({ [name]: null, page: null }) : null;
    return explorer.pick(name, `${title}: ${counted(now)}`, boxes(values, now), flip, clear);
  };

  /** Filters by facets and by any other condition; a bundle cannot look for one. */
  const conditions = (page, wanted) => {
    if (wanted.where === false || explorer.bundle) return null;
    const { facets } = page.overview;
    const shown = facets.filter((one) => one.levels.length > 1 && one.levels.length <= 100);
    return [
      shown.length > 2 ? manyFacets(page, shown) : shown.map((facet) => facetPick(page, facet)),
      whereBox(page, wanted.names),
    ];
  };

  /**
   * The row of filters that a view has.
   * @param {any} page
   * @param {{tasks?: boolean, tiers?: boolean, where?: boolean, models?: boolean}} [wanted] - all by default but models
   * @param {...any} more - controls of the view's own
   */
  explorer.filters = (page, wanted = {}, ...more) => {
    const { models, tiers } = page.overview;
    const tasks = page.overview.tasks.map((one) => one.label);
    const row = h(
      "div.filters",
      { role: "search", "aria-label": "Filters" },
      wanted.models ? namePick(page, "model", "Models", models.map((one) => one.label)) : null,
      wanted.tasks !== false && tasks.length > 1 ? namePick(page, "task", "Tasks", tasks) : null,
      wanted.tiers !== false && tiers.length > 1 ? namePick(page, "tier", "Tiers", tiers) : null,
      conditions(page, wanted),
      ...more,
    );
    const told = chips(page, wanted);
    // On a phone the controls would fill the first screen.
    if (!matchMedia("(max-width: 640px)").matches) return h("div", {}, row, told);
    return h("div", {}, h("details.folded", { id: "filters" }, h("summary", {}, "Filters"), row), told);
  };

  /** The values that a condition of the address gives a facet, and how to give it others. */
  const valuesOf = (page, name) => {
    const start = `${name}=`;
    const mine = page.all("where").find((text) => text.startsWith(start));
    const now = mine ? mine.slice(start.length).split(",") : [];
    const rest = page.all("where").filter((text) => !text.startsWith(start));
    const put = (values) => page.set({ where: values.length ? [...rest, start + values.join(",")] : rest, page: null });
    return {
      now,
      flip: (value) => put(flipped(now, value)),
      clear: () => put([]),
    };
  };

  const facetPick = (page, facet) => {
    const { now, flip, clear } = valuesOf(page, facet.name);
    const title = `${format.plain(facet.name)}: ${counted(now)}`;
    return explorer.pick(facet.name, title, boxes(facet.levels.map(String), now), flip, now.length ? clear : null);
  };

  const manyFacets = (page, facets) => {
    const options = facets.flatMap((facet) =>
      facet.levels.map(String).map((value) => ({
        value: `${facet.name}=${value}`,
        label: `${format.plain(facet.name)} = ${value}`,
        checked: valuesOf(page, facet.name).now.includes(value),
      }))
    );
    const many = options.filter((one) => one.checked).length;
    return explorer.pick(
      "facets",
      many ? `Facets: ${many}` : "Facets",
      options,
      (text) => valuesOf(page, text.split("=", 1)[0]).flip(text.slice(text.indexOf("=") + 1)),
      many
        ? () => page.set({ where: page.all("where").filter((text) => !text.startsWith("facet_")), page: null })
        : null,
    );
  };

  const whereBox = (page, names = []) =>
    h(
      "form.where",
      {
        onsubmit: (event) => {
          event.preventDefault();
          const text = new FormData(event.target).get("where").trim();
          if (text) page.set({ where: [...page.all("where"), text], page: null });
        },
      },
      h("input", {
        name: "where",
        id: "where",
        placeholder: "param_length=4..16",
        "aria-label": "Condition, NAME=VALUE",
        autocomplete: "off",
        list: "names",
      }),
      h(
        "datalist",
        { id: "names" },
        [
          ...new Set([
            ...names.map((name) => `${name}=`),
            ...page.overview.tasks.flatMap((task) =>
              task.params.filter((one) => one.levels.length > 1).map((one) => `${one.name}=`)
            ),
          ]),
        ].map((value) => h("option", { value })),
      ),
    );

  const chips = (page, wanted) => {
    if (wanted.where === false) return null;
    const found = page.all("where").map((text) =>
      h(
        "button.chip",
        {
          type: "button",
          title: "Remove this condition",
          onclick: () => page.set({ where: page.all("where").filter((one) => one !== text), page: null }),
        },
        text,
        h("span", { "aria-hidden": "true" }, " ×"),
      )
    );
    return found.length ? h("div.chips", {}, found) : null;
  };
}
