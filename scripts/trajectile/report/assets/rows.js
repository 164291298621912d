// The index: a few facts about each row, and which rows a search and the filters leave.
const FLAG = { completed: 1, partial: 2, discarded: 4, someReasoning: 8, allReasoning: 16, failedTool: 32 };
const columns = {};
const haystack = [];
let rowOfKey = new Map();
let about = {};

async function loadIndex(progress) {
  about = await load("about");
  for (let piece = 0; piece < about.pieces; piece++) {
    const part = await load(`index_${piece}`);
    for (const [name, values] of Object.entries(part)) {
      columns[name] ??= [];
      for (const value of values) columns[name].push(value);
    }
    part.text.forEach((text, n) => haystack.push(`${text}\n${part.answer[n]}`.toLowerCase()));
    progress(haystack.length);
  }
  rowOfKey = new Map((columns.key ?? []).map((key, id) => [key, id]));
}

const has = (id, flag) => (columns.flags[id] & flag) !== 0;

function toolCalls(id) {
  const flat = columns.tools[id];
  const calls = [];
  for (let n = 0; n < flat.length; n += 3) calls.push({ tool: flat[n], count: flat[n + 1], failed: flat[n + 2] });
  return calls;
}

const failedCalls = (id) => toolCalls(id).reduce((sum, call) => sum + call.failed, 0);

// Each filter: its name, its choices (value, label) and the test of a row.
function filters() {
  const yesNo = (name, flag, yes, no) => ({
    name,
    choices: [["1", yes], ["0", no]],
    test: (id, value) => has(id, flag) === (value === "1"),
  });
  return [
    { name: "tool", any: "any tool",
      choices: about.tools.map((tool, n) => [String(n), tool]).sort((a, b) => a[1].localeCompare(b[1])),
      test: (id, value) => toolCalls(id).some((call) => call.tool === Number(value)) },
    { name: "end", any: "any end", choices: about.ends.map((end, n) => [String(n), end]),
      test: (id, value) => columns.end[id] === Number(value) },
    { ...yesNo("completed", FLAG.completed, "completed", "not completed"), any: "completed or not" },
    { name: "reasoning", any: "any reasoning",
      choices: [["all", "in all turns"], ["some", "in some turns"], ["none", "no reasoning"]],
      test: (id, value) => value === reasoningOf(id) },
    { ...yesNo("discarded", FLAG.discarded, "discarded", "kept"), any: "kept or discarded" },
    { ...yesNo("failed", FLAG.failedTool, "failed tool calls", "no failed call"), any: "any tool result" },
  ];
}

function reasoningOf(id) {
  if (has(id, FLAG.allReasoning)) return "all";
  return has(id, FLAG.someReasoning) ? "some" : "none";
}

const ORDERS = {
  "dataset order": (a, b) => columns.prompt[a] - columns.prompt[b],
  "most turns": (a, b) => columns.turns[b] - columns.turns[a],
  "most tokens": (a, b) => columns.tokens[b] - columns.tokens[a],
  "highest cost": (a, b) => columns.cost[b] - columns.cost[a],
  "longest time": (a, b) => columns.seconds[b] - columns.seconds[a],
  "most failed calls": (a, b) => failedCalls(b) - failedCalls(a),
};

// Words, each of which has to occur, and phrases in double quotes.
const termsOf = (query) =>
  [...query.toLowerCase().matchAll(/"([^"]+)"|[^\s"]+/g)].map(([word, phrase]) => phrase ?? word);

// `found` are rows that a search through the whole text found.
function select(terms, chosen, order, found) {
  const ids = [];
  for (let id = 0; id < haystack.length; id++) {
    const matches = found.has(id) || terms.every((term) => haystack[id].includes(term));
    if (matches && chosen.every(({ test, value }) => test(id, value))) ids.push(id);
  }
  return ids.sort(ORDERS[order]);
}

function textOf(row) {
  const parts = [];
  for (const turn of row.conversations) {
    parts.push(turn.value, turn.reasoning);
    for (const call of turn.tool_calls) parts.push(call.name, call.arguments);
  }
  return parts.join("\n").toLowerCase();
}

// Searches the whole text of all rows, chunk by chunk; `step` hears of progress and ends the search by returning false.
async function searchAll(terms, found, step) {
  const idsOfChunk = new Map();
  columns.chunk.forEach((chunk, id) => idsOfChunk.set(chunk, [...(idsOfChunk.get(chunk) ?? []), id]));
  let done = 0;
  for (const [chunk, ids] of idsOfChunk) {
    const rows = await readChunk(chunk);
    for (const id of ids) {
      const text = textOf(rows[columns.at[id]]);
      if (terms.every((term) => text.includes(term))) found.add(id);
    }
    if (!step(++done, idsOfChunk.size)) return;
  }
}
