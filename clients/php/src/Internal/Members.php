<?php

/**
 * Reads the members of a JSON object. What is missing is empty; what has another type than it should is an error.
 */

declare(strict_types=1);

namespace Postroad\Internal;

use Closure;
use DateTimeImmutable;
use stdClass;
use UnexpectedValueException;

/** @internal */
final readonly class Members
{
    private const TIME = '/\A\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\z/';

    private function __construct(private stdClass $object)
    {
    }

    /** @param string $name for the error */
    public static function of(mixed $value, string $name): self
    {
        return $value instanceof stdClass ? new self($value) : throw self::wrong($name, 'an object');
    }

    /** Itself, if it has this member: an object or a list, or the text of a secret. */
    public function having(?string $name): self
    {
        $value = $name === null ? null : $this->object->$name ?? null;
        $isThere = $name === null || ($name === 'secret' ? is_string($value) : is_object($value) || is_array($value));

        return $isThere ? $this : throw self::wrong($name, 'there');
    }

    public function requiredString(string $name): string
    {
        $value = $this->string($name);

        return $value !== null && $value !== '' ? $value : throw new UnexpectedValueException("$name is missing");
    }

    public function string(string $name): ?string
    {
        $value = $this->object->$name ?? null;

        return $value === null || is_string($value) ? $value : throw self::wrong($name, 'a string');
    }

    public function integer(string $name): ?int
    {
        $value = $this->object->$name ?? null;

        return $value === null || is_int($value) ? $value : throw self::wrong($name, 'an integer');
    }

    /** False when it is missing. */
    public function flag(string $name): bool
    {
        $value = $this->object->$name ?? false;

        return is_bool($value) ? $value : throw self::wrong($name, 'true or false');
    }

    /** An object without members when it is missing. */
    public function object(string $name): self
    {
        return self::of($this->object->$name ?? new stdClass(), $name);
    }

    /**
     * An object as an array; null when it is missing.
     *
     * @return array<string, mixed>|null
     */
    public function array(string $name): ?array
    {
        return ($this->object->$name ?? null) === null ? null : $this->object($name)->toArray();
    }

    /**
     * The object as an array, and the objects in it as well.
     *
     * @return array<string, mixed>
     */
    public function toArray(): array
    {
        return json_decode(json_encode($this->object, JSON_THROW_ON_ERROR), true, flags: JSON_THROW_ON_ERROR);
    }

    public function time(string $name): ?DateTimeImmutable
    {
        $value = $this->string($name);
        if ($value === null) {
            return null;
        }
        // The pattern first, because PHP takes "tomorrow" for a time.
        $time = preg_match(self::TIME, $value) === 1 ? date_create_immutable($value) : false;

        return $time !== false ? $time : throw self::wrong($name, 'a time');
    }

    /** @return list<string> */
    public function strings(string $name): array
    {
        return self::allStrings($name, $this->list($name));
    }

    /** @return string|list<string>|null */
    public function stringOrStrings(string $name): string|array|null
    {
        return is_array($this->object->$name ?? null) ? $this->strings($name) : $this->string($name);
    }

    /** @return array<string, string> */
    public function stringMap(string $name): array
    {
        return self::allStrings($name, get_object_vars($this->object($name)->object));
    }

    /**
     * @template T
     *
     * @param Closure(self): T $make
     *
     * @return list<T>
     */
    public function objects(string $name, Closure $make): array
    {
        return array_map(static fn (mixed $value) => $make(self::of($value, $name)), $this->list($name));
    }

    /** @return list<mixed> */
    private function list(string $name): array
    {
        $value = $this->object->$name ?? [];

        return is_array($value) ? $value : throw self::wrong($name, 'a list');
    }

    /**
     * @param array<mixed> $values
     *
     * @return array<string>
     */
    private static function allStrings(string $name, array $values): array
    {
        foreach ($values as $value) {
            if (!is_string($value)) {
                throw self::wrong($name, 'of strings');
            }
        }

        return $values;
    }

    private static function wrong(string $name, string $type): UnexpectedValueException
    {
        return new UnexpectedValueException("$name is not $type");
    }
}
