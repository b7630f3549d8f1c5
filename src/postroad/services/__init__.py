"""What people manage, grouped by capability.

Each function is given a `Context`, checks what its caller may do, and has its transactions in sight; it knows neither
HTTP nor SMTP.
"""
