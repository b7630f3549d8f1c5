<?php

/**
 * What the parser of responses expects next.
 */

declare(strict_types=1);

namespace Postroad\Internal;

/** @internal */
enum ResponsePart
{
    case Head;
    case Body;
    case BodyUntilClose;
    case ChunkSize;
    case Chunk;
    case ChunkEnd;
    case Trailer;
    case Nothing;
}
