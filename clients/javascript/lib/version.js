// Also in package.json, which a bundle does not carry.

export const VERSION = "0.1.0";
