<?php

namespace App\Mail;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Mail\Mailable;
use Illuminate\Mail\Mailables\Content;
use Illuminate\Mail\Mailables\Envelope;
use Illuminate\Mail\Mailables\Headers;
use Illuminate\Queue\SerializesModels;

class Receipt extends Mailable implements ShouldQueue
{
    use Queueable, SerializesModels;

    /** @param array{number: string, name: string, total: string} $order */
    public function __construct(public array $order)
    {
    }

    public function envelope(): Envelope
    {
        return new Envelope(subject: "Your receipt for order {$this->order['number']}");
    }

    public function content(): Content
    {
        return new Content(view: 'mail.receipt', text: 'mail.receipt-text');
    }

    /** A job that runs twice sends one receipt; the tag and the metadata find it in the dashboard. */
    public function headers(): Headers
    {
        return new Headers(text: [
            'Idempotency-Key' => "order-{$this->order['number']}-receipt",
            'X-Service-Tag' => 'receipt',
            'X-Service-Metadata-order' => $this->order['number'],
        ]);
    }
}
