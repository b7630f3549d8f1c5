// Compares results with what the declarations of a package promise: reads {file, results: [{class, path, value}]} from
// standard input, where `path` names a method of the class, and writes for each the members that are missing or of
// another type. A member that is declared nowhere is not looked at, and an optional one may be null.
import { readFileSync } from "node:fs";
import ts from "typescript";

const { file, results } = JSON.parse(readFileSync(0, "utf8"));
const program = ts.createProgram([file], { strict: true, target: ts.ScriptTarget.ES2022, types: [] });
const checker = program.getTypeChecker();
const source = program.getSourceFile(file);
const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(source));

function returned(name, path) {
  const symbol = exported.find((one) => one.name === name);
  const resolved = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const owner = path.reduce(
    (type, member) => checker.getTypeOfSymbol(type.getProperty(member)), checker.getDeclaredTypeOfSymbol(resolved));
  return checker.getAwaitedType(owner.getCallSignatures()[0].getReturnType());
}

function* problems(type, value, place) {
  if (type.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.NonPrimitive | ts.TypeFlags.TypeParameter)) return;
  if (type.isUnion()) {
    const each = type.types.map((one) => [...problems(one, value, place)]);
    // The alternative that was meant: the one with problems in the fewest members.
    const members = (found) => new Set(found.map((problem) => problem.slice(place.length + 1).split(/[.[ ]/)[0])).size;
    if (each.every((found) => found.length)) yield* each.reduce((best, one) => (members(one) < members(best) ? one : best));
    return;
  }
  if (type.isLiteral()) return void (yield* value === type.value ? [] : [`${place} is ${JSON.stringify(value)}`]);
  if (checker.isArrayType(type) || checker.isTupleType(type)) {
    if (!Array.isArray(value)) yield `${place} is no list`;
    else for (const [index, one] of value.entries()) yield* problems(checker.getTypeArguments(type)[0], one, `${place}[${index}]`);
    return;
  }
  if (!(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection))) {
    const named = value === null ? "null" : typeof value;
    const declared = checker.typeToString(type);
    if (declared !== named && declared !== String(value)) yield `${place} is ${named} and not ${declared}`;
    return;
  }
  if (value === null || typeof value !== "object") return void (yield `${place} is ${JSON.stringify(value)}`);
  for (const member of type.getProperties()) {
    const here = place ? `${place}.${member.name}` : member.name;
    const isOptional = member.flags & ts.SymbolFlags.Optional;
    if (!(member.name in value)) yield* isOptional ? [] : [`${here} is missing`];
    else if (!(isOptional && value[member.name] === null)) yield* problems(checker.getTypeOfSymbol(member), value[member.name], here);
  }
}

const found = results.map(({ class: name, path, value }) => [...problems(returned(name, path), value, "")]);
console.log(JSON.stringify(found));
