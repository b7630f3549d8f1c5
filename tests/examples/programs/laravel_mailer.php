<?php

// Sends as Laravel's mail manager does with these variables: php laravel_mailer.php AUTOLOAD RECIPIENT

use Symfony\Component\Mailer\Transport\Dsn;
use Symfony\Component\Mailer\Transport\Smtp\EsmtpTransportFactory;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;

require $argv[1];

$transport = (new EsmtpTransportFactory())->create(new Dsn(
    getenv('MAIL_SCHEME'),
    getenv('MAIL_HOST'),
    getenv('MAIL_USERNAME'),
    getenv('MAIL_PASSWORD'),
    (int) getenv('MAIL_PORT'),
));
$email = (new Email())
    ->from(new Address(getenv('MAIL_FROM_ADDRESS'), getenv('MAIL_FROM_NAME')))
    ->to($argv[2])
    ->subject('Your receipt for order 1042')
    ->text('Thank you, Ada.')
    ->html('<h1>Thank you, Ada</h1>');
$email->getHeaders()->addTextHeader('Idempotency-Key', 'order-1042-receipt-laravel');
$email->getHeaders()->addTextHeader('X-Service-Tag', 'receipt');
$email->getHeaders()->addTextHeader('X-Service-Metadata-order', '1042');
echo $transport->send($email)->getDebug();
