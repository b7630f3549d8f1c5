/* The parts of CodeMirror that assets/template_editor.js uses, as one global object. */
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { html } from "@codemirror/lang-html";
import { indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import {
  Decoration, EditorView, MatchDecorator, ViewPlugin, drawSelection, highlightActiveLine, keymap, lineNumbers,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

globalThis.CodeMirror = {
  Decoration, EditorState, EditorView, MatchDecorator, ViewPlugin, classHighlighter, defaultKeymap,
  drawSelection, highlightActiveLine, history, historyKeymap, html, indentOnInput, keymap, lineNumbers, lintGutter,
  lintKeymap, setDiagnostics, syntaxHighlighting,
};
