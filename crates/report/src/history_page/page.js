// The estate, and which view is shown.
const trend = values => {
  const most = Math.max(1, ...values);
  const svg = shape('svg', {class: 'trend', viewBox: '0 0 120 24', role: 'img'});
  values.forEach((value, at) => {
    // Small numbers must stay visible beside large ones.
    const height = value > 0 ? 5 + 19 * Math.log1p(value) / Math.log1p(most) : 5;
    const kind = value > 0 ? 'bar-hurt' : value < 0 ? 'bar-doubt' : 'bar-good';
    svg.append(shape('rect', {class: kind, x: 120 - 4 * (values.length - at), y: 24 - height, width: 3, height}));
  });
  const last = values.at(-1) ?? 0;
  svg.setAttribute('aria-label', `Findings of the last ${counted(values.length, 'run', 'runs')}, now ${grouped(Math.max(last, 0))}`);
  return svg;
};

const aged = (text, never) => {
  if (!text) return element('span', 'late', never);
  const made = element('span', secondsAgo(text) > 14 * DAY ? 'late' : '', span(secondsAgo(text)));
  made.title = `${moment(text)} UTC`;
  return made;
};
const openFindings = ({new: fresh, confirmed, acknowledged}) => {
  const parts = [fresh ? element('span', 'hurt', `${grouped(fresh)} new`) : null, confirmed ? element('span', 'hurt', `${grouped(confirmed)} confirmed`) : null,
    acknowledged ? element('span', '', `${grouped(acknowledged)} acknowledged`) : null].filter(Boolean);
  return parts.length ? element('span', '', ...parts.flatMap((part, at) => at ? [', ', part] : [part])) : element('span', 'n', '–');
};
const WORST_FIRST = 2;
const HEADS = ['Database', 'Server and path', 'State', 'Open findings', 'Oldest read', 'Oldest proof', 'Last run', 'Size', 'Findings by run'];
// What a column is sorted by; what is worse, older or larger comes first where it is a number.
const KEYS = [row => row.name.toLowerCase(), row => placeOf(row).toLowerCase(), (row, at) => at, row => -(row.new + row.confirmed + row.acknowledged / 1e9),
  row => row.pages ? -ageKey(row.oldest_read) : 1, row => row.relations ? -ageKey(row.oldest_closed) : 1, row => row.last_run ? -ageKey(row.last_run) : 1,
  row => -row.pages, row => -(row.trend.at(-1) ?? -2)];
