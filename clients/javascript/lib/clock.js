// Time and chance. Everything that depends on them asks this object, so that a test can put its own in.

export const clock = {
  /** Milliseconds since 1970, as the wall clock shows them. */
  now: () => Date.now(),
  /** Milliseconds since some moment; never goes back. */
  elapsed: () => performance.now(),
  /** A number from 0 up to 1. */
  random: () => Math.random(),
  /** Waits so many milliseconds; an abort of `signal` ends it with the signal's reason. */
  sleep: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      }, milliseconds);
      signal?.addEventListener("abort", onAbort, { once: true });
    }),
};
