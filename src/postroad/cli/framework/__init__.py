"""What commands are made of: their installation or server, their output, lazy imports.

Begin with `server_command.py`.
"""
