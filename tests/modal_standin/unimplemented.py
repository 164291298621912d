"""Services of a few hundred methods, of which a stand-in has a handful."""

from typing import Any

from grpclib import GRPCError, Status


def implement_nothing(base: Any) -> Any:
    """Return `base` with methods that refuse, for all that it leaves open."""

    def refusing(name: str) -> Any:
        async def refuse(self: Any, stream: Any) -> None:
            raise GRPCError(Status.UNIMPLEMENTED, f"{name} is not among what the stand-in has")

        return refuse

    return type(f"No{base.__name__}", (base,), {name: refusing(name) for name in base.__abstractmethods__})
