"""How each kind of fault is done."""

from tests.chaos.fault import Kind
from tests.chaos.injections.control import CONTROL
from tests.chaos.injections.injection import Injection
from tests.chaos.injections.ranks import RANKS
from tests.chaos.injections.storage import STORAGE
from tests.chaos.injections.tracking import TRACKING
from tests.chaos.injections.user_code import USER_CODE

INJECTIONS: dict[Kind, Injection] = {**RANKS, **USER_CODE, **CONTROL, **TRACKING, **STORAGE}
