"""What a process of the service runs. `service.py` has the table of roles; `role.py` says what a role is.

An operator command needs `composition.py` alone, so nothing here imports a listener or an engine.
"""

from postroad.roles.role import Addresses as Addresses
from postroad.roles.role import CannotListen as CannotListen
from postroad.roles.role import RoleContext as RoleContext
from postroad.roles.role import Started as Started
from postroad.roles.role import StartError as StartError
from postroad.roles.role import cannot_listen as cannot_listen
from postroad.roles.supervisor import RoleFailed as RoleFailed