const ageKey = text => text ? secondsAgo(text) : Number.MAX_VALUE;
const placeOf = ({server, path, more_places: more}) => [server, path].filter(Boolean).join(': ') + (more ? ` and ${counted(more, 'more place', 'more places')}` : '');
// Why a database is not sound, and which of several copies that is about.
const reason = ({state, why, copy}) => state === 'sound' ? '' : [why, copy].filter(Boolean).join('; ');
const estateRow = (row, place) => {
  const isThere = isLive || Object.hasOwn(model.databases, row.id);
  const name = isThere ? link(isLive ? `/database/${row.id}` : `#database-${row.id}`, row.name || '(no name)') : element('span', '', row.name);
  name.dir = 'auto';
  const cells = [name, element('span', '', placeOf(row) || '–'), stateOf(row.state), openFindings(row), row.pages ? aged(row.oldest_read, 'not all yet') : '–', row.relations ? aged(row.oldest_closed, 'not all yet') : '–',
    row.last_run ? aged(row.last_run, '') : '–', size(row.pages * 8192), trend(row.trend)];
  const running = model.estate.running.find(one => one.database === row.id);
  const work = running ? running.is_stopped ? ', a check stopped' : `, under way${share(running) ? `: ${share(running)}` : ''}` : row.under_way ? ', under way' : '';
  if (work) cells[2] = element('span', '', stateOf(row.state), element('span', 'n', work));
  if (reason(row)) cells[2] = element('span', '', cells[2], element('span', 'n', ` (${reason(row)})`));
  cells[1].dir = 'auto';
  const made = element('tr', '', ...cells.map((cell, at) => {
    const cellMade = element('td', ['name', 'place'][at] ?? '', cell);
    cellMade.dataset.head = HEADS[at];
    return cellMade;
  }));
  return {made, keys: KEYS.map(key => key(row, place)), text: `${row.name} ${row.family} ${placeOf(row)} ${row.state}${work}`.toLowerCase()};
};
const estateView = () => {
  const {rows, more, failed} = model.estate;
  const made = rows.map(estateRow);
  const box = element('input', '');
  Object.assign(box, {type: 'search', id: 'filter', placeholder: 'name, server, path or state', autocomplete: 'off'});
  const label = element('label', '', 'Filter', box);
  const shown = element('span', '', '');
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const {made: row, text} of made) count += !(row.hidden = !words.every(word => text.includes(word)));
    shown.textContent = words.length ? `${grouped(count)} of ${counted(made.length, 'database', 'databases')}` : '';
  };
  box.addEventListener('input', filter);
  box.addEventListener('keydown', event => { if (event.key === 'Escape') { box.value = ''; filter(); } });
  const heads = element('tr', 'heads', ...HEADS.map((head, at) => {
    const button = element('button', '', head);
    button.type = 'button';
    button.addEventListener('click', () => sort(at, at === sorted.by && !sorted.isTurned));
    return element('th', at ? '' : 'name', button);
  }));
  const body = element('tbody', '', ...made.map(row => row.made));
  // A narrow screen has no heads.
  const choice = element('select', '', ...HEADS.map(head => element('option', '', head)));
  choice.addEventListener('change', () => sort(choice.selectedIndex, false));
  let sorted = {};
  const sort = (by, isTurned) => {
    const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    const ordered = [...made].sort((one, other) => (isTurned ? -1 : 1) * compare(one.keys[by], other.keys[by]) || compare(one.keys[WORST_FIRST], other.keys[WORST_FIRST]));
    body.replaceChildren(...ordered.map(row => row.made));
    [...heads.children].forEach((head, at) => {
      const isText = typeof made[0]?.keys[at] === 'string' || at === WORST_FIRST;
      if (at === by) head.setAttribute('aria-sort', isText !== isTurned ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    });
    choice.selectedIndex = by;
    sorted = {by, isTurned};
    // The page of a server is read again.
    if (isLive) sessionStorage.setItem('sorted', JSON.stringify(sorted));
  };
  const last = isLive ? JSON.parse(sessionStorage.getItem('sorted')) : null;
  sort(KEYS[last?.by] ? last.by : WORST_FIRST, last?.isTurned === true);
  const list = element('div', 'scroll', element('table', '', element('thead', '', heads), body));
  list.tabIndex = 0;
  list.id = 'estate';
  const remarks = [more ? `and ${counted(more, 'more database', 'more databases')}; mdfsck history ${model.head.file} lists all` : '',
    model.left_out ? `The details of ${counted(model.left_out, 'database', 'databases')} did not fit into this page; run mdfsck history ${model.head.file} html --database NAME` : ''];
  const failures = failed.map(run => [isLive ? link(`/run/${run.id}`, moment(run.started)) : moment(run.started), run.host, run.paths, run.error]);
  const note = 'The worst databases come first. Corrupt: a copy of the database has open findings, or findings in its last run. Sound: every copy was checked completely, and no finding is open. Ages: the time since the oldest read of a page, and since the oldest proof of links, keys and rows; the age of a backup is the time since the backup finished.';
  return [liveList(model.estate.running), element('div', 'filter', label, element('label', 'sort', 'Sort by', choice), shown), rows.length ? list : element('p', '', 'No database was checked yet.'),
    element('p', 'more', note), ...remarks.filter(Boolean).map(text => element('p', 'more', text)),
    failures.length ? section('Runs that failed', table(['started (UTC)', 'machine', 'files', 'why'], failures)) : null];
};

