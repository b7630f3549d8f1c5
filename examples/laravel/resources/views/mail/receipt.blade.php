<h1>Thank you, {{ $order['name'] }}</h1>
<p>Order {{ $order['number'] }}</p>
<p><strong>Total: {{ $order['total'] }}</strong></p>
