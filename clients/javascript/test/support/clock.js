// Time that passes only when the client sleeps. Each test file is a process of its own, so nobody else sees it.

import { clock } from "../../lib/clock.js";

/** Puts the hands of the client's clock into the test's; gives the list of its pauses, in milliseconds. */
function stopClock(t, { now = 0, random = 0.5 } = {}) {
  const real = { ...clock };
  t.after(() => Object.assign(clock, real));
  const pauses = [];
  let passed = 0;
  clock.now = () => now + passed;
  clock.elapsed = () => passed;
  clock.random = () => random;
  clock.sleep = async (milliseconds) => {
    pauses.push(milliseconds);
    passed += milliseconds;
  };
  return pauses;
}

export { stopClock };
