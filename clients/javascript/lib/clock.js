"use strict";
// Time and chance. Everything that depends on them asks this object, so that a test can put its own in.

const { setTimeout: pause } = require("node:timers/promises");

const clock = {
  /** Milliseconds since 1970, as the wall clock shows them. */
  now: () => Date.now(),
  /** Milliseconds since some moment; never goes back. */
  elapsed: () => performance.now(),
  /** A number from 0 up to 1. */
  random: () => Math.random(),
  /** Waits so many milliseconds; an abort of `signal` ends it with an error. */
  sleep: (milliseconds, signal) => pause(milliseconds, undefined, { signal }),
};

module.exports = { clock };
