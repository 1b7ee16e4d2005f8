// What the page map of each file shows.
const STATES = ['free', 'data', 'index', 'LOB', 'columnstore, other, or owner not known', 'mixed extents', 'reserved, empty', 'allocation maps', 'unknown'];
const STATE_COLORS = ['free', 'data', 'index', 'lob', 'other', 'mixed', 'reserved', 'maps', 'unknown'];
const [FREE, OTHER, MAPS, UNKNOWN] = [0, 4, 7, 8];
const [UNNAMED, MOST_TABLES] = [4096, 16];

const isByTable = () => document.querySelector('input[name=color]:checked').value === 'table';

const inflate = async text => {
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer());
};

// Numbers of seven bits a byte, the lowest first.
const reader = bytes => {
  let at = 0;
  return () => {
    let [number, scale] = [0, 1];
    for (;;) {
      const byte = bytes[at++];
      number += (byte & 127) * scale;
      if (byte < 128) return number;
      scale *= 128;
    }
  };
};

// Runs of cells: where each begins, what for, whose; and the places of findings and of what could not be verified.
const readFile = next => {
  const count = next();
  const [starts, states, owners] = [new Float64Array(count + 1), new Uint8Array(count), new Uint16Array(count)];
  let cell = 0;
  for (let at = 0; at < count; at++) {
    starts[at] = cell;
    cell += next();
    const code = next();
    [states[at], owners[at]] = [code % 16, Math.floor(code / 16)];
  }
  starts[count] = cell;
  const pages = 2 ** next();
  const marks = [];
  let place = 0;
  for (let left = next(); left > 0; left--) {
    const number = next();
    place += Math.floor(number / 2);
    marks.push({page: place * pages, pages, isFinding: number % 2 === 1});
  }
  return {starts, states, owners, cells: cell, marks};
};

const ownerName = owner => {
  const [table, index] = model.map.owners[owner - 1];
  return index ? `${model.map.tables[table]}, ${index}` : model.map.tables[table];
};

// The tables with the most extents in all files, largest first.
let largest = [];
const ranks = new Map();
const rank = files => {
  const extents = new Float64Array(model.map.tables.length);
  files.forEach(({starts, owners}, at) => {
    const scale = 2 ** model.map.files[at].cell_shift;
    owners.forEach((owner, run) => {
      if (owner !== 0 && owner !== UNNAMED) extents[model.map.owners[owner - 1][0]] += (starts[run + 1] - starts[run]) * scale;
    });
  });
  largest = model.map.tables.map((name, table) => ({name, table, extents: extents[table]})).sort((a, b) => b.extents - a.extents).slice(0, MOST_TABLES);
  largest.forEach(({table}, at) => ranks.set(table, at));
};

// Extents by what they are used for, or by the table that they belong to.
const use = {
  colors({states, owners}) {
    if (!isByTable()) return {list: STATE_COLORS.map(colorOf), of: at => states[at]};
    const list = [...Array(MOST_TABLES).keys()].map(at => colorOf(`t${at}`)).concat(['rest', 'free', 'maps', 'unknown'].map(colorOf));
    const [rest, free, maps, unknown] = [0, 1, 2, 3].map(at => MOST_TABLES + at);
    const of = at => {
      const owner = owners[at];
      if (states[at] === FREE) return free;
      if (states[at] === MAPS) return maps;
      if (states[at] === UNKNOWN) return unknown;
      if (owner === 0) return rest;
      const rank = ranks.get(owner === UNNAMED ? -1 : model.map.owners[owner - 1][0]);
      return rank === undefined ? rest : rank;
    };
    return {list, of};
  },

  names() {
    if (!isByTable()) return STATES;
    const tables = [...Array(MOST_TABLES).keys()].map(at => largest[at]?.name);
    return tables.concat(['other or no single object', 'free', STATES[MAPS], STATES[UNKNOWN]]);
  },

  words({states, owners}, run) {
    const owner = owners[run];
    const state = STATES[states[run]];
    if (owner === 0) return states[run] === OTHER ? 'owner not known' : state;
    return `${owner === UNNAMED ? 'a small object' : ownerName(owner)} (${state})`;
  },

  table(map) {
    const {states, owners} = map.runs;
    const name = rank => rank < MOST_TABLES ? largest[rank].name : ['other objects', 'no single object'][rank - MOST_TABLES];
    const all = [...ranks.values(), MOST_TABLES, MOST_TABLES + 1];
    const rankOf = at => owners[at] === 0 ? MOST_TABLES + 1
      : owners[at] === UNNAMED ? MOST_TABLES : ranks.get(model.map.owners[owners[at] - 1][0]) ?? MOST_TABLES;
    const totals = map.totals(at => rankOf(at) * STATES.length + states[at], (MOST_TABLES + 2) * STATES.length);
    const used = STATES.map((_, state) => state).filter(state => all.some(rank => totals[rank * STATES.length + state]));
    const rows = [];
    for (const rank of all) {
      const cells = used.map(state => totals[rank * STATES.length + state]);
      if (cells.some(Boolean)) rows.push([name(rank), ...cells.map(extents => extents ? size(extents * BYTES_PER_EXTENT) : '')]);
    }
    return {heads: ['', ...used.map(state => STATES[state])], rows};
  },
};

const showMaps = async () => {
  if (!model.map.files.length) return;
  byId('maps').hidden = false;
  contents(byId('contents'), null);
  const next = reader(await inflate(byId('runs').textContent));
  const files = model.map.files.map(() => readFile(next));
  rank(files);
  const maps = [];
  model.map.files.forEach((file, at) => {
    const title = `File ${file.id}${file.name ? `, ${file.name}` : ''} `;
    const detail = `${grouped(file.pages)} pages, ${size(file.pages * 8192)}`;
    const make = () => {
      const place = element('div', '');
      maps.push(new PageMap(file, files[at], place, use));
      return place;
    };
    // Many files are folded, and drawn as they are opened.
    if (model.map.files.length <= 8) byId('files').append(element('h3', '', title, element('span', 'n', detail)), make());
    else byId('files').append(fold(element('summary', '', title, element('span', 'n', detail)), make, at === 0));
  });
  const {more_files} = model.map;
  if (more_files) byId('files').append(element('p', 'more', `and ${counted(more_files, 'more file', 'more files')}, not drawn`));
  const draw = () => maps.forEach(map => map.draw());
  byId('colors').addEventListener('change', draw);
  redraw(draw);
  draw();
  // Milliseconds, for those who measure.
  document.documentElement.dataset.ready = Math.ceil(performance.now());
};
showMaps();
