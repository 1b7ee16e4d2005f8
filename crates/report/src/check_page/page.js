'use strict';
// Names and messages come from a database that may be hostile: they become text nodes, never markup.
const model = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);

// An element of a class with children; strings become text.
const element = (tag, className, ...children) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children.filter(child => child !== null && child !== undefined && child !== ''));
  return made;
};
const grouped = number => Math.round(number).toLocaleString('en-US');
const counted = (number, one, many) => `${grouped(number)} ${number === 1 ? one : many}`;
const table = (heads, rows) => {
  const row = (tag, cells) => element('tr', '', ...cells.map((cell, at) => element(tag, at ? '' : 'name', cell)));
  return element('div', 'scroll', element('table', '', row('th', heads), ...rows.map(cells => row('td', cells))));
};
const definitions = (list, pairs) => {
  for (const [name, value] of pairs) list.append(element('dt', '', name), element('dd', '', value));
  return list;
};
// What is inside is made when it is opened.
const fold = (summary, fill, isOpen) => {
  const details = element('details', '', summary);
  let isFilled = false;
  const open = () => {
    if (!isFilled) details.append(fill());
    isFilled = true;
  };
  details.addEventListener('toggle', () => details.open && open());
  addEventListener('beforeprint', open);
  if (isOpen) {
    open();
    details.open = true;
  }
  return details;
};
// Bytes as lines of 16, with their offsets and characters.
const dump = ({what, offset, hex}) => {
  const pre = element('pre', '', `${what}\n`);
  for (let at = 0; at < hex.length; at += 32) {
    const bytes = hex.slice(at, at + 32).match(/../g);
    const chars = bytes.map(byte => parseInt(byte, 16)).map(code => code > 31 && code < 127 ? String.fromCharCode(code) : '.');
    const place = (offset + at / 2).toString(16).padStart(4, '0');
    pre.append(element('i', '', `${place}  `), `${bytes.slice(0, 8).join(' ')}  ${bytes.slice(8).join(' ')}`,
      element('i', '', `  ${chars.join('')}`), '\n');
  }
  return pre;
};

const showHead = ({head}) => {
  document.title = `${head.name}: ${head.word.toLowerCase()}`;
  byId('kicker').append(`mdfsck check, ${head.started} UTC`);
  byId('name').append(head.name);
  byId('origin').append([head.origin, head.scope].filter(Boolean).join('; '));
  byId('verdict').className = head.tone;
  byId('verdict').append(element('b', '', head.word), element('span', '', head.verdict));
  for (const {what, value, detail} of head.cards) {
    const size = value.length > 14 ? 'card word' : 'card';
    byId('cards').append(element('div', size, element('span', '', what), element('b', '', value), element('span', '', detail)));
  }
  byId('warnings').append(...head.warnings.map(text => element('li', '', text)));
  definitions(byId('facts'), head.facts);
};

const showFindings = ({findings}) => {
  if (!findings.count) return;
  byId('findings').hidden = false;
  let shown = 0;
  for (const {heading, count, messages} of findings.places) {
    byId('places').append(element('h3', '', `${heading} `, element('span', 'n', counted(count, 'finding', 'findings'))));
    for (const message of messages) {
      shown += message.shown.length;
      const check = findings.checks[message.check];
      const summary = element('summary', '', element('span', 'id', String(check.number)),
        message.brief || check.invariant, element('span', 'n', [message.count > 1 ? `and ${grouped(message.count - 1)} more` : '',
          message.follows ? 'follows from damage elsewhere' : ''].filter(Boolean).join(', ')));
      const isFirst = !byId('places').querySelector('details');
      byId('places').append(fold(summary, () => {
        const body = element('div', 'body', definitions(element('dl', 'explained'), [
          ['Must be true', check.invariant], ['What breaks it', check.cause], ['What to do', check.action], ['Check', `${check.id}: ${check.message}`]]));
        for (const {text, bytes} of message.shown) body.append(element('p', 'text', text), bytes ? dump(bytes) : '');
        const more = message.count - message.shown.length;
        if (more) body.append(element('p', 'more', `and ${grouped(more)} more (--format text and --format json list all)`));
        return body;
      }, isFirst));
    }
  }
  const more = findings.more_places ? ` Findings of ${counted(findings.more_places, 'more object or index', 'more objects and indexes')} are not in this page.` : '';
  byId('findings-note').append(shown === findings.count && !more
    ? `${counted(findings.count, 'finding', 'findings')}, by object and message.`
    : `${counted(findings.count, 'finding', 'findings')}, by object and message; ${grouped(shown)} of them are shown.${more}`);
};

const cause = ({reason, id, action, is_allowed, what, follows, demoted, more_demoted}) => {
  const summary = element('summary', '', reason, element('span', 'n', is_allowed ? `${id}, allowed` : id));
  return fold(summary, () => {
    const body = element('div', 'body', element('p', 'text', action));
    for (const {what: kind, places, more} of what) {
      body.append(element('p', 'text', `${kind}: ${places.join(', ')}${more ? ` and ${grouped(more)} more` : ''}`));
    }
    if (follows) body.append(element('p', 'more', `What depends on these pages: ${grouped(follows)} more (--format json lists all)`));
    body.append(...demoted.map(text => element('p', 'text', text)));
    if (more_demoted) body.append(element('p', 'more', `and ${grouped(more_demoted)} more (--format json lists all)`));
    return body;
  }, false);
};

const showNotVerified = ({not_verified: {headline, share, causes, more_causes, notes}}) => {
  if (headline) {
    byId('unverified').hidden = false;
    byId('unverified-head').append([headline, share].filter(Boolean).join(' '));
    let kind = '';
    for (const one of causes) {
      if (one.kind !== kind) byId('causes').append(element('h3', '', one.kind));
      kind = one.kind;
      byId('causes').append(cause(one));
    }
    if (more_causes) byId('causes').append(element('p', 'more', `and ${counted(more_causes, 'more cause', 'more causes')}`));
  }
  byId('remarks').hidden = !notes.length;
  byId('notes').append(...notes.map(cause));
};

const showCommands = ({commands}) => {
  byId('next').hidden = !commands.length;
  for (const {command, what_for} of commands) {
    byId('commands').append(element('dt', '', element('code', '', command)), element('dd', '', what_for));
  }
};

const showCourse = ({phases}) => {
  const figure = (value, digits) => value === null ? '–' : value.toFixed(digits);
  const rows = phases.map(({name, seconds, megabytes, cpu_seconds, spilled_megabytes}) =>
    [name, figure(seconds, 2), figure(cpu_seconds, 2), figure(megabytes, 1), figure(spilled_megabytes, 1)]);
  if (!byId('curves').children.length) byId('curves').before(element('p', '', 'The check was too short for curves.'));
  byId('course').append(table(['', 'seconds', 'processor s', 'MB read', 'MB spilled'], rows));
};

showHead(model);
showFindings(model);
showCommands(model);
showNotVerified(model);
showCourse(model);
