<?php

/**
 * The process behind Server: reads its script from standard input, writes its address and then each request: the number
 * of its connection, and its bytes in base64.
 */

declare(strict_types=1);

/** Reads a whole request with a Content-Length, or none. */
function request(mixed $connection, string $bytes): string
{
    while (!str_contains($bytes, "\r\n\r\n") && !feof($connection)) {
        $bytes .= fread($connection, 8192);
    }
    $length = preg_match('/^Content-Length: (\d+)/m', $bytes, $match) === 1 ? (int) $match[1] : 0;
    $whole = (int) strpos($bytes, "\r\n\r\n") + 4 + $length;
    while (strlen($bytes) < $whole && !feof($connection)) {
        $bytes .= fread($connection, 65536);
    }

    return $bytes;
}

function play(array $step, mixed $connection, int $number, string $begun): void
{
    $request = $step['read'] ? request($connection, $begun) : '';
    fwrite($connection, base64_decode($step['answer']));
    if ($step['end'] === 'reset') {
        $socket = socket_import_stream($connection);
        socket_set_option($socket, SOL_SOCKET, SO_LINGER, ['l_onoff' => 1, 'l_linger' => 0]);
    } elseif ($step['end'] === 'hang') {
        while (!feof($connection)) {
            fread($connection, 8192);
        }
    } elseif ($step['end'] === 'sleep') {
        fgets(STDIN);
    } elseif ($step['end'] === 'trickle') {
        while (@fwrite($connection, 'x') !== false) {
            usleep(1000);
        }
    }
    if ($step['end'] !== 'keep') {
        fclose($connection);
    }
    // At the end, because nobody reads this while the client waits.
    echo "$number ", base64_encode($request), "\n";
}

$script = json_decode(fgets(STDIN), true);
$context = stream_context_create(['ssl' => ['local_cert' => $script['certificate']]]);
$server = stream_socket_server("tcp://{$script['host']}:0", context: $context);
echo stream_socket_get_name($server, false), "\n";
$isSecure = $script['certificate'] !== null;
$connection = null;
$number = 0;
foreach ($script['steps'] as $step) {
    $begun = '';
    // The next request comes over the connection that was kept, or over a new one.
    if ($connection !== null) {
        $ready = [$server, $connection];
        $none = [];
        stream_select($ready, $none, $none, null);
        $begun = in_array($server, $ready, true) ? '' : (string) fread($connection, 8192);
    }
    if ($begun === '') {
        $connection = stream_socket_accept($server, -1);
        $number++;
        // The client may go away within the handshake; that is what some tests are about.
        if ($isSecure && !@stream_socket_enable_crypto($connection, true, STREAM_CRYPTO_METHOD_TLS_SERVER)) {
            $connection = null;
            continue;
        }
    }
    play($step, $connection, $number, $begun);
    $connection = $step['end'] === 'keep' ? $connection : null;
}
