// Readers of members of a response or an event: each takes the name that the server uses, and gives a function of the object.
// A member that is not there is empty; one of the wrong type is a Mismatch.

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

class Mismatch extends Error {}

function member(name, empty, isRight, convert = (value) => value) {
  return (object) => {
    const value = object[name] ?? null;
    if (value === null) return empty();
    if (!isRight(value)) throw new Mismatch(`the type of \`${name}\` is wrong`);
    return convert(value);
  };
}

const isString = (value) => typeof value === "string";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isTime = (value) => isString(value) && RFC_3339.test(value) && !Number.isNaN(Date.parse(value));

const nothing = () => null;

const string = (name) => member(name, nothing, isString);
const integer = (name) => member(name, nothing, Number.isInteger);
const time = (name) => member(name, nothing, isTime, (value) => new Date(value));
const boolean = (name) => member(name, () => false, (value) => typeof value === "boolean");
const strings = (name) => member(name, () => [], (value) => Array.isArray(value) && value.every(isString));
const stringOrStrings = (name) =>
  member(name, nothing, (value) => isString(value) || (Array.isArray(value) && value.every(isString)));
const stringsByName = (name) =>
  member(name, () => ({}), (value) => isObject(value) && Object.values(value).every(isString));
const list = (name, fields) => member(name, () => [], Array.isArray, (values) => values.map(record(fields)));

const object = (name, fields) => member(name, () => record(fields)({}), isObject, (value) => record(fields)(value));

/** An object with the names of the API. */
const plain = (name) => member(name, nothing, isObject);

const required = (name) => (object) => {
  if (!isString(object[name]) || object[name] === "") throw new Mismatch(`there is no \`${name}\``);
  return object[name];
};

/** A reader of an object with these fields. */
function record(fields) {
  return (object) => {
    if (!isObject(object)) throw new Mismatch("it is not an object");
    return Object.fromEntries(Object.entries(fields).map(([name, read]) => [name, read(object)]));
  };
}

export { Mismatch, boolean, integer, list, object, plain, record, required, string, stringOrStrings, strings, stringsByName, time };
