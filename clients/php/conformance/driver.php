<?php

/**
 * The driver of the conformance suite: a JSON object a line in, one a line out.
 */

declare(strict_types=1);

require __DIR__ . '/../src/autoload.php';

use Postroad\Attachment;
use Postroad\Client;
use Postroad\Email;
use Postroad\PostroadException;
use Postroad\Webhook;

const KINDS = [
    Postroad\InvalidRequestException::class => 'invalid_request',
    Postroad\AuthenticationException::class => 'authentication',
    Postroad\InsufficientCreditsException::class => 'insufficient_credits',
    Postroad\PermissionDeniedException::class => 'permission_denied',
    Postroad\NotFoundException::class => 'not_found',
    Postroad\IdempotencyException::class => 'idempotency',
    Postroad\RateLimitException::class => 'rate_limited',
    Postroad\ServerException::class => 'server',
    Postroad\ConnectionFailedException::class => 'connection_failed',
    Postroad\TimedOutException::class => 'timed_out',
    Postroad\UnexpectedResponseException::class => 'unexpected_response',
    Postroad\SignatureVerificationException::class => 'signature',
];

/** `reply_to` becomes `replyTo`, so that members can be passed as named arguments. */
function arguments(array $members): array
{
    $arguments = [];
    foreach ($members as $name => $value) {
        $arguments[lcfirst(str_replace('_', '', ucwords($name, '_')))] = $value;
    }

    return $arguments;
}

function attachment(array $given): Attachment
{
    $arguments = arguments($given);
    if (isset($given['path'])) {
        return Attachment::fromFile(...$arguments);
    }
    unset($arguments['bytesBase64']);

    return new Attachment(...$arguments, bytes: base64_decode($given['bytes_base64']));
}

function email(array $given): Email
{
    $arguments = arguments($given);
    if (isset($given['attachments'])) {
        $arguments['attachments'] = array_map(attachment(...), $given['attachments']);
    }

    return new Email(...$arguments);
}

/** A value of the client with the names of the interface. */
function written(mixed $value): mixed
{
    if ($value instanceof DateTimeImmutable) {
        return $value->format(DATE_RFC3339_EXTENDED);
    }
    if (is_array($value)) {
        return array_map(written(...), $value);
    }
    if (!is_object($value)) {
        return $value;
    }
    $members = [];
    foreach (get_object_vars($value) as $name => $member) {
        // An empty map and an empty list are the same in PHP; both may be left out.
        if ($member !== []) {
            $members[strtolower(preg_replace('/[A-Z]/', '_$0', $name))] = written($member);
        }
    }

    return $members;
}

function called(Client $client, array $line): mixed
{
    [$method, $owner] = array_reverse(explode('.', $line['name'])) + [1 => null];
    $arguments = $line['arguments'];
    if ($method === 'send_batch') {
        $arguments[0] = array_map(email(...), $arguments[0]);
    }
    $names = array_keys(arguments([$method => 0, $owner => 0]));
    $object = $owner === null ? $client : $client->{$names[1]};
    $result = $object->{$names[0]}(...$arguments, ...arguments($line['parameters']));

    return $result instanceof Generator ? iterator_to_array($result) : $result;
}

function perform(array $line): mixed
{
    if ($line['operation'] === 'parse_event') {
        return Webhook::parseEvent(
            base64_decode($line['body_base64']),
            $line['header'],
            $line['secrets'],
            $line['tolerance'],
            $line['now'],
        );
    }
    if ($line['operation'] === 'verify') {
        return Webhook::verify(
            base64_decode($line['body_base64']),
            $line['header'],
            $line['secret'],
            $line['tolerance'],
            $line['now'],
        );
    }
    $client = new Client(...arguments($line['client']));

    return match ($line['operation']) {
        'call' => called($client, $line),
        'send' => $client->send(email($line['email']), $line['idempotency_key'] ?? null),
        'get' => $client->get($line['id']),
        'wait' => $client->wait($line['id'], $line['timeout']),
    };
}

function answer(array $line): array
{
    try {
        return ['result' => written(perform($line))];
    } catch (InvalidArgumentException $exception) {
        return ['refused' => $exception->getMessage()];
    } catch (PostroadException $exception) {
        return ['error' => [
            'kind' => KINDS[$exception::class],
            'status' => $exception->status,
            'code' => $exception->errorCode,
            'request_id' => $exception->requestId,
            'message' => $exception->getMessage(),
            'retry_after' => $exception->retryAfter,
            'idempotency_key' => $exception->idempotencyKey,
            'is_retryable' => $exception->isRetryable(),
            'is_insufficient_credits' => $exception->isInsufficientCredits(),
            'is_idempotency_conflict' => $exception->isIdempotencyConflict(),
        ]];
    }
}

// A warning is a fault of the client: it must not reach an application.
set_error_handler(static function (int $level, string $message, string $file, int $line): never {
    throw new ErrorException($message, 0, $level, $file, $line);
});

while (($line = fgets(STDIN)) !== false) {
    echo json_encode(answer(json_decode($line, true)), JSON_THROW_ON_ERROR), "\n";
}
