// Shows one trajectory.
const shown = { id: -1, row: null };

function explain(...lines) {
  byId("reader").replaceChildren(el("div", { className: "empty" }, lines.map((line) => el("p", {}, line))));
}

async function read(id, terms) {
  shown.id = id;
  const row = await readRow(columns.chunk[id], columns.at[id]);
  if (shown.id !== id) return;
  shown.row = row;
  const searched = pattern(terms);
  const reader = byId("reader");
  reader.replaceChildren(
    barElement(row),
    badgesElement(row),
    ...columns.reasons[id].map((reason) => el("div", { className: "banner" }, `discarded by the quality filter: ${reason}`)),
    aboutElement(row),
    ...grouped(row.conversations).map((group) => turnElement(group, searched)));
  reader.scrollTop = 0;
  reader.querySelector(".turn mark")?.scrollIntoView({ block: "center" });
}

function button(label, key, action, id = "") {
  return el("button", { type: "button", title: key, onclick: action, id }, label);
}

function barElement(row) {
  return el("div", { className: "bar" },
    button("←", "Esc", () => closeReader(), "back"),
    el("h2", {}, `Prompt ${row.prompt_index}`),
    button("Tools", "o: unfold or fold all tool calls", toggleCalls),
    button("Reasoning", "r: unfold or fold all reasoning", toggleThoughts),
    button("JSON", "w: the row as it is stored", toggleJson),
    button("Link", "c: copy a link to this row", copyLink));
}

function badgesElement(row) {
  const badge = (text, kind = "") => el("span", { className: `badge ${kind}` }, text);
  const { usage, metadata } = row;
  const tools = Object.entries(row.tool_stats).filter(([, stat]) => stat.count);
  return el("div", { className: "badges" },
    badge(row.end_reason, row.completed ? "good" : "bad"),
    row.partial && badge("partial", "bad"),
    badge(plural(row.reasoning_stats.total_assistant_turns, "turn")),
    badge(`${number(usage.prompt_tokens)} + ${number(usage.completion_tokens)} tokens`),
    usage.cost > 0 && badge(`cost ${number(usage.cost)}`),
    badge(duration(metadata.duration_seconds)),
    tools.map(([name, { count, failure }]) => badge(`${name} × ${count}${failure ? `, ${failure} failed` : ""}`, failure ? "bad" : "")));
}

function aboutElement(row) {
  const { metadata, usage } = row;
  const source = parsed(row.source);
  return el("details", { className: "about" }, el("summary", {}, "about this row"), pairs([
    ["model", metadata.model], ["distribution", metadata.distribution], ["toolsets", row.toolsets_used.join(", ")],
    ["finished", metadata.timestamp], ["seconds", `${metadata.duration_seconds}, ${metadata.model_seconds} of them in the model`],
    ["model calls", String(row.api_calls)],
    ["tokens", `${usage.prompt_tokens} prompt (${usage.cached_tokens} cached), ${usage.completion_tokens} completion (${usage.reasoning_tokens} reasoning)`],
    ["cost", String(usage.cost)], ["batch", String(metadata.batch_num)], ["image", metadata.image || "–"],
    ["settings", metadata.settings_digest], ["key", `${row.prompt_key}, ${metadata.ordinal}`],
    ["source", source && Object.keys(source).length ? JSON.stringify(source, null, 1) : row.source],
  ]));
}

function toggleAll(selector) {
  const boxes = [...byId("reader").querySelectorAll(selector)];
  const open = !boxes.some((box) => box.open);
  for (const box of boxes) box.open = open;
}

const toggleCalls = () => toggleAll("details.call");
const toggleThoughts = () => toggleAll("details.thought");

function toggleJson() {
  const before = byId("json");
  for (const turn of byId("reader").querySelectorAll(".turn")) turn.hidden = !before;
  if (before) before.remove();
  else byId("reader").append(el("pre", { id: "json" }, JSON.stringify(shown.row, null, 1)));
  byId("reader").scrollTop = 0;
}

async function copyLink() {
  const link = `${location.href.split("#")[0]}#${columns.key[shown.id]}`;
  try {
    await navigator.clipboard.writeText(link);
    toast("Link copied");
  } catch {
    prompt("The link to this row:", link);
  }
}
