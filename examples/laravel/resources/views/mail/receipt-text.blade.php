Thank you, {{ $order['name'] }}.

Order {{ $order['number'] }}
Total: {{ $order['total'] }}
