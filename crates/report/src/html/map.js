// A map of a file: cells in the order of its extents, colored by a scheme, with marks drawn over them. A scheme has
// `colors(runs)`, a list of colors and the index of each run in it; `names()` of the colors; `words(runs, run)` for a run; and
// `table(map)`, its heads and rows.
const EXTENT_PAGES = 8;
const BYTES_PER_EXTENT = EXTENT_PAGES * 8192;
const [MAX_COLUMNS, MAX_HEIGHT, MARK, ZOOM, FEWEST] = [1024, 320, 6, 16, 32];
const SIZES = [14, 12, 10, 8, 6, 5, 4, 3, 2];

// A color of the style sheet, which has another value in dark mode.
const colorOf = name => {
  const style = getComputedStyle(document.documentElement);
  const hex = style.getPropertyValue(`--${name}`).trim().replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3');
  return {name, pixel: [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16))};
};

class PageMap {
  constructor(file, runs, place, scheme) {
    Object.assign(this, {file, runs, place, scheme});
    this.extents = 2 ** file.cell_shift;
    this.views = [{first: 0, count: runs.cells}];
    this.cursor = null;
    this.canvas = element('canvas', '');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'img');
    this.readout = element('output', '', 'Hover over or tap a cell for details.');
    [this.bar, this.legend, this.frame] = [element('div', 'bar'), element('ul', 'legend'), element('div', 'map', this.canvas)];
    place.append(this.bar, this.frame, this.readout, this.legend, fold(element('summary', '', 'As a table'), () => this.table(), false));
    this.canvas.addEventListener('pointermove', event => this.point(event));
    this.canvas.addEventListener('click', event => { this.point(event); this.zoom(); });
    this.canvas.addEventListener('keydown', event => this.press(event));
    new ResizeObserver(() => requestAnimationFrame(() => this.shape?.room === this.frame.clientWidth || this.draw())).observe(this.frame);
    this.describe();
  }

  get view() { return this.views[this.views.length - 1]; }

  totals(key, length) {
    const totals = new Float64Array(length);
    const {starts} = this.runs;
    for (let at = 0; at < starts.length - 1; at++) totals[key(at)] += (starts[at + 1] - starts[at]) * this.extents;
    return totals;
  }

  // The run that a cell is in.
  run(cell) {
    const {starts} = this.runs;
    let [low, high] = [0, starts.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= cell) low = middle; else high = middle;
    }
    return low;
  }

  // The largest cell size at which all cells fit.
  layout() {
    const room = this.frame.clientWidth;
    const width = Math.max(120, Math.min(MAX_COLUMNS * 2, room));
    const {count} = this.view;
    for (const side of SIZES) {
      const columns = Math.min(MAX_COLUMNS, Math.floor(width / side));
      if (Math.ceil(count / columns) * side <= MAX_HEIGHT) return {room, side, columns, per: 1, rows: Math.ceil(count / columns)};
    }
    const side = 2;
    const columns = Math.min(MAX_COLUMNS, Math.floor(width / side));
    let per = 2;
    while (Math.ceil(Math.ceil(count / per) / columns) * side > MAX_HEIGHT) per *= 2;
    return {room, side, columns, per, rows: Math.ceil(Math.ceil(count / per) / columns)};
  }

  // Redraws everything; moving the cursor needs only show().
  draw() {
    if (!this.frame.clientWidth) return;
    const {side, columns, per, rows} = this.shape = this.layout();
    const {first, count} = this.view;
    const {starts} = this.runs;
    const {list, of} = this.scheme.colors(this.runs);
    const image = new ImageData(columns, Math.max(rows, 1));
    const weights = new Float64Array(list.length);
    const last = starts.length - 2;
    let run = this.run(first);
    for (let cell = 0; cell * per < count; cell++) {
      const [from, to] = [first + cell * per, Math.min(first + (cell + 1) * per, first + count)];
      let best = of(run);
      if (starts[run + 1] < to) {
        weights.fill(0);
        for (let at = run; at <= last && starts[at] < to; at++) {
          weights[of(at)] += Math.min(starts[at + 1], to) - Math.max(starts[at], from);
          run = at;
        }
        best = weights.indexOf(Math.max(...weights));
      }
      while (run < last && starts[run + 1] <= to) run++;
      image.data.set([...list[best].pixel, 255], cell * 4);
    }
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [columns * side, Math.max(rows, 1) * side];
    const device = {width: Math.round(width * scale), height: Math.round(height * scale)};
    this.drawn = new OffscreenCanvas(device.width, device.height);
    Object.assign(this.canvas, device);
    Object.assign(this.canvas.style, {width: `${width}px`, height: `${height}px`});
    const context = this.drawn.getContext('2d');
    context.scale(scale, scale);
    context.imageSmoothingEnabled = false;
    const small = new OffscreenCanvas(image.width, image.height);
    small.getContext('2d').putImageData(image, 0, 0);
    context.drawImage(small, 0, 0, width, height);
    if (side >= 6) {
      for (let x = 1; x <= columns; x++) context.clearRect(x * side - 1, 0, 1, height);
      for (let y = 1; y <= rows; y++) context.clearRect(0, y * side - 1, width, 1);
    }
    this.drawMarks(context, width, height);
    this.drawPatterns(context);
    this.show();
    this.showBar();
    this.showLegend();
  }

  show() {
    const context = this.canvas.getContext('2d');
    const scale = window.devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.drawn, 0, 0);
    context.scale(scale, scale);
    if (this.cursor !== null) this.drawCursor(context);
  }

  // The first and the last cell of the view that a mark covers; null if there is none.
  cellsOf({page, pages}) {
    const {first, count} = this.view;
    const cell = page => Math.floor(page / EXTENT_PAGES / this.extents) - first;
    const [from, to] = [Math.max(cell(page), 0), Math.min(cell(page + pages - 1), count - 1)];
    return this.isBeyond({page}) || from > to ? null : [from, to].map(at => Math.floor(at / this.shape.per));
  }

  // All cells of the view that marks cover.
  cellsOfAll(marks) {
    const cells = new Set();
    for (const mark of marks) {
      const [from, to] = this.cellsOf(mark) ?? [0, -1];
      for (let cell = from; cell <= to; cell++) cells.add(cell);
    }
    return cells;
  }

  // Whether a mark is beyond the end of the file, where nothing is drawn.
  isBeyond({page}) { return page >= this.file.pages; }

  marks(isFinding) { return this.runs.marks.filter(mark => mark.isFinding === isFinding); }

  // Marks are drawn over the cells, large enough for a single page of any file to be seen; damage last.
  drawMarks(context, width, height) {
    const style = getComputedStyle(document.documentElement);
    const [hurt, doubt, halo] = ['--hurt', '--doubt', '--halo'].map(name => style.getPropertyValue(name).trim());
    const {side, columns} = this.shape;
    const large = Math.max(MARK, side - 2);
    for (const isFinding of [false, true]) {
      const places = [...this.cellsOfAll(this.marks(isFinding))].map(cell => {
        const middle = at => at * side + (side >= 6 ? (side - 1) / 2 : side / 2) - large / 2;
        const inside = (at, end) => Math.round(Math.max(0, Math.min(middle(at), end - large)));
        return [inside(cell % columns, width), inside(Math.floor(cell / columns), height)];
      });
      context.fillStyle = halo;
      for (const [x, y] of places) context.fillRect(x - 1, y - 1, large + 2, large + 2);
      context.fillStyle = isFinding ? hurt : doubt;
      for (const [x, y] of places) context.fillRect(x, y, large, large);
      if (isFinding) continue;
      context.fillStyle = halo;
      for (const [x, y] of places) context.fillRect(x + 2, y + 2, large - 4, large - 4);
    }
  }

  // Ranges of pages whose damage has something in common. A map may have none.
  get patterns() { return (this.file.patterns ?? []).map(([page, pages, words]) => ({page, pages, words})); }

  // A frame around the cells of each pattern, which may begin and end within a row.
  drawPatterns(context) {
    const style = getComputedStyle(document.documentElement);
    const [hurt, halo] = ['--hurt', '--halo'].map(name => style.getPropertyValue(name).trim());
    const {side, columns} = this.shape;
    for (const pattern of this.patterns) {
      const cells = this.cellsOf(pattern);
      if (cells === null) continue;
      const [[left, top], [right, bottom]] = cells.map((cell, at) => [(cell % columns + at) * side, (Math.floor(cell / columns) + at) * side]);
      const corners = bottom - top <= side ? [[left, top], [right, top], [right, bottom], [left, bottom]]
        : [[left, top], [columns * side, top], [columns * side, bottom - side], [right, bottom - side],
          [right, bottom], [0, bottom], [0, top + side], [left, top + side]];
      context.beginPath();
      for (const [x, y] of corners) context.lineTo(x, y);
      context.closePath();
      for (const [color, width] of [[halo, 4], [hurt, 2]]) {
        [context.strokeStyle, context.lineWidth] = [color, width];
        context.stroke();
      }
    }
  }

  drawCursor(context) {
    const {side, columns} = this.shape;
    const large = Math.max(side, 4) + 4;
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim();
    context.lineWidth = 1.5;
    context.strokeRect((this.cursor % columns) * side + side / 2 - large / 2, Math.floor(this.cursor / columns) * side + side / 2 - large / 2, large, large);
  }

  address(page) { return `(${this.file.id}:${page})`; }

  pages(first, count) {
    const pages = this.extents * EXTENT_PAGES;
    return `${this.address(first * pages)} to ${this.address(Math.min((first + count) * pages, this.file.pages) - 1)}`;
  }

  // Places of marks in words: the first `most` of them.
  list(marks, most) {
    const place = mark => {
      const {page, pages, isFinding} = mark;
      const where = pages > 1 ? `somewhere in ${this.address(page)} to ${this.address(page + pages - 1)}` : this.address(page);
      const [first, count] = this.file.unread ?? [-1, 0];
      const standsForMore = !isFinding && page <= first && first < page + pages;
      return [where, this.isBeyond(mark) ? 'beyond the end of the file' : '',
        standsForMore ? `as the first of ${grouped(count)} unread pages` : ''].filter(Boolean).join(' ');
    };
    return marks.slice(0, most).map(place).join(', ') + (marks.length > most ? ` and ${grouped(marks.length - most)} more` : '');
  }

  // The number of marked places, and what is not drawn.
  amount(isFinding) {
    const marks = this.marks(isFinding);
    const beyond = marks.filter(mark => this.isBeyond(mark)).length;
    const unread = isFinding ? null : this.file.unread;
    return [counted(marks.length, 'place', 'places'), beyond ? `${grouped(beyond)} beyond the end of the file, not drawn` : '',
      unread ? `of ${grouped(unread[1])} unread pages only the first is drawn` : ''].filter(Boolean).join('; ');
  }

  describe() {
    this.canvas.setAttribute('aria-label', `Map of file ${this.file.id}: ${grouped(this.file.pages)} pages, ` +
      `${counted(this.marks(true).length, 'place', 'places')} with findings. The table below has the same data.`);
  }

  showBar() {
    const {first, count} = this.view;
    const {per} = this.shape;
    const extents = per * this.extents;
    this.bar.replaceChildren(element('span', '', `pages ${this.pages(first, count)}; a cell is ` +
      `${extents === 1 ? 'an extent, 64 kB' : `${grouped(extents)} extents, ${size(extents * BYTES_PER_EXTENT)}`}`));
    if (this.views.length < 2) return;
    const button = (text, act) => {
      const made = element('button', '', text);
      made.addEventListener('click', () => { act(); this.canvas.focus(); });
      return made;
    };
    this.bar.append(button('back', () => this.back()), button('whole file', () => { this.views.length = 1; this.cursor = null; this.draw(); }));
  }

  showLegend() {
    const item = (className, color, name, detail) => {
      const swatch = element('i', className);
      swatch.style.background = `var(--${color})`;
      return element('li', '', swatch, element('span', '', name), detail);
    };
    const {list, of} = this.scheme.colors(this.runs);
    const names = this.scheme.names();
    const totals = this.totals(of, list.length);
    const items = list.map((color, at) => totals[at] ? item('', color.name, names[at], size(totals[at] * BYTES_PER_EXTENT)) : null);
    if (this.marks(true).length) items.push(item('mark', 'hurt', 'findings', this.amount(true)));
    if (this.marks(false).length) items.push(item('mark hollow', 'doubt', 'not verified', this.amount(false)));
    if (this.patterns.length) items.push(item('frame', 'hurt', 'patterns', counted(this.patterns.length, 'range of pages', 'ranges of pages')));
    this.legend.replaceChildren(...items.filter(Boolean));
  }

  // What a cell is, in words.
  say() {
    const {first, count} = this.view;
    const {per} = this.shape;
    const from = first + this.cursor * per;
    const length = Math.min(per, first + count - from);
    const {starts} = this.runs;
    const parts = [];
    for (let run = this.run(from); run < starts.length - 1 && starts[run] < from + length && parts.length < 3; run++) {
      const part = this.scheme.words(this.runs, run);
      if (!parts.includes(part)) parts.push(part);
    }
    const isHere = mark => {
      const [from, to] = this.cellsOf(mark) ?? [0, -1];
      return from <= this.cursor && this.cursor <= to;
    };
    const list = isFinding => {
      const here = this.marks(isFinding).filter(isHere);
      return here.length ? `${isFinding ? 'findings' : 'not verified'}: ${this.list(here, 8)}` : '';
    };
    this.readout.value = [`Pages ${this.pages(from, length)}`, parts.join('; '), list(true), list(false),
      ...this.patterns.filter(isHere).map(({words}) => `pattern: ${words}`)].filter(Boolean).join(' · ');
  }

  get shownCells() { return Math.ceil(this.view.count / this.shape.per); }

  go(cell) {
    this.cursor = Math.max(0, Math.min(cell, this.shownCells - 1));
    this.show();
    this.say();
  }

  point(event) {
    const {side, columns} = this.shape;
    const cell = Math.min(columns - 1, Math.floor(event.offsetX / side)) + Math.floor(event.offsetY / side) * columns;
    if (event.offsetX < 0 || event.offsetY < 0 || cell >= this.shownCells || cell === this.cursor) return;
    this.cursor = cell;
    // If a mark is drawn over the cell, the pointer is on the mark.
    const near = this.near(event.offsetX, event.offsetY);
    if (near !== null) this.cursor = near;
    this.show();
    this.say();
  }

  near(x, y) {
    const {side, columns} = this.shape;
    if (side >= MARK) return null;
    for (const cell of this.cellsOfAll(this.runs.marks.slice(0, 4096))) {
      if (Math.abs((cell % columns + .5) * side - x) <= MARK / 2 && Math.abs((Math.floor(cell / columns) + .5) * side - y) <= MARK / 2) return cell;
    }
    return null;
  }

  zoom() {
    const {first, count} = this.view;
    if (this.cursor === null || count <= FEWEST) return;
    const middle = first + (this.cursor + .5) * this.shape.per;
    const fewer = Math.max(FEWEST, Math.ceil(count / ZOOM));
    const start = Math.floor(Math.max(0, Math.min(middle - fewer / 2, this.runs.cells - fewer)));
    this.views.push({first: start, count: Math.min(fewer, this.runs.cells)});
    this.cursor = null;
    this.draw();
    this.go(Math.floor((middle - start) / this.shape.per));
  }

  back() {
    if (this.views.length < 2) return;
    const {first, count} = this.views.pop();
    this.draw();
    this.go(Math.floor((first + count / 2 - this.view.first) / this.shape.per));
  }

  press(event) {
    const at = this.cursor ?? -1;
    const {columns} = this.shape;
    const nextMark = () => {
      const cells = this.runs.marks.map(mark => this.cellsOf(mark)?.[0]).filter(cell => cell !== undefined).sort((a, b) => a - b);
      return cells.find(cell => cell > at) ?? cells[0] ?? at;
    };
    const moves = {ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at < 0 ? 0 : at + columns, ArrowUp: at - columns, Home: 0, End: this.shownCells - 1};
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) {
      if (event.key === 'ArrowUp' && at < columns || event.key === 'ArrowDown' && at + columns >= this.shownCells) return;
      this.go(moves[event.key]);
    } else if (event.key === 'Enter') this.zoom();
    else if (event.key === 'Escape' || event.key === 'Backspace') this.back();
    else if (event.key === 'n' || event.key === 'N') this.go(nextMark());
    else return;
    event.preventDefault();
  }

  table() {
    const {heads, rows} = this.scheme.table(this);
    const body = element('div', 'body', table(heads, rows));
    for (const isFinding of [true, false]) {
      const marks = this.marks(isFinding);
      if (marks.length) body.append(element('p', 'text', `${isFinding ? 'Findings' : 'Not verified'}: ${this.list(marks, 200)}`));
    }
    return body;
  }
}

// Redraws for another color scheme, and for paper, which is light.
const redraw = draw => {
  matchMedia('(prefers-color-scheme:dark)').addEventListener('change', draw);
  addEventListener('beforeprint', () => { document.documentElement.classList.add('print'); draw(); });
  addEventListener('afterprint', () => { document.documentElement.classList.remove('print'); draw(); });
};