const verdict = (tone, word, text) => {
  byId('verdict').className = tone;
  byId('verdict').replaceChildren(element('b', '', word), element('span', '', text));
};
const title = (name, origin, ...way) => {
  const made = `mdfsck history ${model.head.file}, ${moment(model.head.now)} UTC`;
  document.title = name;
  byId('kicker').replaceChildren(made, ...way.flatMap(step => [' · ', step]));
  byId('name').textContent = name;
  byId('origin').textContent = origin;
};
const tones = {sound: 'good', corrupt: 'bad', failed: 'bad', unknown: 'doubtful'};
const showEstate = () => {
  const {sound, corrupt, unknown, failed} = model.estate;
  const isDoubtful = unknown || failed.length;
  const all = sound + corrupt + unknown;
  title('All databases', counted(all, 'database', 'databases'));
  const parts = [corrupt ? `${grouped(corrupt)} corrupt` : '', unknown ? `${grouped(unknown)} unknown` : '', `${grouped(sound)} sound`,
    failed.length ? 'some runs failed' : ''].filter(Boolean);
  verdict(corrupt ? 'bad' : isDoubtful || !all ? 'doubtful' : 'good', corrupt ? 'DAMAGE FOUND' : isDoubtful ? 'NOT ALL VERIFIED' : all ? 'ALL SOUND' : 'NOTHING CHECKED',
    parts.join(', '));
  return estateView();
};
const showDatabase = (details, ...way) => {
  const {row} = details;
  const run = details.runs[0];
  title(row.name || '(no name)', row.last_run ? `last run ${moment(row.last_run)} UTC, ${ago(row.last_run)}` : 'not checked yet', ...way);
  const open = row.new + row.confirmed + row.acknowledged;
  verdict(tones[row.state] ?? 'doubtful', row.state.toUpperCase(), [reason(row), open ? counted(open, 'open finding', 'open findings') : 'no open findings',
    run && run.not_verified ? `${grouped(run.not_verified)} not verified` : ''].filter(Boolean).join(', '));
  return databaseView(details);
};
const showRun = ({database, run, ...rest}) => {
  title(`Run ${run.id}${database ? ` of ${database[1]}` : ''}`, `${moment(run.started)} UTC`, link('/', 'all databases'),
    ...database ? [link(`/database/${database[0]}`, database[1] || '(no name)')] : []);
  verdict(tones[run.verdict] ?? 'doubtful', run.verdict.toUpperCase(), run.error ?? `${counted(run.findings, 'finding', 'findings')}, ${grouped(run.not_verified)} not verified`);
  return runView({run, ...rest});
};

// A link to a section keeps the view: `#database-5.2`.
const viewName = () => location.hash.slice(1).split('.')[0];
let shownView = null;
const show = () => {
  shownView = viewName();
  const {database, run, running, estate, databases} = model;
  const only = estate && !isLive && estate.rows.length === 1 && !estate.more ? databases[estate.rows[0].id] : undefined;
  const hash = viewName().replace('database-', '');
  const asked = databases && Object.hasOwn(databases, hash) ? databases[hash] : undefined;
  const view = run ? showRun(run) : running ? showRunning(running) : database ? showDatabase(database, link('/', 'all databases'))
    : asked && asked !== only ? showDatabase(asked, link('#', 'all databases')) : only ? showDatabase(only) : showEstate();
  byId('view').replaceChildren(...view.filter(Boolean));
  contents(byId('contents'), `${shownView}.`);
  // Milliseconds, for those who measure.
  document.documentElement.dataset.ready = Math.ceil(performance.now());
};
show();
addEventListener('hashchange', () => {
  if (viewName() === shownView) return;
  show();
  scrollTo(0, 0);
});
document.getElementById(location.hash.slice(1))?.scrollIntoView();
readAgain();
