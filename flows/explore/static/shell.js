"use strict";
// The page around the views: head, levels, what is shown now, live renewal, keyboard.
{
  const { h } = explorer;
  const LEVELS = [["ranking", "Ranking"], ["breaks", "Where it breaks"], ["trials", "Trials"]];
  const main = document.getElementById("main");
  const head = document.getElementById("head");
  const LOOK = 5000;
  let overview = null;
  let turn = 0;
  let current = null;
  let latest = null;

  const theme = {
    names: ["auto", "light", "dark"],
    now: "auto",
    set(name) {
      theme.now = name;
      if (name === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = name;
      try {
        localStorage.setItem("evalcube-theme", name);
      } catch { /* a page from disk may keep nothing */ }
    },
  };

  /** What a view gets of its page: the overview, the state, and how to change it. */
  const pageOf = (state) => ({
    overview,
    state,
    /** The text of a name in the address; empty if it has none. */
    get: (name) => (state.params[name] || [""])[0],
    /** All texts of a name in the address. */
    all: (name) => state.params[name] || [],
    /** Change names in the address: a text, a list, or null to take it out. The view is drawn anew. */
    set(changes, { replace = false, view = state.view } = {}) {
      const params = { ...explorer.parse(location.hash).params };
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === "" || (Array.isArray(value) && !value.length)) delete params[name];
        else params[name] = [value].flat().map(String);
      }
      const next = explorer.href(view, params);
      if (replace) {
        history.replaceState(null, "", next);
        draw();
      } else if (location.hash === next) draw();
      else location.hash = next;
    },
    /** The address of another view, with what filters say, and changes. */
    link(view, changes = {}) {
      const kept = Object.fromEntries(
        ["task", "tier", "where", "model"].filter((name) => state.params[name]).map(
          (name) => [name, state.params[name]],
        ),
      );
      // Counters know nothing of single trials.
      if (kept.where && explorer.views.get(view)?.level !== "trials") {
        kept.where = kept.where.filter((text) => !overview.measured.includes(text.split("=", 1)[0].trim()));
      }
      return explorer.href(view, { ...kept, ...changes });
    },
    ask: explorer.ask,
    part: () => explorer.part({ all: (name) => state.params[name] || [] }),
  });

  const problem = (error) =>
    h(
      "div.problem",
      { role: "alert" },
      h("p", {}, h("strong", {}, error.message || String(error))),
      error.remedy ? h("p", {}, error.remedy) : null,
    );

  const available = (level) =>
    [...explorer.views.values()].filter((view) =>
      view.level === level && !view.hidden && (!view.ready || view.ready(overview))
    );

  const told = (done, planned) =>
    `${explorer.format.number(done)}${done < planned ? ` of ${explorer.format.number(planned)}` : ""} trials`;

  const brand = () => {
    const status = overview.status.cubes;
    const [done, planned] = ["done", "trials"].map((name) => status.reduce((sum, one) => sum + one[name], 0));
    const running = !explorer.bundle && status.some((one) => one.running);
    const doneTitle = "What is recorded, and what a run has graded since.";
    return h(
      "div.brand",
      {},
      h("a", { href: "#/ranking", title: overview.cubes.join("\n") }, overview.title),
      h("span.status", { id: "done", title: doneTitle }, told(done, planned)),
      running ? h("span.live", { title: "This page follows the sweep." }, "live") : null,
      explorer.bundle ? h("span.status", {}, `as of ${explorer.bundle.date}`) : null,
    );
  };

  const levelLinks = (page, view) => {
    const link = ([level, title]) => {
      const [first] = available(level);
      const current = view && view.level === level ? "page" : null;
      return first ? h("a", { href: page.link(first.name), "aria-current": current }, title) : null;
    };
    return h("nav", { "aria-label": "Levels" }, LEVELS.map(link));
  };

  /** Links to the views of a level; nothing for a single one. */
  const viewLinks = (page, view) => {
    const views = view ? available(view.level) : [];
    if (views.length < 2) return [];
    const current = (one) => (one === view ? "page" : null);
    const link = (one) =>
      h("a", { href: page.link(one.name), "aria-current": current(one), title: one.hint }, one.title);
    return [h("nav.views", { "aria-label": "Views" }, views.map(link))];
  };

  const themeButton = () => {
    const next = theme.names[(theme.names.indexOf(theme.now) + 1) % 3];
    const turnTo = () => {
      theme.set(next);
      draw();
    };
    const title = `Colours: ${theme.now}; change to ${next}`;
    const symbol = { auto: "◐", light: "☀", dark: "☾" }[theme.now];
    return h("button.theme", { type: "button", id: "theme", title, "aria-label": title, onclick: turnTo }, symbol);
  };

  const drawHead = (state) => {
    const view = explorer.views.get(state.view);
    const page = pageOf(state);
    head.replaceChildren(brand(), levelLinks(page, view), themeButton(), ...viewLinks(page, view));
    document.title = `${view ? view.title : "evalcube"} · ${overview.title}`;
  };

  /** Refuse models that the address names and that are not there: views would show others in their place. */
  const checkModels = (page) => {
    const known = overview.models.map((one) => one.label);
    const strange = page.all("model").find((label) => !known.includes(label));
    if (strange !== undefined) {
      throw new explorer.AnswerError(
        `\`model\`: there is no '${strange}'`,
        `There are: ${known.slice(0, 12).join(", ")}`,
      );
    }
  };

  /** Draw what the address means; while it is made, the page stays as it was. */
  const draw = async () => {
    const mine = ++turn;
    // Not for a view that another has taken the place of: nobody would take it away again.
    const slow = setTimeout(() => mine === turn && main.classList.add("busy"), 150);
    const { hash } = location;
    latest = hash;
    main.dataset.drawn = "";
    try {
      const state = explorer.parse(hash);
      overview = await explorer.ask("overview");
      if (mine !== turn) return;
      drawHead(state);
      const view = explorer.views.get(state.view);
      const root = h("div.view", { class: view ? `view-${view.name}` : "" });
      root.append(heading(view));
      if (!view) root.append(problem({ message: `There is no view '${state.view}'.`, remedy: "Choose one above." }));
      else {
        const page = pageOf(state);
        try {
          checkModels(page);
          if (view.hint) root.append(h("p.hint", {}, view.hint));
          await view.render(root, page);
        } catch (error) {
          if (!(error instanceof explorer.AnswerError)) console.error(error);
          root.replaceChildren(
            heading(view),
            ...(view.controls ? [view.controls(page)] : [explorer.filters(page)]),
            problem(error),
          );
        }
        if (mine !== turn) return;
        current = { view, page };
      }
      swap(root, hash);
    } catch (error) {
      if (mine === turn) main.replaceChildren(heading(null), problem(error));
    } finally {
      clearTimeout(slow);
      if (mine === turn) {
        main.classList.remove("busy");
        // Not the hash by now, which may be another's that is drawn next.
        main.dataset.drawn = hash || "#";
      }
    }
  };
  explorer.draw = draw;

  const heading = (view) => h("h1", { id: "heading", tabindex: "-1" }, view ? view.title : "Not here");

  /** The address that is on the page; null before there is any. */
  let drawn = null;

  /** What a filter or a sort has left, for those who do not see it. */
  const summary = () => {
    const sorted = main.querySelector("th[aria-sort]");
    const body = main.querySelector("tbody");
    const chips = [...main.querySelectorAll(".chips .chip")].map((one) => one.textContent.replace(/ ?[×✕]$/, ""));
    const order = sorted &&
      `sorted by ${sorted.textContent.replace(/ [↓↑]$/, "")}, ${sorted.getAttribute("aria-sort")}`;
    return [
      main.querySelector(".problem, .empty, .pager .note")?.textContent || (body && `${body.dataset.rows} rows`),
      order,
      chips.length ? `only ${chips.join(", ")}` : "no filters",
    ].filter(Boolean).join("; ");
  };

  /** From which view each one was come to. */
  const came = new Map();

  /** In another view go on at its head; back in one, at the link that led away from it. */
  const focusAfter = (before, from, to) => {
    const back = came.get(from) === to;
    if (!back) came.set(to, from);
    const led = back && [...main.querySelectorAll("a[href]")].find((one) => one.getAttribute("href") === before);
    if (led) led.scrollIntoView({ block: "nearest" });
    (led || document.getElementById("heading"))?.focus({ preventScroll: true });
  };

  /** Put a new view in the place of the old one: what is open, focused or half typed stays so. */
  const swap = (root, hash) => {
    const before = drawn;
    drawn = hash;
    const open = [...main.querySelectorAll("details[id][open]")].map((one) => one.id);
    const scrolls = [...main.querySelectorAll(".pick .options, .scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    const focused = document.activeElement;
    const [id, value, selection] = main.contains(focused) ? [focused.id, focused.value, focused.selectionStart] : [];
    const from = main.firstElementChild?.className;
    const same = from === root.className;
    explorer.purge(main);
    main.replaceChildren(root);
    if (!same) {
      window.scrollTo(0, 0);
      if (before !== null) focusAfter(before, from, root.className);
      return;
    }
    for (const one of open.map((id) => document.getElementById(id)).filter(Boolean)) {
      one.setAttribute("open", "");
      one.fill?.(); // at once, as what was focused or scrolled in it is to be so again
    }
    [...main.querySelectorAll(".pick .options, .scroll")].forEach((one, place) =>
      scrolls[place] && one.scrollTo(...scrolls[place])
    );
    if (before !== hash) document.getElementById("said").textContent = summary();
    const next = id && document.getElementById(id);
    if (!next) return;
    next.focus({ preventScroll: true });
    if (selection !== null && selection !== undefined && next.setSelectionRange && next.value === value) {
      next.setSelectionRange(selection, selection);
    }
  };

  /** Look whether something new was recorded, and draw it then. */
  const look = async () => {
    if (document.hidden || explorer.bundle) return;
    try {
      const pulse = await explorer.ask("pulse", {}, { fresh: true });
      if (
        overview &&
        (pulse.stamp !== overview.stamp || pulse.running !== overview.status.cubes.some((one) => one.running))
      ) {
        explorer.renew();
        await draw();
      }
      if (pulse.graded !== null) {
        const planned = overview.status.cubes.reduce((sum, one) => sum + one.trials, 0);
        document.getElementById("done").textContent = told(
          Math.max(pulse.graded, overview.status.cubes.reduce((sum, one) => sum + one.done, 0)),
          planned,
        );
      }
      head.classList.remove("gone");
    } catch {
      head.classList.add("gone");
    }
  };

  // Of two changes in a row the first event finds the second address already, and the other has nothing to add.
  addEventListener("hashchange", () => {
    if (location.hash !== latest) draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (event.key === "Escape") {
      for (const one of document.querySelectorAll("details.pick[open]")) one.removeAttribute("open");
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !current) return;
    if (current.view.key && current.view.key(event, current.page)) event.preventDefault();
  });
  addEventListener("click", (event) => {
    // The target may be off the page by now, since the view was drawn anew.
    if (!(event.target instanceof Element) || !event.target.isConnected) return;
    for (const one of document.querySelectorAll("details.pick[open]")) {
      if (!one.contains(event.target)) one.removeAttribute("open");
    }
  });
  try {
    theme.set(localStorage.getItem("evalcube-theme") || "auto");
  } catch { /* as above */ }
  draw();
  setInterval(look, LOOK);
}
