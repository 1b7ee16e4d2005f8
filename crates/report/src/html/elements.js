'use strict';
// Names and messages come from a database that may be hostile: they become text nodes, never markup.
const model = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);

// An element with a class and children; strings become text.
const element = (tag, className, ...children) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children.filter(child => child !== null && child !== undefined && child !== ''));
  return made;
};
const grouped = number => Math.round(number).toLocaleString('en-US');
const counted = (number, one, many) => `${grouped(number)} ${number === 1 ? one : many}`;
// On a narrow screen each row is a list, in which a cell has the name of its column beside it.
const table = (heads, rows) => {
  const head = element('tr', 'heads', ...heads.map((name, at) => element('th', at ? '' : 'name', name)));
  const row = cells => element('tr', '', ...cells.map((cell, at) => {
    const made = element('td', at ? '' : 'name', cell);
    if (made.hasChildNodes()) made.dataset.head = heads[at];
    return made;
  }));
  const place = element('div', 'scroll', element('table', '', element('thead', '', head), element('tbody', '', ...rows.map(row))));
  place.tabIndex = 0;
  return place;
};
const definitions = (list, pairs) => {
  for (const [name, value] of pairs) list.append(element('dt', '', name), element('dd', '', value));
  return list;
};
// The content is made when it is opened.
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
// As many of `made` as can be looked through; the rest is folded.
const MOST_SHOWN = 20;
const listed = (made, one, many) => {
  const rest = made.length > MOST_SHOWN + 1 ? made.splice(MOST_SHOWN) : [];
  const more = element('summary', '', `and ${counted(rest.length, one, many)}`);
  return rest.length ? [...made, fold(more, () => element('div', '', ...rest), false)] : made;
};
// Links to the sections that are shown; the links of a view begin with `before`.
const contents = (place, before) => {
  const shown = [...document.querySelectorAll('section:not([hidden])')].filter(one => one.querySelector('h2'));
  place.replaceChildren(...shown.map((one, at) => {
    const head = one.querySelector('h2');
    if (before !== null) one.id = `${before}${at + 1}`;
    const link = element('a', '', head.textContent);
    link.href = `#${one.id}`;
    return link;
  }));
  place.hidden = shown.length < 2;
};
// A group of more places than these is closed.
const MOST_OPEN = 3;
// Bytes as lines of 16, with their offsets and characters.
const dump = ({what, offset, hex}) => {
  const pre = element('pre', '', `${what}\n`);
  pre.tabIndex = 0;
  for (let at = 0; at < hex.length; at += 32) {
    const bytes = hex.slice(at, at + 32).match(/../g);
    const chars = bytes.map(byte => parseInt(byte, 16)).map(code => code > 31 && code < 127 ? String.fromCharCode(code) : '.');
    const place = (offset + at / 2).toString(16).padStart(4, '0');
    pre.append(element('i', '', `${place}  `), `${bytes.slice(0, 8).join(' ')}  ${bytes.slice(8).join(' ')}`,
      element('i', '', `  ${chars.join('')}`), '\n');
  }
  return pre;
};
const size = bytes => bytes >= 1e12 ? `${(bytes / 1e12).toFixed(2)} TB` : bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;

// What a check means, as in mdfsck explain.
const explained = check => definitions(element('dl', 'explained'), [['Rule', check.invariant], ['Cause', check.cause],
  ['What to do', check.action], ['Check', `${check.id}: ${check.message}`]]);

// Why something was not verified, and where.
const cause = ({reason, id, action, is_allowed, what, follows, demoted, more_demoted}) => {
  const summary = element('summary', '', reason, element('span', 'n', is_allowed ? `${id}, allowed` : id));
  return fold(summary, () => {
    const body = element('div', 'body', element('p', 'text', action));
    for (const {what: kind, places, more} of what) {
      body.append(element('p', 'text', `${kind}: ${places.join(', ')}${more ? ` and ${grouped(more)} more` : ''}`));
    }
    if (follows) body.append(element('p', 'more', `Other entries that depend on these pages: ${grouped(follows)} (--format json lists all)`));
    body.append(...demoted.map(text => element('p', 'text', text)));
    if (more_demoted) body.append(element('p', 'more', `and ${grouped(more_demoted)} more (--format json lists all)`));
    return body;
  }, false);
};
// Causes under the headings of their kinds.
const causesOf = causes => {
  const kinds = new Map();
  for (const one of causes) kinds.set(one.kind, [...kinds.get(one.kind) ?? [], cause(one)]);
  return [...kinds].flatMap(([kind, made]) => [element('h3', '', kind), ...listed(made, 'more cause', 'more causes')]);
};
