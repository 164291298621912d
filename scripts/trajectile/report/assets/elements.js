// Builds elements. Text from a run goes into text nodes only, so nothing in it can become markup.
const SHOWN_CHARACTERS = 6000;

const byId = (id) => document.getElementById(id);

function el(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== false && child !== ""));
  return element;
}

function pattern(terms) {
  const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return terms.length ? new RegExp(`(${escaped.join("|")})`, "gi") : null;
}

// Returns text as nodes with what was searched for marked.
function marked(text, searched) {
  if (!searched) return [text];
  return text.split(searched).map((part, n) => (n % 2 ? el("mark", {}, part) : part));
}

const finds = (text, searched) => Boolean(searched) && text.search(searched) >= 0;

// Returns an element with the beginning of a long text and a button that shows the rest.
function long(tag, className, text, searched) {
  const box = el(tag, { className }, marked(text.slice(0, SHOWN_CHARACTERS), searched));
  if (text.length <= SHOWN_CHARACTERS) return box;
  const button = el("button", { className: "more", type: "button" }, `show all ${whole(text.length)} characters`);
  button.onclick = () => {
    box.replaceChildren(...marked(text, searched));
    button.remove();
  };
  const wrapper = el("div", {}, box, button);
  if (finds(text.slice(SHOWN_CHARACTERS), searched)) button.click();
  return wrapper;
}

function pairs(entries) {
  return el("dl", {}, entries.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function number(value) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
  }
  return String(Number(value.toPrecision(3)));
}

const whole = (count) => count.toLocaleString("en");
const plural = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;

function duration(seconds) {
  if (seconds < 60) return `${Number(seconds.toPrecision(2))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

let toastTimer = 0;

function toast(text) {
  byId("toast").textContent = text;
  byId("toast").classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => byId("toast").classList.remove("shown"), 1600);
}
