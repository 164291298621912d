// A list of any length: only the rows in sight exist, and their elements are used again.
const ROW_HEIGHT = 58;
const BEYOND = 6;

class List {
  constructor(box, spacer, fill, pick) {
    Object.assign(this, { box, spacer, fill, ids: [], position: -1, pool: [], asked: false });
    box.addEventListener("scroll", () => this.ask(), { passive: true });
    new ResizeObserver(() => this.ask()).observe(box);
    spacer.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) pick(row.place);
    });
  }

  show(ids) {
    this.ids = ids;
    this.position = -1;
    this.spacer.style.height = `${ids.length * ROW_HEIGHT}px`;
    this.spacer.dataset.empty = ids.length ? "" : "Nothing matches.";
    for (const row of this.pool) row.place = -1;
    this.draw();
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_HEIGHT) - BEYOND);
    const wanted = Math.ceil(this.box.clientHeight / ROW_HEIGHT) + 2 * BEYOND;
    if (this.pool.length < wanted) this.grow(wanted);
    const last = Math.min(this.ids.length, first + this.pool.length);
    for (let place = first; place < last; place++) this.put(this.pool[place % this.pool.length], place);
    for (const row of this.pool) row.hidden = row.place < first || row.place >= last;
  }

  grow(wanted) {
    while (this.pool.length < wanted) {
      const row = el("div", { className: "row", role: "option", place: -1, hidden: true });
      this.pool.push(row);
      this.spacer.append(row);
    }
    for (const row of this.pool) row.place = -1;
  }

  put(row, place) {
    if (row.place === place) return;
    row.place = place;
    row.id = `row-${place}`;
    row.style.transform = `translateY(${place * ROW_HEIGHT}px)`;
    row.setAttribute("aria-selected", String(place === this.position));
    row.setAttribute("aria-posinset", String(place + 1));
    row.setAttribute("aria-setsize", String(this.ids.length));
    this.fill(row, this.ids[place]);
  }

  // Selects a place and brings it into sight.
  select(place) {
    this.position = place;
    const top = place * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.box;
    if (place < 0) return;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + clientHeight) this.box.scrollTop = top + ROW_HEIGHT - clientHeight;
    this.draw();
    for (const row of this.pool) row.setAttribute("aria-selected", String(row.place === place));
    this.box.setAttribute("aria-activedescendant", `row-${place}`);
  }
}
