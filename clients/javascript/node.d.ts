// The types for `import`; they are the same as for `require`.

export * from "./node.cjs";
