<?php

/**
 * Loads the classes of this library, for programs that do not use Composer.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Postroad\\')) {
        $file = __DIR__ . '/' . str_replace('\\', '/', substr($class, strlen('Postroad\\'))) . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
