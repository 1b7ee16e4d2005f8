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

// The findings of one message in one place.
const messageOf = (message, checks, isOpen) => {
  const check = checks[message.check];
  const summary = element('summary', '', element('span', 'id', String(check.number)),
    message.brief || check.fault, element('span', 'n', [message.count > 1 ? `and ${grouped(message.count - 1)} more` : '',
      message.follows ? 'follows from damage elsewhere' : ''].filter(Boolean).join(', ')));
  return fold(summary, () => {
    const body = element('div', 'body', explained(check));
    for (const {text, bytes} of message.shown) body.append(element('p', 'text', text), bytes ? dump(bytes) : '');
    const more = message.count - message.shown.length;
    if (more) body.append(element('p', 'more', `and ${grouped(more)} more (--format text and --format json list all)`));
    return body;
  }, isOpen);
};
const showFindings = ({findings}) => {
  if (!findings.count) return;
  byId('findings').hidden = false;
  let shown = 0;
  const made = findings.places.map(({heading, count, messages}, at) => {
    for (const message of messages) shown += message.shown.length;
    const summary = element('summary', '', element('b', '', heading), element('span', 'n', counted(count, 'finding', 'findings')));
    summary.dir = 'auto';
    return fold(summary, () => element('div', 'body', ...messages.map((message, number) =>
      messageOf(message, findings.checks, at + number === 0 && message.count <= MOST_OPEN))), count <= MOST_OPEN && at < MOST_SHOWN);
  });
  byId('places').append(...listed(made, 'more object or index', 'more objects and indexes'));
  const more = findings.more_places ? ` Findings of ${counted(findings.more_places, 'more object or index', 'more objects and indexes')} are not in this page.` : '';
  byId('findings-note').append(shown === findings.count && !more
    ? `${counted(findings.count, 'finding', 'findings')}, by object and message.`
    : `${counted(findings.count, 'finding', 'findings')}, by object and message; ${grouped(shown)} of them are shown.${more}`);
};

const showPatterns = ({patterns}) => {
  byId('patterns').hidden = !patterns.length;
  byId('pattern-list').append(...patterns.map(text => element('li', '', text)));
};

const showNotVerified = ({not_verified: {headline, share, causes, more_causes, notes}}) => {
  if (headline) {
    byId('unverified').hidden = false;
    byId('unverified-head').append([headline, share].filter(Boolean).join(' '));
    byId('causes').append(...causesOf(causes));
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
showPatterns(model);
showFindings(model);
showCommands(model);
showNotVerified(model);
showCourse(model);
contents(byId('contents'), null);
