// A database, and a run: when pages were read last, findings, runs, what was not verified.
const NOW = Date.parse(model.head.now);
const DAY = 86400;
const {is_live: isLive, can_acknowledge: canAcknowledge} = model.head;
// Classes of age in days, each up to its limit.
const AGES = [1, 3, 7, 14, 30];
const AGE_NAMES = ['within a day', 'within 3 days', 'within 7 days', 'within 14 days', 'within 30 days', 'longer ago', 'never read', 'not in use'];
const AGE_COLORS = ['age0', 'age1', 'age2', 'age3', 'age4', 'age5', 'unknown', 'free'];
const [LONGER, NEVER_READ, NOT_IN_USE] = [5, 6, 7];

const moment = text => text ? text.slice(0, 16).replace('T', ' ') : '';
const secondsAgo = text => (NOW - Date.parse(text)) / 1000;
const span = seconds => {
  const [value, one, many] = seconds < 90 ? [seconds, 'second', 'seconds'] : seconds < 5400 ? [seconds / 60, 'minute', 'minutes']
    : seconds < 2 * DAY ? [seconds / 3600, 'hour', 'hours'] : [seconds / DAY, 'day', 'days'];
  return counted(Math.floor(Math.max(value, 0)), one, many);
};
const ago = text => `${span(secondsAgo(text))} ago`;
const duration = seconds => {
  const whole = Math.round(seconds), minutes = Math.round(seconds / 60);
  return seconds < 59.95 ? `${seconds.toFixed(1)} s` : whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};
