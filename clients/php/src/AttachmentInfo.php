<?php

/**
 * What a receipt tells of an attachment.
 */

declare(strict_types=1);

namespace Postroad;

use Postroad\Internal\Members;

final readonly class AttachmentInfo
{
    public function __construct(
        public ?string $filename = null,
        public ?string $contentType = null,
        public ?int $size = null,
        public ?string $contentId = null,
    ) {
    }

    /** @internal */
    public static function fromMembers(Members $members): self
    {
        return new self(
            filename: $members->string('filename'),
            contentType: $members->string('content_type'),
            size: $members->integer('size'),
            contentId: $members->string('content_id'),
        );
    }
}
