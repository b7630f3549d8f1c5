<?php

/**
 * Loads what the tests need.
 */

declare(strict_types=1);

error_reporting(E_ALL);

require __DIR__ . '/../src/autoload.php';
foreach (['FakeClock', 'FakeTransport', 'Json', 'Server'] as $class) {
    require __DIR__ . "/Support/$class.php";
}
