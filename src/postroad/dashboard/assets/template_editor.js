/* CodeMirror in place of the text areas of the template editor, which stay the fields of the form. It is in a shadow
   root, where its styles need no permission of the page's policy. Mistakes are marked in their line, and said below. */
"use strict";
(function () {
  const CM = window.CodeMirror;
  /* Loaded only where there are templates to edit. */
  if (!CM) return;

  const THEME = CM.EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px", border: "1px solid var(--line-strong)", borderRadius: "7px" },
    "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", maxHeight: "32rem", overflow: "auto" },
    ".cm-content": { caretColor: "var(--text)", minHeight: "14rem" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    ".cm-gutters": { borderRadius: "7px 0 0 7px", backgroundColor: "var(--raised)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
    ".cm-activeLine": { backgroundColor: "transparent" },
    "&.cm-focused .cm-activeLine": { backgroundColor: "var(--accent-soft)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--wait-soft)" },
    ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
    ".cm-tag": { color: "var(--accent)", fontWeight: "600" },
    ".tok-typeName, .tok-keyword": { color: "var(--good)" },
    ".tok-propertyName, .tok-attributeName": { color: "var(--wait)" },
    ".tok-string, .tok-attributeValue": { color: "var(--warn)" },
    ".tok-comment, .tok-meta, .tok-punctuation": { color: "var(--muted)" },
  });

  /* {{name}}, {{#items}}, {{{html}}}, {{! comments }}: the tags of protocol/text/mustache.py. */
  const MATCHER = new CM.MatchDecorator({ regexp: /\{\{\{[^{}]*\}\}\}|\{\{[^{}]*\}\}/g, decoration: CM.Decoration.mark({ class: "cm-tag" }) });
  const TAGS = CM.ViewPlugin.fromClass(class {
    constructor(view) { this.decorations = MATCHER.createDeco(view); }
    update(update) { this.decorations = MATCHER.updateDeco(update, this.decorations); }
  }, { decorations: (plugin) => plugin.decorations });

  function open(area) {
    const label = area.labels[0]?.textContent.trim() || area.name;
    const host = document.createElement("div");
    host.className = "code-editor";
    area.after(host);
    const root = host.attachShadow({ mode: "open" });
    const view = new CM.EditorView({
      parent: root,
      root,
      doc: area.value,
      extensions: [
        CM.lineNumbers(), CM.lintGutter(), CM.history(), CM.drawSelection(), CM.highlightActiveLine(),
        CM.indentOnInput(), CM.syntaxHighlighting(CM.classHighlighter), CM.EditorView.lineWrapping, TAGS, THEME,
        ...(area.name === "html" ? [CM.html] : []),
        CM.keymap.of([...CM.defaultKeymap, ...CM.historyKeymap, ...CM.lintKeymap]),
        CM.EditorState.readOnly.of(area.readOnly),
        CM.EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": `problem-${area.name}`, spellcheck: "false", tabindex: "0" }),
        CM.EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          area.value = view.state.doc.toString();
          area.dispatchEvent(new Event("input", { bubbles: true }));
        }),
      ],
    });
    /* The label belongs to the editor now. */
    area.setAttribute("aria-label", label);
    for (const one of [...area.labels]) { one.removeAttribute("for"); one.addEventListener("click", () => view.focus()); }
    area.hidden = true;
    const problem = document.createElement("span");
    problem.id = `problem-${area.name}`;
    problem.className = "hint problem";
    problem.setAttribute("role", "status");
    host.after(problem);
    area.addEventListener("checked", (event) => mark(view, problem, event.detail.filter((one) => one.field === area.name)));
  }

  function mark(view, problem, found) {
    const diagnostics = found.map((one) => {
      const line = view.state.doc.line(Math.min(one.line, view.state.doc.lines));
      const from = Math.min(line.from + one.column - 1, line.to);
      return { from, to: line.to, severity: "error", message: one.message };
    });
    view.dispatch(CM.setDiagnostics(view.state, diagnostics));
    problem.textContent = found.map((one) => one.message).join(" ");
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