const link = (target, ...children) => {
  const made = element('a', '', ...children);
  made.href = target;
  return made;
};
const section = (title, ...children) => element('section', '', element('h2', '', title), ...children);
// The namespace is only a name; nothing is loaded from it.
const shape = (tag, attributes, ...children) => {
  const made = document.createElementNS('http:/' + '/www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

const working = ({host, started, window}) => {
  const done = window ? `: ${counted(window[1], 'range', 'ranges')}, ${size(window[2])} done of this window of ${duration(window[0])}` : '';
  return element('p', 'working', `A check has been running on ${host} since ${moment(started)} UTC${done}.`);
};

// Ranges by the age of their last read.
const byAge = {
  colors: ({states}) => ({list: AGE_COLORS.map(colorOf), of: at => states[at]}),
  names: () => AGE_NAMES,
  words: ({states, dates}, run) => states[run] >= NEVER_READ ? AGE_NAMES[states[run]]
    : `read ${moment(new Date(dates[run] * 1000).toISOString())} UTC, ${span(NOW / 1000 - dates[run])} ago`,
  table: map => {
    const totals = map.totals(at => map.runs.states[at], AGE_NAMES.length);
    const rows = AGE_NAMES.map((name, at) => [name, size(totals[at] * BYTES_PER_EXTENT)]).filter((_, at) => totals[at]);
    return {heads: ['last read', 'size'], rows};
  },
};
const ageOf = date => {
  if (date < 0) return date === -1 ? NEVER_READ : NOT_IN_USE;
  const days = (NOW / 1000 - date) / DAY;
  const found = AGES.findIndex(most => days <= most);
  return found < 0 ? LONGER : found;
};
// `classify` makes a state of what a range has.
const runsOf = (file, findings, classify) => {
  const count = file.ranges.length;
  const [starts, states, dates] = [new Float64Array(count + 1), new Uint8Array(count), new Float64Array(count)];
  let page = 0;
  file.ranges.forEach(([pages, date], at) => {
    starts[at] = Math.floor(page / EXTENT_PAGES);
    [states[at], dates[at]] = [classify(date), date];
    page += pages;
  });
  const cells = Math.ceil(page / EXTENT_PAGES);
  starts[count] = cells;
  const marked = new Set(findings.filter(found => found.life !== 'gone' && found.file === file.id && found.page !== null).map(found => found.page));
  const marks = [...marked].sort((a, b) => a - b).map(page => ({page, pages: 1, isFinding: true}));
  return {starts, states, dates, cells, marks};
};
const coverage = ({files, more_files, findings}) => {
  const shown = files.filter(file => file.pages);
  if (!shown.length) return null;
  const maps = [];
  const place = section('When each page was last read', element('p', '', 'Each cell is one or more extents of 8 pages, in the order of the ' +
    'file; open findings are marked. Click or press Enter to look closer, Escape to go back; the arrow keys move, N goes to the next mark.'));
  shown.forEach((file, at) => {
    const title = ['File ' + file.id + ' ', element('span', 'n', `${grouped(file.pages)} pages, ${size(file.pages * 8192)}`)];
    const make = () => {
      const frame = element('div', '');
      maps.push(new PageMap({id: file.id, pages: file.pages, cell_shift: 0, unread: null}, runsOf(file, findings.shown, ageOf), frame, byAge));
      return frame;
    };
    if (shown.length <= 8) place.append(element('h3', '', ...title), make());
    else place.append(fold(element('summary', '', ...title), make, at === 0));
  });
  if (more_files) place.append(element('p', 'more', `and ${counted(more_files, 'more file', 'more files')}`));
  redraw(() => maps.forEach(map => map.draw()));
  return place;
};

// Asks for an acknowledgement; the token stays in this tab.
const acknowledge = key => {
  const form = element('form', 'ack');
  const field = (name, label, type, value) => {
    const made = element('input', '');
    Object.assign(made, {name, type, value, required: name !== 'until', placeholder: label, autocomplete: 'off'});
    made.setAttribute('aria-label', label);
    return made;
  };
  const token = field('token', 'token', 'password', sessionStorage.getItem('token') ?? '');
  Object.assign(form, {method: 'post', action: `/acknowledge/${key}`});
  form.append(field('because', 'why it is accepted', 'text', ''), field('until', 'until, such as 2026-12-01', 'text', ''), token,
    element('button', '', 'Acknowledge'));
  form.addEventListener('submit', () => sessionStorage.setItem('token', token.value));
  return form;
};
const oneFinding = (found, row) => {
  const dates = [`first seen ${moment(found.first_seen)}`, `last seen ${moment(found.last_seen)}`, `looked for ${moment(found.last_looked)} UTC`,
    `${counted(found.seen, 'run', 'runs')}`, `key ${found.key}`];
  const meta = element('p', 'meta', element('span', `life ${found.life}`, found.life), `, ${dates.join(', ')}`);
  const made = element('div', 'finding', element('p', 'text', found.text), meta);
  if (found.acknowledged) {
    const [who, why, until] = found.acknowledged;
    const isOver = until && Date.parse(until) <= NOW;
    const by = isOver ? `Was acknowledged by ${who}` : `Acknowledged by ${who}`;
    made.append(element('p', 'meta', `${by}${until ? ` until ${until.slice(0, 10)}` : ''}: ${why}`));
  }
  if (found.page !== null) {
    const page = `${found.file}:${found.page}`;
    made.append(element('p', 'meta', isLive ? link(`/page/${found.key}`, `Page ${page}, field by field`) : element('code', '', `mdfsck page ${page} PATH...`)));
  }
  if (isLive && canAcknowledge && found.life !== 'gone' && row) made.append(acknowledge(found.key));
  return made;
};
// Findings by object, and within each by check.
const findingList = ({count, shown, checks}, title, row) => {
  if (!count) return null;
  const place = section(title);
  if (shown.length < count) place.append(element('p', '', `${counted(count, 'finding', 'findings')}; ${grouped(shown.length)} of them are shown.`));
  const groups = new Map();
  for (const found of shown) {
    const object = found.life === 'gone' ? `gone: ${found.object ?? ''}` : found.object ?? '';
    const ofObject = groups.get(object) ?? groups.set(object, {found, of: new Map()}).get(object);
    const check = `${found.number} ${found.check}`;
    ofObject.of.set(check, [...ofObject.of.get(check) ?? [], found]);
  }
  const made = [...groups.values()].map(({found: {life, object}, of}, at) => {
    const lists = [...of.values()];
    const number = lists.reduce((sum, list) => sum + list.length, 0);
    const words = [life === 'gone' ? 'gone' : '', counted(number, 'finding', 'findings')].filter(Boolean).join(', ');
    const summary = element('summary', '', element('b', '', object ?? 'No single object'), element('span', 'n', words));
    summary.dir = 'auto';
    return fold(summary, () => element('div', 'body', ...lists.map((list, number) => {
      const check = checks[list[0].check];
      const more = list.length > 1 ? grouped(list.length) : '';
      const inner = element('summary', '', element('span', 'id', String(list[0].number)), check ? check.fault : list[0].text, element('span', 'n', more));
      const fill = () => element('div', 'body', check ? explained(check) : '', ...list.map(one => oneFinding(one, row)));
      return fold(inner, fill, at + number === 0 && list.length <= MOST_OPEN);
    })), number <= MOST_OPEN && at < MOST_SHOWN);
  });
  place.append(...listed(made, 'more object or index', 'more objects and indexes'));
  return place;
};

const notVerified = ({count, causes, more_causes, more}, title) => {
  if (!count) return null;
  const place = section(title, element('p', '', counted(count, 'thing that was asked for was not verified.', 'things that were asked for were not verified.')));
  place.append(...causesOf(causes));
  const ofCauses = more_causes ? `, of ${counted(more_causes, 'more cause', 'more causes')} at least` : '';
  if (more) place.append(element('p', 'more', `and ${grouped(more)} more${ofCauses}`));
  return place;
};

const stateOf = state => element('span', `state ${state}`, state);
const rate = run => run.seconds > 0 && run.bytes ? run.bytes / run.seconds : 0;
// Throughput of runs, the oldest first.
const rates = runs => {
  const shown = runs.filter(rate).slice(0, 120).reverse();
  if (shown.length < 2) return null;
  const most = Math.max(...shown.map(rate));
  const svg = shape('svg', {class: 'rates', viewBox: `0 0 ${Math.max(shown.length, 40) * 10} 100`, preserveAspectRatio: 'none', role: 'img',
    'aria-label': 'Throughput of the runs; the table below has the same data'});
  shown.forEach((run, at) => {
    const height = Math.max(2, rate(run) / most * 100);
    const title = shape('title', {}, `${moment(run.started)} UTC: ${size(rate(run))} per second`);
    svg.append(shape('rect', {x: at * 10 + 1, y: 100 - height, width: 8, height}, title));
  });
  return element('div', '', element('p', 'more', `Throughput, up to ${size(most)} per second`), svg);
};
const runList = ({runs, more_runs}) => {
  if (!runs.length) return null;
  const rows = runs.map(run => [isLive ? link(`/run/${run.id}`, moment(run.started)) : moment(run.started), stateOf(run.verdict), run.command, duration(run.seconds),
    rate(run) ? `${size(rate(run))}/s` : '', size(run.bytes), grouped(run.findings), run.findings_new ? `+${grouped(run.findings_new)}` : '',
    run.findings_gone ? `−${grouped(run.findings_gone)}` : '', grouped(run.not_verified)]);
  const heads = ['started (UTC)', 'result', 'command', 'took', 'throughput', 'read', 'findings', 'new', 'gone', 'not verified'];
  return section('Runs', rates(runs), table(heads, rows), more_runs ? element('p', 'more', `and ${counted(more_runs, 'older run', 'older runs')}`) : '');
};

const facts = pairs => definitions(element('dl', ''), pairs.filter(([, value]) => value !== '' && value !== null && value !== undefined));
const databaseView = details => {
  const {row, sources} = details;
  const read = row.never_read ? `${size(row.never_read * 8192)} were never read` : row.oldest_read ? `${moment(row.oldest_read)} UTC, ${ago(row.oldest_read)}` : '';
  const closed = row.oldest_closed ? `${moment(row.oldest_closed)} UTC, ${ago(row.oldest_closed)}` : row.relations ? 'not all yet' : '';
  return [row.under_way ? working(row.under_way) : null, ...(details.running ?? []).map(one => liveView(one, false)),
    facts([['Oldest read of a page', read], ['Oldest proof of links, keys and rows', closed], ['In use', `${grouped(row.pages)} pages, ${size(row.pages * 8192)}`], ['Family', row.family],
      ...sources.map(({kind, host, location}) => [kind === 'backup' ? 'Backups' : 'Files', `${host}: ${location}`])]),
    coverage(details), findingList(details.findings, 'Findings', row), notVerified(details.not_verified, 'Not verified in the last run'), runList(details)];
};
const runView = ({run, came, went, not_verified}) => [
  facts([['Command', run.command], ['Files', run.paths], ['Machine', run.host], ['Started', `${moment(run.started)} UTC`], ['Ended', `${moment(run.ended)} UTC`],
    ['State of', run.taken_at ? `${moment(run.taken_at)} UTC` : ''], ['Took', duration(run.seconds)], ['Exit status', String(run.exit_status)], ['Why', run.error],
    ['In use', `${grouped(run.pages)} pages, ${size(run.pages * 8192)}`], ['Rows', grouped(run.rows)], ['Read', `${size(run.bytes)}${rate(run) ? `, ${size(rate(run))} per second` : ''}`],
    ['Processor', run.cpu_seconds === null ? '' : duration(run.cpu_seconds)], ['Memory', run.memory_peak === null ? '' : `${size(run.memory_peak)} at most`]]),
  findingList(came, 'New findings', null), findingList(went, 'Findings gone', null), notVerified(not_verified, 'Not verified')];
