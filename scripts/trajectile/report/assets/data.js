// Reads the data files beside the page. They are scripts: a page from disk may load those, and nothing else.
const FOLDER = "viewer_data/";
const KEPT_CHUNKS = 16;
const waiting = new Map();
const chunks = new Map();
let stamp = "";

window.trajectile = (from, name, text) => waiting.get(name)?.({ from, text });

function loadScript(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const end = (settle, value) => {
      waiting.delete(name);
      script.remove();
      settle(value);
    };
    waiting.set(name, (given) => end(resolve, given));
    script.onerror = () => end(reject, new Error(`${FOLDER}${name}.js is missing; it belongs beside this page.`));
    script.onload = () => waiting.has(name) && end(reject, new Error(`${FOLDER}${name}.js is damaged.`));
    script.src = `${FOLDER}${name}.js`;
    document.head.append(script);
  });
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const characters = atob(base64);
  const bytes = new Uint8Array(characters.length);
  for (let n = 0; n < bytes.length; n++) bytes[n] = characters.charCodeAt(n);
  return bytes;
}

async function load(name) {
  const { from, text } = await loadScript(name);
  if (stamp && from !== stamp) throw new Error("The report was made anew. Reload this page.");
  stamp = from;
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function keep(number, rows) {
  chunks.delete(number);
  chunks.set(number, rows);
  if (chunks.size > KEPT_CHUNKS) chunks.delete(chunks.keys().next().value);
  return rows;
}

async function readRow(chunk, at) {
  const rows = keep(chunk, chunks.get(chunk) ?? load(`chunk_${chunk}`));
  try {
    return (await rows)[at];
  } catch (error) {
    chunks.delete(chunk);
    throw error;
  }
}

// Yields the rows of a chunk without keeping it: a search through everything would push out what is read.
async function readChunk(number) {
  return chunks.get(number) ?? load(`chunk_${number}`);
}
