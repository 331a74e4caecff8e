"use strict";
// The namespace of the front end: elements, the state in the address, and what is asked of the server or the bundle.
//
// These are plain scripts and no modules, because a page that is opened from disk may load scripts but no modules.
// Each file has a block of its own, and puts what others use on `explorer`.

/** @type {any} */
const explorer = { views: new Map(), bundle: null };

{
  // Tabs and line breaks are seen; other control characters, what turns a direction, joins, or fills no width is not.
  const HIDDEN = new RegExp(
    String.raw`(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5` +
      String.raw`\u180b-\u180f\u2800\u3164\uffa0\u{e0000}-\u{e01ef}]`,
    "gu",
  );

  /** A text with characters that nobody sees, or that turn round what is around them, written as ⟨U+202E⟩. */
  const visible = explorer.visible = (text) =>
    String(text).replace(
      HIDDEN,
      (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
    );

  /** Attributes that a person reads. */
  const READ = new Set(["title", "aria-label", "placeholder"]);

  /**
   * An element. Children that are texts become text nodes, without hidden characters: nothing that comes from a cube is
   * ever read as HTML.
   * @param {string} tag - such as "div" or "p.note"
   * @param {Object<string, any>} [properties] - attributes; those that begin with "on" are listeners
   * @param {...any} children - elements, texts, numbers, lists of these; null and false are left out
   */
  explorer.h = (tag, properties, ...children) => {
    const [name, ...classes] = tag.split(".");
    const element = document.createElement(name);
    if (classes.length) element.className = classes.join(" ");
    for (const [key, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (key === "class") element.classList.add(...String(value).split(" ").filter(Boolean));
      else if (key === "style") Object.assign(element.style, value);
      else if (key === "value" || key === "checked" || key === "selected" || key === "disabled") element[key] = value;
      else element.setAttribute(key, value === true ? "" : READ.has(key) ? visible(value) : String(value));
    }
    element.append(
      ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
        .map((child) => (typeof child === "string" ? visible(child) : child)),
    );
    return element;
  };

  // The state: everything after # in the address, as in #/ranking?task=sort&sort=-score

  const decoded = (path) => {
    try {
      return decodeURIComponent(path);
    } catch {
      return path; // no view has such a name
    }
  };

  /** The state that an address means: {view, params}; params has a list of texts for each name. */
  explorer.parse = (hash) => {
    const [path, search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
    const params = Object.create(null); // anybody may write names such as __proto__ into an address
    for (const [name, value] of new URLSearchParams(search)) (params[name] ??= []).push(value);
    return { view: decoded(path) || "ranking", params };
  };

  /** The address of a state. */
  explorer.href = (view, params = {}) => {
    const search = new URLSearchParams();
    for (const [name, values] of Object.entries(params)) {
      for (const value of [values].flat()) {
        if (value !== null && value !== undefined && value !== "") search.append(name, value);
      }
    }
    const text = search.toString();
    return `#/${encodeURIComponent(view)}${text ? `?${text}` : ""}`;
  };

  // What is asked

  /** The same key for the same query as `flows.explore.query.Query.key` makes. */
  explorer.key = (params) => {
    const parts = [];
    for (const [name, values] of Object.entries(params || {})) {
      for (const value of [values].flat()) {
        if (value !== null && value !== undefined && value !== "") {
          parts.push(`${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
        }
      }
    }
    return parts.sort().join("&");
  };

  class AnswerError extends Error {
    constructor(message, remedy) {
      super(message);
      this.remedy = remedy || "";
    }
  }
  explorer.AnswerError = AnswerError;

  const known = new Map();
  const arrived = new WeakSet();

  /** Forget answers, which may have changed. */
  explorer.renew = () => known.clear();

  /**
   * The answer of an endpoint. Equal questions are asked once, until something new is recorded.
   * @param {string} name
   * @param {Object<string, any>} [params]
   * @param {{fresh?: boolean}} [how] - fresh: asked again in any case
   */
  explorer.ask = (name, params = {}, { fresh = false } = {}) => {
    const key = `${name}?${explorer.key(params)}`;
    if (!fresh && known.has(key)) return known.get(key);
    const answer = explorer.bundled?.[name]
      ? explorer.bundled[name](params)
      : explorer.bundle
      ? fromBundle(key)
      : fromServer(key);
    known.set(key, answer);
    answer.then(() => arrived.add(answer), () => known.delete(key));
    if (known.size > 200) known.delete(known.keys().next().value);
    return answer;
  };

  /** Whether an answer is here already, so that asking costs nothing. */
  explorer.has = (name, params = {}) => arrived.has(known.get(`${name}?${explorer.key(params)}`));

  const fromServer = async (key) => {
    let reply;
    try {
      reply = await fetch(`api/${key}`, { headers: { accept: "application/json" } });
    } catch {
      throw new AnswerError("The server does not answer.", "Is `evalcube explore` still running?");
    }
    const type = reply.headers.get("content-type") || "";
    if (!type.startsWith("application/json")) {
      throw new AnswerError((await reply.text()).trim() || `The server answered ${reply.status}.`);
    }
    const document = await reply.json();
    if (document.error) throw new AnswerError(document.error.message, document.error.remedy);
    return document;
  };

  // A bundle's answers are scripts that call `explorer.receive`: from disk a page may load scripts and nothing else.
  const waiting = new Map();

  explorer.receive = (key, document) => {
    waiting.get(key)?.resolve(document);
    waiting.delete(key);
  };

  const fromBundle = explorer.fromBundle = (key) =>
    new Promise((resolve, reject) => {
      const file = explorer.bundle.files[key];
      if (file === undefined) {
        reject(new AnswerError("This bundle does not hold that.", "Its cube does: evalcube explore CUBE"));
        return;
      }
      waiting.set(key, { resolve });
      explorer.script(`data/${file}`).catch(() => reject(new AnswerError(`data/${file} is missing from this bundle.`)));
    });

  /** Load a script once. */
  const loads = new Map();
  explorer.script = (path) => {
    if (!loads.has(path) || path.startsWith("data/")) {
      loads.set(
        path,
        new Promise((resolve, reject) => {
          const element = explorer.h("script", { src: path });
          element.addEventListener("load", () => resolve());
          element.addEventListener("error", () => reject(new Error(`cannot load ${path}`)));
          document.head.append(element);
        }),
      );
    }
    return loads.get(path);
  };

  /**
   * Register a view.
   * @param {{name: string, title: string, level: string, hint?: string, ready?: (overview: any) => boolean,
   *   render: (root: HTMLElement, page: any) => (void|Promise<void>),
   *   key?: (event: KeyboardEvent, page: any) => boolean}} view
   */
  explorer.view = (view) => explorer.views.set(view.name, view);
}
