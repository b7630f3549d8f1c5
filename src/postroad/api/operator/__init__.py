"""`/v1/operator`: the API of the installation, for operators and for API keys with the scope `operator`.

`routes.py` lists its endpoints.
"""
