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
        const body = element('div', 'body', explained(check));
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
