/* Code in the template editor: the text areas of the form, with colours, line numbers and indentation. The text area is
   what people type into, and undo, selection, input methods and screen readers are the browser's; its letters are
   transparent, and the same text lies coloured below it. Mistakes are marked in their line, and said below. */
"use strict";
(function () {
  const INDENT = "  ";
  /* A line of minified HTML can have everything: colours end here, so that typing in it stays quick. */
  const MAX_COLORED = 5_000;
  /* More lines are shown by the text area itself: a node for each would make every key slow. */
  const MAX_LINES = 2_000;
  /* Of a line: what follows is not looked at, not even for the state at its end. */
  const MAX_PARTS = 20_000;
  /* {{name}}, {{#items}}, {{{html}}}, {{! comments }}: the tags of protocol/text/mustache.py. */
  const TAG = /\{\{\{[^{}]*\}\}\}|\{\{[^{}]*\}\}/g;
  const OPENED = /<([a-z][\w:-]*)(?:\s(?:"[^"]*"|'[^']*'|[^<>"'])*)?>\s*$/i;
  const VOID = /^(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)$/i;

  /* What can follow in each state: its pattern, its colour, the state after it. The first that fits is taken, and a
     character that none fits is plain. A state lasts over the ends of lines. */
  const HTML = {
    start: [[/<!--/y, "quiet", "comment"], [/<(?=style\b)/iy, "quiet", "style-name"], [/<\/?(?=[a-z])|<!(?=[a-z])/iy, "quiet", "name"], [/[^<]+/y, "", "start"]],
    comment: [[/-->/y, "quiet", "start"], [/(?:(?!-->).)+/y, "quiet", "comment"]],
    ...inside("", "start"),
    ...inside("style-", "css"),
    css: [
      [/<\/(?=style\b)/iy, "quiet", "name"], [/\/\*/y, "quiet", "css-comment"], [/"[^"]*"|'[^']*'/y, "value", "css"], [/@[\w-]+/y, "name", "css"],
      /* A declaration, and not a:hover in front of its block, which is looked for no further than this at each word. */
      [/[\w-]+(?=\s{0,20}:[^{;}]{0,200}(?:[;}]|$))/y, "attribute", "css"], [/[\w-]+|[^\w\-"'@/<]+/y, "", "css"],
    ],
    "css-comment": [[/\*\//y, "quiet", "css"], [/(?:(?!\*\/).)+/y, "quiet", "css-comment"]],
  };
  const TEXT = { start: [[/.+/y, "", "start"]] };

  /* The states between < and >, and the one that follows. */
  function inside(kind, after) {
    const [tag, equals, single, double, declarations] = ["tag", "equals", "single", "double", "declarations"].map((one) => kind + one);
    return {
      [`${kind}name`]: [[/[\w:-]+/y, "name", tag]],
      [tag]: [[/\/?>/y, "quiet", after], [/style(?=\s*=\s*")/iy, "attribute", `${kind}styled`], [/[^\s"'<>/=]+/y, "attribute", tag], [/=/y, "quiet", equals], [/"/y, "value", double], [/'/y, "value", single], [/\s+/y, "", tag]],
      [equals]: [[/\s+/y, "", equals], [/"/y, "value", double], [/'/y, "value", single], [/>/y, "quiet", after], [/[^\s"'>]+/y, "value", tag]],
      [single]: [[/'/y, "value", tag], [/[^']+/y, "value", single]],
      [double]: [[/"/y, "value", tag], [/[^"]+/y, "value", double]],
      [`${kind}styled`]: [[/\s*=\s*/y, "quiet", `${kind}styled`], [/"/y, "value", declarations]],
      [declarations]: [[/"/y, "value", tag], [/[\w-]+(?=\s*:(?!\/\/))/y, "attribute", declarations], [/[\w-]+|[^\w\-"]+/y, "value", declarations]],
    };
  }

  /* The parts of a line as pairs of text and colour, and the state at its end. */
  function scan(text, state, rules) {
    const parts = [];
    let at = 0;
    function until(end) {
      const code = text.slice(at, end);
      let place = 0;
      while (place < code.length && parts.length < MAX_PARTS) {
        const [pattern, color, next] = rules[state].find(([one]) => { one.lastIndex = place; return one.test(code); }) || [null, "", state];
        const length = pattern ? pattern.lastIndex - place : 1;
        parts.push([code.substr(place, length), color]);
        place += length;
        state = next;
      }
    }
    for (const tag of text.matchAll(TAG)) {
      if (parts.length >= MAX_PARTS) break;
      until(tag.index);
      parts.push([tag[0], "mustache"]);
      at = tag.index + tag[0].length;
      /* It was the value, without quotes. */
      state = state.replace(/equals$/, "tag");
    }
    until(text.length);
    return [parts, state];
  }

  function paint(line, parts) {
    const nodes = [];
    let at = 0;
    for (const [text, color] of parts) {
      if (at > MAX_COLORED) break;
      /* A mistake goes from its column to the end of the line. */
      const cut = Math.min(Math.max((line.mistake ?? Infinity) - at, 0), text.length);
      for (const [piece, isWrong] of [[text.slice(0, cut), false], [text.slice(cut), true]]) {
        if (!piece) continue;
        const span = document.createElement("span");
        if (color) span.classList.add(`code-${color}`);
        if (isWrong) span.classList.add("code-wrong");
        span.textContent = piece;
        nodes.push(span.className ? span : piece);
      }
      at += text.length;
    }
    line.node.className = line.mistake === null ? "line" : "line mistaken";
    line.node.replaceChildren(...nodes, line.text.slice(at));
  }

  function open(area) {
    const rules = area.name === "html" ? HTML : TEXT;
    const box = document.createElement("div");
    const shown = document.createElement("pre");
    const problem = document.createElement("span");
    let lines = [];
    let current = null;
    box.className = "code-editor";
    shown.setAttribute("aria-hidden", "true");
    area.before(box);
    box.append(shown, area);
    problem.id = `problem-${area.name}`;
    problem.className = "hint problem";
    problem.setAttribute("role", "status");
    box.after(problem);
    area.setAttribute("aria-describedby", [area.getAttribute("aria-describedby"), problem.id].filter(Boolean).join(" "));

    /* Only lines that have changed are made again, and those after them that now begin inside of something else. */
    function update() {
      let texts = area.value.split("\n");
      box.classList.toggle("plain", texts.length > MAX_LINES);
      if (texts.length > MAX_LINES) texts = [];
      const least = Math.min(lines.length, texts.length);
      let from = 0;
      let kept = 0;
      while (from < least && lines[from].text === texts[from]) from += 1;
      while (kept < least - from && lines.at(-1 - kept).text === texts.at(-1 - kept)) kept += 1;
      const fresh = texts.slice(from, texts.length - kept).map((text) => ({ text, state: null, after: null, mistake: null, node: document.createElement("div") }));
      lines.slice(from, lines.length - kept).forEach((line) => line.node.remove());
      const rest = lines.slice(lines.length - kept);
      const added = document.createDocumentFragment();
      added.append(...fresh.map((line) => line.node));
      shown.insertBefore(added, rest[0]?.node ?? null);
      lines = [...lines.slice(0, from), ...fresh, ...rest];
      for (let at = from; at < lines.length; at += 1) {
        const state = at ? lines[at - 1].after : "start";
        if (lines[at].state === state) break;
        color(lines[at], state);
      }
      follow();
    }

    function color(line, state) {
      const [parts, after] = scan(line.text, state, rules);
      Object.assign(line, { state, after });
      paint(line, parts);
    }

    /* The line of the caret. */
    function follow() {
      current?.removeAttribute("data-current");
      current = lines[area.value.slice(0, area.selectionEnd).split("\n").length - 1]?.node;
      current?.setAttribute("data-current", "");
    }

    function mark(mistakes) {
      const columns = new Map(mistakes.map((one) => [Math.min(one.line, lines.length) - 1, one.column - 1]));
      lines.forEach((line, at) => {
        const mistake = columns.get(at) ?? null;
        if (mistake === line.mistake) return;
        line.mistake = mistake;
        color(line, line.state);
      });
      area.setAttribute("aria-invalid", String(mistakes.length > 0));
      problem.textContent = mistakes.map((one) => one.message).join(" ");
    }

    /* Never by setting the value: only this can be undone. */
    function replace(from, to, text, selected = from + text.length, end = selected) {
      area.setSelectionRange(from, to);
      document.execCommand(text ? "insertText" : "delete", false, text);
      area.setSelectionRange(selected, end);
    }

    const lineStart = (place) => area.value.slice(0, place).lastIndexOf("\n") + 1;
    const lineEnd = (place) => place + /^.*/.exec(area.value.slice(place))[0].length;

    /* A new line begins where the last one did, or further right in an element. Returns whether it was written. */
    function breakLine() {
      const [from, to] = [area.selectionStart, area.selectionEnd];
      const head = area.value.slice(lineStart(from), from);
      const indent = /^[ \t]*/.exec(head)[0];
      const opened = rules === HTML && OPENED.exec(head);
      const isDeeper = opened && !VOID.test(opened[1]) && !opened[0].trimEnd().endsWith("/>");
      if (!indent && !isDeeper) return false;
      const inner = `\n${indent}${isDeeper ? INDENT : ""}`;
      replace(from, to, isDeeper && area.value.startsWith("</", to) ? `${inner}\n${indent}` : inner, from + inner.length);
      return true;
    }

    /* A closing tag begins below the line that opened its element. */
    function closeElement() {
      const at = area.selectionStart;
      const start = lineStart(at);
      const closing = /^[ \t]+(<\/([a-z][\w:-]*))$/i.exec(area.value.slice(start, at));
      if (!closing || rules !== HTML) return false;
      let depth = 1;
      for (const line of area.value.slice(0, start).split("\n").reverse()) {
        for (const [tag] of [...line.matchAll(new RegExp(`</?${closing[2]}(?![\\w:-])`, "gi"))].reverse()) {
          depth += tag[1] === "/" ? 1 : -1;
          if (depth) continue;
          replace(start, area.selectionEnd, `${/^[ \t]*/.exec(line)[0]}${closing[1]}>`);
          return true;
        }
      }
      return false;
    }

    /* Write the selected lines again, and keep them selected. */
    function rewrite(change) {
      const from = lineStart(area.selectionStart);
      const to = lineEnd(Math.max(area.selectionEnd - 1, area.selectionStart));
      const text = change(area.value.slice(from, to).split("\n")).join("\n");
      replace(from, to, text, from, from + text.length);
    }

    function toggleComment(chosen) {
      const all = chosen.join("\n");
      const text = all.trim();
      const commented = /^<!-- ?([^]*?) ?-->$/.exec(text);
      /* One pattern for all three parts would take minutes over a lot of white space. */
      const [before, after] = [/^\s*/.exec(all)[0], all.slice(all.trimEnd().length)];
      return [`${before}${commented ? commented[1] : `<!-- ${text} -->`}${text && after}`];
    }

    /* Change places with the line above, or the one below. */
    function move(step) {
      const from = lineStart(area.selectionStart);
      const to = lineEnd(Math.max(area.selectionEnd - 1, area.selectionStart));
      if (step < 0 ? !from : to === area.value.length) return;
      const start = step < 0 ? lineStart(from - 1) : from;
      const end = step < 0 ? to : lineEnd(to + 1);
      const chosen = area.value.slice(from, to);
      const other = step < 0 ? area.value.slice(start, from - 1) : area.value.slice(to + 1, end);
      const moved = step < 0 ? start : start + other.length + 1;
      replace(start, end, step < 0 ? `${chosen}\n${other}` : `${other}\n${chosen}`, moved, moved + chosen.length);
    }

    const KEYS = {
      "Mod ]": () => rewrite((chosen) => chosen.map((line) => (line ? INDENT + line : line))),
      "Mod [": () => rewrite((chosen) => chosen.map((line) => line.replace(/^(?: {1,2}|\t)/, ""))),
      "Alt ArrowUp": () => move(-1),
      "Alt ArrowDown": () => move(1),
      ...(rules === HTML && { "Mod /": () => rewrite(toggleComment) }),
    };

    area.addEventListener("keydown", (event) => {
      if (area.readOnly || event.shiftKey || event.isComposing || event.altKey === (event.ctrlKey || event.metaKey)) return;
      const act = KEYS[`${event.altKey ? "Alt" : "Mod"} ${event.key}`];
      if (!act) return;
      event.preventDefault();
      act();
    });
    area.addEventListener("beforeinput", (event) => {
      if (!event.cancelable || event.isComposing) return;
      const isDone = event.inputType === "insertLineBreak" ? breakLine() : event.data === ">" && closeElement();
      if (isDone) event.preventDefault();
    });
    area.addEventListener("input", update);
    area.addEventListener("selectionchange", follow);
    area.addEventListener("checked", (event) => mark(event.detail.filter((one) => one.field === area.name)));
    /* A browser that comes back puts in what was typed before. */
    window.addEventListener("pageshow", update);
    update();
  }

  function start(place) {
    const form = place.querySelector("form[data-template]");
    if (!form || form.dataset.edited) return;
    form.dataset.edited = "true";
    form.querySelectorAll("textarea[data-source]").forEach(open);
    let changed = false;

    form.addEventListener("input", (event) => { changed ||= !["scheme", "width", "to"].includes(event.target.name); });
    /* What is saved leaves nothing to lose; a preview or a test saves nothing. */
    form.addEventListener("submit", (event) => {
      const action = event.submitter?.getAttribute("formaction") || "";
      if (!action || action.endsWith("/publish")) changed = false;
    });
    window.addEventListener("beforeunload", (event) => {
      if (changed && form.isConnected && form.hasAttribute("data-enhanced")) event.preventDefault();
    });
  }

  document.addEventListener("prepared", (event) => start(event.detail));
  start(document);
})();
