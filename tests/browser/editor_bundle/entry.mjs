/* The parts of CodeMirror that assets/template_editor.js uses, as one global object. Email runs no scripts, so this is
   HTML with styles, without scripts or completion: with all of @codemirror/lang-html it would be a third larger. */
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { LRLanguage, indentNodeProp, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import {
  Decoration, EditorView, MatchDecorator, ViewPlugin, drawSelection, highlightActiveLine, keymap, lineNumbers,
} from "@codemirror/view";
import { parser as css } from "@lezer/css";
import { classHighlighter } from "@lezer/highlight";
import { configureNesting, parser } from "@lezer/html";

/* As in @codemirror/lang-html: content is indented, and a closing tag is not. */
function indentElement(context) {
  const [all, , closing] = /^(\s*)(<\/)?/.exec(context.textAfter);
  if (context.node.to <= context.pos + all.length) return context.continue();
  return context.lineIndent(context.node.from) + (closing ? 0 : context.unit);
}

const html = LRLanguage.define({
  name: "html",
  parser: parser.configure({
    props: [indentNodeProp.add({ Element: indentElement })],
    wrap: configureNesting([{ tag: "style", parser: css }], [{ name: "style", parser: css.configure({ top: "Styles" }) }]),
  }),
  languageData: { commentTokens: { block: { open: "<!--", close: "-->" } }, indentOnInput: /^\s*<\/\w+\W$/ },
});

globalThis.CodeMirror = {
  Decoration, EditorState, EditorView, MatchDecorator, ViewPlugin, classHighlighter, defaultKeymap,
  drawSelection, highlightActiveLine, history, historyKeymap, html, indentOnInput, keymap, lineNumbers, lintGutter,
  lintKeymap, setDiagnostics, syntaxHighlighting,
};
