// What the package offers, for `import`. The classes are the same as for `require`.

import postroad from "./index.js";

export const { Attachment, Postroad, PostroadError, verify } = postroad;
