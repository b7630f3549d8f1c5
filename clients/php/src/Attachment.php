<?php

/**
 * A file that goes with a message.
 */

declare(strict_types=1);

namespace Postroad;

use InvalidArgumentException;
use Postroad\Internal\Warnings;

final readonly class Attachment
{
    /**
     * @param string $filename without a path
     * @param ?string $contentType null: the server goes by the file name
     * @param ?string $contentId shows the file inside the HTML, as `cid:<contentId>`
     */
    public function __construct(
        public string $filename,
        public string $bytes,
        public ?string $contentType = null,
        public ?string $contentId = null,
    ) {
    }

    /**
     * Reads a file now. It is called what it is called there, unless another name is given.
     *
     * @throws InvalidArgumentException when it cannot be read
     */
    public static function fromFile(
        string $path,
        ?string $filename = null,
        ?string $contentType = null,
        ?string $contentId = null,
    ): self {
        // A folder can be opened, and reads as nothing with a notice: so the notice counts, too.
        [$bytes, $warning] = Warnings::of(static fn (): string|false => file_get_contents($path));
        if ($bytes === false || $warning !== '') {
            throw new InvalidArgumentException("could not read the attachment $path: $warning");
        }

        return new self($filename ?? basename($path), $bytes, $contentType, $contentId);
    }

    /**
     * @internal
     *
     * @return array<string, string>
     */
    public function toMembers(): array
    {
        return array_filter([
            'filename' => $this->filename,
            'content' => base64_encode($this->bytes),
            'content_type' => $this->contentType,
            'content_id' => $this->contentId,
        ], static fn (?string $value): bool => $value !== null);
    }
}
