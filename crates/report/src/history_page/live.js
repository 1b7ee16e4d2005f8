// A check that is under way: how far it is, its curves, and which pages are done.
const SWEPT_NAMES = ['not yet', 'in part', 'done'];
const SWEPT_COLORS = ['free', 'age2', 'age0'];
const bySwept = {
  colors: ({states}) => ({list: SWEPT_COLORS.map(colorOf), of: at => states[at]}),
  names: () => SWEPT_NAMES,
  words: ({states}, run) => SWEPT_NAMES[states[run]],
  table: map => {
    const totals = map.totals(at => map.runs.states[at], SWEPT_NAMES.length);
    return {heads: ['', 'size'], rows: SWEPT_NAMES.map((name, at) => [name, size(totals[at] * BYTES_PER_EXTENT)]).filter((_, at) => totals[at])};
  },
};
const share = ({done, pages}) => pages ? `${Math.floor(100 * Math.min(done, pages) / pages)}\u00a0%` : '';
const stageOf = running => [running.phase || 'starting', share(running)].filter(Boolean).join(', ');
// Seconds until the phase is done, at its speed so far.
const left = ({done, pages, phase_seconds: passed}) => done && pages > done && passed > 2 ? (pages - done) * passed / done : null;

const card = (what, value, detail) => value === null ? null : element('div', 'card', element('span', '', what), element('b', '', value), element('span', '', detail));
const liveCards = running => {
  const {done, pages, now, granted, seconds} = running;
  const rest = left(running);
  const cards = [
    card('Phase', running.phase || 'starting', pages ? `${grouped(done)} of ${grouped(pages)} pages` : ''),
    card('Done', share(running) || null, rest === null || running.is_stopped ? '' : `about ${span(rest)} left`),
    card('Time', duration(seconds), `since ${moment(running.started)} UTC`),
  ];
  if (now) {
    cards.push(card('Read', `${size(now.bytes_per_second)}/s`, `${size(now.bytes)} so far`),
      card('Processors in use', now.processors === null ? null : now.processors.toFixed(now.processors < 0.95 ? 2 : 1), ''),
      card('Memory of the process', now.memory === null ? null : size(now.memory), granted === null ? '' : `${size(granted)} granted for the check`),
      card('Spilled', size(now.spilled), 'to temporary files'));
  }
  return element('div', 'cards', ...cards);
};
const liveMaps = ({files}) => {
  const shown = files.filter(file => file.pages);
  if (!shown.length) return null;
  const maps = [];
  const place = element('div', '', element('h3', '', 'Pages done'));
  shown.forEach((file, at) => {
    const title = ['File ' + file.id + ' ', element('span', 'n', `${grouped(file.pages)} pages, ${size(file.pages * 8192)}`)];
    const make = () => {
      const frame = element('div', '');
      maps.push(new PageMap({id: file.id, pages: file.pages, cell_shift: 0, unread: null}, runsOf(file, [], state => state), frame, bySwept));
      return frame;
    };
    if (shown.length <= 8) place.append(element('p', 'more', ...title), make());
    else place.append(fold(element('summary', '', ...title), make, at === 0));
  });
  redraw(() => maps.forEach(map => map.draw()));
  return place;
};
const silence = running => `The check was last seen ${moment(running.seen)} UTC, ${ago(running.seen)}: the check was killed, or can no longer write to the history. The results of the check are not recorded; check again.`;
const whereRuns = ({host, pid}) => `process ${pid} on ${host}`;
const liveView = (running, isAlone) => {
  const curves = byId(`curves-${running.id}`);
  if (curves) curves.hidden = false;
  return section(running.is_stopped ? 'A check that stopped' : 'Check under way', isAlone ? null : element('p', '', `${running.paths}, ${whereRuns(running)}`),
    running.is_stopped && !isAlone ? element('p', 'text', silence(running)) : null, liveCards(running), curves, liveMaps(running));
};
// All checks that are under way, for the estate.
const liveList = running => {
  if (!running.length) return null;
  const name = one => {
    const made = isLive ? link(one.database === null ? `/running/${one.id}` : `/database/${one.database}`, one.name || one.paths) : element('span', '', one.name || one.paths);
    made.dir = 'auto';
    return made;
  };
  const rows = running.map(one => [name(one), one.is_stopped ? element('span', 'state unknown', 'stopped') : stageOf(one), moment(one.started), ago(one.seen), one.host]);
  return section('Checks under way', table(['database', 'phase', 'started (UTC)', 'last seen', 'machine'], rows));
};
const showRunning = running => {
  title(running.name || running.paths, `${running.paths}, ${whereRuns(running)}`, link('/', 'all databases'));
  verdict(running.is_stopped ? 'doubtful' : 'running', running.is_stopped ? 'STOPPED' : 'UNDER WAY', running.is_stopped ? silence(running) : stageOf(running));
  return [liveView(running, true)];
};
// Pages from a server are read again, more often during a check, and never while the user is typing or looks closer at a map.
const again = () => {
  const typed = [...document.querySelectorAll('input')].some(input => input === document.activeElement || input.type !== 'password' && input.value);
  if (!typed && !document.hidden && !document.querySelector('.bar button')) location.reload();
  else setTimeout(again, 5000);
};
const readAgain = () => {
  if (!isLive) return;
  const running = model.running ? [model.running] : (model.database ?? model.estate)?.running ?? [];
  const isUnderWay = running.some(one => !one.is_stopped) || model.database?.row.under_way;
  if (isUnderWay) setTimeout(again, model.estate ? 10000 : 3000);
  else if (model.estate || model.running) setTimeout(again, 60000);
};
