// Shows the turns of a conversation: reasoning apart, tool calls folded together with their results.

// The rule by which the run counted failures.
function isFailure(result) {
  if (!result.trim() || result.startsWith("Error:")) return true;
  const data = parsed(result);
  if (!data) return false;
  const below = isObject(data.content) ? data.content.error : null;
  return (data.error ?? null) !== null || (below ?? null) !== null || data.success === false;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function parsed(text) {
  try {
    const data = JSON.parse(text);
    return isObject(data) ? data : null;
  } catch {
    return null;
  }
}

// Groups the turns: each assistant turn takes the tool turns that follow it.
function grouped(turns) {
  const groups = [];
  for (const turn of turns) {
    const last = groups.at(-1);
    if (turn.from === "tool" && last?.turn.from === "gpt") last.results.push(turn);
    else groups.push({ turn, results: [] });
  }
  return groups;
}

const SPEAKERS = { gpt: "assistant", human: "human", system: "system", tool: "tool" };

function turnElement({ turn, results }, searched) {
  const left = [...results];
  const calls = turn.tool_calls.map((call) => {
    const at = left.findIndex((result) => result.tool_call_id === call.id);
    return callElement(call, at < 0 ? null : left.splice(at, 1)[0], searched);
  });
  const orphans = left.map((result) => callElement({ name: result.name, arguments: "" }, result, searched));
  const isResult = turn.from === "tool";
  return el("section", { className: `turn ${SPEAKERS[turn.from] ?? "other"}` },
    el("div", { className: "speaker" }, SPEAKERS[turn.from] ?? turn.from),
    turn.reasoning && thoughtElement(turn.reasoning, searched),
    turn.value && !isResult && long("div", "value", turn.value, searched),
    isResult && callElement({ name: turn.name, arguments: "" }, turn, searched),
    calls, orphans);
}

function thoughtElement(reasoning, searched) {
  return el("details", { className: "thought", open: true },
    el("summary", {}, "reasoning"), long("div", "value", reasoning, searched));
}

function callElement(call, result, searched) {
  const failed = result !== null && isFailure(result.value);
  const state = result === null ? ["warn", "no result"] : failed ? ["bad", "failed"] : ["good", "ok"];
  const box = el("details", { className: `call${failed ? " failed" : ""}` },
    el("summary", {},
      el("span", { className: "name" }, ...marked(call.name || "(no name)", searched)),
      el("span", { className: "brief" }, brief(call.arguments)),
      el("span", { className: `state ${state[0]}` }, state[1])));
  // What is folded is built when it is first opened.
  box.addEventListener("toggle", () => box.open && box.children.length === 1 && fill(box, call, result, searched));
  if (finds(call.arguments, searched) || (result && finds(result.value, searched))) {
    fill(box, call, result, searched);
    box.open = true;
  }
  return box;
}

function fill(box, call, result, searched) {
  if (call.arguments) box.append(part("arguments", call.arguments, searched));
  if (result) box.append(part("result", result.value, searched));
}

function brief(text) {
  const values = Object.values(parsed(text) ?? {});
  const shown = values.length ? values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join("  ") : text;
  return shown.slice(0, 200).replace(/\s+/g, " ");
}

function part(label, text, searched) {
  const data = parsed(text);
  const body = data && Object.keys(data).length
    ? Object.entries(data).map(([name, value]) => field(name, value, searched))
    : long("pre", "", text || "(empty)", searched);
  const note = label === "arguments" && !data ? " (not a JSON object)" : "";
  return el("div", { className: "part" }, el("div", { className: "label" }, label + note), body);
}

function field(name, value, searched) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  const inline = text.length < 80 && !text.includes("\n");
  return el("div", { className: "field" }, el("span", { className: "label" }, name),
    inline ? el("code", {}, ...marked(text, searched)) : long("pre", "", text, searched));
}
