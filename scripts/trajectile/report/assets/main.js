// Puts the parts together: search, filters, list, reader, keys.
const KEYS = [
  ["j  k", "next, previous trajectory"], ["Enter", "read it"], ["/", "search; \"a phrase\" in quotes"], ["Enter in search", "search the whole text"],
  ["Esc", "back"], ["o", "unfold or fold tool calls"], ["r", "unfold or fold reasoning"], ["w", "show the stored JSON"],
  ["c", "copy a link to this row"], ["g  G", "first, last"], ["?", "these keys"],
];
const SEARCH_DELAY_MS = 120;
const state = { terms: [], order: "dataset order", chosen: new Map(), found: new Set(), searching: 0, timer: 0 };
let list = null;
let choices = [];

function fillRow(row, id) {
  const searched = pattern(state.terms);
  const calls = toolCalls(id);
  const failed = failedCalls(id);
  const facts = [
    el("b", { className: has(id, FLAG.completed) ? "good" : "bad" }, about.ends[columns.end[id]]),
    has(id, FLAG.discarded) && el("b", { className: "warn" }, "discarded"),
    failed > 0 && el("span", { className: "bad" }, `${failed} failed`),
    plural(columns.turns[id], "turn"), `${number(columns.tokens[id])} tokens`,
    calls.length > 0 && calls.map((call) => about.tools[call.tool]).join(", "),
  ].filter(Boolean);
  row.replaceChildren(
    el("div", {}, el("span", { className: "number" }, String(columns.prompt[id])),
      ...marked(columns.text[id].slice(0, 160).replace(/\s+/g, " "), searched)),
    el("div", { className: "facts" }, facts.flatMap((fact, n) => (n ? [" · ", fact] : [fact]))));
}

function update() {
  const chosen = choices.filter(({ name }) => state.chosen.has(name)).map(({ name, test }) => ({ test, value: state.chosen.get(name) }));
  const ids = select(state.terms, chosen, state.order, state.found);
  list.show(ids);
  list.select(ids.indexOf(shown.id));
  const all = haystack.length;
  byId("count").textContent = ids.length === all ? plural(all, "trajectory", "trajectories") : `${whole(ids.length)} of ${whole(all)}`;
  byId("clear").hidden = !state.terms.length && !state.chosen.size;
  byId("deep").hidden = !state.terms.length;
  if (!state.searching) byId("deep").textContent = "Search whole text";
}

function search(query) {
  state.terms = termsOf(query);
  state.found = new Set();
  state.searching = 0;
  update();
}

async function searchWhole() {
  clearTimeout(state.timer);
  search(byId("query").value);
  if (!state.terms.length) return;
  const mine = (state.searching = Date.now());
  const { terms, found } = state;
  const step = (done, all) => {
    if (state.searching !== mine) return false;
    byId("deep").textContent = `${Math.round((100 * done) / all)}%`;
    return true;
  };
  await searchAll(terms, found, step);
  if (state.searching !== mine) return;
  state.searching = 0;
  update();
  byId("deep").textContent = "Searched whole text";
}

function open(place) {
  if (place < 0 || place >= list.ids.length) return;
  list.select(place);
  const id = list.ids[place];
  history.replaceState(null, "", `#${columns.key[id]}`);
  read(id, state.terms).catch(fail);
}

function enterReader() {
  document.body.classList.add("reading");
  byId("reader").focus();
}

function closeReader() {
  document.body.classList.remove("reading");
  byId("list").focus();
}

function openLink() {
  const key = decodeURIComponent(location.hash.slice(1));
  if (!key) return;
  const id = rowOfKey.get(key);
  if (id === undefined) return explain(`This run has no row ${key}.`);
  if (!list.ids.includes(id)) clearAll();
  open(list.ids.indexOf(id));
  enterReader();
}

function clearAll() {
  byId("query").value = "";
  for (const box of document.querySelectorAll("aside select")) {
    box.selectedIndex = 0;
    box.classList.remove("set");
  }
  Object.assign(state, { chosen: new Map(), order: "dataset order" });
  search("");
}

function selectBox(label, first, entries, change) {
  const box = el("select", { ariaLabel: label }, first, entries.map(([value, text]) => el("option", { value }, text)));
  box.name = label;
  box.onchange = () => {
    box.classList.toggle("set", box.selectedIndex > 0);
    change(box.value);
    update();
  };
  return box;
}

function buildFilters() {
  choices = filters();
  const boxes = choices.map(({ name, any, choices: entries }) =>
    selectBox(name, el("option", { value: "" }, any), entries, (value) => {
      if (value) state.chosen.set(name, value);
      else state.chosen.delete(name);
    }));
  const order = selectBox("order", "", Object.keys(ORDERS).map((name) => [name, name]), (value) => (state.order = value));
  byId("filters").append(...boxes);
  byId("order").append(order);
}

const move = (step) => open(Math.min(list.ids.length - 1, Math.max(0, list.position + step)));

const ACTIONS = {
  j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), g: () => open(0), G: () => open(list.ids.length - 1),
  Enter: () => { if (list.position < 0) open(0); enterReader(); },
  Escape: closeReader, "/": () => { closeReader(); byId("query").focus(); byId("query").select(); },
  "?": () => byId("help").showModal(), o: toggleCalls, r: toggleThoughts, w: () => shown.row && toggleJson(), c: () => shown.row && copyLink(),
};

function onKey(event) {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (target === byId("query")) {
    if (key === "Enter") searchWhole().catch(fail);
    if (key !== "Escape" && key !== "ArrowDown") return;
    event.preventDefault();
    byId("list").focus();
    return;
  }
  const isReading = byId("reader").contains(target);
  if (target.tagName === "SELECT" || (key === "Enter" && target.closest("button, summary")) || (isReading && key.startsWith("Arrow"))) return;
  if (!ACTIONS[key]) return;
  event.preventDefault();
  ACTIONS[key]();
}

function fail(error) {
  byId("reader").replaceChildren(el("div", { className: "banner error", role: "alert" }, error.message));
  document.body.classList.add("reading");
}

async function start() {
  list = new List(byId("list"), byId("spacer"), fillRow, (place) => { open(place); enterReader(); });
  await loadIndex((count) => (byId("count").textContent = `loading, ${whole(count)} rows…`));
  document.title = about.run_name;
  byId("name").textContent = about.run_name;
  byId("about").textContent = `${about.model}, ${about.distribution}; ${plural(about.prompts, "prompt")}${about.owed ? `, ${whole(about.owed)} owed` : ""}`;
  buildFilters();
  byId("help").append(el("h2", {}, "Keys"), pairs(KEYS.map(([key, text]) => [el("kbd", {}, key), text])));
  byId("query").oninput = ({ target }) => {
    clearTimeout(state.timer);
    state.timer = setTimeout(() => search(target.value), SEARCH_DELAY_MS);
  };
  byId("deep").onclick = () => searchWhole().catch(fail);
  byId("clear").onclick = clearAll;
  byId("help-button").onclick = ACTIONS["?"];
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", openLink);
  update();
  explain(haystack.length ? "Choose a trajectory, or press j." : "No prompt of this run has finished yet.");
  openLink();
}

start().catch(fail);
